"""cycles_report.py BUNDLE DIRECTORY [FRAMEWORK...] - ten jobs at a time that fill their reservation until
they are refused and go on, a hundred times each, under an agent with its defaults. Each must complete.
Ends with 'N passed, M failed', counting jobs."""

import importlib.util
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
PROGRAM = pathlib.Path(__file__).resolve().parent / "cycles.py"
JOBS, CYCLES = 10, 100
SECONDS = 240
# What is set for each, and for how many of its jobs.
KINDS = {
    "PyTorch": ("torch", {}, 10),
    "JAX": ("jax", {}, 5),
    "JAX, platform allocator": ("jax", {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, 5),
    "CuPy": ("cupy", {}, 10),
}


def run_all(cluster, module, kinds):
    part = (cluster.gpus()[0]["total_memory"] - 1024) // JOBS
    began = time.monotonic()
    jobs = [(kind, cluster.submit([sys.executable, PROGRAM, module, CYCLES], gpu_memory_mb=part,
                                  environment={"HOME": "/tmp", **settings}))
            for kind, settings, count in kinds for _ in range(count)]
    good = 0
    for kind in dict.fromkeys(kind for kind, _ in jobs):
        ended = [cluster.state(job, "completed", "failed", "cancelled", seconds=SECONDS)
                 for its, job in jobs if its == kind]
        completed = [job for job in ended if job["state"] == "completed"]
        warned = sum("task_over" in cluster.events(job["job_id"]) for job in ended)
        refusals = sum((job["guard"] or {}).get("refusals", 0) for job in ended)
        peak = max(job["peak_gpu_memory_mb"] or 0 for job in ended)
        good += len(completed)
        print(f"| {kind} | {len(ended)} | {CYCLES} | {part} | {peak} | {refusals} | {warned} | "
              f"{len(ended) - len(completed)} | {time.monotonic() - began:.0f} s |", flush=True)
        for job in ended:
            (OUT / "cycles.txt").open("a").write(
                f"== {kind}: {job['state']} {job['exit_code']}: {job['message']} guard {job['guard']}\n"
                f"{cluster.logs_of(job['job_id'])[-2000:]}\n")
    return good, len(jobs) - good


def main():
    wanted = sys.argv[3:] or ["torch", "jax", "cupy"]
    cluster = Cluster(BUNDLE, OUT)
    passed = failed = 0
    print("| program | processes | fill cycles of each | reserved | most measured | refusals | warned | "
          "stopped or failed | all done after |\n|---|---|---|---|---|---|---|---|---|")
    try:
        for module in wanted:
            if importlib.util.find_spec(module) is None:
                print(f"# {module} is not installed", file=sys.stderr)
                continue
            kinds = [(name, settings, count) for name, (its, settings, count) in KINDS.items()
                     if its == module]
            good, bad = run_all(cluster, module, kinds)
            passed, failed = passed + good, failed + bad
    finally:
        cluster.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
