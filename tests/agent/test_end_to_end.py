"""Jobs from their submission to their output: the real scheduler, real agents, simulated GPUs."""

import datetime
import os
import pathlib
import signal
import time

from processes import alive


def test_jobs_run_and_their_output_is_read_back(cluster):
    cluster.agent()
    job = cluster.submit("echo hello from $GPU_SCHEDULER_JOB_ID; exit 3", gpu_count=1)
    ended = cluster.await_state(job, "failed", "completed")
    assert (ended["state"], ended["allocations"][0]["exit_code"]) == ("failed", 3), ended
    assert cluster.logs(job) == f"hello from {job}\n"


def test_output_is_followed_while_a_job_runs(cluster):
    cluster.agent()
    job = cluster.submit("for i in 1 2 3; do echo $i; sleep 0.3; done", gpu_count=1)
    cluster.await_state(job, "running")
    assert cluster.logs(job, follow=1) == "1\n2\n3\n"


GANG = """#!/usr/bin/env python3
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
master = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", master[1]))
    peers = [server.accept()[0] for _ in range(size - 1)]
    said = sorted(peer.makefile().readline().strip() for peer in peers)
    for peer in peers:
        peer.sendall(("all: " + " ".join(said) + "\\n").encode())
    print("heard", *said)
else:
    while True:
        try:
            peer = socket.create_connection(master, 5)
            break
        except OSError:
            time.sleep(0.1)
    peer.sendall(f"task-{rank}\\n".encode())
    print(peer.makefile().readline().strip())
"""


def test_a_gang_of_three_on_two_nodes_finds_each_other(cluster):
    # Both are addresses of this machine.
    names = {
        cluster.agent(gpus="2x80G", arguments=["--address", address]).name
        for address in ("127.0.0.2", "127.0.0.3")
    }
    job = cluster.submit(GANG, gpu_count=1, tasks=3, gang_scheduling=True)
    ended = cluster.await_state(job, "completed", "failed")
    assert ended["state"] == "completed", ended
    assert {task["node"] for task in ended["allocations"] if "node" in task} <= names
    assert cluster.logs(job, task=0) == "heard task-1 task-2\n"
    assert cluster.logs(job, task=1) == "all: task-1 task-2\n"
    assert cluster.logs(job, task=2) == "all: task-1 task-2\n"


def test_what_daemonises_and_ignores_sigterm_is_gone_after_cancel(cluster, tmp_path):
    cluster.agent()
    marker = f"stubborn-{os.getpid()}-{tmp_path.name}"
    script = f"""
        trap '' TERM
        (setsid sh -c "trap '' TERM; while :; do sleep 0.1; done #{marker}" &)
        while :; do sleep 0.1; done
    """
    job = cluster.submit(script, gpu_count=1)
    cluster.wait(lambda: alive(marker))
    assert cluster.scheduler.delete(f"/api/v1/jobs/{job}").status == 200
    cluster.await_state(job, "cancelled")
    cluster.wait(lambda: not alive(marker))


CHECKPOINTED = """
    path={path}
    step=$(cat $path 2>/dev/null || echo 0)
    echo "begins at $step"
    trap 'echo $step > $path; echo "saved $step"; exit 0' TERM
    while [ $step -lt 1000 ]; do
        step=$((step + 1))
        touch {begun}
        [ -e {finish} ] && {{ echo "done at $step"; exit 0; }}
        sleep 0.05
    done
"""


def test_a_preempted_job_saves_its_work_and_resumes_there(cluster, tmp_path):
    cluster.agent(gpus="1x80G")
    path, finish, begun = tmp_path / "checkpoint", tmp_path / "finish", tmp_path / "begun"
    script = CHECKPOINTED.format(path=path, finish=finish, begun=begun)
    low = cluster.submit(
        script, gpu_count=1, priority=100, checkpoint_enabled=True, checkpoint_path=str(path)
    )
    cluster.await_state(low, "running")
    cluster.wait(begun.exists)
    high = cluster.submit("sleep 0.5", gpu_count=1, priority=900)
    assert cluster.await_state(high, "completed", "failed")["state"] == "completed"
    cluster.await_state(low, "running")
    finish.touch()
    ended = cluster.await_state(low, "completed", "failed")
    assert ended["state"] == "completed" and ended["preempted_count"] == 1
    saved = int(path.read_text())
    assert saved > 0
    assert f"begins at {saved}" in cluster.logs(low)


