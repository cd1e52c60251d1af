"""Jobs that are suspended and resumed: the real scheduler and agents, simulated GPUs."""

COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"


def act(cluster, job, verb):
    return cluster.scheduler.post(f"/api/v1/jobs/{job}/{verb}", {})


def lines(cluster, job):
    return len(cluster.logs(job).splitlines())


def test_a_suspended_job_frees_its_gpu_stands_still_and_goes_on_where_it_was(cluster):
    agent = cluster.agent(gpus="1x256M")
    first = cluster.submit(COUNT, gpu_count=1)
    cluster.await_state(first, "running")
    cluster.wait(lambda: lines(cluster, first) >= 5)
    act(cluster, first, "suspend")
    cluster.await_state(first, "suspended")
    second = cluster.submit("echo here; exit 0", gpu_count=1)
    cluster.await_state(second, "completed")
    counted = lines(cluster, first)
    third = cluster.submit("sleep 1", gpu_count=1)
    cluster.await_state(third, "completed")
    assert lines(cluster, first) == counted
    act(cluster, first, "resume")
    cluster.await_state(first, "running")
    cluster.wait(lambda: lines(cluster, first) > counted)
    output = cluster.logs(first).splitlines()
    assert output == [str(i + 1) for i in range(len(output))]
    assert cluster.job(first)["preempted_count"] == 0
    assert agent.process.poll() is None


def test_a_job_of_higher_priority_suspends_another_which_resumes_by_itself(cluster):
    cluster.agent(gpus="1x256M")
    low = cluster.submit(COUNT, gpu_count=1, priority=10, suspend="always", preemptible=True)
    cluster.await_state(low, "running")
    # Long enough that suspending costs less than what it would lose.
    cluster.wait(lambda: lines(cluster, low) >= 20)
    high = cluster.submit("sleep 2", gpu_count=1, priority=1000)
    cluster.await_state(high, "completed", seconds=120)
    cluster.await_state(low, "running", seconds=120)
    output = cluster.logs(low).splitlines()
    assert output == [str(i + 1) for i in range(len(output))]
    assert len(output) >= 20


def test_a_job_that_the_driver_refuses_runs_on(cluster):
    cluster.agent(gpus="1x256M")
    job = cluster.submit(COUNT, gpu_count=1, environment={"FAKE_GPU_SUSPEND": "refuse"})
    cluster.await_state(job, "running")
    act(cluster, job, "suspend")
    cluster.wait(lambda: "could not be suspended" in (cluster.job(job)["message"] or ""))
    cluster.await_state(job, "running")
    before = lines(cluster, job)
    cluster.wait(lambda: lines(cluster, job) > before)


def test_a_job_that_is_lost_starts_again_and_says_so(cluster):
    cluster.agent(gpus="1x256M")
    job = cluster.submit(COUNT, gpu_count=1, environment={"FAKE_GPU_SUSPEND": "lose"})
    cluster.await_state(job, "running")
    act(cluster, job, "suspend")
    cluster.wait(lambda: "lost when it was suspended" in (cluster.job(job)["message"] or ""))
    cluster.await_state(job, "running")


def test_a_job_that_says_never_is_refused(cluster):
    cluster.agent(gpus="1x256M")
    job = cluster.submit("sleep 100", gpu_count=1, suspend="never")
    cluster.await_state(job, "running")
    answer = act(cluster, job, "suspend")
    assert answer.status == 409, answer
    assert "may not be suspended" in str(answer.body)


def test_a_suspended_job_survives_its_agent_and_can_be_cancelled(cluster):
    agent = cluster.agent(gpus="1x256M")
    job = cluster.submit(COUNT, gpu_count=1)
    cluster.await_state(job, "running")
    act(cluster, job, "suspend")
    cluster.await_state(job, "suspended")
    counted = lines(cluster, job)
    agent.kill()
    agent.start()
    other = cluster.submit("sleep 1", gpu_count=1)
    cluster.await_state(other, "completed", seconds=120)
    assert cluster.job(job)["state"] == "suspended"
    assert lines(cluster, job) == counted
    act(cluster, job, "resume")
    cluster.await_state(job, "running", seconds=120)
    act(cluster, job, "suspend")
    cluster.await_state(job, "suspended")
    cluster.scheduler.delete(f"/api/v1/jobs/{job}")
    cluster.await_state(job, "cancelled")
    last = cluster.submit("exit 0", gpu_count=1)
    cluster.await_state(last, "completed")
