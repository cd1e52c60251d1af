"""A tenant, a viewer or a node wants to see or touch what belongs to another tenant."""

import asyncio
import json
import re
import time
import types

import grpc
import websockets

from attack import attack, defeat
from calls import scheduler_pb2
from target import CANARY, SECRET

SHARED_KEY = "nightly-1"  # that two tenants may well use


def furnish(site):
    """What the victim has: a job that runs, one that waits, a model and a lease request, with
    the canary in everything that can carry one."""
    if hasattr(site.victims, "running"):
        return site.victims
    fields = {"name": f"job-{CANARY}", "environment": {"A": CANARY}, "labels": {"label": CANARY},
              "secret_environment": {"TOKEN": SECRET}, "idempotency_key": SHARED_KEY}
    running = site.victim.submit(script=f"echo {CANARY}; sleep 100000", gpu_memory_mb=100, **fields)
    site.await_state(running, "running")
    waiting = site.victim.submit(command=["true", CANARY], gpu_count=500, name=f"wait-{CANARY}")
    model = site.victim.post("/api/v1/models", {
        "name": f"model-{CANARY}", "tenant_id": site.victim.tenant, "gpu_memory_mb": 100,
        "runtime": "vllm", "environment": {"HF_TOKEN": CANARY}})
    assert model.status == 201, model
    site.victims = types.SimpleNamespace(running=running, waiting=waiting, model=model.json()["id"])
    return site.victims


def paths(site):
    """Every path that can be read, filled with the victim's ids, with every query that might
    widen what it shows."""
    things = furnish(site)
    ids = {"jobs": [things.running, things.waiting], "tenants": [site.victim.tenant],
           "models": [things.model, f"model-{CANARY}"], "leases": ["lease-1"],
           "nodes": [site.agents[0].name], "runners": [site.agents[0].name]}
    queries = ["", f"?tenant_id={site.victim.tenant}", f"?tenant={site.victim.tenant}",
               f"?job={things.running}", f"?model=model-{CANARY}", "?holders=1", "?reasons=1",
               "?limit=1000", f"?label=label={CANARY}", f"?name=job-{CANARY[:3]}", "?trace=1",
               "?explain=1", "?format=csv"]
    described = site.scheduler.get("/openapi.json").json()["paths"]
    for path, methods in described.items():
        if "get" not in methods or "stream" in path or "assets" in path or "openapi" in path:
            continue
        kind = path.split("/")[3] if path.count("/") > 2 else ""
        for one in ids.get(kind, [""]) if "{" in path else [""]:
            for query in queries:
                yield re.sub(r"\{\w+\}", one, path) + query


def leaks(person, path):
    """The canary, where an answer has it although the path did not."""
    answer = person.get(path)
    asked = CANARY in path
    text = answer.body.decode(errors="replace")
    if answer.status >= 400 and asked:
        return None  # an error may repeat the name that was asked for
    return f"{path}: {text[max(0, text.find(CANARY) - 60):][:160]}" if CANARY in text else None


def read_everything(site, person):
    count, asked = 0, set()
    for path in paths(site):
        if path in asked:
            continue
        asked.add(path)
        found = leaks(person, path)
        defeat(found, found)
        count += 1
    assert CANARY in site.victim.get("/api/v1/jobs").body.decode()
    return f"{count} requests, the canary in no answer"


@attack("tenant", "a tenant reads another's jobs, models, bills or metrics over REST")
def rest_as_tenant(world):
    return read_everything(world.site, world.site.enemy)


@attack("viewer", "a viewer of one tenant reads what is another's over REST", quick=False)
def rest_as_viewer(world):
    site = world.site
    return read_everything(site, site.person(site.enemy.tenant, role="viewer"))


@attack("node", "a node's token reads what belongs to tenants over REST", quick=False)
def rest_as_node(world):
    site = world.site
    return read_everything(site, site.node_token("reader"))


