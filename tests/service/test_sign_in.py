"""Sign-in over HTTP: good tokens, and every way in that must be closed."""

import subprocess

import grpc
import pytest

from calls import Calls, claims, jwt, scheduler_pb2

SECRET = "a secret that has more than thirty-two bytes"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """An RSA key and its public half."""
    directory = tmp_path_factory.mktemp("keys")
    private, public = directory / "key.pem", directory / "public.pem"
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True,
                   capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True,
                   capture_output=True)
    return private, public


@pytest.fixture(scope="module")
def calls(tmp_path_factory, keys):
    one = Calls(tmp_path_factory.mktemp("calls") / "store.db", "--jwt", SECRET,
                "--key", "RS256", keys[1])
    yield one
    one.stop()


def rs256(private):
    def sign(text):
        return subprocess.run(["openssl", "dgst", "-sha256", "-sign", private], input=text,
                              check=True, capture_output=True).stdout
    return sign


def test_good_tokens_are_let_in(calls, keys):
    assert calls.ask("GET", "/who", token=jwt(claims(sub="alice"), SECRET)) == (200, "jwt alice")
    token = jwt(claims(sub="bob"), header={"alg": "RS256"}, sign=rs256(keys[0]))
    assert calls.ask("GET", "/who", token=token) == (200, "jwt bob")


@pytest.mark.parametrize("name", ["none", "expired", "early", "audience", "forged", "swapped",
                                  "public", "critical", "no expiry", "role", "cut"])
def test_bad_tokens_are_not(calls, keys, name):
    hs256 = {"alg": "HS256"}
    public = keys[1].read_text()
    token = {
        "none": lambda: jwt(claims(), header={"alg": "none"}, sign=lambda text: b""),
        "expired": lambda: jwt(claims(seconds=-60), SECRET),
        "early": lambda: jwt(claims(nbf=4000000000), SECRET),
        "audience": lambda: jwt({**claims(), "aud": "another"}, SECRET),
        "forged": lambda: jwt(claims(), SECRET + "?"),
        "swapped": lambda: jwt(claims(), SECRET, header={"alg": "RS256"}),
        "public": lambda: jwt(claims(), public, header=hs256),
        "critical": lambda: jwt(claims(), SECRET, header={**hs256, "crit": ["exp"]}),
        "no expiry": lambda: jwt({"role": "admin", "aud": "gpu-scheduler"}, SECRET),
        "role": lambda: jwt(claims(role="root"), SECRET),
        "cut": lambda: jwt(claims(), SECRET)[:-1],
    }[name]()
    status, answer = calls.ask("GET", "/who", token=token)
    assert status == 401, answer
    assert answer["code"] == "unauthenticated"
    assert SECRET not in answer["error"]


def test_who_has_no_token_gets_nothing_but_health(calls):
    assert calls.ask("GET", "/who")[0] == 401
    with pytest.raises(grpc.RpcError) as error:
        calls.scheduler.GetClusterStatus(scheduler_pb2.GetClusterStatusRequest(), timeout=60)
    assert error.value.code() == grpc.StatusCode.UNAUTHENTICATED
    import calls as names
    assert calls.health.Check(names.health_pb2.HealthCheckRequest(), timeout=60).status == 1


def metadata(token):
    return [("authorization", f"Bearer {token}")]


