"""What people see of GPUs: who holds them, who had them, and what changes."""

import asyncio
import json
import time

import pytest
import websockets

from crowd import Crowd


class Scene:
    """A scheduler with a node of two GPUs, two tenants, and a token for each of them."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.crowd = Crowd(scheduler.grpc, 1, gpus=2, token=scheduler.token)
        self.tenants = {name: self.post("/api/v1/tenants", {"name": name})["id"]
                        for name in ("lab", "guests")}
        self.tokens = {name: self.post("/api/v1/tokens", {"role": "tenant", "tenant_id": id})["token"]
                       for name, id in self.tenants.items()}
        self.wait(lambda: len(self.gpus()) == 2)

    def post(self, path, body):
        answer = self.scheduler.post(path, body)
        assert answer.status == 201, answer
        return answer.json()

    def gpus(self, **options):
        return self.scheduler.get("/api/v1/gpus?holders=1", **options).json()["gpus"]

    def submit(self, tenant, **job):
        return self.post("/api/v1/jobs", {"tenant_id": self.tenants[tenant], "command": ["true"]} | job)["job_id"]

    def wait(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            assert time.monotonic() < deadline, "did not happen"
            time.sleep(0.05)
        return result

    def running(self, tenant, **job):
        id = self.submit(tenant, **job)
        self.wait(lambda: self.scheduler.get(f"/api/v1/jobs/{id}").json()["state"] == "running")
        return id


@pytest.fixture
def scene(signed_in):
    one = Scene(signed_in)
    yield one
    one.crowd.close()


def test_holders_are_told_to_those_who_may_know(scene):
    job = scene.running("lab", name="secret", gpu_memory_mb=20000)
    holder, = [holder for gpu in scene.gpus() for holder in gpu["holders"]]
    assert (holder["job_id"], holder["name"], holder["tenant"]) == (job, "secret", "lab")
    assert (holder["phase"], holder["memory_mb"], holder["whole"]) == ("live", 20000, False)
    other = scene.gpus(token=scene.tokens["guests"])
    holder, = [holder for gpu in other for holder in gpu["holders"]]
    assert holder["tenant"] == "another tenant" and holder["memory_mb"] == 20000
    assert "secret" not in json.dumps(other) and job not in json.dumps(other)


def test_holders_are_left_out_unless_asked_for(scene):
    assert all("holders" not in gpu for gpu in scene.scheduler.get("/api/v1/gpus").json()["gpus"])


def test_the_history_has_what_holds_a_gpu_and_what_held_it(scene):
    first = scene.running("lab", name="first", gpu_count=1)
    scene.scheduler.delete(f"/api/v1/jobs/{first}")
    second = scene.running("lab", name="second", gpu_count=2)
    deadline = time.monotonic() + 60
    while True:  # until the first one's memory is back
        told = scene.scheduler.get("/api/v1/gpus/history").json()
        spans = {(span["job_id"], span["to"] is None) for span in told["spans"]}
        if (first, True) not in spans or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert told["complete"] and spans == {(first, False), (second, True)}
    assert all(span["from"] <= (span["to"] or told["to"]) for span in told["spans"])
    later = scene.scheduler.get(f"/api/v1/gpus/history?from={told['to']}").json()["spans"]
    assert {span["job_id"] for span in later} == {second}
    other = scene.scheduler.get("/api/v1/gpus/history", token=scene.tokens["guests"]).json()["spans"]
    assert len(other) == len(told["spans"]) and all("job_id" not in span for span in other)
    assert scene.scheduler.get("/api/v1/gpus/history?from=yesterday").status == 400
    assert scene.scheduler.get("/api/v1/gpus/history?node=nowhere").status == 404


def test_the_queue_says_why_where_that_is_asked_for(scene):
    scene.running("lab", gpu_count=2)
    waiting = scene.submit("lab", gpu_count=2)
    job, = scene.scheduler.get("/api/v1/scheduler/queue?reasons=1").json()
    assert job["id"] == waiting and "GPU" in job["reason"]
    job, = scene.scheduler.get("/api/v1/scheduler/queue").json()
    assert "reason" not in job


def test_a_session_says_who_asks(scene):
    admin = scene.scheduler.get("/api/v1/session").json()
    assert (admin["role"], admin["tenant_id"], admin["may_change"]) == ("admin", None, True)
    tenant = scene.scheduler.get("/api/v1/session", token=scene.tokens["lab"]).json()
    assert (tenant["role"], tenant["tenant"]) == ("tenant", "lab")
    assert scene.scheduler.get("/api/v1/session", token="wrong").status == 401


def test_changes_of_gpus_are_told_as_each_may_know_them(scene):
    url = scene.scheduler.url.replace("http", "ws") + "/api/v1/stream?topics=gpus"

    async def holders(socket):
        """Those of the first message that has any; samples come in between."""
        while True:
            message = json.loads(await asyncio.wait_for(socket.recv(), 20))
            if found := [h for gpu in message.get("gpus", []) for h in gpu["holders"]]:
                return message, found

    async def listen():
        heads = [{"Authorization": f"Bearer {scene.tokens[name]}"} for name in ("lab", "guests")]
        async with websockets.connect(url, extra_headers=heads[0]) as mine:
            async with websockets.connect(url, extra_headers=heads[1]) as other:
                job = await asyncio.to_thread(scene.running, "lab", name="secret", gpu_count=1)
                message, found = await holders(mine)
                assert found[0]["job_id"] == job and len(message["gpus"]) == 1
                message, found = await holders(other)
                assert found[0]["tenant"] == "another tenant" and "secret" not in json.dumps(message)

    asyncio.run(listen())


def test_why_adds_the_newest_decision_for_those_who_may_see_the_job(scene):
    job = scene.running("lab", gpu_memory_mb=20000)
    why = scene.scheduler.get(f"/api/v1/jobs/{job}/why", token=scene.tokens["lab"]).json()
    path = f"/api/v1/jobs/{job}/why?decision=1"
    told = scene.scheduler.get(path, token=scene.tokens["lab"]).json()
    (decision,) = scene.scheduler.get(f"/api/v1/scheduler/decisions?job={job}&limit=1").json()
    assert told == why | {"decision": decision["explanation"]}
    assert any("20000 asked" in sentence for sentence in told["decision"])
    assert scene.scheduler.get(path, token=scene.tokens["guests"]).status == 404