def test_an_agent_killed_under_running_jobs_loses_none(cluster):
    agent = cluster.agent(gpus="8x80G")
    jobs = [cluster.submit(f"sleep 3; echo {i}", gpu_count=1) for i in range(8)]
    for job in jobs:
        cluster.await_state(job, "running")
    for _ in range(3):
        agent.kill()
        time.sleep(0.2)
        agent.start()
    for number, job in enumerate(jobs):
        ended = cluster.await_state(job, "completed", "failed")
        assert ended["state"] == "completed", ended
        assert cluster.logs(job) == f"{number}\n"


def test_a_scheduler_that_starts_again_finds_its_jobs(cluster):
    cluster.agent()
    job = cluster.submit("sleep 3; echo done", gpu_count=1)
    cluster.await_state(job, "running")
    cluster.scheduler.kill()
    cluster.scheduler.start()
    ended = cluster.await_state(job, "completed", "failed")
    assert ended["state"] == "completed", ended
    assert cluster.logs(job) == "done\n"


def test_a_node_that_vanishes_and_returns_keeps_its_jobs(cluster):
    agent = cluster.agent()
    job = cluster.submit("sleep 8; echo done", gpu_count=1)
    cluster.await_state(job, "running")
    agent.process.send_signal(signal.SIGSTOP)
    cluster.wait(lambda: cluster.node(agent.name)["state"] != "online", 60)
    agent.process.send_signal(signal.SIGCONT)
    cluster.wait(lambda: cluster.node(agent.name)["state"] == "online")
    assert cluster.await_state(job, "completed", "failed")["state"] == "completed"
    assert cluster.logs(job) == "done\n"


def gpu(cluster, name, index=0):
    answer = cluster.scheduler.get(f"/api/v1/runners/{name}/status").json()
    return answer["gpus"][index]


def test_foreign_memory_is_accounted(cluster):
    agent = cluster.agent(gpus="1x80G")
    free = gpu(cluster, agent.name)["free_memory"]
    agent.control("0 foreign 60000\n")
    cluster.wait(lambda: gpu(cluster, agent.name)["free_memory"] < free)
    job = cluster.submit("true", gpu_count=1, gpu_memory_mb=40000)
    time.sleep(1)
    assert cluster.job(job)["state"] == "pending"
    agent.control("")
    assert cluster.await_state(job, "completed", "failed")["state"] == "completed"


def test_memory_that_no_process_explains_is_shown_and_told(cluster):
    agent = cluster.agent(gpus="1x80G")
    job = cluster.submit("sleep 1000", gpu_memory_mb=1000)
    cluster.await_state(job, "running")
    agent.control("0 lingers 5000\n")
    seen = cluster.wait(lambda: [g for g in [gpu(cluster, agent.name)] if g["unexplained_memory"]])[0]
    assert seen["unexplained_memory"] == seen["foreign_memory"] == 5000
    said = cluster.wait(lambda: cluster.job(job)["message"])
    assert said.startswith("task 0: 5000 MiB of GPU")
    events = cluster.scheduler.get(f"/api/v1/jobs/{job}/events").json()["events"]
    assert "task_unexplained" in [event["type"] for event in events]
    agent.control("")
    cluster.wait(lambda: gpu(cluster, agent.name)["unexplained_memory"] == 0)
    assert cluster.job(job)["state"] == "running"


def test_jobs_wait_for_those_that_they_depend_on(cluster, tmp_path):
    cluster.agent(gpus="4x80G")
    trace = tmp_path / "trace"
    first = cluster.submit(f"sleep 0.5; echo first >> {trace}", gpu_count=1)
    second = cluster.submit(f"echo second >> {trace}", gpu_count=1, depends_on=[first])
    assert cluster.await_state(second, "completed", "failed")["state"] == "completed"
    assert trace.read_text() == "first\nsecond\n"