@attack("tenant", "a tenant learns from an answer whether a job, tenant or lease of another exists")
def existence(world):
    """Answers about others' things and about nothing must be equal, byte for byte."""
    site, things = world.site, furnish(world.site)
    pairs = [(f"/api/v1/jobs/{things.running}", "/api/v1/jobs/job-99999"),
             (f"/api/v1/tenants/{site.victim.tenant}", "/api/v1/tenants/tenant-99999"),
             (f"/api/v1/models/{things.model}", "/api/v1/models/model-99999"),
             ("/api/v1/leases/lease-1", "/api/v1/leases/lease-99999")]
    tails = {"jobs": [("GET", ""), ("GET", "/why"), ("GET", "/events"), ("GET", "/runs"),
                      ("GET", "/logs"), ("POST", "/input"), ("POST", "/hold"), ("POST", "/release"),
                      ("POST", "/requeue"), ("DELETE", ""), ("PUT", "/priority")],
             "tenants": [("GET", ""), ("GET", "/usage"), ("PUT", ""), ("DELETE", "")],
             "models": [("GET", ""), ("GET", "/why"), ("PUT", ""), ("DELETE", ""), ("POST", "/leases")],
             "leases": [("GET", ""), ("DELETE", ""), ("POST", "/renew")]}
    count = 0
    for theirs, nothing in pairs:
        for method, tail in tails[theirs.split("/")[3]]:
            body = {"priority": 1} if tail == "/priority" else {} if method in ("PUT", "POST") else None
            one, two = (site.enemy.ask(method, path + tail, body) for path in (theirs, nothing))
            name, other = theirs.rpartition("/")[2], nothing.rpartition("/")[2]
            same = one.body.replace(name.encode(), b"?") == two.body.replace(other.encode(), b"?")
            defeat(one.status != two.status or not same, f"{method} {theirs}{tail}: {one} or {two}")
            count += 1
    defeat(site.job(things.running)["state"] != "running", "the victim's job was touched")
    return f"{count} pairs of answers are equal"


@attack("tenant", "a tenant learns the names of others' models, tenants and keys from refusals")
def name_oracles(world):
    """Asks for names that exist and for names that do not; the answers may not tell them apart."""
    site = world.site
    furnish(site)
    asks = {
        "decisions of a model": lambda name: site.enemy.get(
            f"/api/v1/scheduler/decisions?model={name}"),
        "users of a model": lambda name: site.enemy.post("/api/v1/models", {
            "name": f"oracle-{len(name)}-{name[:3]}", "gpu_memory_mb": 1, "runtime": "vllm",
            "users": [name]}),
        "parent of a tenant": lambda name: site.enemy.post("/api/v1/tenants", {
            "name": "oracle", "parent_id": name}),
        "tenant of a job": lambda name: site.enemy.post("/api/v1/jobs", {"tenant_id": name}),
        "lists by tenant": lambda name: site.enemy.get(f"/api/v1/jobs?tenant_id={name}"),
        "the queue by tenant": lambda name: site.enemy.get(
            f"/api/v1/scheduler/queue?tenant_id={name}"),
    }
    for what, ask in asks.items():
        there = f"model-{CANARY}" if "model" in what and "users" not in what else f"victim-{CANARY}"
        absent = there.replace("c", "k")
        one, two = ask(there), ask(absent)
        same = one.body.replace(there.encode(), b"?") == two.body.replace(absent.encode(), b"?")
        for made in (one, two):
            if made.status == 201 and "id" in made.json():
                site.enemy.delete(f"/api/v1/models/{made.json()['id']}")
        defeat(one.status != two.status or not same, f"{what}: {one} where it exists, {two} where not")
    return f"{len(asks)} questions, the same answer for names that exist and for others"


@attack("tenant", "a tenant gets another's job by sending its idempotency key")
def idempotency_key(world):
    site, things = world.site, furnish(world.site)
    answer = site.enemy.post("/api/v1/jobs", {"name": "mine", "command": ["true"],
                                              "idempotency_key": SHARED_KEY})
    got = answer.json().get("job_id")
    if got != things.running and got:
        site.enemy.delete(f"/api/v1/jobs/{got}")
    defeat(got == things.running or answer.status not in (201,), f"answer: {answer}")
    return f"a job of its own, {got}"


