"""gpu-cli and servers that do not behave as a scheduler on a good network does."""

import json
import socket
import ssl
import subprocess
import threading

import pytest

from cli import Cli

STATUS = json.dumps({"tenants": []}).encode()


class Server:
    """Answers each connection by a function that gets the socket after the request's head."""

    def __init__(self, answer, address="127.0.0.1", family=socket.AF_INET, context=None):
        self.answer, self.context = answer, context
        self.heads = []
        self.listener = socket.create_server((address, 0), family=family)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
                threading.Thread(target=self.talk, args=[client], daemon=True).start()
            except OSError:
                return

    def talk(self, client):
        try:
            if self.context:
                client = self.context.wrap_socket(client, server_side=True)
            head = b""
            # A client that speaks TLS begins with 0x16.
            while b"\r\n\r\n" not in head and not head.startswith(b"\x16"):
                part = client.recv(65536)
                if not part:
                    return
                head += part
            self.heads.append(head)
            self.answer(client)
        except OSError:
            pass
        finally:
            client.close()

    def close(self):
        self.listener.close()


@pytest.fixture
def cli(tmp_path):
    return Cli(tmp_path)


@pytest.fixture
def serve():
    started = []

    def start(answer, **options):
        started.append(Server(answer, **options))
        return started[-1]

    yield start
    for server in started:
        server.close()


def say(*parts):
    """An answer that sends these bytes."""
    def answer(client):
        for part in parts:
            client.sendall(part)
    return answer


def whole(body, status=b"200 OK", *headers):
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Connection: close", *headers]
    return say(b"\r\n".join(lines) + b"\r\n\r\n" + body)


def tenants(cli, server, *more, **environment):
    return cli.run("tenants", "-o", "json", "--server", f"http://127.0.0.1:{server.port}", *more, **environment)


def test_an_answer_in_chunks_is_read(cli, serve):
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in (STATUS[:5], STATUS[5:])]
    server = serve(say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *chunks, b"0\r\n\r\n"))
    assert tenants(cli, server).returncode == 0


def test_an_answer_that_ends_too_early_is_an_error(cli, serve):
    server = serve(say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"))
    result = tenants(cli, server)
    assert result.returncode == 4
    assert "closed the connection before its answer was complete" in result.stderr


def test_a_redirect_is_not_followed(cli, serve):
    elsewhere = serve(whole(STATUS))
    server = serve(whole(b"", b"302 Found", b"Location: http://127.0.0.1:%d/" % elsewhere.port))
    result = tenants(cli, server, GPU_SCHEDULER_TOKEN="gst_secret")
    assert result.returncode == 4
    assert "redirects" in result.stderr
    assert elsewhere.heads == []


def test_a_service_that_only_has_ipv6_is_reached(cli, serve):
    try:
        server = serve(whole(STATUS), address="::1", family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    result = cli.run("tenants", "-o", "json", "--server", f"http://[::1]:{server.port}")
    assert result.returncode == 0, result.stderr


def certificate(directory, name):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName={name}"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context


@pytest.mark.parametrize("name, good", [("IP:127.0.0.1", True), ("DNS:gpu.example.org", False)])
def test_a_certificate_counts_only_for_the_name_in_it(cli, serve, tmp_path, name, good):
    server = serve(whole(STATUS), context=certificate(tmp_path, name))
    result = cli.run("tenants", "-o", "json", "--server", f"https://127.0.0.1:{server.port}",
                     "--ca", tmp_path / "cert.pem", GPU_SCHEDULER_TOKEN="gst_secret")
    assert (result.returncode == 0) == good, result.stderr
    assert good or not server.heads


def test_an_unknown_certificate_is_refused_and_the_token_not_sent(cli, serve, tmp_path):
    server = serve(whole(STATUS), context=certificate(tmp_path, "IP:127.0.0.1"))
    result = cli.run("tenants", "--server", f"https://127.0.0.1:{server.port}", GPU_SCHEDULER_TOKEN="gst_secret")
    assert result.returncode == 4
    assert "certificate" in result.stderr
    assert server.heads == []


def test_a_server_without_tls_is_told_apart(cli, serve):
    server = serve(whole(STATUS))
    result = cli.run("tenants", "--server", f"https://127.0.0.1:{server.port}")
    assert result.returncode == 4
    assert "did you mean http://" in result.stderr


def test_a_proxy_is_used_for_other_machines_and_not_for_this_one(cli, serve):
    proxy = serve(whole(STATUS))
    service = serve(whole(STATUS))
    through = {"http_proxy": f"http://127.0.0.1:{proxy.port}"}
    assert cli.run("tenants", "-o", "json", "--server", "http://gpu.example.org:8080", **through).returncode == 0
    assert proxy.heads[0].startswith(b"GET http://gpu.example.org:8080/api/v1/")
    proxy.heads.clear()
    assert tenants(cli, service, **through).returncode == 0
    assert service.heads and proxy.heads == []


def test_a_proxy_is_left_out_where_no_proxy_says_so(cli, serve):
    proxy = serve(whole(STATUS))
    result = cli.run("tenants", "--server", "http://gpu.example.invalid:8080", no_proxy="example.invalid",
                     http_proxy=f"http://127.0.0.1:{proxy.port}")
    assert result.returncode == 4
    assert proxy.heads == []
