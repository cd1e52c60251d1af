"""Every answer of every interface has its request id, and is counted by its real status."""

import re
import time

import grpc
import pytest

import calls
from scheduler import Scheduler, make_tenant

ORIGIN = "https://dashboard.example"
LINE = re.compile(r'gpu_scheduler_http_requests_total'
                  r'\{method="(\w*)",path="([^"]*)",status="(\dxx)"\} (\d+)')
STREAMS = {"Connect", "Heartbeat", "ReceiveJobAssignment", "ServerReflectionInfo"}


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    one = Scheduler(tmp_path_factory.mktemp("scheduler"),
                    sections={"api": {"cors_origins": [ORIGIN]}})
    make_tenant(one, "lab")
    yield one
    one.stop()


@pytest.fixture(scope="module")
def channel(scheduler):
    with grpc.insecure_channel(scheduler.grpc.split("//")[-1]) as one:
        yield one


def counts(scheduler):
    """Requests by method, path and class of status."""
    return {match[:3]: int(match[3])
            for match in LINE.findall(scheduler.get("/metrics").body.decode())}


def grew(before, after):
    return {key: count - before.get(key, 0) for key, count in after.items()
            if count != before.get(key, 0)}


HUGE = {"Content-Length": str(1 << 40)}
PUBLIC = {"/", "/api/v1/login", "/health", "/api/v1/health", "/openapi.json", "/api/v1/openapi.json"}


def failing(method, path):
    """A request of this route that is refused: its target, body and headers. What has no id
    and no body is asked of another host, or with a body that nobody would read."""
    target = re.sub(r"\{\w+\}", "job-999999" if "/jobs/" in path else "nothing-1", path)
    if method in ("POST", "PUT"):
        return target, b"{", {}
    if path in PUBLIC:
        return target, None, HUGE
    return target, None, {} if target != path else {"Host": "elsewhere.example"}


def routes(scheduler):
    document = scheduler.get("/openapi.json").json()
    found = [(method.upper(), path) for path, methods in document["paths"].items()
             for method in methods if method in ("get", "post", "put", "delete")]
    assert len(found) > 45
    return found


def test_a_refusal_of_each_route_has_its_id_and_is_counted(scheduler):
    before = counts(scheduler)
    expected = {}
    for number, (method, path) in enumerate(routes(scheduler)):
        target, body, headers = failing(method, path)
        answer = scheduler.request(method, target, body, headers=headers | {
            "X-Request-Id": f"walk-{number}", "Origin": ORIGIN, "Content-Type": "application/json"})
        assert answer.status >= 400, (method, target, answer)
        assert answer.headers["X-Request-Id"] == f"walk-{number}", (method, target)
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN, (method, target)
        key = method, path, f"{answer.status // 100}xx"
        expected[key] = expected.get(key, 0) + 1
    after = counts(scheduler)
    assert {key: count for key, count in grew(before, after).items()
            if key[2] in ("4xx", "5xx")} == expected


def test_bulk_leases_and_tokens_are_counted_by_what_was_answered(scheduler):
    model = {"name": "tiny", "tenant_id": "lab", "gpu_memory_mb": 1000, "runtime": "vllm"}
    made = scheduler.post("/api/v1/models", model)
    assert made.status == 201, made
    before = counts(scheduler)
    bulk = scheduler.request("POST", "/api/v1/jobs", b'{"gpu_count":-1}\n', headers={
        "Content-Type": "application/x-ndjson"})
    lease = scheduler.post(f"/api/v1/models/{made.json()['id']}/leases", None)
    token = scheduler.post("/api/v1/tokens", {"role": "viewer"})
    revoked = scheduler.request("DELETE", f"/api/v1/tokens/{token.json()['id']}")
    for answer in (bulk, lease, token, revoked):
        assert answer.headers["X-Request-Id"], answer
    after = grew(before, counts(scheduler))
    assert bulk.status // 100 == 4 and after["POST", "/api/v1/jobs", "4xx"] == 1
    kind = f"{lease.status // 100}xx"
    assert lease.status in (422, 503) and after["POST", "/api/v1/models/{id}/leases", kind] == 1
    assert token.status == 201 and after["POST", "/api/v1/tokens", "2xx"] == 1
    assert revoked.status == 200 and after["DELETE", "/api/v1/tokens/{id}", "2xx"] == 1


