"""Agents of others, by the calls that existing stubs have."""

import queue
import threading

import grpc
import pytest

from calls import Calls, agent_pb2, scheduler_pb2, wait_for


@pytest.fixture
def calls(tmp_path):
    one = Calls(tmp_path / "store.db")
    yield one
    one.stop()


class Agent:
    """A node with GPUs of 80 GiB that runs nothing and says that it does."""

    def __init__(self, calls, name, gpus=2):
        self.calls, self.name, self.gpus = calls, name, gpus
        self.words = queue.Queue()
        self.assignments = queue.Queue()

    def register(self):
        gpus = [agent_pb2.GPUInfo(gpu_id=f"GPU-{self.name}-{i}", index=i, model="A100",
                                  memory_total_mb=81920) for i in range(self.gpus)]
        return self.calls.agent.RegisterAgent(agent_pb2.RegisterAgentRequest(
            node_id=self.name, hostname=self.name, total_gpus=self.gpus, total_cpu_cores=32,
            total_memory_mb=262144, gpus=gpus), timeout=60)

    def metrics(self, used_mb=0):
        return [agent_pb2.GPUMetrics(gpu_id=f"GPU-{self.name}-{i}", utilization=50,
                                     temperature=40, power_usage=200, memory_used_mb=used_mb)
                for i in range(self.gpus)]

    def take_assignments(self):
        """Says that it is ready, and collects what it is given."""
        call = self.calls.agent.ReceiveJobAssignment(iter(self.words.get, None))
        self.words.put(agent_pb2.JobAssignmentRequest(node_id=self.name, status="ready"))

        def collect():
            try:
                for assignment in call:
                    self.assignments.put(assignment)
            except grpc.RpcError:
                pass

        threading.Thread(target=collect, daemon=True).start()
        return call

    def report(self, job_id, state, **fields):
        jobs = [agent_pb2.JobMetrics(job_id=job_id, state=state, **fields)]
        return self.calls.agent.ReportMetrics(agent_pb2.ReportMetricsRequest(
            node_id=self.name, gpu_metrics=self.metrics(), job_metrics=jobs), timeout=60)

    def beat(self):
        """One heartbeat and its answer."""
        beats = iter([agent_pb2.HeartbeatRequest(node_id=self.name, gpu_metrics=self.metrics())])
        return next(self.calls.agent.Heartbeat(beats, timeout=60))


def submit(calls, **fields):
    return calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
        tenant_id="lab", **fields), timeout=60).job_id


def status(calls, job):
    return calls.scheduler.GetJobStatus(
        scheduler_pb2.GetJobStatusRequest(job_id=job), timeout=60)


def cluster(calls):
    return calls.scheduler.GetClusterStatus(scheduler_pb2.GetClusterStatusRequest(), timeout=60)


def test_a_node_registers_runs_a_job_and_reports_its_end(calls):
    agent = Agent(calls, "n1")
    answer = agent.register()
    assert answer.success, answer.message
    assert answer.agent_id == "n1"
    assert cluster(calls).total_gpus == 2
    agent.take_assignments()
    job = submit(calls, gpu_count=1, command=["python", "x.py"], args=["--fast"], image="img",
                 environment={"A": "1"}, cpu_cores=4, memory_mb=1024)
    given = agent.assignments.get(timeout=60)
    assert given.job_id == job
    assert list(given.command) == ["python", "x.py"]
    assert list(given.args) == ["--fast"]
    assert dict(given.environment)["A"] == "1"
    assert (given.image, given.cpu_cores, given.memory_mb) == ("img", 4, 1024)
    assert list(given.gpu_ids)[0].startswith("GPU-n1-")
    assert status(calls, job).state == "scheduled"
    assert agent.report(job, "running").success
    wait_for(lambda: status(calls, job).state == "running")
    running = status(calls, job)
    assert running.node_name == "n1"
    assert list(running.allocated_gpus) == list(given.gpu_ids)
    assert running.metrics["gpu_utilization"] == 50
    assert cluster(calls).available_gpus == 1
    agent.report(job, "completed", exit_code="0")
    wait_for(lambda: status(calls, job).state == "completed")
    wait_for(lambda: cluster(calls).available_gpus == 2)


def test_a_job_that_fails_says_why(calls):
    agent = Agent(calls, "n1")
    agent.register()
    agent.take_assignments()
    job = submit(calls, gpu_count=1, command=["false"])
    agent.assignments.get(timeout=60)
    agent.report(job, "running")
    agent.report(job, "failed", exit_code="3", error_message="no such file")
    wait_for(lambda: status(calls, job).state == "failed")
    ended = status(calls, job)
    assert ended.metrics["exit_code"] == 3
    assert ended.message


def test_a_job_that_is_cancelled_is_stopped_by_heartbeat(calls):
    agent = Agent(calls, "n1")
    agent.register()
    agent.take_assignments()
    job = submit(calls, gpu_count=1, command=["sleep", "99"])
    agent.assignments.get(timeout=60)
    agent.report(job, "running")
    wait_for(lambda: status(calls, job).state == "running")
    calls.scheduler.CancelJob(scheduler_pb2.CancelJobRequest(job_id=job), timeout=60)
    wait_for(lambda: f"stop {job}" in list(agent.beat().commands))
    assert cluster(calls).available_gpus == 1
    agent.report(job, "cancelled")
    wait_for(lambda: cluster(calls).available_gpus == 2)
    assert not agent.beat().commands


def test_what_was_not_handed_out_waits_for_someone_who_takes_it(calls):
    agent = Agent(calls, "n1")
    agent.register()
    job = submit(calls, gpu_count=1, command=["true"])
    wait_for(lambda: status(calls, job).state == "scheduled")
    agent.take_assignments()
    assert agent.assignments.get(timeout=60).job_id == job


def test_who_is_not_registered_is_told_to(calls):
    agent = Agent(calls, "stranger")
    answer = agent.beat()
    assert not answer.acknowledged
    assert list(answer.commands) == ["register"]
    with pytest.raises(grpc.RpcError) as error:
        agent.report("job-1", "running")
    assert error.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_a_restart_of_the_scheduler_keeps_what_runs(tmp_path):
    first = Calls(tmp_path / "store.db")
    agent = Agent(first, "n1")
    agent.register()
    agent.take_assignments()
    job = submit(first, gpu_count=1, command=["sleep", "99"])
    agent.assignments.get(timeout=60)
    agent.report(job, "running")
    wait_for(lambda: status(first, job).state == "running")
    first.stop()
    second = Calls(tmp_path / "store.db")
    try:
        agent = Agent(second, "n1")
        assert agent.register().success
        assert status(second, job).state == "running"
        assert agent.report(job, "completed").success
        wait_for(lambda: status(second, job).state == "completed")
    finally:
        second.stop()


def test_memory_that_others_use_is_not_given_away(calls):
    agent = Agent(calls, "n1", gpus=1)
    agent.register()
    agent.take_assignments()
    calls.agent.ReportMetrics(agent_pb2.ReportMetricsRequest(
        node_id="n1", gpu_metrics=agent.metrics(used_mb=70000)), timeout=60)
    job = submit(calls, gpu_memory_mb=40000, command=["true"])
    small = submit(calls, gpu_memory_mb=8000, command=["true"])
    assert agent.assignments.get(timeout=60).job_id == small
    assert status(calls, job).state == "pending"
