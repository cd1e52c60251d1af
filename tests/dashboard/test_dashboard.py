"""The dashboard in a real browser: Debian's Chromium, driven by playwright-core."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for room in ("service", "store", "agent", "gateway"):
    sys.path.insert(0, str(HERE.parent / room))

from identity import Setting, needs_node
from scheduler import Scheduler
from stub import Agent, clean_up

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here"),
    pytest.mark.skipif(os.environ.get("BUILD_KIND", "release") != "release",
                       reason="the files of the page are the same in every build"),
]


@pytest.fixture(scope="module", autouse=True)
def packages():
    """What the tests need beside the browser, once for each checkout."""
    made = subprocess.run([ROOT / "scripts" / "build-web", "--packages", "all"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("npm could not fetch the packages of the tests")


# What one click may change in a page that shows 800 GPUs: parts of the document.
CHANGES_MAX = 1500


def walk(name, **given):
    """Runs a walk to its end; what it found."""
    given["chromium"] = CHROMIUM
    ended = subprocess.run(["node", HERE / f"{name}.mjs", json.dumps(given)], capture_output=True,
                           text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def report(found):
    """A line for each step; fails with those that failed."""
    for name, step in found["steps"].items():
        print(f"{step['ms']:6} ms  {name}  {json.dumps(step.get('found')) if step.get('found') else ''}")
    failed = {name: step["error"] for name, step in found["steps"].items() if not step["ok"]}
    assert not failed, json.dumps(failed, indent=1)


def walk_among_many(directory, **given):
    """Clicks through a page of 100 nodes with 800 GPUs and 300 jobs."""
    from crowd import Crowd

    scheduler = Scheduler(directory / "scheduler")
    crowd = Crowd(scheduler.grpc, 100)
    try:
        tenants = [scheduler.post("/api/v1/tenants", {"name": name}).json()["id"]
                   for name in ("vision", "language", "robotics", "biology")]
        jobs = [{"tenant_id": tenants[i % 4], "name": f"train-{i}", "command": ["sleep", "1000"],
                 **({"gpu_count": 1 + i % 4} if i % 3 else {"gpu_memory_mb": 20000})}
                for i in range(300)]
        assert scheduler.post("/api/v1/jobs", jobs).status == 201
        return walk("many", url=scheduler.url, **given)
    finally:
        crowd.close()
        scheduler.stop()


class Secured:
    """A scheduler that wants a sign-in, an agent with two simulated GPUs, and tokens."""

    def __init__(self, directory):
        self.scheduler = Scheduler(directory / "scheduler", sections={"auth": {"enable": True}},
                                   starts=False)
        self.scheduler.write_config()
        made = self.scheduler.run("token", "create")
        assert made.returncode == 0, made.stderr
        self.scheduler.token = made.stdout.strip()
        self.scheduler.start()
        self.lab = self.post("/api/v1/tenants", {"name": "lab"})["id"]
        self.guests = self.post("/api/v1/tenants", {"name": "guests"})["id"]
        self.node = f"node-{os.getpid()}"
        token = directory / "token"
        token.write_text(self.token(role="agent", node=self.node))
        self.agent = Agent(self.scheduler.grpc.rpartition(":")[2], directory / "agent", self.node,
                           arguments=["--token-file", str(token)])

    def post(self, path, body):
        answer = self.scheduler.post(path, body)
        assert answer.status == 201, answer
        return answer.json()

    def token(self, **fields):
        return self.post("/api/v1/tokens", fields)["token"]

    def given(self):
        return {"url": self.scheduler.url, "admin": self.scheduler.token, "node": self.node,
                "viewer": self.token(role="viewer"),
                "tenant": self.token(role="tenant", tenant_id=self.guests)}

    def stop(self):
        self.agent.kill()
        clean_up([self.node])
        self.scheduler.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    one = Secured(tmp_path_factory.mktemp("dashboard"))
    yield one
    one.stop()


@pytest.fixture(scope="module")
def tour(secured):
    return walk("tour", **secured.given())


def test_stores_and_formats_pass_their_own_tests():
    ended = subprocess.run(["node", ROOT / "web" / "test" / "run.mjs"], capture_output=True, text=True,
                           timeout=60, cwd=ROOT / "web")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_person_goes_through_the_dashboard(tour):
    report(tour)


def test_the_console_stays_empty(tour):
    assert tour["noise"] == []


def test_nothing_is_asked_of_anybody_else(tour):
    assert tour["strangers"] == []


def test_a_browser_listens_to_the_stream(secured, tour):
    found = walk("stream", **secured.given())
    report(found)


def test_a_service_that_was_lost_is_found_again(tmp_path):
    scheduler = Scheduler(tmp_path / "scheduler")
    given = json.dumps({"url": scheduler.url, "chromium": CHROMIUM})
    browser = subprocess.Popen(["node", HERE / "lost.mjs", given], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        assert browser.stdout.readline() == "live\n"
        scheduler.ports["http"] = scheduler.port
        scheduler.kill()
        browser.stdin.write("killed\n")
        browser.stdin.flush()
        assert browser.stdout.readline() == "lost\n"
        scheduler.start()
        scheduler.post("/api/v1/tenants", {"name": "lab"})
        scheduler.post("/api/v1/jobs", {"tenant_id": "lab", "name": "meanwhile", "gpu_count": 1,
                                        "command": ["true"]})
        told, _ = browser.communicate("started\n", timeout=60)
        report(json.loads(told.splitlines()[-1]))
    finally:
        browser.kill()
        scheduler.stop()


def ask(gateway, model, **more):
    return gateway.request("POST", "/v1/chat/completions", {
        "model": model, "stream": True, "messages": [{"role": "user", "content": "hello"}], **more})


def test_a_model_is_asked_and_its_queue_is_shown(tmp_path):
    from cluster import Cluster
    from gateway_parts import MOCK, Gateway, await_true

    cluster = Cluster(tmp_path / "cluster")
    gateway = None
    try:
        cluster.agent(gpus="2x80G")
        lab = cluster.scheduler.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
        models = {}
        for name, places in (("free", 8), ("busy", 1)):
            made = cluster.scheduler.post("/api/v1/models", {
                "name": name, "tenant_id": lab, "runtime": "custom", "gpu_memory_mb": 20000,
                "command": f"exec {sys.executable} {MOCK} {{port}}", "max_concurrency": places,
                "max_replicas": 1})
            assert made.status == 201, made
            models[name] = made.json()["id"]
        gateway = Gateway(tmp_path / "gateway", "--scheduler", f"127.0.0.1:{cluster.port}")
        await_true(lambda: b'"busy"' in gateway.request("GET", "/v1/models").body)

        def model(name):
            return cluster.scheduler.get(f"/api/v1/models/{models[name]}").json()

        # The scheduler has no sign-in, so all requests are of its default tenant or of nobody.
        assert ask(gateway, "free").status == 200
        seen = await_true(lambda: (one := model("free"))["first_token_p50_ms"] is not None and one)
        assert seen["gateway_url"] == gateway.url and seen["answers_per_minute"] == 1
        assert seen["tokens_per_second"] > 0
        policy = cluster.scheduler.get("/").headers["content-security-policy"]
        assert f"connect-src 'self' {gateway.url}" in policy
        until = tmp_path / "until"
        threads = [threading.Thread(target=ask, args=(gateway, "busy"), kwargs={"mock": {"until": str(until)}})
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        await_true(lambda: sum(one["requests"] for one in model("busy").get("waiting_tenants", [])) == 3)
        assert model("busy")["oldest_wait_ms"] is not None
        await_true(lambda: [one["active_requests"] for one in cluster.scheduler.get("/api/v1/scheduler/slots").json()
                            if one["model_id"] == models["busy"]] == [1])
        pictures = os.environ.get("DASHBOARD_PICTURES")
        found = walk("models", url=cluster.scheduler.url, model=models["free"], busy=models["busy"],
                     **({"pictures": pictures} if pictures else {}))
        until.touch()
        for thread in threads:
            thread.join(60)
        report(found)
        assert found["noise"] == []
        assert {one.split("/v1/")[0] for one in found["strangers"]} == {gateway.url}
    finally:
        (tmp_path / "until").touch()
        if gateway:
            gateway.kill()
        cluster.stop()


def test_a_click_among_800_gpus_changes_only_what_it_must(tmp_path):
    found = walk_among_many(tmp_path, changes_max=CHANGES_MAX)
    report(found)
    assert found["noise"] == []


def test_the_page_is_served_with_a_strict_policy(secured):
    answer = secured.scheduler.get("/", token=None)
    policy = answer.headers["content-security-policy"]
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "no-cache" in answer.headers["cache-control"]


def test_files_of_the_page_are_kept_for_good(secured):
    page = secured.scheduler.get("/").body.decode()
    names = [part.split('"')[0] for part in page.split('"/assets/')[1:]]
    assert len(names) >= 3
    for name in names:
        plain = secured.scheduler.get(f"/assets/{name}")
        packed = secured.scheduler.get(f"/assets/{name}", headers={"Accept-Encoding": "gzip"})
        assert plain.status == packed.status == 200
        assert "immutable" in plain.headers["cache-control"]
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.body) < len(plain.body)
        kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        assert plain.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
    assert secured.scheduler.get("/assets/none.js").status == 404


@needs_node
def test_a_person_signs_in_by_a_provider(tmp_path):
    made = []

    def start(**options):
        made.append(Scheduler(tmp_path / "scheduler", **options))
        return made[0]

    setting = Setting(start, tmp_path)
    try:
        found = walk("login", url=setting.url("/"), user="alice")
    finally:
        setting.provider.end()
        made[0].stop()
    report(found)