def test_each_job_of_an_array_knows_its_place(cluster, tmp_path):
    cluster.agent(gpus="4x80G")
    answer = cluster.scheduler.post(
        "/api/v1/jobs",
        {
            "tenant_id": cluster.tenant,
            "name": "array",
            "script": f"env > {tmp_path}/$GPU_SCHEDULER_JOB_ID",
            "gpu_count": 1,
            "array": "0-5",
        },
    )
    assert answer.status in (200, 201, 202), answer
    cluster.wait(lambda: len(list(tmp_path.glob("job-*"))) == 6)
    first = answer.json()["job_id"]
    for index in range(6):
        job = f"job-{int(first[4:]) + index}"
        cluster.await_state(job, "completed")
        variables = dict(line.partition("=")[::2] for line in (tmp_path / job).read_text().splitlines())
        assert variables["GPU_SCHEDULER_ARRAY_INDEX"] == variables["SLURM_ARRAY_TASK_ID"] == str(index)
        assert variables["GPU_SCHEDULER_ARRAY_JOB_ID"] == first
        assert [variables[f"GPU_SCHEDULER_ARRAY_{word}"] for word in ("FIRST", "LAST", "COUNT")] == ["0", "5", "6"]


def test_an_array_may_have_gaps_and_others_may_wait_for_all_of_it(cluster, tmp_path):
    cluster.agent(gpus="4x80G")
    trace = tmp_path / "trace"
    first = cluster.submit(f"echo $GPU_SCHEDULER_ARRAY_INDEX of $GPU_SCHEDULER_ARRAY_COUNT >> {trace}",
                           array="7,10-30:10%1")
    second = f"job-{int(first[4:]) + 1}"
    after = cluster.submit(f"echo after >> {trace}", depends_on=[{"array": second}])
    assert cluster.job(after)["depends_on"] == [{"array": first, "condition": "success"}]
    assert cluster.await_state(after, "completed", "failed")["state"] == "completed"
    assert trace.read_text() == "7 of 4\n10 of 4\n20 of 4\n30 of 4\nafter\n"


def test_a_job_does_not_begin_before_its_time(cluster):
    cluster.agent()
    day = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    later = cluster.submit("true", begin=day.strftime("%Y-%m-%dT%H:%M:%SZ"))
    soon = cluster.submit("true", begin=(day - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ"))
    cluster.await_state(soon, "completed")
    assert cluster.job(later)["state"] == "pending"
    assert "it is to begin at" in str(cluster.scheduler.get(f"/api/v1/jobs/{later}/why").json())


def test_a_job_that_is_too_long_is_ended(cluster):
    cluster.agent()
    job = cluster.submit("sleep 1000", gpu_count=1, max_runtime_minutes=1)
    assert cluster.await_state(job, "running")["max_runtime_minutes"] == 1
    cluster.scheduler.delete(f"/api/v1/jobs/{job}")
    cluster.await_state(job, "cancelled")


def test_two_share_a_gpu_and_a_third_waits(cluster):
    cluster.agent(gpus="1x80G")
    jobs = [cluster.submit("sleep 2", gpu_count=1, gpu_memory_mb=30000) for _ in range(3)]
    cluster.await_state(jobs[0], "running")
    cluster.await_state(jobs[1], "running")
    assert cluster.job(jobs[2])["state"] == "pending"
    assert cluster.await_state(jobs[2], "completed", "failed")["state"] == "completed"


def test_outputs_outlive_their_jobs_and_the_agent(cluster):
    agent = cluster.agent()
    job = cluster.submit("echo kept", gpu_count=1)
    cluster.await_state(job, "completed")
    cluster.wait(lambda: not list(pathlib.Path(agent.state, "works").iterdir()))
    agent.terminate()
    agent.start()
    cluster.wait(lambda: cluster.node(agent.name)["connected"])
    assert cluster.logs(job) == "kept\n"


def test_a_job_that_fails_while_a_stranger_has_its_memory_is_queued_again(cluster, tmp_path):
    agent = cluster.agent(gpus="1x80G")
    marker = tmp_path / "free"
    # It fails until the stranger is gone.
    job = cluster.submit(f"sleep 1; test -e {marker} || exit 3; echo done", gpu_memory_mb=60000)
    cluster.await_state(job, "running")
    agent.control("0 foreign 40000\n")
    cluster.wait(lambda: "queued again, 1 of 3 times" in cluster.job(job)["message"])
    seen = cluster.job(job)
    assert seen["state"] in ("pending", "preempted"), seen
    assert "task 0 ended with 3 while programs that nobody scheduled used 40000 MiB" in seen["message"]
    marker.touch()
    agent.control("")
    cluster.await_state(job, "completed")
    assert cluster.logs(job) == "done\n"