@attack("tenant", "a tenant makes its job depend on another's, or gives its job to another")
def foreign_dependency(world):
    site, things = world.site, furnish(world.site)
    for body in ({"depends_on": [things.running]},
                 {"depends_on": [{"job": things.running, "condition": "any"}]},
                 {"tenant_id": site.victim.tenant}, {"tenant_id": f"victim-{CANARY}"}):
        answer = site.enemy.post("/api/v1/jobs", {"name": "x", "command": ["true"], **body})
        defeat(answer.status == 201, f"{body}: {answer}")
    many = site.enemy.post("/api/v1/jobs", [{"command": ["true"], "tenant_id": site.victim.tenant}] * 2)
    defeat(b'"job_id"' in many.body, f"in a list: {many}")
    return "refused as not found, alone and in a list"


@attack("tenant", "a tenant hears of another's jobs on the live stream")
def stream(world):
    site = world.site
    furnish(site)
    queries = ["", "?topics=jobs,nodes,slots,tenants,decisions,metrics,gpus",
               f"?tenant_id={site.victim.tenant}", "?since=0", f"?tenant_id={site.victim.tenant}&since=0"]

    async def listen(query):
        url = site.scheduler.url.replace("http", "ws") + "/api/v1/stream" + query
        headers = {"Authorization": f"Bearer {site.enemy.token}"}
        heard = []
        try:
            async with websockets.connect(url, extra_headers=headers) as socket:
                heard.append(await socket.recv())
                site.victim.submit(command=["true"], name=f"told-{CANARY}")
                own = site.enemy.submit(command=["true"], name="own")
                until = time.monotonic() + 10
                while f'"{own}"' not in heard[-1] and time.monotonic() < until:
                    heard.append(await asyncio.wait_for(socket.recv(), 10))
        except websockets.InvalidStatusCode as error:
            heard.append(str(error.status_code))
        except asyncio.TimeoutError:
            pass  # a filter for another's tenant shows nothing at all
        return heard

    count = 0
    for query in queries if not world.quick else queries[:2]:
        heard = asyncio.run(listen(query))
        found = [message for message in heard if CANARY in message]
        defeat(found, f"{query}: {found[:1]}")
        count += len(heard)
    return f"{count} messages on streams with filters, the canary in none"


@attack("tenant", "a tenant reads or cancels another's job by gRPC")
def grpc_calls(world):
    site, things = world.site, furnish(world.site)
    stub, pb = site.calls.scheduler, scheduler_pb2
    asks = [(stub.GetJobStatus, pb.GetJobStatusRequest(job_id=things.running)),
            (stub.CancelJob, pb.CancelJobRequest(job_id=things.running)),
            (stub.ListJobs, pb.ListJobsRequest()),
            (stub.ListJobs, pb.ListJobsRequest(tenant_id=site.victim.tenant)),
            (stub.GetMetrics, pb.GetMetricsRequest()),
            (stub.GetClusterStatus, pb.GetClusterStatusRequest()),
            (stub.SubmitJob, pb.SubmitJobRequest(tenant_id=site.victim.tenant, command=["true"])),
            (stub.UpdateTenantQuota, pb.UpdateTenantQuotaRequest(
                tenant_id=site.victim.tenant, max_gpus=1))]
    people = [site.enemy, site.person(site.enemy.tenant, role="viewer"), site.node_token("x")]
    for person in people:
        for method, request in asks:
            try:
                answer = str(method(request, metadata=person.metadata, timeout=20))
            except grpc.RpcError as error:
                answer = error.code().name
            defeat(CANARY in answer or f'"{things.running}"' in answer, f"{method}: {answer[:100]}")
    state = site.job(things.running)["state"]
    defeat(state != "running", f"the victim's job is {state}")
    return f"{len(people) * len(asks)} calls: refused, or the canary in none"


@attack("tenant", "a tenant is answered from a cache with what was another's")
def caches(world):
    site = world.site
    furnish(site)
    for path in ("/api/v1/jobs", "/api/v1/models", "/api/v1/cluster/status", "/api/v1/gpus?holders=1"):
        seen = site.victim.get(path)
        tag = seen.headers.get("ETag")
        if not tag:
            continue
        again = site.enemy.get(path, headers={"If-None-Match": tag})
        if again.status == 304:
            own = site.enemy.get(path)
            defeat(own.body != seen.body, f"{path}: 304 for the victim's {tag}")
        defeat(CANARY.encode() in again.body, f"{path}: {again}")
    return "an ETag of the victim's brings the enemy its own answer"


