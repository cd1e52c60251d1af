"""Models' servers answer nobody who has no key, and cannot be reached around what asks for it."""

import hashlib
import http.client
import json
import os
import pathlib
import socket
import sys
import threading

import pytest

from cluster import Cluster
from gateway_parts import MOCK, await_true

HERE = pathlib.Path(__file__).resolve().parent


def make_model(cluster, command=None, **more):
    fields = {"name": "m", "tenant_id": cluster.tenant, "runtime": "custom", "gpu_memory_mb": 20000,
              "command": command or f"exec {sys.executable} {MOCK} {{port}}", "max_concurrency": 16, **more}
    answer = cluster.scheduler.post("/api/v1/models", fields)
    assert answer.status == 201, answer


def lease(cluster, model="m", lasts="1h"):
    def ask():
        answer = cluster.scheduler.post(f"/api/v1/models/{model}/leases?wait=5&lease={lasts}", {})
        assert answer.status in (201, 503), answer
        return answer.status == 201 and answer.json()
    return cluster.wait(ask)


@pytest.fixture
def leased(cluster):
    cluster.agent(gpus="1x80G")
    make_model(cluster)
    return lease(cluster)


class Connection:
    """To the address of a lease."""

    def __init__(self, address):
        self.http = http.client.HTTPConnection("127.0.0.1", int(address.rpartition(":")[2]), timeout=60)

    def ask(self, method, path, body=None, **headers):
        self.http.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = self.http.getresponse()
        answer.body = answer.read()
        return answer


def ask(lease, method="POST", path="/v1/chat/completions", body=b'{"model":"m"}', **headers):
    connection = Connection(lease["address"])
    try:
        return connection.ask(method, path, body, **headers)
    finally:
        connection.http.close()


def state(lease):
    return json.loads(ask(lease, "GET", "/mock", None, x_slot_key=lease["key"]).body)


def test_only_who_has_the_key_is_answered(leased):
    key = leased["key"]
    assert len(key) == 64
    before = state(leased)["requests"]
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    for headers in ({}, {"authorization": f"Bearer {wrong}"}, {"x_api_key": wrong}, {"x_slot_key": ""},
                    {"authorization": f"Basic {key}"}, {"cookie": key}, {"authorization": f"Bearer {key}0"}):
        answer = ask(leased, **headers)
        assert answer.status == 401, headers
        assert json.loads(answer.body)["error"]["code"] == "invalid_api_key"
    assert state(leased)["requests"] == before, "a request without the key has reached the server"
    for headers in ({"authorization": f"Bearer {key}"}, {"x_api_key": key}, {"api_key": key},
                    {"x_slot_key": key, "authorization": "Bearer its-own"}):
        assert ask(leased, **headers).status == 200, headers
        seen = state(leased)["last"]["headers"]
        assert key not in json.dumps(seen), "the server was given the key"
    assert seen["authorization"] == "Bearer its-own"


def test_a_later_request_of_a_connection_needs_the_key_too(leased):
    connection = Connection(leased["address"])
    for _ in range(3):
        assert connection.ask("POST", "/v1/chat/completions", b'{"model":"m"}',
                              authorization=f"Bearer {leased['key']}").status == 200
    answer = connection.ask("POST", "/v1/chat/completions", b'{"model":"m"}')
    assert answer.status == 401
    connection.http.close()


def test_bytes_pass_as_they_are(leased):
    body = json.dumps({"model": "m", "image": "aGVsbG8g" * (20 << 17)}).encode()
    assert len(body) > 20_000_000
    answer = ask(leased, body=body, authorization=f"Bearer {leased['key']}")
    digest = hashlib.sha256(body).hexdigest()
    assert json.loads(answer.body)["sha256"] == digest
    assert state(leased)["last"]["sha256"] == digest
    # A stream that is longer than all buffers on its way.
    asked = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 64, "pad": 300_000}}).encode()
    answer = ask(leased, body=asked, authorization=f"Bearer {leased['key']}")
    events = [json.loads(line[6:]) for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    words = [event["choices"][0]["delta"].get("content") for event in events][:64]
    assert words == [f"{i} {'x' * 300_000}" for i in range(64)]


@pytest.mark.parametrize("mock", [{"delay": 60}, {"tokens": 1000, "gap": 0.05}], ids=["before", "during"])
def test_a_client_that_hangs_up_ends_the_work(leased, mock):
    connection = Connection(leased["address"])
    connection.http.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": True, "mock": mock}),
                            {"authorization": f"Bearer {leased['key']}"})
    if "gap" in mock:
        assert connection.http.getresponse().read(10)
    await_true(lambda: state(leased)["active"] == 1)
    connection.http.sock.close()
    connection.http.close()
    await_true(lambda: state(leased)["active"] == 0)
    assert state(leased)["closed_early"] == 1


