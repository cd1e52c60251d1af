"""shares_report.py BUNDLE DIRECTORY - what jobs get that request shares of a GPU's compute, of two tenants
whose tasks run as users of their own. Ends with 'N passed, M failed'."""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster, smi

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
LOAD = pathlib.Path(__file__).resolve().parent / "load.py"
SECONDS = 6
NEAR = 0.10  # of half of what one alone gets
LONGER = 1.5  # the slowest percent of short kernels beside a neighbor


def go_file():
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    return folder / "go"


def submit(cluster, tenant, kind, go, share=None, processes=1):
    """A job whose processes begin together, when the file is there."""
    one = f"({sys.executable} {LOAD} {kind} {SECONDS}) < <(while [ ! -e {go} ]; do sleep 0.02; done; echo)"
    script = "#!/bin/bash\n" + "\n".join(f"{one} &" for _ in range(processes)) + "\nwait\n"
    fields = {"gpu_memory_mb": 30000, "tenant_id": tenant}
    if share:
        fields |= {"gpu_compute": share, "gpu_processes": processes}
    return cluster.submit(script, **fields), processes


def run(cluster, *loads):
    """What each job's processes say, in lists."""
    go = go_file()
    jobs = [submit(cluster, *load[:2], go, *load[2:]) for load in loads]
    for job, processes in jobs:
        cluster.wait(lambda j=job, p=processes: cluster.logs_of(j).count("ready") == p, f"{job} is ready", 90)
    go.touch()
    said = []
    for job, _ in jobs:
        seen = cluster.state(job, "completed", "failed", seconds=60)
        assert seen["state"] == "completed", f"{seen['message']}: {cluster.logs_of(job)[-600:]}"
        lines = [line for line in cluster.logs_of(job).splitlines() if line.startswith("{") and "ready" not in line]
        said.append([json.loads(line) for line in lines])
    return said


def rate(job):
    return sum(process["tflops"] for process in job)


class Shares:
    def __init__(self, cluster):
        self.cluster = cluster
        self.first = cluster.tenant
        self.second = cluster.ask("POST", "/api/v1/tenants", {"name": "other"})["id"]

    def alone(self):
        [[self.whole]] = [[rate(job)] for job in run(self.cluster, (self.first, "matmul"))]
        return f"{self.whole:.0f} TFLOP/s"

    def halves(self, processes):
        got = [rate(job) for job in run(self.cluster, (self.first, "matmul", 0.5, processes),
                                        (self.second, "matmul", 0.5))]
        seen = " and ".join(f"{one:.0f}" for one in got) + f" TFLOP/s; half is {self.whole / 2:.0f}"
        assert all(abs(one - self.whole / 2) <= NEAR * self.whole / 2 for one in got), seen
        return seen

    def small(self):
        [[alone]] = run(self.cluster, (self.first, "small", 0.5))
        [[beside], [_]] = run(self.cluster, (self.first, "small", 0.5), (self.second, "matmul", 0.5))
        seen = (f"p50 / p99 {alone['p50_ms']:.2f} / {alone['p99_ms']:.2f} ms alone, "
                f"{beside['p50_ms']:.2f} / {beside['p99_ms']:.2f} ms beside")
        assert beside["p99_ms"] <= LONGER * alone["p99_ms"], seen
        return seen


def main():
    os.environ["GPU_SCHEDULER_SHARING_MIX_TENANTS"] = "true"
    cluster = Cluster(BUNDLE, OUT, "--compute-shares", "mps")
    print("| what | result | seen |\n|---|---|---|")
    passed = failed = 0
    try:
        shares = Shares(cluster)
        for name, step in [("a matrix product alone, without a share", shares.alone),
                           ("two tenants with half of the GPU each", lambda: shares.halves(1)),
                           ("the same, one of them with four processes", lambda: shares.halves(4)),
                           ("short kernels at half, beside products at half", shares.small)]:
            try:
                seen = step()
                passed += 1
                print(f"| {name} | passed | {seen} |", flush=True)
            except Exception as error:  # each step is judged by itself
                failed += 1
                print(f"| {name} | FAILED | {type(error).__name__}: {error} |", flush=True)
                for job in cluster.ask("GET", "/api/v1/jobs")["jobs"]:
                    if job["state"] not in ("completed",):
                        print(f"{job['job_id']} {job['state']} {job['message']}\n"
                              f"{cluster.logs_of(job['job_id'])[-800:]}\n"
                              f"{cluster.ask('GET', '/api/v1/jobs/' + job['job_id'] + '/why')}", file=sys.stderr)
                        if job["state"] in ("pending", "running"):
                            cluster.ask("POST", f"/api/v1/jobs/{job['job_id']}/cancel", {})
    finally:
        # It ends a while after its last client; an agent that ends leaves it alone.
        cluster.wait(lambda: not any("mps" in row[0] for row in smi("compute-apps=process_name")),
                     "the MPS daemon ends", 30)
        cluster.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
