// field.tsx - a field of a form, and what was put into it, by the field's kind
import { parseMemory, splitCommand } from "../format";
import type { Field } from "../resources";

/** What was typed into each field, by its name. An empty text leaves the field to the service. */
export type Values = Record<string, string>;

/** A bare number is MiB; one that no program could start in was meant otherwise. */
const BARE_LEAST_MIB = 256;

type Meaning = { value: unknown } | { wrong: string };

function memory(field: Field, text: string): Meaning {
  const mib = parseMemory(text);
  if (mib === null || mib === 0) return { wrong: `${field.label} is a size such as 20G or 512M.` };
  const bare = /^\s*(\d+)\s*$/.exec(text)?.[1];
  if (bare && mib < BARE_LEAST_MIB)
    return { wrong: `${field.label} of ${bare} would be ${bare} MiB: write ${bare}G or ${bare}M.` };
  return { value: mib };
}

/** One size, or one for each GPU with commas between. */
function memories(field: Field, text: string): Meaning {
  const sizes: unknown[] = [];
  for (const part of text.split(",")) {
    const size = memory(field, part);
    if ("wrong" in size) return size;
    sizes.push(size.value);
  }
  return { value: sizes.length === 1 ? sizes[0] : sizes };
}

/** The range of a number as people write it; undefined: any. */
export function range(field: Field): { least: number | undefined; most: number | undefined } {
  const scale = 10 ** (field.digits ?? 0);
  return {
    least: field.least === undefined ? undefined : field.least / scale,
    most: field.most === undefined ? undefined : field.most / scale,
  };
}

function number(field: Field, text: string): Meaning {
  const value = Number(text);
  const { least, most } = range(field);
  const whole = field.kind === "integer";
  if (
    Number.isNaN(value) ||
    (whole && !Number.isInteger(value)) ||
    (least !== undefined && value < least) ||
    (most !== undefined && value > most)
  )
    return {
      wrong: `${field.label} must be a ${whole ? "whole " : ""}number from ${least} to ${most}.`,
    };
  return { value };
}

/** NAME=VALUE, one on each line. */
function pairs(field: Field, text: string): Meaning {
  const value: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (!line.trim()) continue;
    if (at < 1) return { wrong: `${field.label}: write NAME=VALUE on each line, not ${line}.` };
    value[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return { value };
}

/** job-1, job-2:any */
function dependencies(text: string): Meaning {
  return {
    value: text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((one) => {
        const [job, condition = "success"] = one.split(":");
        return { job, condition };
      }),
  };
}

/** The value that was meant by a text, or what is wrong with it. */
export function meaning(field: Field, text: string): Meaning {
  switch (field.kind) {
    case "integer":
      if (field.unit !== "MiB") return number(field, text);
      return field.also?.includes("list") ? memories(field, text) : memory(field, text);
    case "decimal":
      return number(field, text);
    case "flag":
      return { value: text === "true" };
    case "time": {
      const time = new Date(text);
      return Number.isNaN(time.getTime())
        ? { wrong: `${field.label} is not a date and time.` }
        : { value: time.toISOString() };
    }
    case "texts": {
      const words = splitCommand(text);
      return words ? { value: words } : { wrong: `A quote in ${field.label} is not closed.` };
    }
    case "words":
      return { value: text.split(/[\s,]+/).filter(Boolean) };
    case "map":
      return pairs(field, text);
    case "list":
      return dependencies(text);
    default:
      return { value: text };
  }
}

/** What is wrong, and with which field where that is known. */
export interface Fault {
  wrong: string;
  field?: string;
}

/** Puts what was typed into each of the fields into `to`; what is wrong with the first that is. */
export function collect(
  fields: readonly Field[],
  values: Values,
  to: Record<string, unknown>,
): Fault | null {
  for (const field of fields) {
    const text = values[field.name] ?? "";
    if (!text.trim()) continue;
    const meant = meaning(field, text);
    if ("wrong" in meant) return { wrong: meant.wrong, field: field.name };
    to[field.name] = meant.value;
  }
  return null;
}

/** A refusal of the service in the words of the form, and the field that it is about. */
export function faultOf(message: string, fields: readonly Field[]): Fault {
  const names = [...fields].sort((a, b) => b.name.length - a.name.length);
  const first = names
    .map((field) => ({ field, at: message.search(new RegExp(`\\b${field.name}\\b`)) }))
    .filter((one) => one.at >= 0)
    .sort((a, b) => a.at - b.at)[0];
  let wrong = message;
  for (const { name, label } of names)
    if (name.includes("_") || message.startsWith(name))
      wrong = wrong.replace(new RegExp(`\\b${name}\\b`, "g"), label);
  return first ? { wrong, field: first.field.name } : { wrong };
}

const HINTS: Record<string, string> = {
  time: "local time",
  duration: "1h30m",
  texts: "--epochs 3",
  map: "NAME=VALUE",
  list: "job-1, job-2:any",
};

function hint(field: Field): string {
  if (field.unit === "MiB") return "20G";
  if (field.unit === "min") return "minutes";
  const usual = field.initial ? JSON.parse(field.initial) : null;
  return HINTS[field.kind] ?? (usual === null ? "" : String(usual));
}

/** What the choice to leave a field to the service is called. */
function usual(field: Field): string {
  const value = field.initial ? JSON.parse(field.initial) : null;
  if (value === null) return "default";
  return `default (${value === true ? "yes" : value === false ? "no" : value})`;
}

interface Props {
  field: Field;
  values: Values;
  set: (name: string, value: string) => void;
  required?: boolean;
  wrong?: string | null;
}

function Control({ field, values, set, required = false, wrong = null }: Props) {
  const value = values[field.name] ?? "";
  const change = (event: {
    currentTarget: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
  }) => set(field.name, event.currentTarget.value);
  const id = `field-${field.name}`;
  const shared = {
    id,
    name: field.name,
    value,
    onInput: change,
    placeholder: hint(field),
    required,
    "aria-invalid": wrong ? true : undefined,
    "aria-describedby": wrong ? `${id}-wrong` : undefined,
  };
  if (field.kind === "flag" || field.kind === "word") {
    const words = field.kind === "flag" ? ["true", "false"] : (field.words ?? []);
    return (
      <select id={id} name={field.name} value={value} onChange={change}>
        <option value="">{usual(field)}</option>
        {words.map((word) => (
          <option value={word} key={word}>
            {field.kind === "word" ? word : word === "true" ? "yes" : "no"}
          </option>
        ))}
      </select>
    );
  }
  if (field.kind === "map")
    return <textarea class="code" rows={2} spellcheck={false} {...shared} />;
  if (field.kind === "time") return <input type="datetime-local" {...shared} />;
  const { least, most } = range(field);
  if ((field.kind === "integer" || field.kind === "decimal") && field.unit !== "MiB")
    return (
      <input
        type="number"
        min={least}
        max={most}
        step={field.digits ? 1 / 10 ** field.digits : 1}
        {...shared}
      />
    );
  return <input maxLength={field.kind === "text" ? most : undefined} {...shared} />;
}

/** A labeled field; its help shows when the pointer rests on it. */
export function FormField(props: Props & { label?: string }) {
  return (
    <label title={props.field.help} for={`field-${props.field.name}`}>
      {props.label ?? props.field.label}
      <Control {...props} />
      {props.wrong && (
        <span class="field-wrong" id={`field-${props.field.name}-wrong`}>
          {props.wrong}
        </span>
      )}
    </label>
  );
}
