"""calls_driver, and stubs for gRPC generated from proto/: for tests of calls by real clients."""

import base64
import hashlib
import hmac
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import grpc
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIND = os.environ.get("BUILD_KIND", "release")

_stubs = tempfile.TemporaryDirectory()
_names = ["scheduler", "agent", "gateway", "health", "reflection_v1", "reflection_v1alpha"]
protoc.main(
    ["protoc", f"-I{ROOT}/proto", "-I/usr/include", f"--python_out={_stubs.name}",
     f"--grpc_python_out={_stubs.name}", *[f"{name}.proto" for name in _names]]
)
sys.path.insert(0, _stubs.name)
for _name in _names:
    globals()[f"{_name}_pb2"] = importlib.import_module(f"{_name}_pb2")
    globals()[f"{_name}_pb2_grpc"] = importlib.import_module(f"{_name}_pb2_grpc")


class Calls:
    """calls_driver on a database of its own, or on one that was used before."""

    def __init__(self, database, *arguments):
        self.process = subprocess.Popen(
            [ROOT / "build" / KIND / "src" / "calls_driver", database, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening "), line
        self.port = int(line.split()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.scheduler = scheduler_pb2_grpc.SchedulerServiceStub(self.channel)
        self.agent = agent_pb2_grpc.AgentServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def ask(self, method, path, body=None, token=None, headers=None):
        """Status and answer of an HTTP request; the answer as JSON where it is."""
        if not path.startswith(("/who", "/output")):
            path = "/api/v1" + path
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def stop(self):
        self.channel.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(claims, secret=None, header=None, sign=None):
    """A token, signed with HS256 or by a function of the text."""
    header = header or {"alg": "HS256", "typ": "JWT"}
    text = f"{base64url(json.dumps(header).encode())}.{base64url(json.dumps(claims).encode())}"
    if sign:
        signature = sign(text.encode())
    else:
        signature = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64url(signature)}"


def claims(role="admin", seconds=600, **more):
    return {"role": role, "aud": "gpu-scheduler", "exp": time.time() + seconds, **more}


def wait_for(what, seconds=60):
    """Looks until it is true, and gives what it was then."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value
