"""Reports over a period: every run counts, whatever ended it, at the price of its time."""

import csv
import io
import time

import pytest

import crowd
from scheduler import Scheduler

ALWAYS = "from=2020-01-01"


@pytest.fixture(params=["sqlite", "postgres"])
def service(request, tmp_path):
    """Finished jobs leave memory at once."""
    sections = {"scheduler": {"keep_finished_ms": 1}}
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        server.clear()
        sections["database"] = {"host": str(server.folder), "user": "postgres", "database": "postgres"}
    one = Scheduler(tmp_path / "scheduler", sections=sections)
    yield one
    one.stop()


@pytest.fixture
def nodes(service, monkeypatch):
    """One node with four GPUs, which frees memory within a second."""
    monkeypatch.setattr(crowd, "RELEASE_SECONDS", 0)
    running = crowd.Crowd(service.grpc, 1, gpus=4)
    yield running
    running.close()


def await_that(what, seconds=60):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def await_state(service, job, *states):
    await_that(lambda: service.get(f"/api/v1/jobs/{job}").json()["state"] in states)


def runs_of(service, job):
    return service.get(f"/api/v1/jobs/{job}/runs").json()["runs"]


def bill(service, tenant, query=ALWAYS):
    return service.get(f"/api/v1/tenants/{tenant}/usage?{query}").json()["usage"]


def test_a_bill_over_all_time_is_what_the_tenant_ever_cost(service, nodes):
    # 3600 an hour: a second of a GPU costs 1, and milliseconds are seen.
    tenant = service.post("/api/v1/tenants", {"name": "lab", "cost_per_gpu_hour": 3600}).json()["id"]

    def submit(**fields):
        made = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x", "command": ["x"]} | fields)
        assert made.status == 201, made
        return made.json()["job_id"]

    long = submit(gpu_count=2, priority=100, preemptible=True)
    await_state(service, long, "running")
    assert service.post(f"/api/v1/jobs/{long}/requeue").status == 200
    await_that(lambda: len(runs_of(service, long)) == 2 and
               service.get(f"/api/v1/jobs/{long}").json()["state"] == "running")
    gang = submit(gpu_count=2, tasks=2, priority=900)
    await_state(service, gang, "running")
    assert [run["ending"] for run in runs_of(service, long)] == ["requeued", "preempted"]
    middle = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    assert service.put(f"/api/v1/tenants/{tenant}", {"cost_per_gpu_hour": 7200}).status == 200
    assert service.delete(f"/api/v1/jobs/{gang}").status == 200
    await_state(service, long, "running")
    parts = submit(gpu_fraction=0.25, array="0-2", priority=900)
    memory = submit(gpu_memory_mb=20000, priority=900)
    await_state(service, memory, "running")
    time.sleep(1.2)
    array = [f"job-{int(parts[4:]) + index}" for index in range(3)]
    for job in (long, memory, *array):
        service.delete(f"/api/v1/jobs/{job}")
    await_that(lambda: service.get("/api/v1/jobs?state=cancelled").json()["total"] == 6)
    # A job leaves memory when its GPUs are confirmed as free, which may come after its end.
    for job in (long, memory, *array):
        await_that(lambda: service.get(f"/api/v1/jobs/{job}/why").json()["why"][0].startswith(
            f"{job} finished at "))
    service.stop()
    service.start()
    why = service.get(f"/api/v1/jobs/{memory}/why?decision=1").json()
    assert why["why"][0].startswith(f"{memory} finished at ")
    assert any("20000 asked" in sentence for sentence in why["decision"]), why
    usage, shown = bill(service, tenant), service.get(f"/api/v1/tenants/{tenant}").json()
    assert usage["cost"] > 5
    assert usage["cost"] == pytest.approx(shown["total_cost"], abs=0.01)
    assert usage["gpu_hours"] == pytest.approx(shown["total_gpu_hours"], abs=0.0011)
    assert usage["jobs"] == 6 and usage["runs"] == 3 + 2 + 3 + 1
    before, after = bill(service, tenant, f"{ALWAYS}&to={middle}"), bill(service, tenant, f"from={middle}")
    assert before["cost"] > 0 and after["cost"] > 0
    assert before["cost"] + after["cost"] == pytest.approx(usage["cost"], abs=0.001)
    jobs = service.get(f"/api/v1/reports/jobs?{ALWAYS}").json()["jobs"]
    assert sum(job["cost"] for job in jobs) == pytest.approx(usage["cost"], abs=0.001)
    assert [job["job_id"] for job in jobs] == sorted(
        (long, gang, memory, *array), key=lambda job: -int(job[4:]))
    billed = service.get(f"/api/v1/reports/billing?{ALWAYS}").json()
    assert billed["total_cost"] == usage["cost"] == billed["tenants"][0]["cost"]
    table = service.get(f"/api/v1/reports/billing?{ALWAYS}&format=csv").body.decode()
    (row,) = csv.DictReader(io.StringIO(table))
    assert float(row["cost"]) == usage["cost"] and int(row["runs"]) == usage["runs"]


