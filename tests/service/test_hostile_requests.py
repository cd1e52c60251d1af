"""Requests that mean harm, or come from broken programs."""

import json
import socket
import time

import pytest


@pytest.fixture(scope="module")
def service(shared_scheduler):
    made = shared_scheduler.post("/api/v1/tenants", {"name": "victim"})
    assert made.status == 201
    return shared_scheduler


def still_works(service):
    assert service.get("/health").json()["status"] == "healthy"


BODIES = {
    "100,000 deep": b"[" * 100000 + b"]" * 100000,
    "100,000 deep objects": b'{"a":' * 100000 + b"1" + b"}" * 100000,
    "a deep member": b'{"tenant_id":1,"environment":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
    "not UTF-8": b'{"tenant_id":1,"name":"\xff\xfe"}',
    "an overlong form": b'{"tenant_id":1,"name":"\xc0\xaf"}',
    "half a surrogate": b'{"tenant_id":1,"name":"\\ud800"}',
    "a NUL": b'{"tenant_id":1,"name":"a\\u0000b"}',
    "a control character": b'{"tenant_id":1,"name":"a\nb"}',
    "nothing": b"",
    "half": b'{"tenant_id":1,"na',
    "something behind it": b'{"tenant_id":1} x',
    "a number": b"7",
    "a key twice": b'{"tenant_id":1,"tenant_id":2}',
    "a huge number": b'{"tenant_id":1,"gpu_count":1' + b"0" * 400 + b"}",
    "a huge exponent": b'{"tenant_id":1,"gpu_fraction":1e999999999}',
    "many keys": json.dumps({"tenant_id": 1, "labels": {str(i): "x" for i in range(100000)}}).encode(),
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/tenants", "/api/v1/models"])
def test_a_body_that_is_no_good_is_refused_with_a_sentence(service, path, what):
    answer = service.post(path, BODIES[what])
    assert answer.status == 400, answer
    assert set(answer.json()) >= {"error", "code"} or "jobs" in answer.json()
    still_works(service)


def test_a_body_of_a_gibibyte_is_refused_before_it_is_sent(service):
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n")
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    still_works(service)


def test_a_body_that_never_ends_is_cut_off(service):
    part = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.settimeout(20)
        client.sendall(b"POST /api/v1/tenants HTTP/1.1\r\nHost: localhost\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 1 << 30:
                client.sendall(part)
                sent += len(part)
        except OSError:
            pass
    assert sent < 256 << 20
    still_works(service)


@pytest.mark.parametrize("path", [
    "/api/v1/jobs/..%2f..%2fetc", "/api/v1/jobs/job-1%00", "/api/v1/jobs/" + "9" * 400,
    "/api/v1/jobs/job-99999999999999999999", "/api/v1/jobs/%f0%9f%92%a9", "/api/v1/tenants/%27--",
    "/api/v1/nodes/" + "x" * 3000, "/api/v1/jobs?limit=1&limit=2", "/api/v1/jobs?after=%00",
])
def test_odd_paths_are_refused(service, path):
    assert service.get(path).status in (400, 404, 414)
    still_works(service)


def test_a_job_whose_texts_are_odd_comes_back_as_it_was(service):
    name = "\"\\/\u2028 \U0001f600 '); DROP TABLE jobs;--"
    odd = "\b\f\n\r\t\u007f" + name
    job = service.post("/api/v1/jobs", {"tenant_id": 1, "name": name, "command": [odd],
                                        "environment": {odd.replace("=", ""): odd}})
    assert job.status == 201, job
    shown = service.get("/api/v1/jobs/" + job.json()["job_id"]).json()
    assert (shown["name"], shown["command"], list(shown["environment"].values())) == (name, [odd], [odd])


def test_clients_that_go_before_the_answer_leave_nothing_behind(service):
    body = json.dumps({"tenant_id": 1, "name": "gone"}).encode()
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                           % len(body) + body)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    still_works(service)


class Shut:
    """An HTTP/2 client that never opens a window, and pings to seem alive."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, b"\0\4\0\0\0\0"))
        self.next = 1

    def frame(self, kind, flags, stream, payload=b""):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def ask(self, count, path):
        head = b"\x82\x86\x04" + bytes([len(path)]) + path + b"\x01\x09localhost"
        for _ in range(count):
            self.socket.sendall(self.frame(1, 5, self.next, head))
            self.next += 2

    def ping(self):
        self.socket.sendall(self.frame(6, 0, 0, b"12345678"))

    def read_frames(self):
        """The frames that came, as (kind, stream)."""
        data = getattr(self, "rest", b"") + self.socket.recv(1 << 20)
        frames = []
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            size = int.from_bytes(data[:3], "big")
            frames.append((data[3], int.from_bytes(data[5:9], "big")))
            data = data[9 + size:]
        self.rest = data
        return frames


def metric(service, name):
    for line in service.get("/metrics", timeout=120).body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(f"there is no {name}")


def resident_mib(service):
    for line in open(f"/proc/{service.process.pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0


def test_pages_behind_a_shut_window_take_no_memory_and_end(start):
    service = start(sections={"limits": {"write_ms": 1000}})
    service.get("/openapi.json")
    before = resident_mib(service)
    clients = [Shut(service.port) for _ in range(4)]
    for client in clients:
        client.ask(512, b"/openapi.json")
    most, resets = 0, 0
    for client in clients:
        client.socket.settimeout(0.2)
        seen = 0
        deadline = time.monotonic() + 60
        while seen < 512:
            assert time.monotonic() < deadline
            try:
                seen += sum(kind == 3 for kind, _ in client.read_frames())
            except socket.timeout:
                client.ping()
            most = max(most, metric(service, "gpu_scheduler_held_bytes"))
        resets += seen
    assert resets == 4 * 512
    assert most < 4 << 20
    # Copies of the page would be 360 MiB.
    assert resident_mib(service) - before < 100
    still_works(service)


def test_lists_behind_a_shut_window_stay_below_the_limits(start):
    service = start(sections={"limits": {"held_bytes": 8 << 20, "held_bytes_per_connection": 2 << 20}})
    assert service.post("/api/v1/tenants", {"name": "lab"}).status == 201
    jobs = [{"tenant_id": "lab", "name": f"j{i}", "command": ["true"], "gpu_count": 1}
            for i in range(200)]
    assert service.post("/api/v1/jobs", jobs).status == 201
    clients = [Shut(service.port) for _ in range(8)]
    for client in clients:
        client.ask(40, b"/api/v1/jobs?limit=200")
    deadline = time.monotonic() + 60
    while metric(service, "gpu_scheduler_answers_dropped_total") == 0:
        assert time.monotonic() < deadline
    assert metric(service, "gpu_scheduler_held_bytes") < 12 << 20
    still_works(service)


@pytest.mark.parametrize("body", [b"", b"\0\0\0", b"\7\0\0\0\0", b"\0\0\0\0\0" * 2])
def test_malformed_calls_of_grpc_leave_nothing_behind(start, body):
    service = start()
    for _ in range(3):
        client = Shut(service.port)
        head = (b"\x83\x86\x04\x1c/grpc.health.v1.Health/Check"
                b"\x01\x09localhost\x0f\x10\x10application/grpc")
        for _ in range(400):
            client.socket.sendall(client.frame(1, 4, client.next, head) +
                                  client.frame(0, 1, client.next, body))
            client.next += 2
        ended = 0
        while ended < 400:
            ended += sum(kind == 1 for kind, _ in client.read_frames())
        client.socket.close()
    deadline = time.monotonic() + 60
    while metric(service, "gpu_scheduler_calls_in_flight") != 1:
        assert time.monotonic() < deadline
    assert metric(service, "gpu_scheduler_calls_in_flight") == 1  # the look itself