def test_a_tenant_sees_and_touches_only_its_own(calls):
    lab = metadata(jwt(claims("tenant", tenant="lab"), SECRET))
    other = metadata(jwt(claims("tenant", tenant="other"), SECRET))
    viewer = metadata(jwt(claims("viewer", tenant="lab"), SECRET))
    agent = metadata(jwt(claims("agent", node="n1"), SECRET))
    stub = calls.scheduler
    job = stub.SubmitJob(scheduler_pb2.SubmitJobRequest(command=["true"]), metadata=lab,
                         timeout=60).job_id
    status = scheduler_pb2.GetJobStatusRequest(job_id=job)
    assert stub.GetJobStatus(status, metadata=lab, timeout=60).job_id == job
    assert stub.GetJobStatus(status, metadata=viewer, timeout=60).job_id == job

    def code(call):
        with pytest.raises(grpc.RpcError) as error:
            call()
        return error.value.code().name

    cancel = scheduler_pb2.CancelJobRequest(job_id=job)
    assert code(lambda: stub.GetJobStatus(status, metadata=other, timeout=60)) == "NOT_FOUND"
    assert code(lambda: stub.CancelJob(cancel, metadata=other, timeout=60)) == "NOT_FOUND"
    assert code(lambda: stub.CancelJob(cancel, metadata=viewer, timeout=60)) == "PERMISSION_DENIED"
    assert code(lambda: stub.CancelJob(cancel, metadata=agent, timeout=60)) == "PERMISSION_DENIED"
    assert code(lambda: stub.SubmitJob(
        scheduler_pb2.SubmitJobRequest(tenant_id="lab", command=["true"]), metadata=other,
        timeout=60)) == "NOT_FOUND"
    assert not stub.ListJobs(scheduler_pb2.ListJobsRequest(), metadata=other, timeout=60).jobs
    assert code(lambda: stub.UpdateTenantQuota(
        scheduler_pb2.UpdateTenantQuotaRequest(tenant_id="lab", max_gpus=99), metadata=lab,
        timeout=60)) == "PERMISSION_DENIED"


def test_api_tokens_are_made_used_and_revoked(calls):
    admin = jwt(claims(), SECRET)
    status, made = calls.ask("POST", "/tokens", {"role": "tenant", "tenant_id": "lab",
                                                 "note": "ci", "expires_in": "30d"}, admin)
    assert status == 201, made
    assert made["token"].startswith("gst_")
    assert calls.ask("GET", "/who", token=made["token"]) == (200, f"token {made['id']}")
    status, listed = calls.ask("GET", "/tokens", token=admin)
    one = next(one for one in listed["tokens"] if one["id"] == made["id"])
    assert one["note"] == "ci" and "token" not in one and "hash" not in one
    assert calls.ask("GET", "/tokens", token=made["token"])[0] == 403
    assert calls.ask("POST", "/tokens", {"role": "admin"}, made["token"])[0] == 403
    assert calls.ask("DELETE", f"/tokens/{made['id']}", token=admin)[0] == 200
    assert calls.ask("GET", "/who", token=made["token"])[0] == 401
    status, audit = calls.ask("GET", "/audit", token=admin)
    assert [one["action"] for one in audit["entries"]][:2] == ["revoke token", "create token"]
    assert calls.ask("POST", "/tokens", {"role": "tenant"}, admin)[0] == 400
    assert calls.ask("POST", "/tokens", {"role": "king"}, admin)[0] == 400


def test_tokens_and_the_audit_log_survive_a_restart(tmp_path):
    first = Calls(tmp_path / "store.db", "--jwt", SECRET)
    admin = jwt(claims(), SECRET)
    made = first.ask("POST", "/tokens", {"role": "admin"}, admin)[1]
    first.stop()
    second = Calls(tmp_path / "store.db", "--jwt", SECRET)
    try:
        assert second.ask("GET", "/who", token=made["token"])[0] == 200
        entries = second.ask("GET", "/audit", token=made["token"])[1]["entries"]
        assert entries[0]["object"] == made["id"]
    finally:
        second.stop()


def test_pages_that_rebind_names_or_come_from_elsewhere_get_nothing(tmp_path):
    one = Calls(tmp_path / "store.db")
    try:
        assert one.ask("GET", "/who") == (200, "open")
        assert one.ask("GET", "/who", headers={"Host": "evil.example"})[0] == 403
        assert one.ask("GET", "/who", headers={"Origin": "http://evil.example"})[0] == 403
        assert one.ask("GET", "/who", headers={"Origin": one.url})[0] == 200
    finally:
        one.stop()


def test_who_asks_too_fast_is_told_to_wait(tmp_path):
    one = Calls(tmp_path / "store.db", "--rate", 5)
    try:
        answers = [one.ask("GET", "/who")[0] for _ in range(30)]
        assert 200 in answers and 429 in answers
    finally:
        one.stop()
