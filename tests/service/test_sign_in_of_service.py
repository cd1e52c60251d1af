"""The real service with sign-in: gRPC, nodes, tokens, leases and audit behind one gate."""

import http.client
import threading

import grpc
import pytest

from calls import agent_pb2_grpc, claims, jwt, scheduler_pb2, scheduler_pb2_grpc, wait_for
from node import EXITED, LOAD, READY, RELEASED, STARTED, Node

SECRET = "a secret that has more than thirty-two bytes"


class Behind:
    """A scheduler, and stubs of its gRPC services."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        host = scheduler.grpc.split("//")[-1]
        self.channel = grpc.insecure_channel(host)
        self.stub = scheduler_pb2_grpc.SchedulerServiceStub(self.channel)
        self.agent = agent_pb2_grpc.AgentServiceStub(self.channel)


@pytest.fixture
def behind(start):
    scheduler = start(sections={"auth": {"enable": True, "jwt_secret": SECRET,
                                         "jwt_audience": "gpu-scheduler"}})
    scheduler.token = jwt(claims(sub="root"), SECRET)
    one = Behind(scheduler)
    yield one
    one.channel.close()


def metadata(*arguments, **more):
    return [("authorization", f"Bearer {jwt(claims(*arguments, **more), SECRET)}")]


def test_forged_tokens_get_in_nowhere(behind):
    forged = {
        "none": jwt(claims(), header={"alg": "none"}, sign=lambda text: b""),
        "secret": jwt(claims(), SECRET + "?"),
        "expired": jwt(claims(seconds=-60), SECRET),
        "audience": jwt({**claims(), "aud": "another"}, SECRET),
    }
    for token in forged.values():
        for path in ("/api/v1/jobs", "/api/v1/tokens", "/metrics", "/api/v1/audit"):
            assert behind.scheduler.get(path, token=token).status == 401
        with pytest.raises(grpc.RpcError) as error:
            behind.stub.ListJobs(scheduler_pb2.ListJobsRequest(), timeout=10,
                                 metadata=[("authorization", f"Bearer {token}")])
        assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_tenant_runs_a_job_on_a_node_and_sees_no_other(behind):
    for name in ("lab", "other"):
        answer = behind.scheduler.post("/api/v1/tenants", {"name": name})
        assert answer.status == 201, answer
    lab, other = metadata("tenant", tenant="lab"), metadata("tenant", tenant="other")
    node = Node(behind, metadata=metadata("agent", node="n1")).begin()
    job = behind.stub.SubmitJob(
        scheduler_pb2.SubmitJobRequest(gpu_count=1, command=["true"]), metadata=lab,
        timeout=60).job_id
    order = node.order()
    assert '"tenant":"lab"' in order["payload"]
    node.change(STARTED, order)
    node.change(EXITED, order)
    node.change(RELEASED, order)
    path = f"/api/v1/jobs/{job}"
    wait_for(lambda: behind.scheduler.get(path).json()["state"] == "completed")
    assert behind.scheduler.get(path, token=other[0][1].split()[1]).status == 404
    status = scheduler_pb2.GetJobStatusRequest(job_id=job)
    assert behind.stub.GetJobStatus(status, metadata=lab, timeout=60).state == "completed"
    with pytest.raises(grpc.RpcError) as error:
        behind.stub.GetJobStatus(status, metadata=other, timeout=60)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    node.close()


def test_a_job_knows_who_submitted_it(behind):
    scheduler = behind.scheduler
    scheduler.post("/api/v1/tenants", {"name": "users"})
    made = scheduler.post("/api/v1/tokens", {"role": "tenant", "tenant_id": "users"}).json()
    alice = jwt(claims("tenant", tenant="users", sub="alice"), SECRET)

    def user_of(token, **more):
        done = scheduler.post("/api/v1/jobs", {"command": ["true"]} | more, token=token)
        assert done.status == 201, done
        return scheduler.get("/api/v1/jobs/" + done.json()["job_id"]).json()["user"]

    assert user_of(made["token"]) == made["id"]
    assert user_of(alice) == "alice"
    assert user_of(scheduler.token, tenant_id="users") == "root"
    assert user_of(scheduler.token, tenant_id="users", user="bob") == "bob"
    refused = scheduler.post("/api/v1/jobs", {"command": ["true"], "user": "bob"}, token=alice)
    assert refused.status == 403
    assert "only an administrator" in refused.json()["error"]


def test_tokens_are_made_revoked_and_on_record(behind):
    scheduler = behind.scheduler
    made = scheduler.post("/api/v1/tokens", {"role": "viewer", "note": "wall"})
    assert made.status == 201, made
    token = made.json()["token"]
    assert scheduler.get("/api/v1/jobs", token=token).status == 200
    assert scheduler.get("/api/v1/tokens", token=token).status == 403
    assert scheduler.delete(f"/api/v1/tokens/{made.json()['id']}").status == 200
    assert scheduler.get("/api/v1/jobs", token=token).status == 401
    entries = scheduler.get("/api/v1/audit").json()["entries"]
    assert [(one["action"], one["who"]) for one in entries[:2]] == [
        ("revoke token", "jwt root"), ("create token", "jwt root")]


def test_a_lease_waits_for_a_load(behind):
    scheduler = behind.scheduler
    scheduler.post("/api/v1/tenants", {"name": "lab"})
    model = scheduler.post("/api/v1/models", {"name": "tiny", "tenant_id": "lab",
                                              "runtime": "vllm", "gpu_memory_mb": 1000})
    assert model.status == 201, model
    node = Node(behind, metadata=metadata("agent")).begin()
    answers = []
    path = f"/api/v1/models/{model.json()['id']}/leases?wait=20s"
    waiting = threading.Thread(target=lambda: answers.append(scheduler.post(path)))
    waiting.start()
    order = node.order()
    assert order["kind"] == LOAD
    node.change(STARTED, order)
    node.change(READY, order, address="http://n1:8000")
    waiting.join(timeout=60)
    assert answers[0].status == 201, answers[0]
    lease = answers[0].json()
    assert lease["address"] == "http://n1:8000" and lease["expires_at"]
    assert scheduler.delete(f"/api/v1/leases/{lease['lease_id']}").status == 200
    node.close()


def test_failed_sign_ins_are_logged_counted_and_audited(behind):
    scheduler = behind.scheduler
    forged = jwt(claims(sub="mallory"), SECRET + "?")
    for token in (forged, forged, "gst_this-is-no-token-of-ours"):
        assert scheduler.get("/api/v1/jobs", token=token).status == 401
    line = scheduler.await_log("sign-in refused")
    assert (line["method"], line["reason"], line["address"]) == ("token", "unknown", "127.0.0.1")
    accounts = [one["account"] for one in scheduler.log() if one["message"] == "sign-in refused"]
    assert "mallory" in accounts
    metrics = scheduler.get("/metrics").body.decode()
    name = "gpu_scheduler_sign_in_failures_total"
    assert f'{name}{{method="jwt",reason="signature"}} 2' in metrics
    assert f'{name}{{method="token",reason="unknown"}} 1' in metrics
    entry = wait_for(lambda: [one for one in scheduler.get("/api/v1/audit").json()["entries"]
                              if one["action"] == "sign-in failed"])[0]
    assert entry["object"] == "127.0.0.1"
    assert entry["detail"] == "3 failed: token unknown 1, jwt signature 2"
    written = scheduler.errors.read_text()
    assert forged not in written and "gst_this" not in written


def test_a_flood_of_forged_tokens_is_logged_in_moderation_and_locks_nobody_out(behind):
    scheduler = behind.scheduler
    connection = http.client.HTTPConnection("127.0.0.1", scheduler.port, timeout=30)
    for i in range(600):
        connection.request("GET", "/api/v1/jobs", headers={
            "Authorization": f"Bearer {jwt(claims(sub=f'mallory-{i}'), SECRET + '?')}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (401, 429)
        if i % 50 == 0:
            fresh = jwt(claims(sub=f"fresh-{i}"), SECRET)
            assert scheduler.get("/api/v1/jobs", token=fresh).status == 200
    connection.close()
    lines = [one for one in scheduler.log() if one["message"] == "sign-in refused"]
    assert 0 < len(lines) < 100


def test_a_clock_that_is_a_little_ahead_locks_nobody_out(behind):
    def status():
        token = jwt(claims(seconds=-0.5), SECRET)
        return behind.scheduler.get("/api/v1/jobs", token=token).status
    # On a machine that stands still for seconds in between, it is tried again.
    assert 200 in [status() for _ in range(5)]
