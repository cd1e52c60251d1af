// resource-form.tsx - a form for a tenant or a model, made from the table of its fields
import { useState } from "preact/hooks";
import { quoted } from "../format";
import type { Field } from "../resources";
import { Wrong } from "./common";
import { type Fault, FormField, type Values, collect, faultOf } from "./field";

const TITLES: Record<string, string> = {
  general: "General",
  limits: "Limits and quota",
  policy: "Policy",
  share: "Fair share and cost",
  cost: "Cost",
  notify: "Notifications",
  serving: "Serving",
  gpus: "GPUs",
  work: "What to run",
  placement: "Placement",
  more: "More",
};

/** A value of the service as it is typed into its field. */
export function textOf(field: Field, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (field.kind === "map")
    return Object.entries(value as Record<string, string>)
      .map(([name, text]) => `${name}=${text}`)
      .join("\n");
  if (Array.isArray(value) && field.unit === "MiB")
    return value.map((size) => `${size}M`).join(",");
  if (Array.isArray(value))
    return value.map((word) => quoted(String(word))).join(field.kind === "words" ? ", " : " ");
  if (field.unit === "MiB") return `${value}M`;
  return String(value);
}

/** What differs from what it was; null takes a field back to its default. */
export function changes(
  fields: readonly Field[],
  before: Values,
  values: Values,
): { body: Record<string, unknown> } | Fault {
  const body: Record<string, unknown> = {};
  const changed = fields.filter(
    (field) => (values[field.name] ?? "").trim() !== (before[field.name] ?? "").trim(),
  );
  const fault = collect(changed, values, body);
  if (fault) return fault;
  for (const field of changed) if (!(values[field.name] ?? "").trim()) body[field.name] = null;
  return { body };
}

interface Props {
  fields: readonly Field[];
  /** What there is: an empty object for something new. */
  value: Record<string, unknown>;
  action: string;
  /** Fields that stand first and must be filled. */
  required?: readonly string[];
  send(body: Record<string, unknown>): Promise<void>;
}

export function ResourceForm({ fields: all, value, action, required = [], send }: Props) {
  // Lists of objects have no form of their own.
  const fields = all.filter((field) => field.kind !== "list");
  const [before] = useState<Values>(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOf(field, value[field.name])])),
  );
  const [values, setValues] = useState<Values>(before);
  const [wrong, setWrong] = useState<Fault | null>(null);
  const [busy, setBusy] = useState(false);
  const point = (fault: Fault) => {
    setWrong(fault);
    const field = document.querySelector<HTMLElement>(`form.form [name="${fault.field}"]`);
    field?.closest("details")?.setAttribute("open", "");
    field?.focus();
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const found = changes(fields, before, values);
    if ("wrong" in found) return point(found);
    setBusy(true);
    setWrong(null);
    try {
      await send(found.body);
    } catch (error) {
      point(faultOf((error as Error).message, fields));
    }
    setBusy(false);
  };
  const draw = (list: readonly Field[]) => (
    <div class="fields">
      {list.map((field) => (
        <FormField
          key={field.name}
          field={field}
          values={values}
          set={(name, text) => setValues({ ...values, [name]: text })}
          required={required.includes(field.name)}
          wrong={wrong?.field === field.name ? wrong.wrong : null}
        />
      ))}
    </div>
  );
  const sections = [...new Set(fields.map((field) => field.section))];
  return (
    <form class="card form" onSubmit={submit}>
      {sections.map((section, place) => {
        const list = fields.filter((field) => field.section === section);
        return place === 0 ? (
          draw(list)
        ) : (
          <details key={section} open={list.some((field) => required.includes(field.name))}>
            <summary>{TITLES[section] ?? section}</summary>
            {draw(list)}
          </details>
        );
      })}
      <Wrong text={wrong?.wrong ?? null} />
      <div class="row end">
        <button type="submit" class="primary" disabled={busy}>
          {action}
        </button>
      </div>
    </form>
  );
}