@attack("viewer", "a viewer changes something")
def viewer_changes(world):
    site, things = world.site, furnish(world.site)
    viewer = site.person(site.victim.tenant, role="viewer")
    asks = [("POST", "/api/v1/jobs", {"command": ["true"]}), ("DELETE", f"/api/v1/jobs/{things.running}", None),
            ("POST", f"/api/v1/jobs/{things.running}/hold", None),
            ("POST", f"/api/v1/jobs/{things.running}/requeue", None),
            ("PUT", f"/api/v1/jobs/{things.waiting}/priority", {"priority": 9}),
            ("POST", "/api/v1/models", {"name": "v", "gpu_memory_mb": 1, "runtime": "vllm"}),
            ("PUT", f"/api/v1/models/{things.model}", {"gpu_memory_mb": 2}),
            ("DELETE", f"/api/v1/models/{things.model}", None),
            ("POST", f"/api/v1/models/{things.model}/leases", None),
            ("PUT", f"/api/v1/tenants/{site.victim.tenant}", {"max_gpus": 1})]
    for method, path, body in asks:
        answer = viewer.ask(method, path, body)
        defeat(answer.status < 400, f"{method} {path}: {answer}")
    return f"{len(asks)} changes got 403"


@attack("tenant", "a tenant does what takes an administrator")
def administrators_paths(world):
    site, node = world.site, world.site.agents[0].name
    asks = [("POST", "/api/v1/tenants", {"name": "more"}),
            ("POST", "/api/v1/tenants", {"name": "more", "parent_id": site.enemy.tenant}),
            ("PUT", f"/api/v1/tenants/{site.enemy.tenant}", {"max_gpus": 1000, "priority_tier": "critical"}),
            ("DELETE", f"/api/v1/tenants/{site.victim.tenant}", None),
            ("POST", f"/api/v1/nodes/{node}/drain", None), ("POST", f"/api/v1/nodes/{node}/dead", None),
            ("DELETE", f"/api/v1/nodes/{node}", None), ("GET", "/api/v1/audit", None),
            ("POST", "/api/v1/models", {"name": "c", "runtime": "custom", "command": ["id"],
                                        "gpu_memory_mb": 1})]
    for method, path, body in asks:
        answer = site.enemy.ask(method, path, body)
        defeat(answer.status < 400, f"{method} {path}: {answer}")
    return f"{len(asks)} requests were refused"


@attack("tenant", "the audit log or a list shows a token, a password or a key")
def shown_secrets(world):
    site = world.site
    furnish(site)
    tokens = [site.admin.token, site.victim.token, site.enemy.token, SECRET]
    for path in ("/api/v1/tokens", "/api/v1/audit", "/api/v1/jobs", "/metrics", "/api/v1/tenants",
                 f"/api/v1/jobs/{site.victims.running}", "/api/v1/models"):
        body = site.admin.get(path).body.decode()
        found = [token[:8] for token in tokens if token in body]
        defeat(found, f"{path} shows {found}")
    log = site.scheduler.errors.read_text()
    defeat(any(token in log for token in tokens), "a token is in the log")
    return "in 7 lists and the log: none"


@attack("tenant", "a tenant breaks out of a CSV bill with its name", quick=False)
def csv_formula(world):
    site = world.site
    names = ['=HYPERLINK("http://evil")', '@SUM(1)', '+1', '-1']
    for name in names:
        site.admin.post("/api/v1/tenants", {"name": name})
    body = site.admin.get("/api/v1/reports/billing?format=csv").body.decode()
    cells = [cell.strip('"') for line in body.splitlines()[1:] for cell in line.split(",")]
    bad = [cell for cell in cells if cell[:1] in ("=", "@", "+")]
    defeat(bad, f"cells that a spreadsheet executes: {bad}")
    return json.dumps(cells[:6])
