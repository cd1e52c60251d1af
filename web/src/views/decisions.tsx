// decisions.tsx - what was decided, with the arithmetic
import { nodes } from "../cluster";
import { words } from "../format";
import { Head, Wrong } from "../parts/common";
import { Arithmetic } from "../parts/decision";
import { useResource } from "../resource";
import { choice } from "../route";
import type { Decision } from "../types";

const TYPES = [
  "start",
  "claim",
  "reclaim",
  "preempt",
  "move",
  "wait",
  "promise",
  "evicted",
  "lapsed",
  "gang",
  "grow",
  "evict",
  "load",
  "unload",
  "adopt",
  "fail",
  "share",
  "suspended",
  "resume",
  "close",
  "reopen",
  "awaited",
  "sleep",
  "wake",
];
const type = choice<string>("decisions", "type", "");
const job = choice<string>("decisions", "job", "", { steps: false });
const node = choice<string>("decisions", "node", "");

export function DecisionsView() {
  const query = new URLSearchParams({ limit: "100", explain: "1" });
  if (type.value) query.set("type", type.value);
  if (/^(job-)?\d+$/.test(job.value.trim())) query.set("job", job.value.trim());
  if (node.value) query.set("node", node.value);
  const list = useResource<Decision[]>(`/scheduler/decisions?${query}`, ["jobs", "slots"]);
  return (
    <>
      <Head title="Decisions" />
      <div class="tools">
        <select
          aria-label="Of which kind"
          value={type.value}
          onChange={(event) => {
            type.value = event.currentTarget.value;
          }}
        >
          <option value="">All kinds</option>
          {TYPES.map((one) => (
            <option value={one} key={one}>
              {words(one)}
            </option>
          ))}
        </select>
        <select
          aria-label="On which node"
          value={node.value}
          onChange={(event) => {
            node.value = event.currentTarget.value;
          }}
        >
          <option value="">All nodes</option>
          {nodes.value.map((one) => (
            <option value={one.name} key={one.name}>
              {one.name}
            </option>
          ))}
        </select>
        <input
          type="search"
          class="search"
          aria-label="About which job"
          placeholder="job-12"
          value={job.value}
          onInput={(event) => {
            job.value = event.currentTarget.value;
          }}
        />
      </div>
      <Wrong text={list.error.value} />
      {list.data.value?.length === 0 && (
        <p class="empty">
          {query.size > 2 ? "Nothing of the kind was decided." : "Nothing was decided yet."}
        </p>
      )}
      <div class="decisions">
        {(list.data.value ?? []).map((one) => (
          <Arithmetic decision={one} key={one.id} about />
        ))}
      </div>
    </>
  );
}
