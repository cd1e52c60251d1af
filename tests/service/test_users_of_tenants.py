"""Users within a tenant: whose a job is, who may change it, and administrators of tenants."""

import pytest
import grpc

from calls import claims, jwt, scheduler_pb2, scheduler_pb2_grpc
from scheduler import make_tenant

SECRET = "a secret that has more than thirty-two bytes"
CHANGES = [("POST", "hold"), ("POST", "release"), ("POST", "requeue"), ("POST", "suspend"),
           ("POST", "resume"), ("PUT", "priority"), ("POST", "input"), ("DELETE", "")]


def of(user, role="tenant", tenant="lab", **more):
    return jwt(claims(role, sub=user, tenant=tenant, **more), SECRET)


class Lab:
    def __init__(self, start, **auth):
        self.scheduler = start(sections={"auth": {"enable": True, "jwt_secret": SECRET} | auth})
        self.scheduler.token = jwt(claims(sub="root"), SECRET)
        self.lab = make_tenant(self.scheduler, "lab")
        self.group = make_tenant(self.scheduler, "group", parent_id=self.lab)
        self.other = make_tenant(self.scheduler, "other")

    def submit(self, token):
        made = self.scheduler.post("/api/v1/jobs", {"name": "x", "gpu_count": 1,
                                                    "command": ["true"]}, token=token)
        assert made.status == 201, made
        return made.json()["job_id"]

    def change(self, job, method, what, token):
        path = f"/api/v1/jobs/{job}" + (f"/{what}" if what else "")
        body = {"priority": 7} if what == "priority" else None
        return self.scheduler.request(method, path, body, token=token).status


@pytest.fixture
def owners(start):
    return Lab(start, job_changes="owner")


def test_only_the_owner_and_administrators_of_the_tenant_change_a_job(owners):
    job = owners.submit(of("alice"))
    for method, what in CHANGES:
        assert owners.change(job, method, what, of("bob")) == 403, what
        assert owners.change(job, method, what, of("eve", tenant="other")) == 404, what
        assert owners.change(job, method, what,
                             of("eve", role="tenant_admin", tenant="other")) == 404, what
        assert owners.change(job, method, what, of("vera", role="viewer")) == 403, what
    assert owners.change(job, "POST", "hold", of("alice")) == 200
    assert owners.change(job, "POST", "release", of("boss", role="tenant_admin")) == 200
    assert owners.change(job, "PUT", "priority", None) == 200
    assert owners.change(job, "DELETE", "", of("alice")) == 200
    below = owners.submit(of("carol", tenant="group"))
    assert owners.change(below, "DELETE", "", of("alice")) == 403
    assert owners.change(below, "DELETE", "", of("boss", role="tenant_admin")) == 200
    above = owners.submit(of("alice"))
    assert owners.change(above, "DELETE", "",
                         of("boss", role="tenant_admin", tenant="group")) == 404


def test_grpc_has_the_same_rule(owners):
    job = owners.submit(of("alice"))
    with grpc.insecure_channel(owners.scheduler.grpc.split("//")[-1]) as channel:
        stub = scheduler_pb2_grpc.SchedulerServiceStub(channel)

        def cancel(token):
            stub.CancelJob(scheduler_pb2.CancelJobRequest(job_id=job), timeout=60,
                           metadata=[("authorization", f"Bearer {token}")])

        with pytest.raises(grpc.RpcError) as error:
            cancel(of("bob"))
        assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
        cancel(of("boss", role="tenant_admin"))


def test_by_default_everybody_of_the_tenant_changes_its_jobs(start):
    lab = Lab(start)
    job = lab.submit(of("alice"))
    assert lab.change(job, "POST", "hold", of("bob")) == 200
    # The setting can change while the service runs.
    lab.scheduler.sections["auth"]["job_changes"] = "owner"
    lab.scheduler.reload()
    lab.scheduler.await_log("the settings were read again")
    assert lab.change(job, "DELETE", "", of("bob")) == 403


def test_the_audit_log_names_the_user_who_changed_a_job(owners):
    job = owners.submit(of("alice"))
    assert owners.scheduler.get(f"/api/v1/jobs/{job}").json()["user"] == "alice"
    assert owners.change(job, "POST", "hold", of("boss", role="tenant_admin")) == 200
    entry = owners.scheduler.get("/api/v1/audit").json()["entries"][0]
    assert entry["who"] == "jwt boss" and entry["object"].startswith(f"/api/v1/jobs/{job}")


def test_an_administrator_of_a_tenant_manages_the_tokens_of_its_people(owners):
    boss = of("boss", role="tenant_admin")

    def make(token=boss, **fields):
        return owners.scheduler.post("/api/v1/tokens", fields, token=token)

    own = make(role="tenant", tenant_id=owners.lab)
    below = make(role="tenant_admin", tenant_id=owners.group)
    assert own.status == 201 and below.status == 201, (own, below)
    refused = [{"role": "admin"}, {"role": "viewer"}, {"role": "agent"}, {"role": "gateway"},
               {"role": "tenant", "tenant_id": owners.other},
               {"role": "agent", "tenant_id": owners.lab}]
    assert [make(**fields).status for fields in refused] == [403] * len(refused)
    assert make(token=of("bob"), role="tenant", tenant_id=owners.lab).status == 403
    foreign = make(token=owners.scheduler.token, role="tenant", tenant_id=owners.other).json()
    seen = owners.scheduler.get("/api/v1/tokens", token=boss).json()
    assert {one["id"] for one in seen["tokens"]} == {own.json()["id"], below.json()["id"]}
    assert seen["total"] == 2

    def revoke(one):
        return owners.scheduler.delete(f"/api/v1/tokens/{one['id']}", token=boss).status

    assert revoke(foreign) == 404
    assert revoke(own.json()) == 200
    for path in ("/api/v1/audit", "/api/v1/tenants"):
        method = "GET" if path.endswith("audit") else "POST"
        assert owners.scheduler.request(method, path, {} if method == "POST" else None,
                                        token=boss).status == 403
