"""Many jobs in one request: sent again they are the same ones, and all or none is meant."""

import http.client
import json
import random
import threading
import time

import pytest

from scheduler import Scheduler, make_tenant

JOBS = 5000
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def service(shared_scheduler):
    return shared_scheduler


def send(service, jobs, key, mode="each", **headers):
    return service.post(f"/api/v1/jobs?mode={mode}", jobs,
                        headers={"Idempotency-Key": key} | headers, timeout=120)


def ids(answer):
    return [job.get("job_id") for job in answer.json()["jobs"]]


def total(service, tenant):
    return service.get(f"/api/v1/jobs?tenant_id={tenant}&limit=1").json()["total"]


@pytest.mark.parametrize("mode", ["each", "all"])
def test_the_same_request_has_the_same_answer(service, mode):
    tenant = make_tenant(service, f"again-{mode}")
    jobs = [{"tenant_id": tenant, "command": ["true"], "name": "a"}, {"tenant_id": tenant, "command": ["true"], "name": "b", "array": "1-3"}]
    first, again = (send(service, jobs, "monday", mode) for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert ids(first) == ids(again)
    assert [job.get("count") for job in again.json()["jobs"]] == [None, 3]
    assert all(job["repeated"] for job in again.json()["jobs"])
    assert again.json()["submitted"] == 2
    assert total(service, tenant) == 4
    shown = service.get("/api/v1/jobs/" + ids(first)[0]).json()
    assert shown["idempotency_key"] == "monday#0"


@pytest.mark.parametrize("mode", ["each", "all"])
def test_another_body_under_the_same_key_is_refused(service, mode):
    tenant = make_tenant(service, f"other-body-{mode}")
    jobs = [{"tenant_id": tenant, "command": ["true"], "name": "a"}] * 2
    assert send(service, jobs, "monday", mode).status == 201
    other = send(service, [*jobs, {"tenant_id": tenant, "command": ["true"], "gpu_cont": 1}] if mode == "each" else jobs[:1],
                 "monday", mode)
    assert other.status == 409, other
    assert "came with another request" in other.json()["jobs"][0]["error"]
    assert total(service, tenant) == 2


def test_a_request_that_was_done_in_part_is_completed(service):
    tenant = make_tenant(service, "in-part", max_gpus=1)
    jobs = [{"tenant_id": tenant, "command": ["true"], "gpu_count": count} for count in (1, 2, 1)]
    first = send(service, jobs, "monday")
    assert first.status == 207
    assert first.json()["jobs"][1]["status"] == "refused"
    service.put(f"/api/v1/tenants/{tenant}", {"max_gpus": 2})
    again = send(service, jobs, "monday")
    assert again.status == 201
    assert [job.get("repeated", False) for job in again.json()["jobs"]] == [True, False, True]
    assert ids(again)[0] == ids(first)[0]
    assert total(service, tenant) == 3


def test_what_was_refused_together_can_be_asked_again_under_its_key(service):
    tenant = make_tenant(service, "together-again", max_gpus=1)
    jobs = [{"tenant_id": tenant, "command": ["true"], "gpu_count": count} for count in (1, 2)]
    refused = send(service, jobs, "monday", "all")
    assert refused.status == 403
    assert [job["status"] for job in refused.json()["jobs"]] == ["not_submitted", "refused"]
    assert total(service, tenant) == 0
    service.put(f"/api/v1/tenants/{tenant}", {"max_gpus": 2})
    assert send(service, jobs, "monday", "all").status == 201
    assert total(service, tenant) == 2


def test_a_job_with_a_key_of_its_own_keeps_it(service):
    tenant = make_tenant(service, "own-key")
    own = {"tenant_id": tenant, "command": ["true"], "idempotency_key": "mine"}
    alone = service.post("/api/v1/jobs", own).json()["job_id"]
    answer = send(service, [{"tenant_id": tenant, "command": ["true"]}, own], "monday")
    assert ids(answer)[1] == alone
    assert total(service, tenant) == 2


@pytest.mark.parametrize("body", ["[{}]", "{}", '{"name":"a"}\n{"name":"b"}'])
def test_a_key_that_cannot_be_one_is_refused(service, body):
    headers = LINES if "\n" in body else {"Content-Type": "application/json"}
    for key, sentence in ("k" * 257, "longer than 256"), ("\xff\xfe", "UTF-8"):
        answer = service.post("/api/v1/jobs", body, headers=headers | {"Idempotency-Key": key})
        assert answer.status == 400, answer
        assert sentence in answer.json()["error"]


def test_the_longest_key_can_be_used(service):
    tenant = make_tenant(service, "long-key")
    jobs = [{"tenant_id": tenant, "command": ["true"]}] * 12
    first, again = (send(service, jobs, "k" * 256) for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert total(service, tenant) == 12


def test_more_than_can_be_taken_together_is_refused(service):
    tenant = make_tenant(service, "too-many")
    jobs = [{"tenant_id": tenant, "command": ["true"], "array": "1-10000"}] * 11
    answer = send(service, jobs, "monday", "all")
    assert answer.status == 413, answer
    assert "at most 100000 jobs" in answer.json()["error"]
    assert total(service, tenant) == 0


def test_a_restart_forgets_no_key(tmp_path):
    one = Scheduler(tmp_path)
    try:
        tenant = make_tenant(one, "lab")
        jobs = [{"tenant_id": tenant, "command": ["true"], "name": str(number)} for number in range(100)]
        first = {mode: send(one, jobs, mode, mode) for mode in ("each", "all")}
        for how in (one.stop, one.kill):
            how()
            one.start()
            for mode, answer in first.items():
                assert answer.status == 201
                again = send(one, jobs, mode, mode)
                assert again.status == 200
                assert ids(again) == ids(answer)
                assert send(one, jobs[1:], mode, mode).status == 409
        assert total(one, tenant) == 200
    finally:
        one.kill()


def post_quietly(port, path, body, headers):
    """As a client whose scheduler may go away."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", path, body, headers)
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass


@pytest.mark.parametrize("kind,kills", [("sqlite", 10), ("postgres", 4)])
def test_all_or_none_are_there_after_a_kill(tmp_path, kind, kills, request):
    sections = {}
    if kind == "postgres":
        server = request.getfixturevalue("postgres_server")
        sections = {"database": {"host": str(server.folder), "user": "postgres",
                                 "database": "postgres"}}
    chance = random.Random(1)
    one = Scheduler(tmp_path, sections=sections)
    seen = set()
    try:
        tenant = make_tenant(one, "measured")
        body = "\n".join([json.dumps({"tenant_id": tenant, "command": ["true"]})] * JOBS)
        began = time.monotonic()
        assert send(one, body, "whole", "all", **LINES).status == 201
        took = time.monotonic() - began
        for kill in range(kills):
            tenant = make_tenant(one, f"lab-{kill}")
            body = "\n".join([json.dumps({"tenant_id": tenant, "command": ["true"]})] * JOBS)
            headers = LINES | {"Idempotency-Key": f"kill-{kill}"}
            client = threading.Thread(target=post_quietly, args=(
                one.port, "/api/v1/jobs?mode=all", body, headers))
            client.start()
            time.sleep(chance.uniform(0.1, 1.1) * took)
            one.kill()
            client.join()
            one.start()
            there = total(one, tenant)
            assert there in (0, JOBS), f"{there} of {JOBS} are there"
            seen.add(there)
            again = send(one, body, f"kill-{kill}", "all", **LINES)
            assert again.status == (200 if there else 201), again
            assert total(one, tenant) == JOBS
            held = one.get(f"/api/v1/jobs/{ids(again)[0]}").json()["held"]
            assert held is False
        print(f"{kind}: {kills} kills, {seen} there")
    finally:
        one.kill()


@pytest.mark.parametrize("mode", ["each", "all"])
def test_a_request_of_rejected_jobs_is_not_read_to_its_end(service, mode):
    answer = service.request("POST", f"/api/v1/jobs?mode={mode}", b"[" + b"1," * 49999 + b"1]")
    assert answer.status == 400
    rows = answer.json()["jobs"]
    assert len(rows) == 10001
    assert "were not read" in rows[-1]["error"]


def test_a_page_of_large_jobs_ends_early_and_goes_on_where_it_ended(service):
    tenant = make_tenant(service, "large")
    jobs = [{"tenant_id": tenant, "command": ["true"], "name": f"large-{i}", "tasks": 4000, "hold": True} for i in range(20)]
    assert service.post("/api/v1/jobs", jobs).json()["submitted"] == 20
    seen, after = [], ""
    while True:
        page = service.get(f"/api/v1/jobs?tenant_id={tenant}&limit=1000{after}").json()
        seen += [job["name"] for job in page["jobs"]]
        if "next_after" not in page:
            break
        after = f"&after={page['next_after']}"
        assert len(page["jobs"]) < 20
    assert sorted(seen) == sorted(job["name"] for job in jobs)
    for job in service.get(f"/api/v1/jobs?tenant_id={tenant}&limit=20").json()["jobs"]:
        service.request("DELETE", f"/api/v1/jobs/{job['id']}")
