"""A tenant sees and touches only what is its own, and nobody gets in without a token."""

import asyncio
import json

import pytest
import websockets


def token_for(service, **what):
    made = service.post("/api/v1/tokens", what)
    assert made.status == 201, made
    return made.json()["token"]


@pytest.fixture
def two(signed_in):
    """Two tenants with a job each, and a viewer."""
    class Two:
        service = signed_in
    for name in ("red", "blue"):
        tenant = signed_in.post("/api/v1/tenants", {"name": name}).json()["id"]
        token = token_for(signed_in, role="tenant", tenant_id=tenant)
        job = signed_in.post("/api/v1/jobs", {"name": f"{name}-job", "gpu_count": 1,
                                             "command": ["true"]},
                             token=token).json()["job_id"]
        setattr(Two, name, type(name, (), {"id": tenant, "token": token, "job": job}))
    Two.viewer = token_for(signed_in, role="viewer", tenant_id=Two.red.id)
    Two.agent = token_for(signed_in, role="agent")
    return Two


PATHS_OF_JOB = [("GET", ""), ("DELETE", ""), ("GET", "/why"), ("GET", "/events"), ("GET", "/logs"),
                ("POST", "/input"), ("POST", "/hold"), ("POST", "/release"), ("POST", "/requeue")]


@pytest.mark.parametrize("method,path", PATHS_OF_JOB)
def test_another_tenants_job_is_as_good_as_unknown(two, method, path):
    theirs = two.service.request(method, f"/api/v1/jobs/{two.blue.job}{path}", token=two.red.token)
    unknown = two.service.request(method, f"/api/v1/jobs/job-999{path}", token=two.red.token)
    assert theirs.status == unknown.status == 404
    assert theirs.body.replace(two.blue.job.encode(), b"job-999") == unknown.body
    assert two.service.get(f"/api/v1/jobs/{two.blue.job}").json()["state"] == "pending"


def test_lists_have_only_what_is_ones_own(two):
    for mine in (two.red, two.blue):
        def get(path):
            return two.service.get(path, token=mine.token).json()
        assert [job["id"] for job in get("/api/v1/jobs")["jobs"]] == [mine.job]
        assert [tenant["id"] for tenant in get("/api/v1/tenants")["tenants"]] == [mine.id]
        assert get("/api/v1/cluster/status")["total_jobs"] == 1
        assert [job["id"] for job in get("/api/v1/scheduler/queue")] == [mine.job]
        assert {d["tenant_id"] for d in get("/api/v1/scheduler/decisions")} <= {mine.id}
        metrics = two.service.get("/metrics", token=mine.token).body.decode()
        assert "gpu_scheduler_queue_size 1\n" in metrics
        other = two.blue if mine is two.red else two.red
        name = "blue" if mine is two.red else "red"
        values = [line for line in metrics.splitlines() if not line.startswith("#")]
        assert not [line for line in values if name in line]
        for path in (f"/api/v1/jobs?tenant_id={other.id}", f"/api/v1/tenants/{other.id}",
                     f"/api/v1/tenants/{other.id}/usage",
                     f"/api/v1/reports/quotas?tenant_id={other.id}",
                     f"/api/v1/reports/predictions?tenant_id={other.id}",
                     f"/api/v1/reports/jobs?tenant_id={other.id}"):
            assert two.service.get(path, token=mine.token).status == 404


def test_a_report_has_lines_of_ones_own_tenants_only(two):
    child = two.service.post("/api/v1/tenants", {"name": "rose", "parent_id": two.red.id}).json()["id"]
    token = token_for(two.service, role="tenant", tenant_id=child)
    job = two.service.post("/api/v1/jobs", {"command": ["true"]}, token=token).json()["job_id"]
    for cancelled in (job, two.blue.job):
        assert two.service.delete(f"/api/v1/jobs/{cancelled}").status == 200

    def report(token):
        lines = two.service.get("/api/v1/reports/billing", token=token).json()["tenants"]
        return [(line["tenant"], line["cancelled_jobs"], line["including_children"]["cancelled_jobs"])
                for line in lines]
    assert report(token) == [("rose", 1, 1)]
    assert report(two.red.token) == [("red", 0, 1), ("rose", 1, 1)]
    assert report(two.blue.token) == [("blue", 1, 1)]


