"""REST: jobs, tenants, models and lists, as the contract has them."""

import base64
import concurrent.futures
import gzip
import json
import re
import subprocess

import pytest
from scheduler import ROOT, make_tenant


@pytest.fixture(scope="module")
def service(shared_scheduler):
    return shared_scheduler


def submit(service, tenant, **job):
    done = service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["true"]} | job)
    assert done.status in (200, 201), done
    return done.json()["job_id"]


def test_a_job_is_read_back_as_it_was_sent(service):
    tenant = make_tenant(service, "read-back")
    sent = {"name": "whole", "priority": 700, "gpu_count": 2, "gpu_memory_mb": 1000, "cpu_cores": 1.5,
            "memory_mb": 512, "command": ["a", "b c"], "args": ["\u00e4\n"], "image": "i",
            "environment": {"A": "1"}, "labels": {"team": "x"}, "preemptible": False,
            "max_runtime_minutes": 90, "estimated_runtime_minutes": 45.5, "deadline": "2030-01-01T00:00:00.000Z", "checkpoint_enabled": True,
            "checkpoint_path": "/c", "on_lease_loss": "stop", "gpu_model": "H100",
            "annotations": {"example.org/run": "\u00e4\n7"}, "user": "bob",
            "idempotency_key": "k"}
    job = service.get("/api/v1/jobs/" + submit(service, tenant, **sent)).json()
    for name, value in sent.items():
        assert job[name] == value, name
    assert job["tenant_id"] == tenant
    assert job["state"] == "pending"


def test_the_same_key_gives_the_same_job(service):
    tenant = make_tenant(service, "same-key")
    job = {"tenant_id": tenant, "command": ["true"]}
    first = service.post("/api/v1/jobs", job, headers={"Idempotency-Key": "one"})
    again = service.post("/api/v1/jobs", job, headers={"Idempotency-Key": "one"})
    assert (first.status, again.status) == (201, 200)
    assert first.json()["job_id"] == again.json()["job_id"]


def test_jobs_are_listed_by_tenant_state_name_and_label(service):
    tenant, other = make_tenant(service, "listing"), make_tenant(service, "listing-other")
    ids = [submit(service, tenant, name=f"train-{i}", labels={"n": str(i)}) for i in range(5)]
    submit(service, other, name="train-9")
    service.delete(f"/api/v1/jobs/{ids[0]}")

    def listed(query):
        answer = service.get(f"/api/v1/jobs?tenant_id={tenant}&{query}").json()
        return [job["id"] for job in answer["jobs"]], answer["total"]

    assert listed("") == (ids[::-1], 5)
    assert listed("state=pending") == (ids[:0:-1], 4)
    assert listed("state=cancelled") == ([ids[0]], 1)
    assert listed("sort=submitted_at&limit=2&offset=1") == (ids[1:3], 5)
    assert listed(f"after={ids[3]}&limit=2") == ([ids[2], ids[1]], 5)
    assert listed(f"sort=submitted_at&after={ids[3]}") == ([ids[4]], 5)
    assert listed("name=train-3")[0] == [ids[3]]
    assert listed("label=n%3D2")[0] == [ids[2]]
    assert listed("limit=1000&offset=400")[0] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "offset=-1", "state=lost", "sort=name",
                                   "after=slot-1", "label=x", "tenant_id=nobody"])
def test_a_list_that_makes_no_sense_is_refused_with_a_sentence(service, query):
    answer = service.get("/api/v1/jobs?" + query)
    assert answer.status in (400, 404)
    assert answer.json()["error"].split()[0] in query + " tenant"


def test_a_page_by_priority_has_the_highest_first(service):
    tenant = make_tenant(service, "by-priority")
    low, high = (submit(service, tenant, priority=p) for p in (100, 2000))
    jobs = service.get(f"/api/v1/jobs?tenant_id={tenant}&sort=priority").json()["jobs"]
    assert [job["id"] for job in jobs] == [high, low]


def test_a_job_is_held_released_reprioritised_and_cancelled(service):
    tenant = make_tenant(service, "holding")
    job = "/api/v1/jobs/" + submit(service, tenant, hold=True)
    assert service.get(job).json()["held"]
    assert service.post(job + "/release").status == 200
    assert not service.get(job).json()["held"]
    assert service.post(job + "/hold").status == 200
    assert service.put(job + "/priority", {"priority": 1234}).status == 200
    assert service.get(job).json()["priority"] == 1234
    assert service.put(job + "/priority", {}).status == 400
    assert service.delete(job).status == 200
    assert service.delete(job).status == 409
    assert service.post(job + "/hold").status == 409