def raw(lease, data):
    """What is answered to these bytes until the connection ends."""
    with socket.create_connection(("127.0.0.1", int(lease["address"].rpartition(":")[2])), timeout=60) as one:
        one.sendall(data)
        answer = b""
        while (part := one.recv(65536)):
            answer += part
        return answer


def test_requests_with_two_meanings_are_refused(leased):
    before = state(leased)["requests"]
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {leased['key']}\r\n".encode()
    for tail in (b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                 b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
                 b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                 b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
                 b" content-length: 5\r\n\r\nhello",
                 b"content-length: 5\n\nhello", b"x: \0\r\n\r\n"):
        assert raw(leased, head + tail).split(b" ")[1] in (b"400", b"501"), tail
    assert state(leased)["requests"] == before


@pytest.mark.skipif(os.geteuid() != 0, reason="takes network namespaces")
def test_the_server_is_not_reached_around_its_proxy(cluster, tmp_path):
    """Neither by its own port nor by any other socket of the node."""
    agent = cluster.agent(gpus="1x80G")
    told = tmp_path / "port"
    make_model(cluster, f"echo {{port}} >{told}; exec {sys.executable} {MOCK} {{port}}")
    leased = lease(cluster)
    assert "listen on loopback of the node" not in pathlib.Path(f"{agent.state}.log").read_text()
    port = int(told.read_text())
    for address in ("127.0.0.1", "::1"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if int(leased["address"].rpartition(":")[2]) == port:
            break
        with socket.socket(family) as one:
            assert one.connect_ex((address, port)) != 0
    listening = {line.split()[9] for file in ("tcp", "tcp6")
                 for line in pathlib.Path("/proc/net", file).read_text().splitlines()[1:]
                 if line.split()[3] == "0A"}
    server = next(int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*")
                  if str(MOCK).encode() in read(p / "cmdline") and str(port).encode() in read(p / "cmdline"))
    held = {os.readlink(file)[8:-1] for file in pathlib.Path(f"/proc/{server}/fd").iterdir()
            if os.readlink(file).startswith("socket:")}
    assert held and not held & listening
    assert os.readlink(f"/proc/{server}/ns/net") != os.readlink("/proc/self/ns/net")


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_key_is_nowhere_that_others_can_read(cluster, leased):
    key = leased["key"].encode()
    state_directory = pathlib.Path(cluster.agents[0].state)
    files = [path for path in state_directory.rglob("*") if path.is_file() and key in path.read_bytes()]
    assert [path.parent.name for path in files] == ["slots"]
    assert files[0].stat().st_mode & 0o077 == 0
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            assert key not in read(process / name), (process, name)
    logs = [*cluster.directory.glob("*.log"), *cluster.directory.rglob("scheduler/**/*")]
    assert logs
    for path in logs:
        assert not path.is_file() or key not in path.read_bytes(), path


def test_a_stream_and_the_key_outlive_the_agent_and_the_scheduler(cluster, leased):
    answers = []
    asked = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 60, "gap": 0.1}}).encode()
    thread = threading.Thread(target=lambda: answers.append(
        ask(leased, body=asked, authorization=f"Bearer {leased['key']}")))
    thread.start()
    await_true(lambda: state(leased)["active"] == 1)
    cluster.agents[0].kill()
    cluster.scheduler.kill()
    cluster.scheduler.start()
    cluster.agents[0].start()
    again = lease(cluster)
    thread.join(120)
    assert answers[0].body.count(b"data: ") == 62
    assert again["address"] == leased["address"] and again["key"] != leased["key"]
    for key in (again["key"], leased["key"]):
        assert ask(again, authorization=f"Bearer {key}").status == 200


def opens(leased):
    return ask(leased, authorization=f"Bearer {leased['key']}").status


def give_back(cluster, leased):
    assert cluster.scheduler.request("DELETE", f"/api/v1/leases/{leased['lease_id']}").status == 200


