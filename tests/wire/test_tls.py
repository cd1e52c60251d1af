"""TLS: what is agreed on, who is let in, and certificates that change."""

import shutil
import socket
import ssl
import subprocess

import pytest


def curl(server, authority, *arguments, path="/describe"):
    words = ["curl", "-sS", "--max-time", "20", "--cacert", authority.certificate, *arguments]
    return subprocess.run(
        [*map(str, words), server.url + path], capture_output=True, text=True, timeout=30
    )


def shown_serial(server):
    """The serial number of the certificate that a new client is shown."""
    pem = ssl.get_server_certificate(("127.0.0.1", server.port))
    words = ["openssl", "x509", "-noout", "-serial"]
    return subprocess.run(words, input=pem, capture_output=True, text=True).stdout


@pytest.mark.parametrize("version, told", [("--http1.1", "HTTP/1"), ("--http2", "HTTP/2")])
def test_the_protocol_is_agreed_on_by_alpn(start, authority, version, told):
    server = start("--tls", *authority.make("server"))
    result = curl(server, authority, version)
    assert f'"protocol":"{told}"' in result.stdout and '"secure":true' in result.stdout


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_large_bodies_go_both_ways(start, authority, version):
    server = start("--tls", *authority.make("server"))
    result = curl(server, authority, version, path="/big?bytes=10000000&plain=1")
    assert len(result.stdout) == 10000000
    body = authority.directory / "body"
    body.write_bytes(b"z" * 8000000)
    result = curl(server, authority, version, "--data-binary", f"@{body}", path="/echo")
    assert result.stdout == "z" * 8000000


@pytest.mark.skipif(not shutil.which("h2load"), reason="nghttp2-client is not installed")
def test_many_streams_over_tls_are_all_answered(start, authority):
    server = start("--tls", *authority.make("server"))
    words = ["h2load", "-n", "5000", "-c", "5", "-m", "50", server.url + "/later"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "5000 succeeded, 0 failed" in result.stdout


def test_old_versions_are_refused(start, authority):
    server = start("--tls", *authority.make("server"))
    result = curl(server, authority, "--tls-max", "1.1", "--tlsv1.0")
    assert result.returncode != 0


def test_what_is_not_tls_is_refused(start, authority):
    server = start("--tls", *authority.make("server"))
    answer = server.ask(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"HTTP/1.1" not in answer


def test_a_handshake_that_stalls_is_closed(start, authority):
    server = start("--tls", *authority.make("server"), handshake_ms=200)
    with server.connect() as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert client.recv(100) == b""
    # One that was never closed would keep the server from ending.


def test_clients_without_a_certificate_are_refused_where_one_is_asked_for(start, authority):
    server = start("--tls", *authority.make("server"), "--ca", authority.certificate)
    assert curl(server, authority).returncode != 0
    certificate, key = authority.make("client")
    result = curl(server, authority, "--cert", certificate, "--key", key)
    assert '"secure":true' in result.stdout


def test_a_new_certificate_is_used_without_a_restart(start, authority):
    certificate, key = authority.make("server")
    server = start("--tls", certificate, key, "--check-ms", 50)
    before = shown_serial(server)
    context = ssl.create_default_context(cafile=authority.certificate)
    with server.connect() as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as old:
        other_certificate, other_key = authority.make("other")
        other_key.rename(key)
        # Half of the change cannot be used: the old pair stays.
        assert "is not that of the certificate" in server.process.stdout.readline()
        assert shown_serial(server) == before
        other_certificate.rename(certificate)
        assert server.process.stdout.readline() == "reloaded\n"
        assert shown_serial(server) != before
        old.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert old.recv(1000).startswith(b"HTTP/1.1 200 OK")


def test_a_key_that_is_of_another_certificate_is_refused_at_start(start, authority):
    certificate, _ = authority.make("server")
    _, key = authority.make("other")
    with pytest.raises(RuntimeError, match="is not that of the certificate"):
        start("--tls", certificate, key)


def test_a_client_that_ends_tls_is_answered_with_the_same(start, authority):
    server = start("--tls", *authority.make("server"))
    context = ssl.create_default_context(cafile=authority.certificate)
    with server.connect() as plain:
        client = context.wrap_socket(plain, server_hostname="127.0.0.1")
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        data = b""
        while part := client.recv(1000):
            data += part
        assert data.endswith(b"hello\n")
        assert isinstance(client.unwrap(), socket.socket)
