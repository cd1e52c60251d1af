"""A model's requests go to its own server, whoever else listens on its port."""

import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

SERVER = """
import http.server, os, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", self.path, flush=True)
        only = os.environ.get("ONLY_PATH")
        self.send_response(404 if only and self.path != only else 200)
        self.end_headers()
    def log_message(self, *_):
        pass
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
server = Server(("", int(sys.argv[1])), Handler)
if os.environ.get("WORKERS") and os.fork():
    server.socket.close()
    os.wait()
print("listens", flush=True)
server.serve_forever()
"""


@pytest.fixture
def server(tmp_path):
    """A file with a server that answers everything with 200 and prints what it was asked."""
    path = tmp_path / "server.py"
    path.write_text(SERVER)
    for directory in [tmp_path, *tmp_path.parents]:
        if directory.stat().st_uid == os.geteuid():
            directory.chmod(directory.stat().st_mode | 0o755)
    return path


class Thief:
    """The same server, outside of the slot's cgroup; as another user where there is one."""

    def __init__(self, server, port, user=None):
        self.process = subprocess.Popen(
            [sys.executable, server, str(port)], stdout=subprocess.PIPE, text=True, user=user
        )
        assert self.process.stdout.readline() == "listens\n"

    def stop(self):
        """What it was asked."""
        self.process.kill()
        return self.process.communicate()[0]


def load(driver, agent, reservation, command):
    driver.tell(
        do="load",
        node=agent.name,
        reservation=reservation,
        model="llama",
        command=command,
        gpus=[[agent.uuid(), 8192]],
        grace_ms=0,
        timeout_ms=60000,
    )


def free_ports():
    """The first of two that follow each other."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        try:
            with socket.create_server(("", port)), socket.create_server(("", port + 1)):
                return port
        except OSError:
            continue


def on_ports(make_agent, driver, port):
    """An agent whose models have the network of the node, and these two ports alone."""
    ports = ["--model-port-first", str(port), "--model-port-last", str(port + 1)]
    agent = make_agent(arguments=["--slot-network", "node", *ports])
    driver.snapshot(agent.name)
    return agent


def told_port(path):
    """Where the model's server is told to listen, once it has written that down."""
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)
    return int(path.read_text())


def test_a_server_that_leaves_its_port_to_a_worker_is_ready(driver, agent, server):
    load(driver, agent, 7, f"WORKERS=1 exec {sys.executable} {server} {{port}}")
    assert driver.change("ready", 7)["address"].startswith("http://127.0.0.1:")
    driver.tell(do="stop", node=agent.name, reservation=7, grace_ms=0)
    driver.change("released", 7)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users")
def test_a_slot_is_not_ready_by_the_answer_of_another_user(driver, make_agent, server, tmp_path):
    first = free_ports()
    agent = on_ports(make_agent, driver, first)
    load(driver, agent, 7, f"echo {{port}} >{tmp_path}/port; exec sleep 1000")  # it would listen later
    driver.change("started", 7)
    port = told_port(tmp_path / "port")
    thief = Thief(server, port, user="daemon")
    ended = driver.change("exited", 7)
    assert f"port {port} has a listener of user" in ended["message"], ended
    assert "does not belong to the model's server" in ended["message"]
    driver.change("released", 7)
    # While it stays, the port is given to no model; then it is.
    load(driver, agent, 8, f"exec {sys.executable} {server} {{port}}")
    assert "no free port" in driver.change("refused", 8)["message"]
    assert thief.stop() == "", "a stranger was asked whether the model is ready"
    assert not [m for m in driver.seen if m.get("change") == "ready"]
    load(driver, agent, 9, f"exec {sys.executable} {server} {{port}}")
    assert driver.change("ready", 9)["address"] in [f"http://127.0.0.1:{first + i}" for i in range(2)]


def test_a_slot_that_is_ready_ends_when_another_listens_on_its_port_too(driver, make_agent, server, tmp_path):
    agent = on_ports(make_agent, driver, free_ports())
    load(driver, agent, 7, f"echo {{port}} >{tmp_path}/port; exec {sys.executable} {server} {{port}}")
    driver.change("ready", 7)
    thief = Thief(server, told_port(tmp_path / "port"))  # of the same user: the system lets both listen
    ended = driver.change("exited", 7)
    assert "does not belong to the model's server" in ended["message"], ended
    thief.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes network namespaces")
def test_a_listener_of_another_does_not_touch_a_server_in_a_network_of_its_own(driver, agent, server, tmp_path):
    load(driver, agent, 7, f"echo {{port}} >{tmp_path}/port; exec {sys.executable} {server} {{port}}")
    address = driver.change("ready", 7)["address"]
    port = told_port(tmp_path / "port")
    assert not address.endswith(f":{port}") or port != 19000
    thief = Thief(server, port)
    driver.wait(lambda m: m.get("kind") == "beat", len(driver.seen))
    driver.wait(lambda m: m.get("kind") == "beat", len(driver.seen))
    assert not [m for m in driver.seen if m.get("change") == "exited"]
    assert thief.stop() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users")
def test_a_model_whose_port_was_stolen_is_served_on_another(cluster, server, tmp_path):
    first = free_ports()
    cluster.agent(
        gpus="1x80G",
        arguments=["--slot-network", "node", "--model-port-first", str(first), "--model-port-last", str(first + 50)],
    )
    told = tmp_path / "port"
    script = f"if [ -e {told} ]; then exec {sys.executable} {server} {{port}}; fi; echo {{port}} >{told}; sleep 1000"
    answer = cluster.scheduler.post(
        "/api/v1/models",
        {
            "name": "llama",
            "tenant_id": cluster.tenant,
            "runtime": "custom",
            "command": ["sh", "-c", script],
            "gpu_memory_mb": 1000,
            "min_replicas": 1,
        },
    )
    assert answer.status == 201, answer
    stolen = cluster.wait(lambda: told.exists() and told.read_text().strip())
    thief = Thief(server, stolen, user="daemon")

    def lease():
        answer = cluster.scheduler.post(f"/api/v1/models/llama/leases?wait=1", {})
        found = answer.json()
        return found if found.get("address") else None

    address = cluster.wait(lease, seconds=60)["address"]
    assert not address.endswith(f":{stolen}"), address
    assert thief.stop() == ""


def test_a_model_is_ready_when_its_own_health_path_answers(cluster, server):
    cluster.agent(gpus="1x80G")
    model = {
        "name": "llama",
        "tenant_id": cluster.tenant,
        "runtime": "custom",
        "command": [sys.executable, str(server), "{port}"],
        "environment": {"ONLY_PATH": "/v2/health/ready?deep=1"},
        "health_path": "/v2/health/ready?deep=1",
        "gpu_memory_mb": 1000,
        "min_replicas": 1,
    }
    made = cluster.scheduler.post("/api/v1/models", model)
    assert made.status == 201, made
    shown = lambda: cluster.scheduler.get("/api/v1/models/llama").json()
    assert shown()["health_path"] == model["health_path"]
    cluster.wait(lambda: shown()["ready_slots"] == 1, seconds=60)
