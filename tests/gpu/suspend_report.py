"""suspend_report.py BUNDLE DIRECTORY - jobs whose GPU memory goes to host memory and comes back, by
gpu-checkpoint and the real driver. Ends with 'N passed, M failed'."""

import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster, smi

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent

OTHER_MIB = 128000  # does not fit beside the suspended job's memory

TORCH = f"""#!{sys.executable}
import time, torch
torch.manual_seed(1)
held = [torch.randn(1 << 28, device="cuda") for _ in range(8)]
sums = [one.double().sum().item() for one in held]
graph, out = torch.cuda.CUDAGraph(), torch.zeros(1024, 1024, device="cuda")
a = torch.ones(1024, 1024, device="cuda")
torch.mm(a, a, out=out)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    torch.mm(a, a, out=out)
count = 0
while True:
    graph.replay()
    right = [one.double().sum().item() for one in held] == sums and out[5, 5].item() == 1024
    count += 1
    print(f"right {{count}}" if right else "wrong", flush=True)
    time.sleep(0.1)
"""


def used_mib():
    return int(smi("gpu=memory.used")[0][0])


def rights(cluster, job):
    lines = cluster.logs_of(job).splitlines()
    assert not any(line.startswith("wrong") for line in lines), lines[-3:]
    return sum(line.startswith("right") for line in lines)


def act(cluster, job, verb):
    cluster.ask("POST", f"/api/v1/jobs/{job}/{verb}", {})


def keep(*words):
    return [sys.executable, HERE / "keep.py", *words]


def there_and_back(cluster, job):
    """Suspends and resumes a job that says that its memory is right. What it took."""
    cluster.wait(lambda: rights(cluster, job) > 0, "it has its memory", 90)
    before = used_mib()
    began = time.monotonic()
    act(cluster, job, "suspend")
    cluster.state(job, "suspended", seconds=90)
    cluster.wait(lambda: used_mib() < before // 4, "its memory leaves the GPU", 90)
    out_s, away = time.monotonic() - began, used_mib()
    count = rights(cluster, job)
    time.sleep(1)
    assert rights(cluster, job) == count, "it runs while it is suspended"
    other = cluster.submit([sys.executable, HERE / "hold.py", 60000, 1], gpu_memory_mb=OTHER_MIB)
    assert cluster.state(other, "completed", "failed", seconds=25)["state"] == "completed", cluster.logs_of(other)
    began = time.monotonic()
    act(cluster, job, "resume")
    cluster.state(job, "running", seconds=90)
    back_s = time.monotonic() - began
    cluster.wait(lambda: rights(cluster, job) > count + 3, "the job continues with the right data")
    back = used_mib()
    cluster.ask("DELETE", f"/api/v1/jobs/{job}")
    cluster.state(job, "cancelled")
    return (f"{before} MiB in use, {away} while it was away, {back} after: out {out_s:.1f} s, back "
            f"{back_s:.1f} s; a job of {OTHER_MIB} MiB ran meanwhile; the memory was right at every look")


def plain(gib):
    return lambda cluster: there_and_back(
        cluster, cluster.submit(keep(gib), gpu_memory_mb=(gib + 1) * 1024))


def whole(cluster):
    """What is not measured yet is taken for as much as it may use."""
    job = cluster.submit(keep(8), gpu_count=1)
    cluster.wait(lambda: (cluster.job(job)["peak_gpu_memory_mb"] or 0) > 8192, "it is measured", 90)
    return there_and_back(cluster, job)


def with_torch(cluster):
    return there_and_back(cluster, cluster.submit(TORCH, gpu_memory_mb=14336))


def refusal(cluster, job):
    act(cluster, job, "suspend")
    message = cluster.wait(lambda: cluster.job(job)["message"], "it is refused")
    count = rights(cluster, job)
    cluster.wait(lambda: rights(cluster, job) > count + 2, "the job continues")
    assert cluster.job(job)["state"] == "running"
    return message


def several(cluster):
    words = " ".join(map(str, keep(1)))
    job = cluster.submit(f"#!/bin/sh\n{words} & {words} & wait\n", gpu_memory_mb=6144)
    cluster.wait(lambda: rights(cluster, job) > 20, "both have their memory", 90)
    message = refusal(cluster, job)
    cluster.ask("DELETE", f"/api/v1/jobs/{job}")
    return f"refused: '{message}'"


def shared(cluster):
    """One job exports memory, another imports it: neither may be lost."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    giver = cluster.submit(keep(2, "export", folder / "handle"), gpu_memory_mb=4096)
    cluster.wait(lambda: rights(cluster, giver) > 0, "it exports", 90)
    taker = cluster.submit(keep(2, "import", folder / "handle"), gpu_memory_mb=6144)
    cluster.wait(lambda: rights(cluster, taker) > 0, "it imports", 90)
    said = cluster.logs_of(taker).splitlines()[0]
    assert said == "import: 0", said
    message = refusal(cluster, taker)
    assert "imported" in message, message
    act(cluster, giver, "suspend")
    seen = cluster.wait(
        lambda: (job := cluster.job(giver))["state"] != "running" and job or job["message"] and job,
        "the exporter is suspended or not", 90)
    time.sleep(2)
    other = cluster.job(taker)["state"]
    text = f"the importer was refused: '{message}'; the exporter: {seen['state']} ({seen['message']}), importer then {other}"
    if seen["state"] == "suspended":
        count = rights(cluster, giver)
        act(cluster, giver, "resume")
        cluster.wait(lambda: cluster.job(giver)["state"] != "suspended", "the exporter comes back", 90)
        time.sleep(3)
        text += (f", back {cluster.job(giver)['state']} and right {rights(cluster, giver) - count} times, "
                 f"importer {cluster.job(taker)['state']}: {cluster.logs_of(taker).splitlines()[-1]}")
    for job in (giver, taker):
        cluster.ask("DELETE", f"/api/v1/jobs/{job}")
    return text


def explain(cluster):
    """What is known where a step fails; the next begins without its jobs."""
    for job in cluster.ask("GET", "/api/v1/jobs")["jobs"]:
        if job["state"] in ("completed", "cancelled"):
            continue
        its = job["job_id"]
        print(f"{its} {job['state']} {job['message']}\n{cluster.logs_of(its)[-300:]}\n"
              f"{cluster.ask('GET', f'/api/v1/jobs/{its}/why')}", file=sys.stderr)
        cluster.ask("DELETE", f"/api/v1/jobs/{its}")
        cluster.state(its, "completed", "cancelled", "failed")
    print(f"{cluster.gpus()}\n{(OUT / 'agent.log').read_text()[-2000:]}", file=sys.stderr, flush=True)


STEPS = [
    ("a job of 8 GiB", plain(8)),
    ("a job of 40 GiB", plain(40)),
    ("a job with the whole GPU, without the guard", whole),
    ("PyTorch, 8 GiB and a CUDA graph", with_torch),
    ("a job of two processes", several),
    ("memory shared by two jobs", shared),
]


def main():
    cluster = Cluster(BUNDLE, OUT)
    passed = failed = 0
    print("| what | result | seen |\n|---|---|---|")
    try:
        for name, step in STEPS:
            try:
                seen = step(cluster)
                passed += 1
                print(f"| {name} | passed | {seen} |", flush=True)
            except Exception as error:  # each step is judged by itself
                failed += 1
                print(f"| {name} | FAILED | {type(error).__name__}: {error} |", flush=True)
                explain(cluster)
    finally:
        cluster.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
