"""Between gateways and nodes requests are encrypted, and the gateway knows the node by its certificate."""

import hashlib
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import sys

import pytest

from gateway_parts import MOCK, await_true


def lease(cluster):
    fields = {"name": "m", "tenant_id": cluster.tenant, "runtime": "custom", "gpu_memory_mb": 20000,
              "command": f"exec {sys.executable} {MOCK} {{port}}", "max_concurrency": 16}
    answer = cluster.scheduler.post("/api/v1/models", fields)
    assert answer.status == 201, answer

    def ask():
        answer = cluster.scheduler.post("/api/v1/models/m/leases?wait=5&lease=1h", {})
        assert answer.status in (201, 503), answer
        return answer.status == 201 and answer.json()
    return cluster.wait(ask)


def port_of(leased):
    return int(leased["address"].rpartition(":")[2])


def certificate_of(leased):
    """SHA-256 of what the slot shows."""
    context = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port_of(leased)), timeout=60) as one:
        with context.wrap_socket(one) as sealed:
            return hashlib.sha256(sealed.getpeercert(binary_form=True)).hexdigest()


def connect(leased):
    return http.client.HTTPSConnection("127.0.0.1", port_of(leased), timeout=60,
                                       context=ssl._create_unverified_context())


def ask(connection, leased, path="/v1/chat/completions", body=b'{"model":"m"}', key=None):
    connection.request("POST" if body else "GET", path, body, {"x-slot-key": key or leased["key"]})
    answer = connection.getresponse()
    answer.body = answer.read()
    return answer


def in_the_clear(leased):
    connection = http.client.HTTPConnection("127.0.0.1", port_of(leased), timeout=60)
    try:
        return ask(connection, leased).status
    finally:
        connection.close()


def state(leased):
    connection = connect(leased)
    try:
        return json.loads(ask(connection, leased, "/mock", None).body)
    finally:
        connection.close()


@pytest.fixture
def leased(cluster):
    cluster.agent(gpus="1x80G")
    return lease(cluster)


def test_a_slot_speaks_tls_and_http_at_one_port(cluster, leased):
    assert leased["address"].startswith("http://") and in_the_clear(leased) == 200
    assert certificate_of(leased) == leased["certificate_sha256"]
    connection = connect(leased)
    for _ in range(3):
        assert ask(connection, leased).status == 200
    assert ask(connection, leased, key="0" * 64).status == 401
    own = pathlib.Path(cluster.agents[0].state) / "slot-certificate.pem"
    assert own.stat().st_mode & 0o077 == 0
    # The same after a restart: gateways need not be told another.
    cluster.agents[0].kill()
    cluster.agents[0].start()
    assert certificate_of(leased) == leased["certificate_sha256"]


def test_bytes_pass_through_tls_as_they_are(leased):
    body = json.dumps({"model": "m", "image": "aGVsbG8g" * (20 << 17)}).encode()
    connection = connect(leased)
    answer = ask(connection, leased, body=body)
    assert json.loads(answer.body)["sha256"] == hashlib.sha256(body).hexdigest()
    # A stream that is longer than all buffers on its way.
    asked = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 64, "pad": 300_000}}).encode()
    answer = ask(connection, leased, body=asked)
    events = [json.loads(line[6:]) for line in answer.body.split(b"\n\n") if line.startswith(b"data: {")]
    words = [event["choices"][0]["delta"].get("content") for event in events][:64]
    assert words == [f"{i} {'x' * 300_000}" for i in range(64)]


def test_a_client_of_tls_that_hangs_up_ends_the_work(leased):
    connection = connect(leased)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "mock": {"delay": 60}}),
                       {"x-slot-key": leased["key"]})
    await_true(lambda: state(leased)["active"] == 1)
    connection.sock.close()
    await_true(lambda: state(leased)["active"] == 0)


def test_where_tls_is_required_nothing_passes_in_the_clear(cluster, make_gateway):
    cluster.agent(gpus="1x80G", arguments=("--slot-tls", "require"))
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    leased = lease(cluster)
    assert leased["address"].startswith("https://")
    before = state(leased)["requests"]
    assert in_the_clear(leased) == 426
    assert state(leased)["requests"] == before
    assert ask(connect(leased), leased).status == 200
    # A gateway has no other way than TLS.
    await_true(lambda: b'"m"' in gateway.request("GET", "/v1/models").body)
    body = json.dumps({"model": "m", "image": "aGVsbG8g" * (20 << 17)}).encode()
    answer = gateway.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    assert answer.status == 200, answer.body
    assert json.loads(answer.body)["sha256"] == hashlib.sha256(body).hexdigest()
    answer = gateway.chat(stream=True, mock={"tokens": 64, "pad": 300_000})
    assert answer.status == 200 and answer.body.count(b"x" * 300_000) == 64


def test_where_tls_is_off_slots_speak_http_alone(cluster):
    cluster.agent(gpus="1x80G", arguments=("--slot-tls", "off"))
    leased = lease(cluster)
    assert leased["certificate_sha256"] is None and in_the_clear(leased) == 200
    with pytest.raises(OSError):
        certificate_of(leased)


def make_certificate(directory, name="own"):
    files = [directory / f"{name}.{what}" for what in ("crt", "key")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=node", "-days", "2", "-out", files[0], "-keyout", files[1]],
                   check=True, capture_output=True)
    return files


def test_a_certificate_of_the_operator_is_shown(cluster, tmp_path):
    certificate, key = make_certificate(tmp_path)
    cluster.agent(gpus="1x80G", arguments=("--slot-cert-file", str(certificate), "--slot-key-file", str(key)))
    leased = lease(cluster)
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest()
    assert certificate_of(leased) == leased["certificate_sha256"] == digest


def test_a_gateway_sends_nothing_to_who_shows_another_certificate(cluster, leased, make_gateway):
    def gateway(digest):
        return make_gateway("--queue-ms", 3000, routes=[
            {"name": "m", "slots": [leased["address"]], "key": leased["key"], "certificate_sha256": digest}])
    good = gateway(leased["certificate_sha256"])
    for i in range(20):
        assert good.chat(user=str(i)).status == 200
    before = state(leased)["requests"]
    bad = gateway("0" * 64).chat()
    assert bad.status in (502, 503, 504), bad.body
    assert state(leased)["requests"] == before
    assert good.chat(stream=True, mock={"tokens": 5}).body.count(b"data: ") == 7


def test_a_server_that_speaks_no_tls_is_not_asked_in_the_clear(make_gateway, mock):
    gateway = make_gateway("--queue-ms", 3000, routes=[
        {"name": "m", "slots": [mock.address], "certificate_sha256": "ab" * 32}])
    assert gateway.chat().status in (502, 503, 504)
    assert mock.state()["requests"] == 0
