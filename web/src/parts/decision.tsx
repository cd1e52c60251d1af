// decision.tsx - a decision and its arithmetic, GPU by GPU
import { clock, memory, plural, words } from "../format";
import type { Decision, Line } from "../types";

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

function Sum({ line }: { line: Line }) {
  const { given, after } = sumOf(line);
  const part = (mb: number) => `${((100 * mb) / Math.max(1, line.capacity_mb)).toFixed(2)}%`;
  return (
    <tr>
      <td>{line.node ?? "–"}</td>
      <td>
        <code title={line.uuid ?? ""}>{line.uuid?.slice(0, 16) ?? "–"}</code>
      </td>
      <td class="number">{memory(line.overhead_mb)}</td>
      <td class="number">+ {memory(line.foreign_mb)}</td>
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

/** Where, how much, and at whose cost or for whom. */
export function inShort(decision: Decision): string {
  const gpus = decision.gpus?.length ?? 0;
  const victims = decision.victims?.length ?? 0;
  return [
    decision.runner_id ?? "",
    gpus > 0 ? plural(gpus, "GPU") : "",
    victims > 0 ? `${plural(victims, "job")} stopped` : "",
    decision.for_job_id ? `for ${decision.for_job_id}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

export function Arithmetic({ decision, about = false }: { decision: Decision; about?: boolean }) {
  const subject = decision.job_id ?? decision.model ?? decision.model_id;
  return (
    <details class="decision">
      <summary>
        <span class={`decision-type ${decision.type}`}>
          <span aria-hidden="true">{SIGNS[decision.type] ?? "·"}</span> {words(decision.type)}
        </span>
        {about && <span class="decision-about">{subject}</span>}
        <span class="decision-where">{inShort(decision)}</span>
        <time dateTime={decision.time}>{clock(decision.time)}</time>
      </summary>
      <div class="decision-body">
        {decision.job_id && (
          <p>
            <a href={`#/jobs/${decision.job_id}`}>{decision.job_id}</a>
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
        {decision.message && <p>{decision.message}</p>}
        {decision.explanation && (
          <ul class="why">
            {decision.explanation.map((line, place) => (
              <li key={place} style={`--in:${/^ */.exec(line)?.[0].length ?? 0}`}>
                {line.trim()}
              </li>
            ))}
          </ul>
        )}
        {(decision.gpus?.length ?? 0) > 0 && (
          <div class="table" role="region" aria-label="Arithmetic" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Node</th>
                  <th scope="col">GPU</th>
                  <th scope="col" class="number">
                    Overhead
                  </th>
                  <th scope="col" class="number">
                    Foreign
                  </th>
                  <th scope="col" class="number">
                    Used before
                  </th>
                  <th scope="col" class="number">
                    Asked
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