def test_a_job_cannot_be_given_to_another_tenant(two):
    answer = two.service.post("/api/v1/jobs", {"tenant_id": two.blue.id}, token=two.red.token)
    assert answer.status == 404
    depends = two.service.post("/api/v1/jobs", {"depends_on": [two.blue.job], "command": ["true"]},
                               token=two.red.token)
    assert depends.status == 404


def test_events_are_told_to_those_whose_they_are(two):
    async def listen():
        url = two.service.url.replace("http", "ws") + "/api/v1/stream?topics=jobs"
        async with websockets.connect(
                url, extra_headers={"Authorization": f"Bearer {two.red.token}"}) as socket:
            await socket.recv()
            two.service.delete(f"/api/v1/jobs/{two.blue.job}")
            two.service.delete(f"/api/v1/jobs/{two.red.job}")
            event = json.loads(await asyncio.wait_for(socket.recv(), 10))
            assert event["job_id"] == two.red.job
    asyncio.run(listen())


def test_a_browser_sends_its_token_as_a_protocol(two):
    async def listen():
        url = two.service.url.replace("http", "ws") + "/api/v1/stream"
        async with websockets.connect(
                url, subprotocols=["events", f"bearer.{two.red.token}"]) as socket:
            assert socket.subprotocol == "events"
            assert json.loads(await socket.recv())["type"] == "hello"
    asyncio.run(listen())


ADMINISTRATORS = [("POST", "/api/v1/tenants"), ("PUT", "/api/v1/tenants/red"),
                  ("DELETE", "/api/v1/tenants/red"), ("POST", "/api/v1/nodes/n/drain"),
                  ("POST", "/api/v1/nodes/n/dead"), ("DELETE", "/api/v1/nodes/n"),
                  ("POST", "/api/v1/tokens"), ("GET", "/api/v1/tokens"), ("GET", "/api/v1/audit")]


@pytest.mark.parametrize("method,path", ADMINISTRATORS)
def test_what_takes_an_administrator(two, method, path):
    for token in (two.red.token, two.viewer, two.agent):
        assert two.service.request(method, path, "{}", token=token).status == 403


def test_a_viewer_reads_and_changes_nothing(two):
    assert two.service.get(f"/api/v1/jobs/{two.red.job}", token=two.viewer).status == 200
    assert two.service.get(f"/api/v1/jobs/{two.blue.job}", token=two.viewer).status == 404
    assert two.service.delete(f"/api/v1/jobs/{two.red.job}", token=two.viewer).status == 403
    assert two.service.post("/api/v1/jobs", {}, token=two.viewer).status == 403


def test_an_agents_token_is_for_agents(two):
    assert two.service.get("/api/v1/jobs", token=two.agent).status == 403


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/metrics", "/api/v1/stream", "/api/v1/nodes"])
def test_without_a_token_nobody_gets_in(two, path):
    answer = two.service.get(path, headers={"Authorization": "Bearer gst_forged"})
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/health", "/api/v1/health", "/openapi.json", "/"])
def test_what_everyone_may_read(two, path):
    assert two.service.get(path, headers={"Authorization": "Bearer nonsense"}).status == 200


def test_a_tenant_below_is_its_parents_to_see(two):
    child = two.service.post("/api/v1/tenants", {"name": "child", "parent_id": two.red.id}).json()["id"]
    job = two.service.post("/api/v1/jobs", {"tenant_id": child, "command": ["true"]}, token=two.red.token)
    assert job.status == 201
    listed = two.service.get("/api/v1/jobs", token=two.red.token).json()
    assert {j["id"] for j in listed["jobs"]} == {two.red.job, job.json()["job_id"]}
    assert listed["total"] == 2


def test_secrets_are_refused_without_a_key(two):
    answer = two.service.post("/api/v1/jobs", {"command": ["true"], "secret_environment": {"T": "x"}},
                              token=two.red.token)
    assert answer.status == 400
    assert "no key is configured" in answer.json()["error"]
