"""What the tests of wire share: echo_driver, a small server of all that wire can do."""

import json
import os
import pathlib
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIND = os.environ.get("BUILD_KIND", "release")


class Server:
    """echo_driver on a port of its own, with limits given as name=value."""

    def __init__(self, *arguments, **limits):
        program = ROOT / "build" / KIND / "src" / "echo_driver"
        words = [f"{name}={value}" for name, value in limits.items()]
        self.process = subprocess.Popen(
            [program, *map(str, arguments), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening "):
            raise RuntimeError(line + self.process.stderr.read())
        self.port = int(line.split()[1])
        scheme = "https" if "--tls" in arguments else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def connect(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, request, timeout=60):
        """Everything that is answered to these bytes until the connection ends."""
        with self.connect(timeout) as client:
            client.sendall(request)
            return read_all(client)

    def counters(self):
        answer = self.ask(b"GET /counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return json.loads(answer.split(b"\r\n\r\n", 1)[1])

    def await_counter(self, name, value, seconds=60, least=False):
        """Looks until a counter has this value, or at least this value, also where it is
        refused a look at first; one of the exchanges is the look itself."""
        deadline = time.monotonic() + seconds
        while (seen := self.counters().get(name)) != value and not (least and seen >= value):
            assert time.monotonic() < deadline, f"{name} is {seen}, not {value}"
            time.sleep(0.02)

    def stop(self):
        """Ends it as a service manager would; what it says, and how it ended."""
        if self.process.poll() is None:
            self.process.terminate()
        output, errors = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, errors
        return output


def read_all(client):
    """Bytes until the other side closes; a reset is an end too."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def read_until(client, mark):
    """Bytes up to and with a mark."""
    data = b""
    while mark not in data:
        part = client.recv(65536)
        assert part, f"closed after {data!r}"
        data += part
    return data


@pytest.fixture
def start():
    """Starts servers that end with the test, gracefully and without a fault."""
    servers = []

    def start_one(*arguments, **limits):
        servers.append(Server(*arguments, **limits))
        return servers[-1]

    yield start_one
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def server():
    """One server with the usual limits, for tests that leave it as it was."""
    one = Server()
    yield one
    one.stop()


class Authority:
    """Makes certificates for 127.0.0.1, signed by itself."""

    def __init__(self, directory):
        self.directory = directory
        self.count = 0
        self.certificate, self.key = self.make("authority", is_authority=True)

    def run(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def make(self, name, is_authority=False):
        self.count += 1
        key = self.directory / f"{name}.key"
        request = self.directory / f"{name}.csr"
        certificate = self.directory / f"{name}.pem"
        extensions = self.directory / f"{name}.ext"
        self.run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        subject = ("-subj", f"/CN={name}", "-key", key)
        if is_authority:
            self.run("req", "-x509", "-new", "-days", "2", *subject, "-out", certificate)
            return certificate, key
        extensions.write_text("subjectAltName=IP:127.0.0.1\n")
        self.run("req", "-new", *subject, "-out", request)
        self.run(
            "x509", "-req", "-days", "2", "-in", request, "-CA", self.certificate,
            "-CAkey", self.key, "-set_serial", self.count, "-extfile", extensions,
            "-out", certificate,
        )  # fmt: skip
        return certificate, key


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)
