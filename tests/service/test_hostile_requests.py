"""Requests that mean harm, or come from broken programs."""

import json
import socket

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
