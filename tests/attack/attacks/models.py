"""Models that others may use: what they show, who may publish them, and who gets the requests."""

import http.client
import json
import sys
import urllib.parse

from attack import attack, defeat
from attacks.isolation import furnish
from target import CANARY, REAL


@attack("tenant", "a tenant finds another's model by trying to take its name")
def model_name_oracle(world):
    site = world.site
    furnish(site)
    answer = site.enemy.post("/api/v1/models", {"name": f"model-{CANARY}", "gpu_memory_mb": 1,
                                                "runtime": "vllm"})
    if answer.status == 201:
        site.enemy.delete(f"/api/v1/models/{answer.json()['id']}")
    defeat(answer.status == 409, f"the name is known to be taken: {answer}")
    return f"answered with {answer.status}: names are the tenant's own"


@attack("tenant", "a tenant sees the token or environment in a model that is shared with it")
def shared_model(world):
    site = world.site
    made = site.admin.post("/api/v1/models", {
        "name": "shared-model", "tenant_id": site.victim.tenant, "gpu_memory_mb": 100,
        "runtime": "custom", "command": ["server", f"--key={CANARY}"], "shared": True,
        "environment": {"HF_TOKEN": CANARY}})
    assert made.status == 201, made
    model = made.json()["id"]
    try:
        found = [answer for path in (f"/api/v1/models/{model}", "/api/v1/models/shared-model",
                                     "/api/v1/models", f"/api/v1/models/{model}/why",
                                     "/api/v1/scheduler/slots")
                 if CANARY in (answer := site.enemy.get(path).body.decode())]
        assert CANARY in site.victim.get(f"/api/v1/models/{model}").body.decode()
    finally:
        site.admin.delete(f"/api/v1/models/{model}")
    defeat(found, f"{found and found[0][found[0].find(CANARY) - 60:][:140]}")
    return "its users see its name and state, not its environment or command"


@attack("tenant", "a tenant publishes a model to all others under a name of its choice")
def publish_model(world):
    site = world.site
    for name, fields in (("gpt-4", {"shared": True}), ("llama-3", {"users": [site.victim.tenant]})):
        answer = site.enemy.post("/api/v1/models", {"name": name, "gpu_memory_mb": 1,
                                                    "runtime": "vllm", **fields})
        if answer.status == 201:
            model = answer.json()["id"]
            seen = site.victim.get(f"/api/v1/models/{name}").status
            site.enemy.delete(f"/api/v1/models/{model}")
            defeat(seen == 200, f"{fields}: the victim's requests for {name} go to the enemy's model")
    return "refused, or the victim does not see it"


# A server that needs a while before it listens, as one that loads a model does. It says so in a
# file, and waits for another one before it begins.
SLOW_SERVER = """
import http.server, os, sys, time
here, port = sys.argv[1], int(sys.argv[3])
open(here + "/loading", "w").write(str(port))
until = time.time() + 60
while not os.path.exists(here + "/go") and time.time() < until:
    time.sleep(0.02)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"of the victim")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.do_GET()
    def log_message(self, *words):
        pass
for _ in range(600):
    try:
        http.server.HTTPServer(("", port), Handler).serve_forever()
    except OSError:
        time.sleep(0.05)
"""

# Watches command lines for a port that a server was told, and listens there first.
PORT_THIEF = """#!/usr/bin/env python3
import glob, http.server, re, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        size = int(self.headers.get("Content-Length") or 0)
        print("thief got", self.command, self.path, self.headers.get("Authorization"),
              self.rfile.read(size), flush=True)
        self.send_response(200); self.end_headers(); self.wfile.write(b"of the thief")
    do_POST = do_GET
    def log_message(self, *words):
        pass
until = time.time() + 60
print("thief looks", flush=True)
while time.time() < until:
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found = re.search(rb"--port\\0(\\d+)\\0", open(name, "rb").read())
            if found:
                server = http.server.ThreadingHTTPServer(("", int(found[1])), Handler)
                print("thief listens", flush=True)
                server.serve_forever()
        except OSError:
            pass
    time.sleep(0.005)
"""


@attack("tenant", "a job on the same node gets the requests to another tenant's model")
def stolen_port(world):
    site = world.site
    here = site.directory_for_all()
    thieves = [site.enemy.submit(script=PORT_THIEF, node_labels=REAL) for _ in site.agents]
    for thief in thieves:
        site.await_state(thief, "running")
        site.wait(lambda: "thief looks" in site.logs(thief))
    made = site.admin.post("/api/v1/models", {
        "name": "served", "tenant_id": site.victim.tenant, "runtime": "custom",
        "gpu_memory_mb": 100, "min_replicas": 1, "load_timeout": "60s",
        "command": [sys.executable, "-c", SLOW_SERVER, str(here), "--port", "{port}"]})
    assert made.status == 201, made
    model = made.json()["id"]
    try:
        return watch_theft(site, model, thieves, here)
    finally:
        (here / "go").touch()
        site.admin.delete(f"/api/v1/models/{model}")
        for thief in thieves:
            site.admin.delete(f"/api/v1/jobs/{thief}")


def watch_theft(site, model, thieves, here):
    """The thief has the port, or can never learn it; then the victim asks its model."""
    site.wait((here / "loading").exists)
    heard = lambda: "".join(site.logs(thief) for thief in thieves)
    try:
        site.wait(lambda: "thief listens" in heard(), seconds=5)
    except AssertionError:
        pass
    (here / "go").touch()
    if "thief listens" not in heard():
        return "the port was in no command line, and nobody else listened there"
    answer = site.victim.post(f"/api/v1/models/{model}/leases?wait=8s")
    if answer.status != 201:
        return f"the slot is not ready while a stranger listens on its port: {answer}"
    parts = urllib.parse.urlsplit(answer.json()["address"])
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": CANARY}),
                       {"Authorization": f"Bearer {CANARY}", "X-Slot-Key": answer.json()["key"] or ""})
    said = connection.getresponse().read()
    connection.close()
    site.victim.delete(f"/api/v1/leases/{answer.json()['lease_id']}")
    defeat(b"thief" in said or CANARY in heard(), f"the thief has the prompt: {heard()[-200:]}")
    return f"the request went to the model itself: {said}"
