"""Jobs that have left memory: found, listed and counted as if they had not."""

import contextlib
import sqlite3
import threading
import time

import pytest


@pytest.fixture
def service(start):
    """Finished jobs leave memory at once."""
    return start(sections={"scheduler": {"keep_finished_ms": 1}})


def await_archived(service, count, seconds=60):
    """Until so many are not in memory any more."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.closing(sqlite3.connect(service.data / "scheduler.db")) as database:
            (archived,) = database.execute("SELECT count(*) FROM jobs WHERE archived").fetchone()
        if archived == count:
            return
        assert time.monotonic() < deadline, archived
        time.sleep(0.1)


def test_archived_jobs_are_listed_among_the_others(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    ids = [service.post("/api/v1/jobs", {"tenant_id": tenant, "name": f"x{i}",
                                         "command": ["true"]}).json()["job_id"]
           for i in range(10)]
    gone = ids[1::2]
    for job in gone:
        assert service.delete(f"/api/v1/jobs/{job}").status == 200
    await_archived(service, 5)

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
    for offset in range(11):
        assert listed(f"sort=submitted_at&limit=3&offset={offset}") == (ids[offset:offset + 3], 10)
    for i in range(10):
        assert listed(f"sort=submitted_at&limit=4&after={ids[i]}") == (ids[i + 1:i + 5], 10)


def test_archived_jobs_are_searched_like_the_others(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    ids = [service.post("/api/v1/jobs", {"tenant_id": tenant, "name": f"{'ab'[i % 2]}{i}",
                                         "labels": {"third": str(i % 3)},
                                         "command": ["true"]}).json()["job_id"]
           for i in range(12)]
    for job in ids[:7]:
        service.delete(f"/api/v1/jobs/{job}")
    await_archived(service, 7)

    def listed(query):
        answer = service.get(f"/api/v1/jobs?{query}").json()
        return [job["id"] for job in answer["jobs"]], answer["total"]

    named = ids[1::2][::-1]
    assert listed("name=b") == (named, 6)
    assert listed("name=b&limit=2&offset=2") == (named[2:4], 6)
    assert listed("name=b&sort=submitted_at&limit=4") == (named[::-1][:4], 6)
    assert listed("label=third=0") == (ids[::3][::-1], 4)
    assert listed("name=a&label=third=1&state=cancelled") == ([ids[4]], 1)


def test_a_tenant_lists_archived_jobs_of_those_below_it_too(signed_in):
    signed_in.sections["scheduler"] = {"keep_finished_ms": 1}
    signed_in.stop()
    signed_in.start()
    made = {}
    for name, parent in (("above", None), ("below", "above"), ("other", None)):
        made[name] = signed_in.post("/api/v1/tenants", {"name": name, "parent_id": parent}).json()["id"]
    ids = {name: [signed_in.post("/api/v1/jobs", {"tenant_id": tenant, "name": f"{name}{i}",
                                                  "command": ["true"]}).json()["job_id"]
                  for i in range(4)] for name, tenant in made.items()}
    for jobs in ids.values():
        signed_in.delete(f"/api/v1/jobs/{jobs[0]}")
        signed_in.delete(f"/api/v1/jobs/{jobs[2]}")
    await_archived(signed_in, 6)
    token = signed_in.post("/api/v1/tokens", {"role": "tenant", "tenant_id": made["above"]}).json()["token"]

    def listed(query=""):
        answer = signed_in.get(f"/api/v1/jobs?{query}",
                               headers={"Authorization": f"Bearer {token}"}).json()
        return [job["id"] for job in answer["jobs"]], answer["total"]

    own = (ids["above"] + ids["below"])[::-1]
    assert listed() == (own, 8)
    assert listed("limit=3&offset=4") == (own[4:7], 8)
    assert listed(f"limit=3&after={own[1]}") == (own[2:5], 8)
    assert listed("name=o") == ([], 0)
    assert listed("name=b&sort=submitted_at") == (ids["below"], 4)
    for part in ("", "/events", "/why", "/runs"):
        for name, status in (("above", 200), ("below", 200), ("other", 404)):
            answer = signed_in.get(f"/api/v1/jobs/{ids[name][0]}{part}",
                                   headers={"Authorization": f"Bearer {token}"})
            assert answer.status == status, (part, name, answer)


def test_an_archived_job_is_found_and_cannot_be_changed(service):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    job = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x",
                                        "command": ["true"]}).json()["job_id"]
    service.delete(f"/api/v1/jobs/{job}")
    await_archived(service, 1)
    shown = service.get(f"/api/v1/jobs/{job}").json()
    assert (shown["id"], shown["state"], shown["command"]) == (job, "cancelled", ["true"])
    refused = service.delete(f"/api/v1/jobs/{job}")
    assert refused.status == 409
    assert "has already finished (cancelled)" in refused.json()["error"]
    events = service.get(f"/api/v1/jobs/{job}/events").json()["events"]
    assert [event["type"] for event in events] == ["job_ended"]
    assert service.get(f"/api/v1/jobs/{job}/logs").status == 409
    why = service.get(f"/api/v1/jobs/{job}/why").json()
    assert why["why"][0].startswith(f"{job} finished at ") and ": cancelled" in why["why"][0]
    assert "decision" not in why
    # No decision was made about it.
    assert service.get(f"/api/v1/jobs/{job}/why?decision=1").json() == why | {"decision": []}
    assert service.get("/api/v1/cluster/status").json()["cancelled_jobs"] == 1
    assert service.get("/api/v1/tenants/lab").json()["total_jobs"] == 1


def test_a_job_that_leaves_memory_while_it_is_read_is_found_in_the_store(start):
    service = start(sections={"scheduler": {"keep_finished_ms": 0}})
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    stop = threading.Event()
    wrong = []

    def read(job):
        while not stop.is_set():
            for part in ("", "/why?decision=1"):
                answer = service.get(f"/api/v1/jobs/{job}{part}")
                if answer.status != 200 or ("state" if not part else "why") not in answer.json():
                    wrong.append(answer)

    for _ in range(40):
        job = service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["x"]}).json()["job_id"]
        stop.clear()
        readers = [threading.Thread(target=read, args=(job,)) for _ in range(4)]
        for reader in readers:
            reader.start()
        service.delete(f"/api/v1/jobs/{job}")
        time.sleep(0.05)
        stop.set()
        for reader in readers:
            reader.join()
    assert not wrong, wrong[0]
