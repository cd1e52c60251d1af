// submit.tsx - a form for a job
import { useEffect, useMemo, useState } from "preact/hooks";
import { request } from "../api";
import { nodes } from "../cluster";
import { localTimes } from "../format";
import { Head, Wrong } from "../parts/common";
import { tell } from "../parts/dialog";
import { type Fault, FormField, type Values, collect, faultOf } from "../parts/field";
import { textOf } from "../parts/resource-form";
import { useResource } from "../resource";
import { type Field, jobFields } from "../resources";
import { go, route } from "../route";
import { isAdmin, mayChange, session, tenants } from "../state";
import type { Job } from "../types";
import { warnings } from "../warnings";

type Share = "whole" | "memory" | "fraction" | "none";

export interface Form {
  kind: "command" | "script";
  share: Share;
  values: Values;
}

const EMPTY: Form = {
  kind: "command",
  share: "whole",
  values: { gpu_count: "1", gpu_fraction: "0.5", tasks: "1" },
};

const SHARES: [Share, string][] = [
  ["whole", "Whole GPUs"],
  ["memory", "Share of a GPU, by memory"],
  ["fraction", "Share of a GPU, by fraction"],
  ["none", "None"],
];

/** The sections that are closed until someone opens them. */
const FURTHER: [string, string][] = [
  ["time", "Time"],
  ["placement", "Placement and order"],
  ["notify", "Notifications"],
  ["more", "More"],
];

/** Fields that have a place of their own in the form. */
const OWN = ["tenant_id", "command", "script", "gpu_count", "gpu_memory_mb", "gpu_fraction"];

/** The fields as the form takes them: no priority is below that of background work. */
const formFields: Field[] = jobFields.map((field) =>
  field.name === "priority" ? { ...field, least: 0 } : field,
);

const named = (name: string) => formFields.find((field) => field.name === name) as Field;
const inSection = (section: string) =>
  formFields.filter((field) => field.section === section && !OWN.includes(field.name));

/** The fields that count: of command and script one, and those of the chosen share. */
function counts(field: Field, form: Form): boolean {
  switch (field.name) {
    case "command":
    case "script":
      return form.kind === field.name;
    case "gpu_count":
      return form.share === "whole";
    case "gpu_memory_mb":
      return form.share === "whole" || form.share === "memory";
    case "gpu_fraction":
      return form.share === "fraction";
    default:
      return true;
  }
}

/** The job of the form, or what is wrong with the form. */
export function jobOf(form: Form): { job: Record<string, unknown> } | Fault {
  const job: Record<string, unknown> = {};
  const wrong = collect(
    formFields.filter((field) => counts(field, form)),
    form.values,
    job,
  );
  if (wrong) return wrong;
  if (!job.command && !job.script && !job.image)
    return {
      wrong: form.kind === "script" ? "Enter a script." : "Enter a command or a script.",
      field: form.kind,
    };
  if (form.share === "memory" && !job.gpu_memory_mb)
    return { wrong: "Enter the GPU memory, such as 20G.", field: "gpu_memory_mb" };
  const { tasks, ...rest } = job;
  if (!tasks || tasks === 1) return { job: rest };
  return { job: { gang_scheduling: true, ...job } };
}

/** The answer of `?check=1`. */
interface Check {
  message?: string;
  fits?: boolean;
  estimated_start?: string | null;
  node?: string | null;
  why?: string[];
}

const PAUSE_MS = 600;