def test_a_run_that_goes_on_is_told_and_billed_up_to_now(service, nodes):
    tenant = service.post("/api/v1/tenants", {"name": "lab", "cost_per_gpu_hour": 3600}).json()["id"]
    job = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x", "command": ["x"],
                                        "gpu_count": 1}).json()["job_id"]
    await_state(service, job, "running")
    (run,) = runs_of(service, job)
    assert (run["ending"], run["attempt"], run["node"], run["gpus"]) == ("goes_on", 1, "node-01", 1)
    assert run["began_at"] <= run["started_at"] and run["ended_at"] is None
    first = bill(service, tenant)["cost"]
    time.sleep(0.5)
    assert bill(service, tenant)["cost"] >= first + 0.4
    service.delete(f"/api/v1/jobs/{job}")
    assert [run["ending"] for run in runs_of(service, job)] == ["cancelled"]
    assert service.get("/api/v1/jobs/job-999/runs").status == 404


def test_a_new_price_leaves_the_cost_of_a_finished_job(service, nodes):
    tenant, other = (service.post("/api/v1/tenants", {"name": name, "cost_per_gpu_hour": 3600}).json()["id"]
                     for name in ("lab", "other"))
    jobs = []
    for owner in (tenant, tenant, other):
        jobs.append(service.post("/api/v1/jobs", {"tenant_id": owner, "command": ["x"],
                                                  "gpu_count": 1}).json()["job_id"])
        await_state(service, jobs[-1], "running")
        service.delete(f"/api/v1/jobs/{jobs[-1]}")
        await_that(lambda: all(run["ended_at"] for run in runs_of(service, jobs[-1])))

    def costs(query=""):
        answer = service.get(f"/api/v1/reports/jobs?{ALWAYS}{query}").json()
        return {job["job_id"]: job["cost"] for job in answer["jobs"]}, answer.get("next_after")

    before, _ = costs()
    assert list(before) == jobs[::-1] and min(before.values()) > 0
    assert service.put(f"/api/v1/tenants/{tenant}", {"cost_per_gpu_hour": 7200000}).status == 200
    assert costs()[0] == before
    assert list(costs(f"&tenant_id={other}")[0]) == jobs[2:]
    assert list(costs("&limit=2")[0]) == jobs[:0:-1] and costs("&limit=2")[1] == jobs[1]
    assert costs(f"&limit=2&after={jobs[1]}") == ({jobs[0]: before[jobs[0]]}, None)
    assert costs("&to=2021-01-01") == ({}, None)
    assert service.get("/api/v1/reports/jobs?tenant_id=nobody").status == 404


def test_a_line_has_its_own_use_and_that_with_the_tenants_below_it(service, nodes):
    def make(name, price, **fields):
        made = service.post("/api/v1/tenants", {"name": name, "cost_per_gpu_hour": price} | fields)
        assert made.status == 201, made
        return made.json()["id"]

    # The one in the middle uses nothing itself.
    top = make("top", 3600000)
    middle = make("middle", 0, parent_id=top)
    bottom = make("bottom", 7200000, parent_id=middle)
    for owner, count in ((top, 1), (bottom, 2)):
        for _ in range(count):
            job = service.post("/api/v1/jobs", {"tenant_id": owner, "command": ["x"],
                                                "gpu_count": 1}).json()["job_id"]
            await_state(service, job, "running")
            service.delete(f"/api/v1/jobs/{job}")
            await_that(lambda: all(run["ended_at"] for run in runs_of(service, job)))
    await_that(lambda: service.get("/api/v1/jobs?state=cancelled").json()["total"] == 3)

    report = service.get(f"/api/v1/reports/billing?{ALWAYS}").json()
    lines = {line["tenant"]: line for line in report["tenants"]}
    below = {name: line["including_children"] for name, line in lines.items()}
    assert list(lines) == ["top", "middle", "bottom"]
    assert [(lines[name]["jobs"], below[name]["jobs"]) for name in lines] == [(1, 3), (0, 2), (2, 2)]
    assert [(lines[name]["runs"], below[name]["runs"]) for name in lines] == [(1, 3), (0, 2), (2, 2)]
    assert [below[name]["cancelled_jobs"] for name in lines] == [3, 2, 2]
    assert lines["top"]["cost"] > 0 and lines["middle"]["cost"] == 0 and lines["bottom"]["cost"] > 0
    total = pytest.approx(lines["top"]["cost"] + lines["bottom"]["cost"])
    assert report["total_cost"] == total == below["top"]["cost"]
    assert below["middle"] == below["bottom"]
    assert below["bottom"] == {name: lines["bottom"][name] for name in below["bottom"]}

    table = service.get(f"/api/v1/reports/billing?{ALWAYS}&format=csv").body.decode()
    for row in csv.DictReader(io.StringIO(table)):
        line = lines[row["tenant"]]
        assert float(row["cost"]) == line["cost"] and int(row["runs"]) == line["runs"]
        assert {name.removeprefix("including_children_"): float(value) for name, value in row.items()
                if name.startswith("including_children_")} == line["including_children"]
    # The totals of a tenant have those below it at its own price: half of that of the bottom one.
    shown = service.get(f"/api/v1/tenants/{top}").json()
    assert shown["total_gpu_hours"] == pytest.approx(below["top"]["gpu_hours"], abs=0.0011)
    assert shown["total_cost"] == pytest.approx(lines["top"]["cost"] + lines["bottom"]["cost"] / 2, abs=0.01)
    for tenant, name in ((top, "top"), (middle, "middle"), (bottom, "bottom")):
        # The id has the end of the period, which is now.
        assert bill(service, tenant) | {"id": None} == lines[name] | {"id": None}


