"""cycles_report.py BUNDLE DIRECTORY [MODULE...] - ten jobs of each framework, all at the same time on one
GPU, that fill their reservation until they are refused and go on, a hundred times each, under an agent
with its defaults. Each must complete. Ends with 'N passed, M failed', counting jobs."""

import importlib.util
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PROGRAM = pathlib.Path(__file__).resolve().parent / "cycles.py"
CYCLES = 100
SECONDS = 400
# The module, what is set for it, and how many jobs. JAX's own pool waits 10 s before it reports a
# refusal, so that a hundred of them would take too long.
KINDS = {
    "PyTorch": ("torch", {}, 10),
    "CuPy": ("cupy", {}, 10),
    "JAX, platform allocator": ("jax", {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, 10),
}


def submit_all(cluster, kinds):
    total = cluster.gpus()[0]["total_memory"] - cluster.gpus()[0]["overhead_memory"]
    part = total // sum(count for _, _, count in kinds.values())
    return part, {
        kind: [cluster.submit([sys.executable, PROGRAM, module, CYCLES], gpu_memory_mb=part,
                              environment={"HOME": "/tmp", **settings}) for _ in range(count)]
        for kind, (module, settings, count) in kinds.items()
    }


def ended(cluster, job, deadline):
    while (seen := cluster.job(job))["state"] not in ("completed", "failed", "cancelled"):
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    with (OUT / "cycles.txt").open("a") as file:
        file.write(f"== {job} {seen['state']} {seen['exit_code']}: {seen['message']} guard {seen['guard']}\n"
                   f"{cluster.logs_of(job)[-1500:]}\n")
    return seen


def row(cluster, kind, jobs, part, began):
    seen = [ended(cluster, job, began + SECONDS) for job in jobs]
    completed = sum(job["state"] == "completed" for job in seen)
    warned = sum("task_over" in cluster.events(job) for job in jobs)
    refusals = sum((job["guard"] or {}).get("refusals", 0) for job in seen)
    peak = max(job["peak_gpu_memory_mb"] or 0 for job in seen)
    print(f"| {kind} | {len(jobs)} | {CYCLES} | {part} | {peak} | {refusals} | {warned} | "
          f"{len(jobs) - completed} | {time.monotonic() - began:.0f} s |", flush=True)
    return completed, len(jobs) - completed


def main():
    wanted = sys.argv[3:] or ["torch", "cupy", "jax"]
    kinds = {kind: row for kind, row in KINDS.items()
             if row[0] in wanted and importlib.util.find_spec(row[0]) is not None}
    passed = failed = 0
    cluster = Cluster(BUNDLE, OUT)
    print("| program | processes | fill cycles of each | reserved | most measured | refusals | warned | "
          "stopped or failed | all ended after |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    try:
        began = time.monotonic()
        part, jobs = submit_all(cluster, kinds)
        for kind in kinds:
            good, bad = row(cluster, kind, jobs[kind], part, began)
            passed, failed = passed + good, failed + bad
    finally:
        cluster.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