def test_a_key_ends_with_its_lease_and_no_other(cluster, leased):
    other = lease(cluster)
    assert other["slot_id"] == leased["slot_id"] and other["key"] != leased["key"]
    assert (opens(leased), opens(other)) == (200, 200)
    shown = cluster.scheduler.get(f"/api/v1/leases/{leased['lease_id']}").json()
    assert shown["key"] == leased["key"]
    kept = Connection(leased["address"])
    headers = {"authorization": f"Bearer {leased['key']}"}
    assert kept.ask("POST", "/v1/chat/completions", b'{"model":"m"}', **headers).status == 200
    give_back(cluster, leased)
    await_true(lambda: opens(leased) == 401)
    assert kept.ask("POST", "/v1/chat/completions", b'{"model":"m"}', **headers).status == 401
    assert opens(other) == 200


def test_a_stream_lives_longer_than_the_key_that_began_it(cluster, leased):
    body = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 60, "gap": 0.1}})
    connection = Connection(leased["address"])
    connection.http.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {leased['key']}"})
    answer = connection.http.getresponse()
    assert answer.read(10)
    give_back(cluster, leased)
    await_true(lambda: opens(leased) == 401)
    assert answer.read().count(b"data: ") >= 60


def test_a_key_ends_when_its_lease_is_not_renewed(cluster, leased):
    short = lease(cluster, lasts="1s")
    renewed = cluster.scheduler.post(f"/api/v1/leases/{short['lease_id']}/renew?lease=1h", {})
    if renewed.status == 200:  # in time
        assert renewed.json()["key"] == short["key"] and opens(short) == 200
        renewed = cluster.scheduler.post(f"/api/v1/leases/{short['lease_id']}/renew?lease=1s", {})
        assert renewed.status == 200
    await_true(lambda: opens(short) == 401)
    assert opens(leased) == 200


def test_a_key_that_ended_while_the_agent_was_away_opens_nothing_when_it_is_back(cluster, leased):
    other = lease(cluster)
    cluster.agents[0].kill()
    give_back(cluster, leased)
    assert opens(other) == 200
    cluster.agents[0].start()
    await_true(lambda: opens(leased) == 401)
    assert opens(other) == 200


def test_a_slot_that_ends_leaves_no_key_and_no_listener(cluster, leased):
    slots = pathlib.Path(cluster.agents[0].state) / "slots"
    assert list(slots.iterdir())
    assert cluster.scheduler.request("DELETE", f"/api/v1/leases/{leased['lease_id']}").status == 200
    assert cluster.scheduler.request("DELETE", "/api/v1/models/m").status == 200
    await_true(lambda: not list(slots.iterdir()))
    with socket.socket() as one:
        await_true(lambda: one.connect_ex(("127.0.0.1", int(leased["address"].rpartition(":")[2]))) != 0)


def test_direct_leases_can_be_turned_off(tmp_path):
    cluster = Cluster(tmp_path, sections={"models": {"direct_leases": False}})
    try:
        make_model(cluster)
        answer = cluster.scheduler.post("/api/v1/models/m/leases?wait=1", {})
        assert answer.status == 403 and "direct_leases" in answer.body.decode(), answer
    finally:
        cluster.stop()


def outer_address():
    """An address of this machine that is not of loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = one.getsockname()[0]
    return None if address.startswith("127.") else address


FETCHES = """
import http.server, os, sys, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            status, text = 200, b""
        else:
            try:
                with urllib.request.urlopen("http://" + self.path[1:] + "/file", timeout=60) as answer:
                    status, text = 200, answer.read()
            except urllib.error.HTTPError as error:
                status, text = error.code, error.read()
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes network namespaces")
def test_a_server_reaches_others_through_its_proxy_but_not_the_node(cluster, tmp_path):
    address = outer_address()
    if not address:
        pytest.skip("this machine has loopback alone")
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        cluster.agent(gpus="1x80G")
        program = tmp_path / "fetches.py"
        program.write_text(FETCHES)
        make_model(cluster, f"unset no_proxy NO_PROXY; exec {sys.executable} {program} {{port}}")
        leased = lease(cluster)
        port = server.server_address[1]
        answer = ask(leased, "GET", f"/{address}:{port}", None, x_slot_key=leased["key"])
        assert (answer.status, answer.body) == (200, b"hello")
        answer = ask(leased, "GET", f"/127.0.0.1:{port}", None, x_slot_key=leased["key"])
        assert (answer.status, answer.body) == (502, b"no connection could be made to that host")
    finally:
        server.shutdown()
