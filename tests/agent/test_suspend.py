"""Jobs that are suspended and resumed: the real scheduler and agents, simulated GPUs."""

from stub import NVML_STANDIN

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
    # It stands still when its GPU is free, which is a moment later.
    cluster.await_state(cluster.submit("exit 0", gpu_count=1), "completed")
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


UUID = "GPU-57000000-0000-0000-0000-000000000000"


class Driver:
    """A stand-in for NVIDIA's libraries: which process has memory, and where that is."""

    def __init__(self, directory, monkeypatch):
        self.states, self.nvml = directory / "states", directory / "nvml"
        self.states.mkdir()
        self.measure()
        monkeypatch.setenv("CUDA_DRIVER_LIBRARY", str(NVML_STANDIN.with_name("libcuda_checkpoint_standin.so")))
        monkeypatch.setenv("CUDA_STANDIN_STATE", str(self.states))

    def measure(self, pid=None, mib=0):
        lines = [f"gpu {UUID} 16384 100000 50"] + ([f"process {UUID} {pid} {mib}"] if pid else [])
        new = self.nvml.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.rename(self.nvml)

    def uses(self, pid, mib):
        (self.states / str(pid)).write_text("0")
        self.measure(pid, mib)

    def state(self, pid):
        return {"0": "running", "1": "locked", "2": "away"}.get((self.states / str(pid)).read_text())


def suspended_by_the_driver(cluster, driver):
    cluster.agent(gpus=None, nvml=driver.nvml)
    job = cluster.submit("echo $$; " + COUNT, gpu_memory_mb=1024)
    cluster.await_state(job, "running")
    pid = int(cluster.wait(lambda: lines(cluster, job) >= 5 and cluster.logs(job).split()[0]))
    driver.uses(pid, 1000)
    cluster.wait(lambda: cluster.job(job)["peak_gpu_memory_mb"] == 1000)
    answer = act(cluster, job, "suspend")
    assert answer.status == 200, answer
    return job, pid


def test_the_agent_moves_memory_by_the_driver_and_back(cluster, tmp_path, monkeypatch):
    driver = Driver(tmp_path, monkeypatch)
    job, pid = suspended_by_the_driver(cluster, driver)
    cluster.wait(lambda: driver.state(pid) == "away")
    driver.measure()
    cluster.await_state(cluster.submit("exit 0", gpu_count=1), "completed")
    counted = lines(cluster, job)
    act(cluster, job, "resume")
    cluster.wait(lambda: driver.state(pid) == "running")
    driver.measure(pid, 1000)
    cluster.await_state(job, "running")
    cluster.wait(lambda: lines(cluster, job) > counted)


def test_what_the_driver_says_when_it_refuses_is_the_jobs_message(cluster, tmp_path, monkeypatch):
    driver = Driver(tmp_path, monkeypatch)
    monkeypatch.setenv("CUDA_STANDIN", "checkpoint")
    job, pid = suspended_by_the_driver(cluster, driver)
    cluster.wait(lambda: "too little host memory" in (cluster.job(job)["message"] or ""))
    cluster.await_state(job, "running")
    assert driver.state(pid) == "running"
    counted = lines(cluster, job)
    cluster.wait(lambda: lines(cluster, job) > counted)
