"""A job that may miss its deadline is told so when it is submitted, and before."""

import time

import pytest

import crowd
from scheduler import Scheduler


@pytest.fixture
def service(tmp_path, monkeypatch):
    monkeypatch.setattr(crowd, "RELEASE_SECONDS", 0)
    one = Scheduler(tmp_path / "scheduler")
    nodes = crowd.Crowd(one.grpc, 1, gpus=4)
    yield one
    nodes.close()
    one.stop()


def await_states(service, jobs, state):
    deadline = time.monotonic() + 60
    while any(service.get(f"/api/v1/jobs/{job}").json()["state"] != state for job in jobs):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_job_that_may_miss_its_deadline_is_told_so(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    plain = {"tenant_id": tenant, "name": "steady", "command": ["x"], "gpu_count": 1}
    for _ in range(2):
        jobs = [service.post("/api/v1/jobs", plain).json()["job_id"] for _ in range(4)]
        await_states(service, jobs, "running")
        time.sleep(5)
        for job in jobs:
            service.delete(f"/api/v1/jobs/{job}")
        await_states(service, jobs, "cancelled")

    def due(seconds):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return plain | {"deadline": at}

    def submit_due(seconds, query=""):
        """Held: it does not start. Tries again where the deadline has passed before it arrives."""
        tries = time.monotonic() + 60
        while True:
            answer = service.post(f"/api/v1/jobs{query}", due(seconds) | {"hold": True})
            if answer.status in (200, 201):
                return answer.json()
            assert "deadline has passed" in answer.body.decode() and time.monotonic() < tries

    late = submit_due(2, "?check=1")
    assert late["deadline_risk"] >= 0.2 and "miss its deadline" in late["message"]
    answer = submit_due(2)
    assert answer["deadline_risk"] >= 0.2 and "miss its deadline" in answer["message"]
    assert service.get(f"/api/v1/jobs/{answer['job_id']}").json()["deadline_risk"] >= 0.2
    events = service.get(f"/api/v1/jobs/{answer['job_id']}/events").json()["events"]
    told = [event for event in events if event["type"] == "job_deadline"]
    assert told and told[0]["deadline_risk"] == answer["deadline_risk"]
    early = submit_due(86400)
    assert "deadline_risk" not in early
    assert service.get(f"/api/v1/jobs/{early['job_id']}").json()["deadline_risk"] < 0.2
    assert service.post("/api/v1/jobs", plain | {"hold": True}).json()["message"] == "Job submitted successfully"