/** When and where the job would start, and what will probably not work, before it is sent. */
function Forecast({ form }: { form: Form }) {
  const [check, setCheck] = useState<Check | null>(null);
  const text = JSON.stringify(form);
  const meant = useMemo(() => jobOf(form), [text]);
  const job = "job" in meant ? meant.job : null;
  const doubts = job ? warnings(job, nodes.value) : [];
  useEffect(() => {
    setCheck(null);
    if (!job) return;
    let current = true;
    const timer = setTimeout(() => {
      // What is refused is said when it is sent.
      request<Check>("POST", "/jobs?check=1", job)
        .then((answer) => current && setCheck(answer))
        .catch(() => current && setCheck(null));
    }, PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text]);
  const told = check ? forecastText(check) : "";
  if (doubts.length === 0 && !told) return null;
  return (
    <div class="forecast" role="status">
      {told && <p>{told}</p>}
      {doubts.map((one) => (
        <p class="doubt" key={one}>
          {one}
        </p>
      ))}
    </div>
  );
}

function forecastText(check: Check): string {
  return localTimes(check.message ?? (check.why ?? []).join("; "));
}

/** The fields that a copy of a job does not take over. */
const NOT_COPIED = ["idempotency_key", "array", "depends_on", "deadline", "hold", "check"];

/** A form that is filled in with what a job requested. Secrets are not known, so they are left out. */
export function formOf(job: Job): Form {
  const values: Values = {};
  for (const field of formFields) {
    const value = (job as unknown as Record<string, unknown>)[field.name];
    const known = value !== null && value !== undefined && value !== 0 && value !== "";
    if (!known || NOT_COPIED.includes(field.name) || field.name.startsWith("secret")) continue;
    values[field.name] = textOf(field, value);
  }
  if (job.max_runtime_minutes) values.max_runtime = `${Math.ceil(job.max_runtime_minutes * 60)}s`;
  if (job.gpu_sharing !== "whole") values.gpu_count = "1";
  return {
    kind: job.script ? "script" : "command",
    share: job.gpu_sharing,
    values: { ...EMPTY.values, ...values },
  };
}

/** The form of '?from=job-12', once the job is known. */
export function SubmitView() {
  const from = route.value.query.get("from");
  const found = useResource<Job>(from ? `/jobs/${encodeURIComponent(from)}` : "/session", []);
  if (!from) return <SubmitForm begin={EMPTY} />;
  const job = found.data.value;
  if (!job || !("allocations" in job)) return <Wrong text={found.error.value} />;
  return <SubmitForm begin={formOf(job)} key={from} />;
}

function SubmitForm({ begin }: { begin: Form }) {
  const who = session.value;
  const own = who?.role === "tenant" ? (who.tenant_id ?? "") : (tenants.value[0]?.id ?? "");
  const [form, setForm] = useState<Form>(begin);
  const [wrong, setWrong] = useState<Fault | null>(null);
  const [busy, setBusy] = useState(false);
  const values: Values = { tenant_id: own, ...form.values };
  const set = (name: string, value: string) =>
    setForm({ ...form, values: { ...form.values, [name]: value } });
  /** Says what is wrong at the field, and goes there. */
  const point = (fault: Fault) => {
    setWrong(fault);
    const field = document.querySelector<HTMLElement>(`form.form [name="${fault.field}"]`);
    field?.closest("details")?.setAttribute("open", "");
    field?.focus();
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const meant = jobOf({ ...form, values });
    if ("wrong" in meant) {
      point(meant);
      return;
    }
    setBusy(true);
    setWrong(null);
    try {
      const answer = await request<{ job_id: string; message: string }>("POST", "/jobs", meant.job);
      tell(answer.message);
      go(`#/jobs/${answer.job_id}`);
    } catch (error) {
      point(faultOf((error as Error).message, formFields));
    }
    setBusy(false);
  };
  const fields = (section: string) =>
    inSection(section)
      .filter((field) => field.setter !== "administrator" || isAdmin.value)
      .map((field) => (
        <FormField
          key={field.name}
          field={field}
          values={values}
          set={set}
          wrong={at(field.name)}
        />
      ));
  const at = (name: string) => (wrong?.field === name ? wrong.wrong : null);
  if (!mayChange.value)
    return <p class="empty">Viewers can't submit jobs. Sign in with a different token.</p>;
  return (
    <>
      <Head title="Submit a job" />
      <form class="card form" onSubmit={submit}>
        <div class="fields">
          <label>
            Tenant
            <select
              name="tenant_id"
              value={values.tenant_id}
              onChange={(event) => set("tenant_id", event.currentTarget.value)}
              required
            >
              {tenants.value.map((one) => (
                <option value={one.id} key={one.id}>
                  {one.name}
                </option>
              ))}
            </select>
          </label>
          {fields("general")}
        </div>
        <fieldset>
          <legend>What to run</legend>
          <div class="row">
            {(["command", "script"] as const).map((kind) => (
              <label class="pick" key={kind}>
                <input
                  type="radio"
                  name="kind"
                  value={kind}
                  checked={form.kind === kind}
                  onChange={() => setForm({ ...form, kind })}
                />
                {kind === "command" ? "A command" : "A shell script"}
              </label>
            ))}
          </div>
          {form.kind === "command" ? (
            <label>
              Command
              <input
                class="code"
                name="command"
                value={values.command ?? ""}
                onInput={(event) => set("command", event.currentTarget.value)}
                placeholder="python train.py --epochs 3"
                spellcheck={false}
                aria-invalid={at("command") ? true : undefined}
              />
            </label>
          ) : (
            <label>
              Script
              <textarea
                class="code"
                name="script"
                rows={6}
                value={values.script ?? ""}
                onInput={(event) => set("script", event.currentTarget.value)}
                spellcheck={false}
              />
            </label>
          )}
          <div class="fields">{fields("work")}</div>
        </fieldset>
        <fieldset>
          <legend>GPUs per task</legend>
          <div class="row">
            {SHARES.map(([share, text]) => (
              <label class="pick" key={share}>
                <input
                  type="radio"
                  name="share"
                  value={share}
                  checked={form.share === share}
                  onChange={() => setForm({ ...form, share })}
                />
                {text}
              </label>
            ))}
          </div>
          <div class="fields">
            {form.share === "whole" && (
              <FormField
                field={named("gpu_count")}
                values={values}
                set={set}
                required
                wrong={at("gpu_count")}
              />
            )}
            {(form.share === "whole" || form.share === "memory") && (
              <FormField
                field={named("gpu_memory_mb")}
                label={form.share === "whole" ? "Minimum memory per GPU" : "Memory"}
                values={values}
                set={set}
                required={form.share === "memory"}
                wrong={at("gpu_memory_mb")}
              />
            )}
            {form.share === "fraction" && (
              <FormField
                field={named("gpu_fraction")}
                values={values}
                set={set}
                required
                wrong={at("gpu_fraction")}
              />
            )}
            {fields("gpus")}
          </div>
        </fieldset>
        <fieldset>
          <legend>Tasks</legend>
          <div class="fields">{fields("tasks")}</div>
        </fieldset>
        {FURTHER.filter(([section]) => inSection(section).length > 0).map(([section, title]) => (
          <details key={section}>
            <summary>{title}</summary>
            <div class="fields">{fields(section)}</div>
          </details>
        ))}
        <Forecast form={{ ...form, values }} />
        <Wrong text={wrong?.wrong ?? null} />
        <div class="row end">
          <button type="submit" class="primary" disabled={busy}>
            Submit
          </button>
        </div>
      </form>
    </>
  );
}