def test_a_job_says_why_it_waits(service):
    tenant = make_tenant(service, "waiting")
    job = submit(service, tenant, gpu_count=1)
    why = service.get(f"/api/v1/jobs/{job}/why").json()["why"]
    assert why[0].startswith(f"{job} waits")
    assert service.get(f"/api/v1/jobs/{job}/logs").status == 409


def test_dependencies_and_arrays(service):
    tenant = make_tenant(service, "arrays")
    made = service.post("/api/v1/jobs", {"tenant_id": tenant, "array": "1-3%2",
                                         "command": ["true"]}).json()
    assert made["count"] == 3
    last = service.get("/api/v1/jobs/" + made["last_job_id"]).json()
    assert (last["array_id"], last["array_index"], last["array_limit"]) == (made["job_id"], 3, 2)
    after = submit(service, tenant, depends_on=[{"job": made["job_id"], "condition": "any"}])
    assert service.get("/api/v1/jobs/" + after).json()["depends_on"] == [
        {"job": made["job_id"], "condition": "any"}]
    missing = service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["true"],
                                            "depends_on": ["job-999999"]})
    assert missing.status == 404


@pytest.mark.parametrize("empty", [{}, {"command": []}, {"script": "", "image": ""}, {"args": ["x"]},
                                   {"environment": {"A": "1"}}])
def test_a_job_that_runs_nothing_is_refused(service, empty):
    tenant = make_tenant(service, "-".join(["runs-nothing", *empty]))
    job, sentence = {"tenant_id": tenant} | empty, "a job needs a command, a script or an image"
    answer = service.post("/api/v1/jobs", job)
    assert (answer.status, answer.json()["code"]) == (400, "invalid")
    assert answer.json()["error"] == sentence
    bulk = service.post("/api/v1/jobs", [job | {"image": "i"}, job])
    assert bulk.status == 207
    assert [one.get("error") for one in bulk.json()["jobs"]] == [None, sentence]
    assert service.post("/api/v1/jobs?mode=all", [job | {"script": "true"}, job]).status == 400
    assert service.get(f"/api/v1/jobs?tenant_id={tenant}").json()["total"] == 1


