"""gRPC by Python's grpcio: jobs, the cluster, health and reflection."""

import grpc
import pytest
from google.protobuf import descriptor_pb2, duration_pb2

from calls import (
    Calls, health_pb2, reflection_v1_pb2, reflection_v1_pb2_grpc, reflection_v1alpha_pb2,
    reflection_v1alpha_pb2_grpc, scheduler_pb2,
)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    one = Calls(tmp_path_factory.mktemp("calls") / "store.db")
    yield one
    one.stop()


def submit(calls, **fields):
    fields = {"tenant_id": "lab", "command": ["true"]} | fields
    return calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(**fields), timeout=60)


def refused(call, code):
    with pytest.raises(grpc.RpcError) as error:
        call()
    assert error.value.code() == code, error.value
    return error.value.details()


def test_a_job_is_submitted_found_listed_and_cancelled(calls):
    answer = submit(calls, name="train", priority=700, gpu_count=2, gpu_memory_mb=1000,
                    command=["python", "train.py"], environment={"A": "1"},
                    max_runtime=duration_pb2.Duration(seconds=60))
    assert answer.job_id.startswith("job-")
    assert answer.status == "submitted"
    assert answer.message == "Job submitted successfully"
    status = calls.scheduler.GetJobStatus(
        scheduler_pb2.GetJobStatusRequest(job_id=answer.job_id), timeout=60)
    assert status.state == "pending"
    assert status.job_id == answer.job_id
    assert status.queue_position >= 1
    assert status.message
    assert status.submitted_at.seconds > 0
    listed = calls.scheduler.ListJobs(scheduler_pb2.ListJobsRequest(tenant_id="lab"), timeout=60)
    job = next(one for one in listed.jobs if one.job_id == answer.job_id)
    assert (job.name, job.gpu_count, job.priority, job.state) == ("train", 2, 700, "pending")
    cancelled = calls.scheduler.CancelJob(
        scheduler_pb2.CancelJobRequest(job_id=answer.job_id), timeout=60)
    assert cancelled.success and cancelled.message == "Job cancelled successfully"
    status = calls.scheduler.GetJobStatus(
        scheduler_pb2.GetJobStatusRequest(job_id=answer.job_id), timeout=60)
    assert status.state == "cancelled"


def test_an_idempotency_key_gives_the_first_job_again(calls):
    first = submit(calls, command=["true"], idempotency_key="once")
    again = submit(calls, command=["true"], idempotency_key="once")
    assert again.job_id == first.job_id


def test_what_is_wrong_is_said_in_a_sentence(calls):
    code = grpc.StatusCode
    text = refused(lambda: submit(calls, tenant_id="nobody"), code.NOT_FOUND)
    assert "nobody" in text
    refused(lambda: submit(calls, gpu_count=-1), code.INVALID_ARGUMENT)
    text = refused(lambda: submit(calls, command=[]), code.INVALID_ARGUMENT)
    assert text == "a job needs a command, a script or an image"
    refused(lambda: submit(calls, gpu_fraction=2.5), code.INVALID_ARGUMENT)
    refused(lambda: submit(calls, max_runtime=duration_pb2.Duration(seconds=-5)),
            code.INVALID_ARGUMENT)
    refused(lambda: calls.scheduler.GetJobStatus(
        scheduler_pb2.GetJobStatusRequest(job_id="job-999999"), timeout=60), code.NOT_FOUND)
    refused(lambda: calls.scheduler.CancelJob(
        scheduler_pb2.CancelJobRequest(job_id="nonsense"), timeout=60), code.NOT_FOUND)
    refused(lambda: calls.scheduler.ListJobs(
        scheduler_pb2.ListJobsRequest(state="lost"), timeout=60), code.INVALID_ARGUMENT)


def test_bytes_that_are_no_message_are_refused(calls):
    call = calls.channel.unary_unary("/scheduler.SchedulerService/SubmitJob")
    refused(lambda: call(b"\xff\xff\xff", timeout=60), grpc.StatusCode.INVALID_ARGUMENT)
    refused(lambda: call(b"\x12\x02\xc3\x28", timeout=60), grpc.StatusCode.INVALID_ARGUMENT)
    call = calls.channel.unary_unary("/scheduler.SchedulerService/Nothing")
    refused(lambda: call(b"", timeout=60), grpc.StatusCode.UNIMPLEMENTED)
    call = calls.channel.unary_unary("/nobody.Service/Nothing")
    refused(lambda: call(b"", timeout=60), grpc.StatusCode.UNIMPLEMENTED)


