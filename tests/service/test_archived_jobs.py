"""Jobs that have left memory: found, listed and counted as if they had not."""

import time

import pytest


@pytest.fixture
def service(start):
    """Finished jobs leave memory at once."""
    return start(sections={"scheduler": {"keep_finished_ms": 1}})


def await_archived(service, tenant, count, seconds=30):
    """Until so many are not in memory any more: then their places are not known."""
    deadline = time.monotonic() + seconds
    while True:
        jobs = service.get(f"/api/v1/jobs?tenant_id={tenant}&state=cancelled&name=x").json()
        done = service.get(f"/api/v1/jobs?tenant_id={tenant}&state=cancelled").json()["total"]
        if done == count and jobs["total"] == 0:
            return
        assert time.monotonic() < deadline, jobs
        time.sleep(0.1)


def test_archived_jobs_are_listed_among_the_others(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    ids = [service.post("/api/v1/jobs", {"tenant_id": tenant, "name": f"x{i}"}).json()["job_id"]
           for i in range(10)]
    gone = ids[1::2]
    for job in gone:
        assert service.delete(f"/api/v1/jobs/{job}").status == 200
    await_archived(service, tenant, 5)

    def listed(query=""):
        answer = service.get(f"/api/v1/jobs?tenant_id={tenant}&{query}").json()
        return [job["id"] for job in answer["jobs"]], answer["total"]

    newest = ids[::-1]
    assert listed() == (newest, 10)
    for offset in range(11):
        assert listed(f"limit=3&offset={offset}") == (newest[offset:offset + 3], 10)
    for i in range(10):
        assert listed(f"limit=4&after={newest[i]}") == (newest[i + 1:i + 5], 10)
    assert listed("state=cancelled") == (gone[::-1], 5)
    by_priority, total = listed("sort=priority&limit=7")
    assert total == 10
    assert by_priority == ids[::2] + gone[::-1][:2]


def test_an_archived_job_is_found_and_cannot_be_changed(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    job = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x",
                                        "command": ["true"]}).json()["job_id"]
    service.delete(f"/api/v1/jobs/{job}")
    await_archived(service, tenant, 1)
    shown = service.get(f"/api/v1/jobs/{job}").json()
    assert (shown["id"], shown["state"], shown["command"]) == (job, "cancelled", ["true"])
    refused = service.delete(f"/api/v1/jobs/{job}")
    assert refused.status == 409
    assert "is over (cancelled)" in refused.json()["error"]
    events = service.get(f"/api/v1/jobs/{job}/events").json()["events"]
    assert [event["type"] for event in events] == ["job_ended"]
    assert service.get(f"/api/v1/jobs/{job}/logs").status == 409
    why = service.get(f"/api/v1/jobs/{job}/why").json()["why"]
    assert why[0].startswith(f"{job} is over since ") and ": cancelled" in why[0]
    assert service.get("/api/v1/cluster/status").json()["cancelled_jobs"] == 1
    assert service.get("/api/v1/tenants/lab").json()["total_jobs"] == 1
