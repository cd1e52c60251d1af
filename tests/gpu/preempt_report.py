"""preempt_report.py BUNDLE DIRECTORY - a training run preempted for higher jobs and resumed, ten times,
beside the same run that is left alone. Ends with 'N passed, M failed'."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent

TIMES = 10
RUN_S = 70  # that it takes by itself
# A job is suspended where that costs less GPU time than starting it again. This one moves about
# 12 GiB out and back, for which the scheduler expects 8 s.
FIRST_S = 25
BETWEEN_S = 2
OTHER_MIB = 130000  # does not fit beside it
TRAIN_MIB = 14336


def losses(cluster, job):
    rows = [line.split() for line in cluster.logs_of(job).splitlines() if line.startswith("step ")]
    assert [int(row[1]) for row in rows] == list(range(len(rows))), "steps are missing or were repeated"
    return [row[2] for row in rows]


def train(cluster, steps):
    # cuBLAS adds in the same order each time.
    return cluster.submit(
        [sys.executable, HERE / "train.py", steps], gpu_memory_mb=TRAIN_MIB, priority=100,
        suspend="always", preemptible=True, environment={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})


def steps_of(cluster, seconds):
    """How many steps take so long."""
    job = train(cluster, 200)
    cluster.wait(lambda: len(losses(cluster, job)) >= 20, "it trains", 120)
    began, count = time.monotonic(), len(losses(cluster, job))
    cluster.state(job, "completed", "failed", seconds=120)
    return int(seconds * (200 - count) / (time.monotonic() - began))


def alone(cluster, steps):
    job = train(cluster, steps)
    seen = cluster.state(job, "completed", "failed", seconds=240)
    assert seen["state"] == "completed", cluster.logs_of(job)[-500:]
    assert cluster.logs_of(job).splitlines()[-1] == "held right"
    return losses(cluster, job), seen


def preempted(cluster, steps):
    """The losses, the seconds that it was away each time, and what the scheduler says of it."""
    job, away = train(cluster, steps), []
    for i in range(TIMES):
        count = len(losses(cluster, job))
        cluster.wait(lambda c=count: len(losses(cluster, job)) > c, "it trains", 120)
        time.sleep(BETWEEN_S if i else FIRST_S)
        other = cluster.submit(
            [sys.executable, HERE / "hold.py", 60000, 1], gpu_memory_mb=OTHER_MIB, priority=900)
        began = time.monotonic()
        cluster.state(job, "suspended", seconds=90)
        ended = cluster.state(other, "completed", "failed", seconds=90)
        assert ended["state"] == "completed", cluster.logs_of(other)
        cluster.state(job, "running", seconds=90)
        away.append(time.monotonic() - began)
    seen = cluster.state(job, "completed", "failed", seconds=240)
    assert seen["state"] == "completed", cluster.logs_of(job)[-500:]
    assert cluster.logs_of(job).splitlines()[-1] == "held right"
    return losses(cluster, job), away, seen


def compare(cluster):
    steps = steps_of(cluster, RUN_S)
    first, left_alone = alone(cluster, steps)
    again, _ = alone(cluster, steps)
    assert first == again, "two runs that are left alone differ: the comparison would say nothing"
    print(f"| two runs that were left alone | passed | {len(first)} losses, equal to the last bit; the "
          f"first {float.fromhex(first[0]):.3f}, the last {float.fromhex(first[-1]):.3f} |", flush=True)
    got, away, seen = preempted(cluster, steps)
    differ = sum(a != b for a, b in zip(first, got))
    assert len(got) == len(first) and differ == 0, f"{len(got)} losses, {differ} of them differ"
    assert seen["preempted_count"] == left_alone["preempted_count"] == 0, "it was stopped and started again"
    return (f"{len(got)} losses, all equal to the last bit; away for {min(away):.1f} to {max(away):.1f} s "
            f"each time, a job of {OTHER_MIB} MiB ran meanwhile; 8 GiB beside the model unchanged")


def main():
    # A job that is known to end soon is not stopped for another: it is waited for.
    os.environ["GPU_SCHEDULER_SCHEDULER_PREDICT_JOBS"] = "0"
    cluster = Cluster(BUNDLE, OUT)
    print("| what | result | seen |\n|---|---|---|")
    passed = failed = 0
    try:
        seen = compare(cluster)
        print(f"| preempted and resumed {TIMES} times | passed | {seen} |", flush=True)
        passed = 2
    except Exception as error:
        failed = 1
        print(f"| preempted and resumed {TIMES} times | FAILED | {type(error).__name__}: {error} |", flush=True)
        for job in cluster.ask("GET", "/api/v1/jobs")["jobs"]:
            print(f"{job['job_id']} {job['state']} {job['message']}\n"
                  f"{cluster.logs_of(job['job_id'])[-500:]}", file=sys.stderr)
    finally:
        cluster.stop()
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()
