// submit.tsx - a form for a job
import { useState } from "preact/hooks";
import { request } from "../api";
import { parseMemory, splitCommand } from "../format";
import { Head, Wrong } from "../parts/common";
import { tell } from "../parts/dialog";
import { go } from "../route";
import { mayChange, session, tenants } from "../state";

interface Form {
  tenant: string;
  name: string;
  kind: "command" | "script";
  command: string;
  script: string;
  image: string;
  share: "whole" | "memory" | "fraction" | "none";
  gpus: string;
  memory: string;
  fraction: string;
  tasks: string;
  priority: string;
  runtime: string;
}

const EMPTY: Form = {
  tenant: "",
  name: "",
  kind: "command",
  command: "",
  script: "",
  image: "",
  share: "whole",
  gpus: "1",
  memory: "",
  fraction: "0.5",
  tasks: "1",
  priority: "",
  runtime: "",
};

/** A number without a unit is MiB; one that no program could start in was meant otherwise. */
const BARE_LEAST_MIB = 256;

/** The job that the form means, or why it means none. */
export function jobOf(form: Form): { job: Record<string, unknown> } | { wrong: string } {
  const job: Record<string, unknown> = { name: form.name || undefined };
  if (form.tenant) job.tenant_id = form.tenant;
  if (form.kind === "script") job.script = form.script;
  else {
    const words = splitCommand(form.command);
    if (!words) return { wrong: "A quote in the command is not closed." };
    if (words.length === 0 && !form.image) return { wrong: "Say what to run." };
    if (words.length > 0) job.command = words;
  }
  if (form.kind === "script" && !form.script.trim()) return { wrong: "Say what to run." };
  if (form.image) job.image = form.image;
  if (form.share === "whole") job.gpu_count = Number(form.gpus);
  if (form.share === "fraction") job.gpu_fraction = Number(form.fraction);
  if (form.share === "memory" || (form.share === "whole" && form.memory)) {
    const mib = parseMemory(form.memory);
    if (mib === null || mib === 0) return { wrong: "GPU memory is a size such as 20G or 512M." };
    const bare = /^\s*(\d+)\s*$/.exec(form.memory)?.[1];
    if (bare && mib < BARE_LEAST_MIB)
      return { wrong: `GPU memory of ${bare} would be ${bare} MiB: write ${bare}G or ${bare}M.` };
    job.gpu_memory_mb = mib;
  }
  if (Number(form.tasks) > 1) {
    job.tasks = Number(form.tasks);
    job.gang_scheduling = true;
  }
  if (form.priority) job.priority = Number(form.priority);
  if (form.runtime) job.max_runtime = form.runtime;
  return { job };
}

export function SubmitView() {
  const who = session.value;
  const own = who?.role === "tenant" ? (who.tenant_id ?? "") : (tenants.value[0]?.id ?? "");
  const [form, setForm] = useState<Form>(EMPTY);
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const change =
    (field: keyof Form) =>
    (event: { currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement }) =>
      setForm({ ...form, [field]: event.currentTarget.value });
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const meant = jobOf({ ...form, tenant: form.tenant || own });
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
  if (!mayChange.value)
    return <p class="empty">Who only looks cannot submit: sign in with another token.</p>;
  return (
    <>
      <Head title="Submit a job" />
      <form class="card form" onSubmit={submit}>
        <label>
          Tenant
          <select value={form.tenant || own} onChange={change("tenant")} required>
            {tenants.value.map((one) => (
              <option value={one.id} key={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Name
          <input value={form.name} onInput={change("name")} maxLength={256} placeholder="train-1" />
        </label>
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
                  onChange={change("kind")}
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
                value={form.command}
                onInput={change("command")}
                placeholder="python train.py --epochs 3"
                spellcheck={false}
              />
            </label>
          ) : (
            <label>
              Script
              <textarea
                class="code"
                rows={6}
                value={form.script}
                onInput={change("script")}
                spellcheck={false}
              />
            </label>
          )}
          <label>
            Image <span class="muted">(if it runs in a container)</span>
            <input class="code" value={form.image} onInput={change("image")} spellcheck={false} />
          </label>
        </fieldset>
        <fieldset>
          <legend>GPUs of each task</legend>
          <div class="row">
            {(
              [
                ["whole", "Whole GPUs"],
                ["memory", "A part, by memory"],
                ["fraction", "A part, by fraction"],
                ["none", "None"],
              ] as const
            ).map(([share, text]) => (
              <label class="pick" key={share}>
                <input
                  type="radio"
                  name="share"
                  value={share}
                  checked={form.share === share}
                  onChange={change("share")}
                />
                {text}
              </label>
            ))}
          </div>
          <div class="row">
            {form.share === "whole" && (
              <label>
                How many
                <input
                  type="number"
                  min="1"
                  max="4096"
                  required
                  value={form.gpus}
                  onInput={change("gpus")}
                />
              </label>
            )}
            {(form.share === "whole" || form.share === "memory") && (
              <label>
                {form.share === "whole" ? "Each with at least" : "Memory"}
                <input
                  value={form.memory}
                  onInput={change("memory")}
                  placeholder="20G"
                  required={form.share === "memory"}
                />
              </label>
            )}
            {form.share === "fraction" && (
              <label>
                Fraction
                <input
                  type="number"
                  min="0.001"
                  max="1"
                  step="0.001"
                  required
                  value={form.fraction}
                  onInput={change("fraction")}
                />
              </label>
            )}
            <label>
              Tasks <span class="muted">(start together)</span>
              <input
                type="number"
                min="1"
                max="4096"
                required
                value={form.tasks}
                onInput={change("tasks")}
              />
            </label>
          </div>
        </fieldset>
        <div class="row">
          <label>
            Priority <span class="muted">(500 to 1000 is normal)</span>
            <input
              type="number"
              value={form.priority}
              onInput={change("priority")}
              placeholder="default"
            />
          </label>
          <label>
            Ends after <span class="muted">(at the latest)</span>
            <input value={form.runtime} onInput={change("runtime")} placeholder="1h30m" />
          </label>
        </div>
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