def test_work_that_is_lost_is_no_useful_time(service, nodes):
    """A run that was stopped and began again counts as lost, though the job ends well."""
    tenant = service.post("/api/v1/tenants", {"name": "lab", "cost_per_gpu_hour": 3600}).json()["id"]
    job = service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["x"], "gpu_count": 1,
                                        "user": "ann"}).json()["job_id"]
    await_state(service, job, "running")
    time.sleep(1)
    assert service.post(f"/api/v1/jobs/{job}/requeue").status == 200
    await_that(lambda: [run["ending"] for run in runs_of(service, job)] == ["goes_on", "requeued"] or
               [run["ending"] for run in runs_of(service, job)] == ["requeued", "goes_on"])
    (line,) = service.get(f"/api/v1/reports/jobs?{ALWAYS}").json()["jobs"]
    assert line["lost_gpu_hours"] * 3600 > 0.9
    parts = [line[f"{kind}_gpu_hours"] for kind in ("useful", "idle", "lost")]
    assert min(parts) >= 0 and sum(parts) == pytest.approx(line["gpu_hours"], abs=0.0001)
    usage = bill(service, tenant)
    assert usage["lost_gpu_hours"] == pytest.approx(line["lost_gpu_hours"], abs=0.001)
    assert usage["including_children"]["lost_gpu_hours"] == usage["lost_gpu_hours"]
    (owner,) = service.get(f"/api/v1/reports/owners?{ALWAYS}").json()["owners"]
    assert (owner["user"], owner["tenant"], owner["jobs"]) == ("ann", "lab", 1)
    assert owner["lost_gpu_hours"] == line["lost_gpu_hours"]
    table = service.get(f"/api/v1/reports/billing?{ALWAYS}&format=csv").body.decode()
    (row,) = csv.DictReader(io.StringIO(table))
    assert float(row["lost_gpu_hours"]) == usage["lost_gpu_hours"]
    assert service.get("/api/v1/reports/owners?tenant_id=nobody").status == 404


def test_predictions_are_scored_by_tenant_and_basis_and_promises_counted(service, nodes):
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]

    def submit(**fields):
        made = service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["x"], "gpu_count": 4,
                                             "max_runtime_minutes": 60} | fields)
        return made.json()["job_id"]

    def predictions(query=""):
        return service.get(f"/api/v1/reports/predictions?{ALWAYS}{query}").json()

    assert predictions()["all"] == {"jobs": 0, "within_p90": None, "within_twice": None,
                                    "median_error": None, "promised_starts": 0, "kept_starts": 0}
    first = submit()
    await_state(service, first, "running")
    second = submit()
    await_that(lambda: service.get(f"/api/v1/jobs/{second}").json()["promised_start"])
    service.delete(f"/api/v1/jobs/{first}")
    await_state(service, second, "running")
    service.delete(f"/api/v1/jobs/{second}")
    await_that(lambda: predictions()["all"]["jobs"] == 2)
    report = predictions()
    assert report["all"]["jobs"] == 2 and report["all"]["within_p90"] == 1
    assert report["all"]["promised_starts"] == report["all"]["kept_starts"] == 1
    assert report["all"]["median_error"] > 2 and report["all"]["within_twice"] == 0
    (line,) = report["tenants"]
    assert (line["tenant_id"], line["tenant"], line["jobs"]) == (tenant, "lab", 2)
    assert [(basis["basis"], basis["jobs"]) for basis in report["bases"]] == [("maximum runtime", 2)]
    assert predictions("&to=2021-01-01")["all"]["jobs"] == 0
    assert predictions(f"&tenant_id={tenant}")["all"] == report["all"]
    assert service.get("/api/v1/reports/predictions?tenant_id=nobody").status == 404
    metrics = service.get("/metrics").body.decode()
    assert ('gpu_scheduler_predicted_jobs_total{basis="maximum runtime",outcome="within_p90"} 2'
            in metrics)
    assert 'gpu_scheduler_closely_predicted_jobs_total{basis="maximum runtime"} 0' in metrics