def test_many_jobs_each_by_itself(service):
    tenant = make_tenant(service, "bulk-each")
    good = {"tenant_id": tenant, "name": "good", "command": ["true"]}
    answer = service.post("/api/v1/jobs", [good, {"tenant_id": tenant, "gpu_cout": 1}, good])
    assert answer.status == 207
    assert [job["status"] for job in answer.json()["jobs"]] == ["submitted", "refused", "submitted"]
    assert "did you mean gpu_count" in answer.json()["jobs"][1]["error"]
    lines = "\n".join(map(json.dumps, [good] * 5000))
    answer = service.post("/api/v1/jobs", lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status == 201
    assert answer.json()["submitted"] == 5000
    assert service.get(f"/api/v1/jobs?tenant_id={tenant}&limit=1").json()["total"] == 5002


def test_many_jobs_all_or_none(service):
    tenant = make_tenant(service, "bulk-all", max_gpus=4)
    good = {"tenant_id": tenant, "command": ["true"]}
    bad = good | {"gpu_count": 8}
    answer = service.post("/api/v1/jobs?mode=all", [good, bad, good])
    assert answer.status == 403
    assert answer.json()["submitted"] == 0
    assert service.get(f"/api/v1/jobs?tenant_id={tenant}&state=pending").json()["total"] == 0
    answer = service.post("/api/v1/jobs?mode=all", [good, good | {"hold": True}])
    assert answer.status == 201
    held = [service.get("/api/v1/jobs/" + job["job_id"]).json()["held"]
            for job in answer.json()["jobs"]]
    assert held == [False, True]


def test_a_tenant_is_changed_while_it_lives(service):
    tenant = make_tenant(service, "changing", email="a@b.c", organization="o", quota_gpus=2,
                         priority_tier="high", fair_share_weight=2.5, cost_per_gpu_hour=1.25,
                         budget_per_month=100)
    changed = service.put(f"/api/v1/tenants/{tenant}", {"max_gpus": 3, "quota_gpus": -1}).json()
    assert changed["max_gpus"] == 3
    assert changed["quota_gpus"] == -1
    assert (changed["email"], changed["priority_tier"], changed["priority"]) == ("a@b.c", "high", 1000)
    assert (changed["fair_share_weight"], changed["cost_per_gpu_hour"]) == (2.5, 1.25)
    assert service.put(f"/api/v1/tenants/{tenant}", {"max_gpus": None}).json()["max_gpus"] is None
    assert service.get("/api/v1/tenants/changing").json()["id"] == tenant
    assert service.post("/api/v1/tenants", {"name": "changing"}).status == 409
    assert service.post("/api/v1/tenants", {"name": ""}).status == 400
    assert service.post("/api/v1/tenants", {"name": "x", "max_gpu": 3}).status == 400
    assert service.delete(f"/api/v1/tenants/{tenant}").status == 200
    assert service.get(f"/api/v1/tenants/{tenant}").status == 404


def test_a_tenant_below_another(service):
    parent = make_tenant(service, "parent")
    child = make_tenant(service, "child", parent_id=parent)
    assert service.get(f"/api/v1/tenants/{child}").json()["parent_id"] == parent
    assert service.delete(f"/api/v1/tenants/{parent}").status == 409


def test_models_are_put_shown_and_removed(service):
    tenant = make_tenant(service, "models")
    model = {"name": "qwen3:8b", "tenant_id": tenant, "runtime": "vllm", "gpu_memory_mb": 16000,
             "splits": [1, {"gpus": 2, "memory_mb": 9000}], "idle_ttl": "10m", "users": [tenant]}
    made = service.post("/api/v1/models", model)
    assert made.status == 201, made
    shown = service.get("/api/v1/models/qwen3:8b").json()
    assert shown["splits"][1] == {"gpus": 2, "memory_mb": 9000}
    assert shown["idle_ttl"] == "10m0s"
    assert service.put(f"/api/v1/models/{shown['id']}", {"max_replicas": 2}).json()["max_replicas"] == 2
    assert service.get(f"/api/v1/models/{shown['id']}/why").json()["why"]
    assert service.post("/api/v1/models", {"name": "m"}).status == 400
    for path in ("health", "", "/a b", "/a\r\nHost: x", "/\u00e9", "/" + "a" * 256, 7, ["/health"]):
        answer = service.post("/api/v1/models", {**model, "name": "other", "health_path": path})
        assert answer.status == 400 and b"health_path" in answer.body, (path, answer)
    path = {"health_path": "/v1/models"}
    assert service.put(f"/api/v1/models/{shown['id']}", path).json()["health_path"] == "/v1/models"
    assert service.delete(f"/api/v1/models/{shown['id']}").status == 200
    assert service.get(f"/api/v1/models/{shown['id']}").status == 404


def test_reports_are_json_and_csv(service):
    tenant = make_tenant(service, "billing", cost_per_gpu_hour=2)
    usage = service.get(f"/api/v1/tenants/{tenant}/usage?from=2026-01-01").json()
    assert usage["usage"]["gpu_hours"] == 0
    assert service.get("/api/v1/reports/billing").json()["total_cost"] == 0
    csv = service.get("/api/v1/reports/billing?format=csv")
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.body.startswith(b"tenant_id,tenant,")
    assert service.get("/api/v1/reports/billing?from=yesterday").status == 400
    assert service.get("/api/v1/reports/billing?from=2026-02-01&to=2026-01-01").status == 400


def test_what_is_known_is_not_sent_again(service):
    make_tenant(service, "etag")
    first = service.get("/api/v1/tenants/etag")
    tag = first.headers["etag"]
    again = service.get("/api/v1/tenants/etag", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    service.put("/api/v1/tenants/etag", {"max_gpus": 1})
    assert service.get("/api/v1/tenants/etag", headers={"If-None-Match": tag}).status == 200


def test_large_answers_are_compressed_for_those_who_take_it(service):
    answer = service.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(answer.body))["openapi"].startswith("3.")


def test_a_request_has_an_id_and_keeps_its_trace(service):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = service.get("/health", headers={"X-Request-Id": "mine-1", "traceparent": trace})
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.headers["traceparent"] == trace
    assert len(service.get("/health").headers["x-request-id"]) == 16


def test_methods_and_paths_that_are_not_there(service):
    wrong = service.request("PATCH", "/api/v1/jobs")
    assert wrong.status == 405
    assert wrong.headers["allow"] == "POST, GET, HEAD"
    assert service.get("/api/v2/jobs").status == 404
    head = service.request("HEAD", "/api/v1/jobs")
    assert (head.status, head.body) == (200, b"")
    assert service.request("OPTIONS", "/api/v1/jobs").status == 204
    assert service.request("FROBNICATE", "/api/v1/jobs").status == 501


def test_submissions_at_once_get_ids_of_their_own(service):
    tenant = make_tenant(service, "at-once")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: submit(service, tenant), range(200)))
    assert len(set(ids)) == 200
    assert service.get(f"/api/v1/jobs?tenant_id={tenant}").json()["total"] == 200


def test_metrics_have_the_names_of_the_contract(service):
    text = service.get("/metrics").body.decode()
    for name in ("gpu_scheduler_jobs_total{state=\"pending\"}", "gpu_scheduler_queue_size",
                 "gpu_scheduler_scheduling_latency_bucket{le=\"+Inf\"}",
                 "gpu_scheduler_preemptions_total", "# TYPE gpu_scheduler_gpu_utilization gauge"):
        assert "\n" + name in "\n" + text, name
    assert service.get("/metrics", url=service.metrics_url).status == 200
    assert service.get("/api/v1/jobs", url=service.metrics_url).status == 404