def methods():
    """The path of each method, and whether its messages come one by one."""
    files = [calls.scheduler_pb2, calls.agent_pb2, calls.gateway_pb2, calls.health_pb2,
             calls.reflection_v1_pb2, calls.reflection_v1alpha_pb2]
    found = [f"/{service.full_name}/{method.name}" for file in files
             for service in file.DESCRIPTOR.services_by_name.values()
             for method in service.methods]
    assert len(found) >= 17
    return found


def open_call(channel, path, message, **options):
    """A call of any kind of method, with bytes for its messages."""
    name = path.rpartition("/")[2]
    if name in STREAMS:
        return channel.stream_stream(path)(iter([message]), timeout=30, **options)
    return channel.unary_stream(path)(message, timeout=30, **options)


def answered_id(call):
    found = dict(call.initial_metadata()) | dict(call.trailing_metadata() or ())
    return found.get("x-request-id")


def test_a_refusal_of_each_method_has_its_id_and_is_counted(scheduler, channel):
    before = counts(scheduler)
    for number, path in enumerate(methods()):
        call = open_call(channel, path, b"\xff\xff\xff", metadata=[("x-request-id", f"g-{number}")])
        with pytest.raises(grpc.RpcError):
            list(call)
        assert call.code() == grpc.StatusCode.INVALID_ARGUMENT, (path, call.details())
        assert answered_id(call) == f"g-{number}", path
    after = grew(before, counts(scheduler))
    for path in methods():
        assert after["POST", path, "4xx"] == 1, path


def test_what_a_call_fails_with_is_what_is_counted(scheduler, channel):
    stub = calls.scheduler_pb2_grpc.SchedulerServiceStub(channel)
    before = counts(scheduler)
    with pytest.raises(grpc.RpcError) as error:
        stub.CancelJob(calls.scheduler_pb2.CancelJobRequest(job_id="job-77777"), timeout=30)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert answered_id(error.value)
    stub.ListJobs(calls.scheduler_pb2.ListJobsRequest(), timeout=30)
    with pytest.raises(grpc.RpcError) as error:
        list(open_call(channel, "/scheduler.SchedulerService/None", b""))
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED
    after = grew(before, counts(scheduler))
    assert after["POST", "/scheduler.SchedulerService/CancelJob", "4xx"] == 1
    assert after["POST", "/scheduler.SchedulerService/ListJobs", "2xx"] == 1
    assert after["", "", "4xx"] == 1


def seconds_of(scheduler, path):
    pattern = r'http_request_duration_seconds_sum\{method="POST",path="%s"\} ([\d.]+)'
    found = re.search(pattern % re.escape(path), scheduler.get("/metrics").body.decode())
    return float(found[1]) if found else 0


def test_a_stream_is_counted_when_it_ends_with_the_time_that_it_was_open(scheduler, channel):
    path = "/grpc.health.v1.Health/Watch"
    before, took = counts(scheduler), seconds_of(scheduler, path)
    call = open_call(channel, path, b"")
    began = time.monotonic()
    next(iter(call))
    assert ("POST", path, "4xx") not in grew(before, counts(scheduler))
    time.sleep(0.2)
    opened = time.monotonic() - began - 0.05
    call.cancel()
    calls.wait_for(lambda: grew(before, counts(scheduler)).get(("POST", path, "4xx")) == 1)
    assert seconds_of(scheduler, path) - took >= min(opened, 0.15)


def test_what_wire_refuses_by_itself_has_its_id_and_is_counted(scheduler):
    before = counts(scheduler)
    answer = scheduler.request("POST", "/api/v1/tenants", headers=HUGE | {
        "X-Request-Id": "large", "Content-Type": "application/json"})
    assert answer.status == 413
    assert answer.headers["X-Request-Id"] == "large"
    assert grew(before, counts(scheduler))["POST", "/api/v1/tenants", "4xx"] == 1


def test_the_audit_log_has_one_word_for_what_is_done(scheduler, channel):
    stub = calls.scheduler_pb2_grpc.SchedulerServiceStub(channel)
    jobs = [scheduler.post("/api/v1/jobs", {"tenant_id": "lab", "name": "train", "gpu_count": 1,
                                            "command": ["true"]}).json()["job_id"]
            for _ in range(2)]
    assert scheduler.request("DELETE", f"/api/v1/jobs/{jobs[0]}").status == 200
    stub.CancelJob(calls.scheduler_pb2.CancelJobRequest(job_id=jobs[1]), timeout=30)
    entries = scheduler.get("/api/v1/audit?limit=2").json()["entries"]
    assert [entry["action"] for entry in entries] == ["cancel", "cancel"]
    assert [entry["object"] for entry in entries] == [f"/api/v1/jobs/{job}" for job in jobs[::-1]]
