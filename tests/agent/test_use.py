"""What tasks used, and when they ended, as the scheduler tells it afterwards."""

import datetime
import time


def seconds(moment):
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def test_a_job_tells_what_it_used(cluster):
    cluster.agent()
    job = cluster.submit(
        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 1.5",
        gpu_memory_mb=4096,
        environment={"FAKE_GPU_MEMORY_MIB": "3000"},
    )
    live = cluster.wait(lambda: (seen := cluster.job(job))["peak_gpu_memory_mb"] and seen)
    assert live["state"] == "running" and live["gpu_seconds"] > 0
    ended = cluster.await_state(job, "completed")
    share = ended["allocations"][0]
    took = seconds(share["ended_at"]) - seconds(share["started_at"])
    assert ended["peak_gpu_memory_mb"] == 3000
    # 4096 MiB are a twentieth of the GPU.
    assert abs(ended["gpu_seconds"] - took * 0.05) < 0.05
    assert ended["energy_joules"] > 0
    assert ended["cpu_seconds"] > 0.01
    assert ended["peak_memory_mb"] >= 1
    assert ended["guard"] is None
    for name in ("peak_gpu_memory_mb", "gpu_seconds", "energy_joules", "cpu_seconds"):
        assert share[name] == ended[name]


def test_what_was_used_survives_restarts_of_both(cluster):
    agent = cluster.agent()
    job = cluster.submit("sleep 3", gpu_memory_mb=4096)
    cluster.wait(lambda: cluster.job(job)["peak_gpu_memory_mb"])
    agent.kill()
    agent.start()
    ended = cluster.await_state(job, "completed")
    assert ended["peak_gpu_memory_mb"] == 4096
    assert ended["gpu_seconds"] > 0.12
    cluster.scheduler.kill()
    cluster.scheduler.start()
    again = cluster.job(job)
    for name in ("peak_gpu_memory_mb", "gpu_seconds", "energy_joules", "cpu_seconds"):
        assert again[name] == ended[name]


def test_a_task_ended_when_it_ended_not_when_the_scheduler_heard_of_it(cluster):
    cluster.agent()
    job = cluster.submit("sleep 2", gpu_memory_mb=4096)
    cluster.await_state(job, "running")
    cluster.scheduler.kill()
    time.sleep(5)
    restarted = time.time()
    cluster.scheduler.start()
    ended = cluster.await_state(job, "completed")["allocations"][0]
    assert seconds(ended["ended_at"]) - seconds(ended["started_at"]) > 1.5
    assert seconds(ended["ended_at"]) < restarted


def test_all_runs_of_a_gang_are_added_up(cluster):
    cluster.agent()
    cluster.agent()
    job = cluster.submit("sleep 1", gpu_count=1, tasks=2, min_available=2)
    ended = cluster.await_state(job, "completed")
    each = [task["gpu_seconds"] for task in ended["allocations"]]
    assert len(each) == 2 and min(each) > 0.9
    assert abs(ended["gpu_seconds"] - sum(each)) < 0.002


def test_what_an_agent_has_to_say_about_a_job_is_among_its_events(cluster):
    cluster.agent()
    job = cluster.submit(
        "sleep 1000", gpu_memory_mb=4096, environment={"FAKE_GPU_MEMORY_MIB": "6000"}
    )
    told = cluster.wait(lambda: cluster.job(job)["message"])
    assert told.startswith("task 0: it uses 6000 MiB of GPU") and "4096 MiB" in told
    events = cluster.scheduler.get(f"/api/v1/jobs/{job}/events").json()["events"]
    over = [event for event in events if event["type"] == "task_over"]
    assert len(over) == 1 and over[0]["task"] == 0


def test_why_a_task_was_stopped_is_why_its_job_failed(cluster):
    cluster.agent(arguments=["--overuse", "stop"])
    job = cluster.submit(
        "sleep 1000", gpu_memory_mb=4096, environment={"FAKE_GPU_MEMORY_MIB": "6000"}
    )
    failed = cluster.await_state(job, "failed")
    assert failed["exit_code"] == 137
    assert failed["message"].startswith("task 0 ended with 137: it uses 6000 MiB")
