"""A scheduler and an agent on the GPUs of this machine, from a folder that bundle.sh made."""

import json
import os
import pathlib
import subprocess
import time
import urllib.error
import urllib.request


def smi(query):
    """Rows of nvidia-smi, as lists of texts."""
    out = subprocess.run(
        ["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [[cell.strip() for cell in line.split(",")] for line in out.splitlines() if line]


def environment(bundle):
    """Ours, with the bundle's libraries for our own programs alone."""
    there = os.environ.get("LD_LIBRARY_PATH")
    path = f"{bundle}/lib" + (f":{there}" if there else "")
    return os.environ | {"LD_LIBRARY_PATH": path}


class Cluster:
    def __init__(self, bundle, out, *arguments):
        self.bundle, self.out, self.arguments = pathlib.Path(bundle).resolve(), out, arguments
        self.logs = {name: open(out / f"{name}.log", "wb") for name in ("scheduler", "agent")}
        self.scheduler = subprocess.Popen(
            [self.bundle / "bin/gpu-scheduler", "--data", out / "data", "--http-port", "0"]
            + ["--grpc-port", "0", "--metrics-port", "0"],
            stdout=subprocess.PIPE,
            stderr=self.logs["scheduler"],
            env=environment(self.bundle),
            text=True,
        )
        words = self.read_words()
        self.url = words[words.index("at") + 1]
        self.grpc = words[words.index("gRPC") + 1].rpartition("/")[2]
        self.agent = None
        self.start_agent()
        self.tenant = self.ask("POST", "/api/v1/tenants", {"name": "lab"})["id"]

    def read_words(self):
        words = []
        while "gRPC" not in words[:-1]:
            line = self.scheduler.stdout.readline()
            if not line:
                raise RuntimeError("gpu-scheduler did not start: see scheduler.log")
            words += line.split()
        return words

    def start_agent(self):
        port = self.grpc.rpartition(":")[2]
        self.agent = subprocess.Popen(
            [self.bundle / "bin/gpu-agent", "--scheduler", f"127.0.0.1:{port}", "--name", "gpu-node"]
            + ["--state", self.out / "agent", *self.arguments],
            stderr=self.logs["agent"],
            env=environment(self.bundle),
        )
        self.wait(lambda: self.gpus(), "the agent reports its GPUs")

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read() or b"{}"
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read()[:300]}") from error
        return json.loads(text)

    def gpus(self):
        try:
            answer = self.ask("GET", "/api/v1/gpus")
        except RuntimeError:
            return []
        return answer["gpus"] if isinstance(answer, dict) else answer

    def submit(self, words, **fields):
        body = {"tenant_id": self.tenant, "name": "hardware", **fields}
        if os.environ.get("LD_LIBRARY_PATH"):
            there = {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]}
            body["environment"] = there | fields.get("environment", {})
        if isinstance(words, str):
            body["script"] = words
        else:
            body["command"] = [str(word) for word in words]
        return self.ask("POST", "/api/v1/jobs", body)["job_id"]

    def job(self, job):
        return self.ask("GET", f"/api/v1/jobs/{job}")

    def logs_of(self, job):
        """Its output so far; nothing where it has not begun."""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/jobs/{job}/logs", timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            return ""

    def events(self, job):
        return [event["type"] for event in self.ask("GET", f"/api/v1/jobs/{job}/events")["events"]]

    def state(self, job, *states, seconds=60):
        return self.wait(
            lambda: (seen := self.job(job))["state"] in states and seen,
            f"{job} is {' or '.join(states)}",
            seconds,
        )

    def wait(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"did not happen: {what}")
            time.sleep(0.02)
        return result

    def stop(self):
        for process in (self.agent, self.scheduler):
            process.terminate()
        for process in (self.agent, self.scheduler):
            process.wait(20)
