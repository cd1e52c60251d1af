// submit.tsx - a form for a job
import { useState } from "preact/hooks";
import { request } from "../api";
import { Head, Wrong } from "../parts/common";
import { tell } from "../parts/dialog";
import { FormField, type Values, collect } from "../parts/field";
import { type Field, jobFields } from "../resources";
import { go } from "../route";
import { isAdmin, mayChange, session, tenants } from "../state";

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

const named = (name: string) => jobFields.find((field) => field.name === name) as Field;
const inSection = (section: string) =>
  jobFields.filter((field) => field.section === section && !OWN.includes(field.name));

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
export function jobOf(form: Form): { job: Record<string, unknown> } | { wrong: string } {
  const job: Record<string, unknown> = {};
  const wrong = collect(
    jobFields.filter((field) => counts(field, form)),
    form.values,
    job,
  );
  if (wrong) return { wrong };
  if (!job.command && !job.script && !job.image) return { wrong: "Enter a command to run." };
  if (form.share === "memory" && !job.gpu_memory_mb)
    return { wrong: "Enter the GPU memory, such as 20G." };
  const { tasks, ...rest } = job;
  if (!tasks || tasks === 1) return { job: rest };
  return { job: { gang_scheduling: true, ...job } };
}

export function SubmitView() {
  const who = session.value;
  const own = who?.role === "tenant" ? (who.tenant_id ?? "") : (tenants.value[0]?.id ?? "");
  const [form, setForm] = useState<Form>(EMPTY);
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const values: Values = { tenant_id: own, ...form.values };
  const set = (name: string, value: string) =>
    setForm({ ...form, values: { ...form.values, [name]: value } });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const meant = jobOf({ ...form, values });
    if ("wrong" in meant) {
      setWrong(meant.wrong);
      return;
    }
    setBusy(true);
    setWrong(null);
    try {
      const answer = await request<{ job_id: string; message: string }>("POST", "/jobs", meant.job);
      tell(answer.message);
      go(`#/jobs/${answer.job_id}`);
    } catch (error) {
      setWrong((error as Error).message);
    }
    setBusy(false);
  };
  const fields = (section: string) =>
    inSection(section)
      .filter((field) => field.setter !== "administrator" || isAdmin.value)
      .map((field) => <FormField key={field.name} field={field} values={values} set={set} />);
  if (!mayChange.value)
    return <p class="empty">Viewers cannot submit jobs: sign in with another token.</p>;
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
              <FormField field={named("gpu_count")} values={values} set={set} required />
            )}
            {(form.share === "whole" || form.share === "memory") && (
              <FormField
                field={named("gpu_memory_mb")}
                label={form.share === "whole" ? "Minimum memory per GPU" : "Memory"}
                values={values}
                set={set}
                required={form.share === "memory"}
              />
            )}
            {form.share === "fraction" && (
              <FormField field={named("gpu_fraction")} values={values} set={set} required />
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
        <Wrong text={wrong} />
        <div class="row end">
          <button type="submit" class="primary" disabled={busy}>
            Submit
          </button>
        </div>
      </form>
    </>
  );
}
