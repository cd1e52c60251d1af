"""A mock server of models, and gateways before it."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MOCK = HERE / "mock_server.py"


def await_true(condition, seconds=60):
    """What the condition gives, when that is true."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)
    return result


class Mock:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, MOCK], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.address = f"http://127.0.0.1:{self.port}"

    def state(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/mock")
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=30)
        self.process.stdout.close()


class Gateway:
    """gpu-gateway on a free port, with a state directory of its own."""

    def __init__(self, directory, *arguments):
        self.directory = directory
        self.arguments = arguments
        self.starts = 0
        directory.mkdir(parents=True, exist_ok=True)
        self.start()

    def start(self):
        self.starts += 1
        output = self.directory / f"output-{self.starts}"
        self.errors = self.directory / f"errors-{self.starts}"
        with open(output, "wb") as to, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                [ROOT / "bin" / "gpu-gateway", "--port", "0", "--state", self.directory / "state",
                 *map(str, self.arguments)],
                stdin=subprocess.DEVNULL, stdout=to, stderr=errors,
                env={k: v for k, v in os.environ.items() if not k.startswith("GPU_GATEWAY_")})

        def is_there():
            assert self.process.poll() is None, self.errors.read_text()
            return "serves at" in output.read_text()
        await_true(is_there)
        self.url = output.read_text().split()[-1]
        self.port = int(self.url.rpartition(":")[2])
        return self

    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def chat(self, model="m", **more):
        headers = more.pop("headers", None)
        return self.request("POST", "/v1/chat/completions", {
            "model": model, "messages": [{"role": "user", "content": "hello"}], **more}, headers)

    def metric(self, name):
        page = self.request("GET", "/metrics").body.decode()
        for line in page.splitlines():
            if line.startswith(f"gpu_gateway_{name} "):
                return float(line.split()[1])
        return None

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(timeout=60) == 0, self.errors.read_text()