def test_secrets_are_sealed_in_the_store_and_never_shown(start):
    key = "k1:" + base64.b64encode(b"0123456789" * 3 + b"01").decode()
    service = start(sections={"store": {"secret_keys": key}})
    tenant = make_tenant(service, "secrets")
    job = submit(service, tenant, secret_environment={"TOKEN": "very-secret-value"})
    shown = service.get(f"/api/v1/jobs/{job}")
    assert shown.json()["secret_environment"] == "sealed"
    model = service.post("/api/v1/models", {"name": "m", "tenant_id": tenant, "gpu_memory_mb": 1,
                                            "secret_environment": {"T": "very-secret-value"}})
    assert model.json()["secret_environment"] == "sealed"
    service.stop()
    for file in service.data.rglob("*"):
        if file.is_file():
            assert b"very-secret-value" not in file.read_bytes(), file


def test_a_page_of_another_origin_asks_first(start):
    service = start(sections={"api": {"cors_origins": ["https://page.example"]}})
    asks = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    allowed = service.request("OPTIONS", "/api/v1/jobs", headers=asks)
    assert allowed.status == 204
    assert allowed.headers["access-control-allow-origin"] == "https://page.example"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    other = service.request("OPTIONS", "/api/v1/jobs", headers=asks | {"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in other.headers
    got = service.get("/api/v1/jobs", headers={"Origin": "https://page.example"})
    assert got.headers["access-control-allow-origin"] == "https://page.example"
    assert service.get("/api/v1/jobs", headers={"Origin": "https://evil.example"}).status == 403


def test_metrics_are_well_formed(service):
    make_tenant(service, 'odd "name"\\ of a tenant')
    families, seen = {}, set()
    current = None
    sample = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$')
    for line in service.get("/metrics").body.decode().splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in families, current
            families[current] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current
            assert kind in ("counter", "gauge", "histogram")
            assert kind != "counter" or name.endswith("_total"), name
            families[name] = kind
        else:
            match = sample.match(line)
            assert match, line
            name, labels, value = match.groups()
            float(value)
            base = re.sub("_(bucket|sum|count)$", "", name) if families[current] == "histogram" else name
            assert base == current, line
            assert (name, labels) not in seen, line
            seen.add((name, labels))


@pytest.mark.parametrize("path, meant", [
    ("/api/v1/jobs?stat=running", "unknown query parameter 'stat': did you mean state?"),
    ("/api/v1/scheduler/queue?tenant=1", "unknown query parameter 'tenant': did you mean tenant_id?"),
    ("/api/v1/audit?after=3", "GET /api/v1/audit has limit and before"),
    ("/api/v1/session?a=1", "GET /api/v1/session has none"),
    ("/health?a=1", "GET /health has none"),
])
def test_an_unknown_query_parameter_is_refused_with_what_was_meant(service, path, meant):
    answer = service.get(path)
    assert answer.status == 400, answer
    assert answer.json()["code"] == "invalid"
    assert meant in answer.json()["error"]
    assert answer.headers["x-request-id"]


def test_an_unknown_query_parameter_changes_nothing(service):
    tenant = make_tenant(service, "unchanged")
    refused = service.delete(f"/api/v1/tenants/{tenant}?force=1")
    assert refused.status == 400, refused
    assert service.get(f"/api/v1/tenants/{tenant}").status == 200


def test_decisions_of_every_kind_can_be_asked_for(service):
    refused = service.get("/api/v1/scheduler/decisions?type=moon")
    kinds = re.fullmatch(r"type must be (.*)", refused.json()["error"])[1]
    kinds = re.split(", | or ", kinds)
    assert {"start", "fail", "share"} <= set(kinds)
    for kind in kinds:
        assert service.get(f"/api/v1/scheduler/decisions?type={kind}").status == 200, kind


def test_the_dashboard_and_the_command_line_know_every_kind_of_decision(service):
    kinds = re.findall(r"\w+", service.get("/api/v1/scheduler/decisions?type=moon").json()["error"])[3:]
    dashboard = (ROOT / "web" / "src" / "views" / "decisions.tsx").read_text()
    help_text = subprocess.run([ROOT / "bin" / "gpu-cli", "decisions", "--help"],
                               capture_output=True, text=True, check=True).stdout
    for kind in set(kinds) - {"or"}:
        assert f'"{kind}"' in dashboard, kind
        assert re.search(rf"\b{kind}\b", help_text), kind
