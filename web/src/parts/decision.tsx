// decision.tsx - a decision and its arithmetic, GPU by GPU
import { cellOf } from "../cluster";
import { clock, localTimes, memory, plural, words } from "../format";
import type { Decision, Line } from "../types";
import { jobTitle } from "./common";

const SIGNS: Record<string, string> = {
  start: "▶",
  claim: "◇",
  reclaim: "↩",
  preempt: "↺",
  move: "→",
  wait: "◌",
  promise: "◔",
  gang: "⧉",
  grow: "+",
  evict: "↧",
  evicted: "↧",
  lapsed: "–",
  load: "⇪",
  unload: "↧",
  adopt: "⌂",
  fail: "✕",
};

/** The terms of the memory invariant; a claim or a promise allows no start, so it has none. */
export function sumOf(line: Line): { given: boolean; after: number } {
  const given = line.asked_mb === 0 || line.used_after_mb !== line.used_before_mb;
  const after = line.overhead_mb + line.foreign_mb + line.used_before_mb + line.asked_mb;
  return { given, after };
}

/** 'node2 GPU 5', or as much of its UUID as tells it from others. */
export function gpuName(line: Pick<Line, "node" | "uuid">): string {
  const index = line.uuid ? cellOf(line.uuid)?.books.value.index : undefined;
  const name = index === undefined ? `…${line.uuid?.slice(-12) ?? ""}` : `GPU ${index}`;
  return line.uuid ? `${line.node ?? ""} ${name}`.trim() : (line.node ?? "–");
}

function Sum({ line }: { line: Line }) {
  const { given, after } = sumOf(line);
  const part = (mb: number) => `${((100 * mb) / Math.max(1, line.capacity_mb)).toFixed(2)}%`;
  return (
    <tr>
      <th scope="row" title={line.uuid ?? ""}>
        {gpuName(line)}
      </th>
      <td class="number">{memory(line.overhead_mb)}</td>
      <td class="number">
        + {memory(line.foreign_mb)}
        {line.unexplained_mb ? ` (${memory(line.unexplained_mb)} unexplained)` : ""}
      </td>
      <td class="number">+ {memory(line.used_before_mb)}</td>
      <td class="number">
        {given ? "+ " : "later "}
        {memory(line.asked_mb)}
      </td>
      <td class="number">{given ? `= ${memory(after)}` : "–"}</td>
      <td class="number">
        {given ? (after <= line.capacity_mb ? "≤ " : "> ") : ""}
        {memory(line.capacity_mb)}
      </td>
      <td class="sum-bar">
        <span class="bar mini" aria-hidden="true">
          <span
            class="seg before"
            style={`--size:${part(line.overhead_mb + line.foreign_mb + line.used_before_mb)}`}
          />
          {given && <span class="seg asked" style={`--size:${part(line.asked_mb)}`} />}
        </span>
      </td>
    </tr>
  );
}

/** 'node2, 8 GPUs' or 'node2 8 + vm 2 GPUs'. */
function places(lines: readonly Line[]): string {
  const nodes = new Map<string, number>();
  for (const line of lines) nodes.set(line.node ?? "?", (nodes.get(line.node ?? "?") ?? 0) + 1);
  const [first] = nodes;
  if (!first) return "";
  if (nodes.size === 1) return `${first[0]} · ${plural(first[1], "GPU")}`;
  return `${[...nodes].map(([node, count]) => `${node} ${count}`).join(" + ")} GPUs`;
}

/** Where, how much, and at whose cost or for whom. */
export function inShort(decision: Decision): string {
  const victims = decision.victims?.length ?? 0;
  return [
    places(decision.gpus ?? []) || (decision.runner_id ?? ""),
    victims > 0 ? `${plural(victims, "job")} stopped` : "",
    decision.for_job_id ? `for ${decision.for_job_id}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** The name of what it is about, with its index in an array; its id where there is none. */
export function subjectOf(
  decision: Pick<Decision, "job_id" | "name" | "array_index" | "model" | "model_id">,
): string {
  if (!decision.job_id) return decision.model ?? decision.model_id ?? "";
  if (!decision.name) return decision.job_id;
  return jobTitle({ id: decision.job_id, ...decision, name: decision.name });
}

export function Arithmetic({ decision, about = false }: { decision: Decision; about?: boolean }) {
  const subject = subjectOf(decision);
  // The table below says the same of each GPU.
  const lines = (decision.explanation ?? []).filter(
    (line) => !/GiB|MiB/.test(line) || !decision.gpus?.length,
  );
  const said = lines.some((line) => line.trim() === decision.message?.trim());
  return (
    <details class="decision">
      <summary>
        <span class={`decision-type ${decision.type}`}>
          <span aria-hidden="true">{SIGNS[decision.type] ?? "·"}</span> {words(decision.type)}
        </span>
        {about && <span class="decision-about">{subject}</span>}
        <span class="decision-where">
          {[inShort(decision), about ? (decision.message ?? "") : ""].filter(Boolean).join(" · ")}
        </span>
        <time dateTime={decision.time}>{clock(decision.time)}</time>
      </summary>
      <div class="decision-body">
        {decision.job_id && (
          <p>
            <a href={`#/jobs/${decision.job_id}`}>
              {subject === decision.job_id ? subject : `${subject} (${decision.job_id})`}
            </a>
            {decision.for_job_id && (
              <>
                {" for "}
                <a href={`#/jobs/${decision.for_job_id}`}>{decision.for_job_id}</a>
              </>
            )}
            {decision.candidates
              ? ` · ${plural(decision.candidates, "node fits", "nodes fit")}`
              : ""}
            {decision.until ? ` · until ${clock(decision.until)}` : ""}
          </p>
        )}
        {decision.message && !said && <p>{decision.message}</p>}
        {lines.length > 0 && (
          <ul class="why">
            {lines.map((line, place) => (
              <li key={place} style={`--in:${/^ */.exec(line)?.[0].length ?? 0}`}>
                {localTimes(line.trim())}
              </li>
            ))}
          </ul>
        )}
        {(decision.gpus?.length ?? 0) > 0 && (
          <div class="table" role="region" aria-label="Arithmetic" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th scope="col">GPU</th>
                  <th scope="col" class="number">
                    Overhead
                  </th>
                  <th scope="col" class="number">
                    External
                  </th>
                  <th scope="col" class="number">
                    Used before
                  </th>
                  <th scope="col" class="number">
                    Requested
                  </th>
                  <th scope="col" class="number">
                    After
                  </th>
                  <th scope="col" class="number">
                    Capacity
                  </th>
                  <th scope="col">
                    <span class="unseen">As a bar</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {decision.gpus?.map((line, place) => (
                  <Sum line={line} key={place} />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </div>
    </details>
  );
}
