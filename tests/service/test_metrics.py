"""Metrics: what they count, and that the table of them is complete."""

import re

from scheduler import ROOT, make_tenant, run


def values(service, name, **options):
    """The values of a metric by its labels, as text: {'state="pending"': 1.0}."""
    text = service.get("/metrics", **options).body.decode()
    return {labels: float(value) for labels, value in
            re.findall(rf"^{name}(?:{{(.*?)}})? (\S+)$", text, re.M)}


def families(text):
    return set(re.findall(r"^# TYPE (\S+) ", text, re.M))


def described():
    return set(re.findall(r"^\| `(\w+)` \|", run("--describe-metrics").stdout, re.M))


def test_jobs_total_counts_jobs_that_entered_a_state_and_never_decreases(start):
    scheduler = start()
    tenant = make_tenant(scheduler, "lab")
    body = {"tenant_id": tenant, "gpu_count": 1, "command": ["true"]}
    first = scheduler.post("/api/v1/jobs", body).json()["job_id"]
    scheduler.post("/api/v1/jobs", body)
    assert scheduler.delete(f"/api/v1/jobs/{first}").status == 200
    gauge = values(scheduler, "gpu_scheduler_jobs")
    assert (gauge['state="pending"'], gauge['state="cancelled"']) == (1, 1)
    total = values(scheduler, "gpu_scheduler_jobs_total")
    assert (total['state="pending"'], total['state="cancelled"']) == (2, 1)
    assert "# TYPE gpu_scheduler_jobs gauge" in scheduler.get("/metrics").body.decode()
    scheduler.stop()
    scheduler.start()
    assert values(scheduler, "gpu_scheduler_jobs") == gauge
    assert set(values(scheduler, "gpu_scheduler_jobs_total").values()) == {0}


def test_a_tenant_counts_its_own_jobs_and_those_below_it(signed_in):
    company = make_tenant(signed_in, "company")
    team = make_tenant(signed_in, "team", parent_id=company)
    other = make_tenant(signed_in, "other")
    token = signed_in.post("/api/v1/tokens", {"role": "viewer", "tenant_id": company}).json()["token"]
    for tenant in (company, team, other):
        done = signed_in.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["true"], "gpu_count": 1})
        assert done.status == 201
    assert values(signed_in, "gpu_scheduler_jobs_total", token=token)['state="pending"'] == 2
    assert values(signed_in, "gpu_scheduler_jobs_total")['state="pending"'] == 3


def test_the_latency_is_told_under_both_names(shared_scheduler):
    old = values(shared_scheduler, "gpu_scheduler_scheduling_latency_bucket")
    assert old and old == values(shared_scheduler, "gpu_scheduler_scheduling_latency_seconds_bucket")


def test_every_metric_is_in_the_table_and_in_the_documentation(shared_scheduler):
    make_tenant(shared_scheduler, "shown")
    served = families(shared_scheduler.get("/metrics").body.decode())
    assert served == described()
    page = (ROOT / "docs" / "monitoring.md").read_text()
    assert run("--describe-metrics").stdout in page
