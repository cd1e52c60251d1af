"""The real gpu-scheduler, started by tests: on free ports, with a data directory of its own."""

import http.client
import json
import os
import pathlib
import signal
import ssl
import subprocess
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIND = os.environ.get("BUILD_KIND", "release")


def program():
    """The scheduler under test: bin/'s, or that of the build that BUILD_KIND names."""
    if os.environ.get("SCHEDULER_PROGRAM"):
        return pathlib.Path(os.environ["SCHEDULER_PROGRAM"])
    if KIND == "release":
        return ROOT / "bin" / "gpu-scheduler"
    return ROOT / "build" / KIND / "src" / "server" / "gpu-scheduler"


def run(*arguments, environment=None, timeout=60):
    """Runs the program to its end."""
    return subprocess.run(
        [program(), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=clean_environment(environment),
    )


def clean_environment(more=None):
    """Ours without settings that are not the test's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GPU_SCHEDULER_")}
    return kept | (more or {})


class Answer:
    """What came back for a request."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class Scheduler:
    """A scheduler process. Arguments are added to its command line, sections are its
    settings ({'api': {'rate_limit_rps': 5}}), which are written to a file. Ports are any
    that are free, unless given: grpc=9090."""

    def __init__(self, directory, *arguments, sections=None, environment=None, token=None,
                 prefix=(), starts=True, **ports):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.arguments = arguments
        self.environment = environment
        self.token = token
        self.prefix = list(prefix)
        self.sections = sections or {}
        self.ports = {"http": 0, "grpc": 0, "metrics": 0} | ports
        self.process = None
        self.starts = 0
        if starts:
            self.start()

    @property
    def config(self):
        return self.directory / "config.yaml"

    def write_config(self):
        # JSON is YAML.
        self.config.write_text(json.dumps(self.sections))

    def command(self):
        ports = []
        for name, port in self.ports.items():
            ports += [f"--{name}-port", str(port)]
        return [*self.prefix, str(program()), "--config", str(self.config), "--data",
                str(self.data), *ports, *map(str, self.arguments)]

    def start(self, waits=True):
        assert self.process is None or self.process.poll() is not None
        self.write_config()
        self.starts += 1
        self.output = self.directory / f"output-{self.starts}"
        self.errors = self.directory / f"errors-{self.starts}"
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=clean_environment(self.environment),
                start_new_session=True,
            )
        if waits:
            self.wait_ready()
        return self

    def wait_ready(self, seconds=60):
        """Until it has said where it serves."""
        deadline = time.monotonic() + seconds
        while "gRPC" not in (said := self.output.read_text()):
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < deadline, self.errors.read_text()
            time.sleep(0.01)
        words = said.split()
        self.url = words[words.index("at") + 1]
        self.grpc = words[words.index("gRPC") + 1]
        self.metrics_url = words[words.index("metrics") + 1] if "metrics" in words else None
        return self

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    def log(self):
        """The lines of the log of this start; what is not JSON fails. One that is not
        complete is still being written, or the writer was killed."""
        complete = self.errors.read_text().rpartition("\n")[0]
        lines = complete.splitlines()
        strange = [line for line in lines if not line.startswith("{")]
        assert not strange, "\n".join(strange)
        return [json.loads(line) for line in lines]

    def await_log(self, message, seconds=60):
        deadline = time.monotonic() + seconds
        while not (found := [line for line in self.log() if line["message"] == message]):
            assert time.monotonic() < deadline, self.errors.read_text()
            time.sleep(0.02)
        return found[-1]

    def stop(self, status=0, seconds=60):
        """Ends it as a service manager would."""
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(timeout=seconds) == status, self.errors.read_text()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)

    def signal(self, number):
        self.process.send_signal(number)

    def reload(self):
        self.write_config()
        self.signal(signal.SIGHUP)

    def run(self, *arguments):
        """Another gpu-scheduler with the same settings, to its end."""
        return run("--config", self.config, "--data", self.data, *arguments,
                   environment=self.environment)

    def request(self, method, path, body=None, headers=None, token=None, url=None, timeout=30):
        """One request on a connection of its own; a body that is no text becomes JSON."""
        parts = urllib.parse.urlsplit(url or self.url)
        if parts.scheme == "https":
            unchecked = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=timeout, context=unchecked
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        token = token or self.token
        if token:
            headers.setdefault("Authorization", f"Bearer {token}")
        try:
            connection.request(method, path, body=body, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, body, **options)

    def put(self, path, body=None, **options):
        return self.request("PUT", path, body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)


def make_tenant(service, name, **more):
    made = service.post("/api/v1/tenants", {"name": name} | more)
    assert made.status == 201, made
    return made.json()["id"]