def test_a_limit_is_changed_and_holds(calls):
    quota = scheduler_pb2.UpdateTenantQuotaRequest(tenant_id="other", max_gpus=2)
    answer = calls.scheduler.UpdateTenantQuota(quota, timeout=60)
    assert answer.success
    text = refused(lambda: submit(calls, tenant_id="other", gpu_count=8),
                   grpc.StatusCode.PERMISSION_DENIED)
    assert "quota exceeded" in text
    status, audit = calls.ask("GET", "/audit")
    assert status == 200
    assert audit["entries"][0]["action"] == "put_tenant"
    assert audit["entries"][0]["object"] == "/api/v1/tenants/other"
    assert audit["entries"][0]["address"] == "127.0.0.1"


def test_the_cluster_and_its_metrics_are_told(calls):
    status = calls.scheduler.GetClusterStatus(
        scheduler_pb2.GetClusterStatusRequest(), timeout=60)
    assert status.total_jobs >= 1
    metrics = calls.scheduler.GetMetrics(
        scheduler_pb2.GetMetricsRequest(metric_type="jobs"), timeout=60)
    assert metrics.metrics["jobs_total"] >= 1
    assert "gpus_total" not in metrics.metrics
    assert metrics.timestamp.seconds > 1700000000
    refused(lambda: calls.scheduler.GetMetrics(
        scheduler_pb2.GetMetricsRequest(metric_type="moon"), timeout=60),
        grpc.StatusCode.INVALID_ARGUMENT)


def test_many_submissions_at_once_are_all_taken(calls):
    request = scheduler_pb2.SubmitJobRequest(tenant_id="lab", command=["true"])
    futures = [calls.scheduler.SubmitJob.future(request, timeout=30) for _ in range(500)]
    ids = {future.result().job_id for future in futures}
    assert len(ids) == 500
    page = calls.scheduler.ListJobs(
        scheduler_pb2.ListJobsRequest(tenant_id="lab", limit=100, offset=50), timeout=60)
    assert len(page.jobs) == 100
    assert page.total >= 500


def test_health_is_told_to_tools(calls):
    serving = health_pb2.HealthCheckResponse.SERVING
    check = health_pb2.HealthCheckRequest
    assert calls.health.Check(check(), timeout=60).status == serving
    assert calls.health.Check(
        check(service="scheduler.SchedulerService"), timeout=60).status == serving
    refused(lambda: calls.health.Check(check(service="moon"), timeout=60),
            grpc.StatusCode.NOT_FOUND)
    watch = calls.health.Watch(check(), timeout=60)
    assert next(watch).status == serving
    watch.cancel()
    watch = calls.health.Watch(check(service="moon"), timeout=60)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


@pytest.mark.parametrize("messages, stubs", [
    (reflection_v1_pb2, reflection_v1_pb2_grpc),
    (reflection_v1alpha_pb2, reflection_v1alpha_pb2_grpc),
])
def test_tools_find_out_what_can_be_called(calls, messages, stubs):
    stub = stubs.ServerReflectionStub(calls.channel)
    request = messages.ServerReflectionRequest
    answers = list(stub.ServerReflectionInfo(iter([
        request(list_services=""),
        request(file_containing_symbol="scheduler.SchedulerService.SubmitJob"),
        request(file_containing_symbol="scheduler.SubmitJobRequest.LabelsEntry"),
        request(file_by_filename="agent.proto"),
        request(file_containing_symbol="moon.Rover"),
    ]), timeout=60))
    names = {one.name for one in answers[0].list_services_response.service}
    assert {"scheduler.SchedulerService", "agent.AgentService", "grpc.health.v1.Health"} <= names
    for answer, name in ((answers[1], "scheduler.proto"), (answers[2], "scheduler.proto"),
                         (answers[3], "agent.proto")):
        files = [descriptor_pb2.FileDescriptorProto.FromString(one)
                 for one in answer.file_descriptor_response.file_descriptor_proto]
        assert files[0].name == name
        assert "google/protobuf/timestamp.proto" in [one.name for one in files]
    assert answers[4].error_response.error_code == 5
