"""Shares of a GPU's compute: the real scheduler and agents, simulated GPUs, a stand-in for MPS."""

import os
import pathlib
import signal

MPS = pathlib.Path(__file__).resolve().parent / "mps_standin.py"
SAY = "echo $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; sleep 1000"


def sharing_agent(cluster, **options):
    return cluster.agent(
        gpus="1x2048M", arguments=["--compute-shares", "mps", "--mps-control", str(MPS)], **options)


def share(cluster, script=SAY, compute=0.5, **fields):
    return cluster.submit(script, gpu_memory_mb=100, gpu_compute=compute, **fields)


def told(cluster, job):
    """The pipe directory and the percentage that its environment has."""
    cluster.await_state(job, "running")
    pipe, percent = cluster.wait(lambda: cluster.logs(job).splitlines()[:1])[0].split()
    return pathlib.Path(pipe), percent


def daemon_of(pipe):
    return int((pipe / "nvidia-cuda-mps-control.pid").read_text())


def ended(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


def test_tasks_with_shares_are_clients_of_one_daemon_that_ends_after_them(cluster):
    agent = sharing_agent(cluster)
    first, second = share(cluster), share(cluster, compute=0.375, gpu_processes=4)
    pipe, percent = told(cluster, first)
    assert percent == "50.00"
    assert told(cluster, second) == (pipe, "9.37"), "four processes divide 37.5%"
    assert oct(pipe.parent.parent.stat().st_mode)[-3:] == "711", "users cannot list daemons"
    gpu = cluster.scheduler.get("/api/v1/gpus").json()["gpus"][0]
    assert gpu["compute_share"] == 0.875
    assert gpu["overhead_memory"] == 256
    assert cluster.node(agent.name)["labels"]["gpu-scheduler.io/compute-shares"] == "mps"
    assert cluster.job(first)["gpu_compute"] == 0.5
    third = share(cluster, compute=0.2)
    cluster.wait(lambda: "compute" in cluster.scheduler.get(f"/api/v1/jobs/{third}/why").body.decode())
    assert cluster.job(third)["state"] == "pending"
    daemon = daemon_of(pipe)
    for job in (third, first, second):
        cluster.scheduler.delete(f"/api/v1/jobs/{job}")
    cluster.wait(lambda: ended(daemon) and not pipe.parent.exists())


def test_another_tenant_gets_a_daemon_of_its_own(cluster):
    sharing_agent(cluster)
    first = share(cluster)
    pipe, _ = told(cluster, first)
    daemon = daemon_of(pipe)
    other = share(cluster, tenant_id=cluster.make_tenant("chemistry"))
    cluster.scheduler.delete(f"/api/v1/jobs/{first}")
    others_pipe, _ = told(cluster, other)
    assert others_pipe != pipe or daemon_of(others_pipe) == daemon
    cluster.wait(lambda: daemon_of(others_pipe) > 0)
    assert not ended(daemon_of(others_pipe))


def test_a_daemon_that_died_is_started_again_and_its_tasks_are_told(cluster):
    sharing_agent(cluster)
    job = share(cluster)
    pipe, _ = told(cluster, job)
    daemon = daemon_of(pipe)
    os.kill(daemon, signal.SIGKILL)
    cluster.wait(lambda: "MPS daemon of this GPU ended" in cluster.logs(job))
    cluster.wait(lambda: daemon_of(pipe) != daemon and not ended(daemon_of(pipe)))
    assert told(cluster, share(cluster))[0] == pipe


def test_a_daemon_survives_the_agent(cluster):
    agent = sharing_agent(cluster)
    job = share(cluster)
    pipe, _ = told(cluster, job)
    daemon = daemon_of(pipe)
    agent.kill()
    agent.start()
    second = share(cluster)
    assert told(cluster, second)[0] == pipe
    assert daemon_of(pipe) == daemon


def test_an_error_of_a_neighbor_is_told(cluster):
    sharing_agent(cluster)
    jobs = [share(cluster), share(cluster)]
    pipe, _ = told(cluster, jobs[0])
    told(cluster, jobs[1])
    (pipe.parent / "log" / "server.log").write_text("[Server 7] Client 9 Fatal exception on device 0\n")
    for job in jobs:
        cluster.wait(lambda: "an error of one task on this GPU" in cluster.logs(job))


def test_a_node_without_mps_gives_no_shares(cluster):
    cluster.agent(gpus="1x2048M")
    job = share(cluster)
    cluster.wait(
        lambda: "gives no shares of compute" in cluster.scheduler.get(f"/api/v1/jobs/{job}/why").body.decode())
    assert cluster.job(job)["state"] == "pending"
    answer = cluster.scheduler.post(f"/api/v1/jobs/{job}/suspend", {})
    assert answer.status == 409


def test_a_task_with_a_share_is_not_suspended(cluster):
    sharing_agent(cluster)
    job = share(cluster, suspend="always")
    cluster.await_state(job, "running")
    answer = cluster.scheduler.post(f"/api/v1/jobs/{job}/suspend", {})
    assert answer.status == 409 and "MPS" in str(answer.body)
