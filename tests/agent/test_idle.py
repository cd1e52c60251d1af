"""GPUs that are held and not used: told everywhere, and by policy taken back after notice."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from cli import Cli


def cli(cluster, *words):
    return Cli(cluster.directory, cluster.scheduler.url)(*words)


def idle_count(cluster):
    text = cluster.scheduler.get("/metrics").body.decode()
    [line] = [line for line in text.splitlines()
              if line.startswith('gpu_scheduler_task_notices_total{kind="idle"}')]
    return int(line.split()[1])


def event_types(cluster, job):
    answer = cluster.scheduler.get(f"/api/v1/jobs/{job}/events").json()
    return [event["type"] for event in answer["events"]]


def submit_idle(cluster, script="sleep 1000"):
    return cluster.submit(script, gpu_count=1, environment={"FAKE_GPU_UTILISATION": "0"})


def test_a_job_that_does_not_use_its_gpus_is_told_of_and_goes_on(cluster):
    cluster.agent(arguments=["--idle-seconds", "1"])
    before = idle_count(cluster)
    idle = submit_idle(cluster)
    busy = cluster.submit("sleep 1000", gpu_count=1)
    cluster.wait(lambda: "task_idle" in event_types(cluster, idle))
    seen = cluster.job(idle)
    assert seen["state"] == "running"
    assert seen["message"].startswith("task 0: it holds GPUs and has not used them for ")
    assert idle_count(cluster) == before + 1
    shown = cli(cluster, "get", idle)
    assert "it holds GPUs and has not used them for " in shown
    assert "task 0 idle" in shown
    cluster.wait(lambda: "it holds GPUs" in cluster.logs(idle))
    assert cluster.job(busy)["message"] == ""
    assert "task_idle" not in event_types(cluster, busy)


def test_by_policy_gpus_that_are_not_used_are_taken_back_after_notice(cluster):
    cluster.agent(arguments=["--idle-seconds", "1", "--idle-stop-seconds", "2"])
    idle = submit_idle(cluster, "trap 'echo saves its work; exit 0' TERM\n"
                                "while :; do sleep 0.1; done")
    busy = cluster.submit("sleep 1000", gpu_count=1)
    waiting = cluster.submit("sleep 1000", gpu_count=1)
    cluster.wait(lambda: "task_idle" in event_types(cluster, idle))
    assert "if it stays idle, it is stopped in 2 s" in cluster.job(idle)["message"]
    assert cluster.job(waiting)["state"] == "pending"
    ended = cluster.await_state(idle, "failed", "completed", "preempted", "pending")
    assert (ended["state"], ended["exit_code"]) == ("failed", 124)
    assert "it held GPUs and did not use them" in ended["message"]
    assert "saves its work" in cluster.logs(idle)
    assert "it held GPUs and did not use them" in cli(cluster, "get", idle)
    cluster.await_state(waiting, "running")
    assert cluster.job(busy)["state"] == "running"
    assert event_types(cluster, idle).count("task_idle") == 1
