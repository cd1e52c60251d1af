"""Ports of tasks on this machine: gpu-cli forward and notebook."""

import concurrent.futures
import contextlib
import hashlib
import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest
from cli import program

ECHO = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def serve(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def echo(cluster):
    """A job that sends back what it is sent, and its port."""
    job = cluster.submit(None, command=["python3", "-c", ECHO])
    cluster.await_state(job, "running")
    return job, int(cluster.wait(lambda: cluster.logs(job).strip()))


@contextlib.contextmanager
def forwarded(cli, *arguments):
    """The port here that leads there."""
    process = subprocess.Popen([program(), "forward", *map(str, arguments)], env=cli.environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield int(re.search(r"127\.0\.0\.1:(\d+)", line).group(1)), process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def exchange(port, data):
    """What comes back for it, when all was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            def send():
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            sent = pool.submit(send)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            sent.result()
    return answer


def test_bytes_go_there_and_back(cli, echo):
    job, port = echo
    data = os.urandom(3 << 20)
    with forwarded(cli, job, f"0:{port}") as (local, _):
        answer = exchange(local, data)
        assert hashlib.sha256(answer).digest() == hashlib.sha256(data).digest()


def test_connections_are_carried_side_by_side(cli, echo):
    job, port = echo
    with forwarded(cli, job, f"0:{port}") as (local, _):
        texts = [b"connection %d" % number * 1000 for number in range(12)]
        with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
            assert list(pool.map(lambda text: exchange(local, text), texts)) == texts


def test_the_port_of_another_task_is_refused(cli, cluster, echo):
    _, port = echo
    job = cluster.submit("sleep 3000")
    cluster.await_state(job, "running")
    with forwarded(cli, job, f"0:{port}") as (local, process):
        with socket.create_connection(("127.0.0.1", local), timeout=60) as connection:
            assert connection.recv(1) == b""
        assert "does not belong to the task" in process.stderr.readline()
    cli("cancel", job)


def test_a_job_that_is_not_there_is_told_at_once(cli):
    result = cli.run("forward", "job-999999", "8888")
    assert result.returncode == 3, result
    assert "8888x" in cli.run("forward", "job-1", "8888x").stderr


JUPYTER = """#!/usr/bin/env python3
import http.server, os, sys
port = int(next(word for word in sys.argv if word.startswith("--port=")).partition("=")[2])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.path == "/lab?token=" + os.environ["JUPYTER_TOKEN"]
        self.send_response(200 if good else 403)
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()
"""


def test_a_notebook_is_reached_with_its_token_and_ends_with_the_command(cli, cluster, tmp_path):
    """In place of Jupyter a program that wants the token that Jupyter would want."""
    os.chmod(tmp_path, 0o755)
    (tmp_path / "jupyter").write_text(JUPYTER)
    os.chmod(tmp_path / "jupyter", 0o755)
    process = cli.start("notebook", "--env", f"PATH={tmp_path}:/usr/bin:/bin")
    url = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/lab\?token=[0-9a-f]{48}", url), process.stderr.read()
    assert urllib.request.urlopen(url, timeout=60).status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url[:-4] + "0000", timeout=60)
    job = process.stdout.readline().split()[-1]
    shown = cluster.scheduler.get(f"/api/v1/jobs/{job}").body.decode()
    token = url.rpartition("=")[2]
    assert token not in shown and token not in cluster.logs(job)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    cluster.await_state(job, "cancelled")


def test_a_notebook_without_jupyter_says_so(cli, cluster, tmp_path):
    result = cli.run("notebook", "--env", f"PATH={tmp_path}:/nowhere", timeout=120)
    assert result.returncode != 0
    job = re.search(r"job-\d+", result.stderr).group()
    cluster.wait(lambda: "jupyter is not installed here" in cluster.logs(job))
