"""Proxies in front of the service: whom they speak for is believed of those that are trusted."""

import json
import socket

from scheduler import run


def ask(service, first=b"", address="127.0.0.1", headers=b"", path=b"/api/v1/tenants"):
    """The answer to a request that changes something, so that the audit log has its address."""
    body = b'{"name":"t-%d"}' % ask.count
    ask.count += 1
    with socket.socket() as client:
        client.settimeout(20)
        client.bind((address, 0))
        client.connect(("127.0.0.1", service.port))
        client.sendall(first + b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       b"Content-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"
                       % (path, len(body), headers, body))
        answer = b""
        try:
            while part := client.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    return answer


ask.count = 0


def last_address(service, **through):
    """That of the newest entry of the audit log."""
    with socket.socket() as client:
        client.bind((through.get("address", "127.0.0.1"), 0))
        client.connect(("127.0.0.1", service.port))
        client.sendall(through.get("first", b"") + b"GET /api/v1/audit HTTP/1.1\r\nHost: localhost\r\n"
                       b"Connection: close\r\n\r\n")
        answer = b""
        while part := client.recv(65536):
            answer += part
    entries = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    entries = entries["entries"] if isinstance(entries, dict) and "entries" in entries else entries
    if isinstance(entries, dict):
        entries = next(value for value in entries.values() if isinstance(value, list))
    newest = max(entries, key=lambda entry: entry.get("time", ""))
    return newest["address"]


def test_a_forwarded_address_is_believed_of_a_trusted_proxy_alone(start):
    service = start(sections={"api": {"trusted_proxies": ["127.0.0.2/32"]}})
    forwarded = b"X-Forwarded-For: 203.0.113.9, 192.0.2.7\r\n"
    assert ask(service, address="127.0.0.2", headers=forwarded).startswith(b"HTTP/1.1 201 ")
    assert last_address(service) == "192.0.2.7"
    assert ask(service, headers=forwarded).startswith(b"HTTP/1.1 201 ")
    assert last_address(service) == "127.0.0.1"
    # The header that was not chosen is not looked at.
    assert ask(service, address="127.0.0.2", headers=b"Forwarded: for=192.0.2.8\r\n").startswith(
        b"HTTP/1.1 201 ")
    assert last_address(service) == "127.0.0.2"


def test_a_proxy_header_comes_first_from_a_trusted_proxy_alone(start):
    service = start(sections={"api": {"trusted_proxies": ["127.0.0.2"], "proxy_protocol": True}})
    version_1 = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n"
    version_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\x08\x7f\0\0\1\x12\x67\0\x50"
    assert ask(service, version_1, "127.0.0.2").startswith(b"HTTP/1.1 201 ")
    assert last_address(service) == "192.0.2.7"
    assert ask(service, version_2, "127.0.0.2").startswith(b"HTTP/1.1 201 ")
    assert last_address(service) == "192.0.2.8"
    # It speaks for a client, whose own word counts for nothing.
    assert ask(service, version_1, "127.0.0.2",
               headers=b"X-Forwarded-For: 203.0.113.9\r\n").startswith(b"HTTP/1.1 201 ")
    assert last_address(service) == "192.0.2.7"
    # A proxy that does not say it is not served, and nobody else may say it.
    assert ask(service, b"", "127.0.0.2") == b""
    assert ask(service, version_1).startswith(b"HTTP/1.1 501 ")
    assert ask(service).startswith(b"HTTP/1.1 201 ")


def test_connections_of_one_client_behind_a_proxy_are_counted_as_its_own(start):
    service = start(sections={"api": {"trusted_proxies": ["127.0.0.2"], "proxy_protocol": True},
                              "limits": {"connections_per_address": 3}})

    def connect(client):
        connection = socket.socket()
        connection.settimeout(20)
        connection.bind(("127.0.0.2", 0))
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(b"PROXY TCP4 %s 127.0.0.1 1 2\r\nGET /health HTTP/1.1\r\n"
                           b"Host: localhost\r\n\r\n" % client)
        return connection, connection.recv(65536)[:13]

    held = [connect(b"192.0.2.1") for _ in range(3)]
    assert {answer for _, answer in held} == {b"HTTP/1.1 200 "}
    assert connect(b"192.0.2.1")[1] == b"HTTP/1.1 503 "
    assert connect(b"192.0.2.2")[1] == b"HTTP/1.1 200 "
    for connection, _ in held:
        connection.close()


def test_settings_of_proxies_are_checked(tmp_path):
    config = tmp_path / "config.yaml"
    for text, reason in (("trusted_proxies: [10.0.0.0/33]", "10.0.0.0/33"),
                         ("trusted_proxies: [proxy.example]", "proxy.example"),
                         ("proxy_protocol: true", "needs api.trusted_proxies")):
        config.write_text(f"api:\n  {text}\n")
        checked = run("--config", config, "--check-config")
        assert checked.returncode != 0
        assert reason in checked.stderr
