"""./run and demo.sh, as a new user types them; what is missing is installed and built before."""

import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANY_PORT = ["--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]


class Run:
    """./run in the foreground of a terminal's process group, which Ctrl-C goes to."""

    def __init__(self, directory, *words):
        self.data = directory / "data"
        self.home = directory / "home"
        self.output = directory / f"said-{len(list(directory.glob('said-*')))}"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [ROOT / "run", "--data", self.data, *ANY_PORT, *words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=clean_environment(self.home), start_new_session=True,
                # As in a terminal: whoever runs the tests may ignore it.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def said(self):
        return self.output.read_text()

    def wait_ready(self, seconds=900):
        """It may have to build everything first."""
        deadline = time.monotonic() + seconds
        while "Press Ctrl-C to stop" not in self.said():
            assert self.process.poll() is None and time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        self.url = re.search(r"serves at (\S+)", self.said()).group(1)
        self.token = (self.data / "admin.token").read_text().strip()
        return self

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError:
            raise
        except OSError as error:
            log = (self.data / "scheduler.log").read_text()[-4000:]
            raise AssertionError(f"{error}\n{self.said()}\n{log}") from error

    def job(self, job):
        return json.loads(self.ask("GET", f"/api/v1/jobs/{job}"))

    def control_c(self):
        os.killpg(self.process.pid, signal.SIGINT)
        status = self.process.wait(30)
        assert status == 0, self.said()


def clean_environment(home):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPU_SCHEDULER_", "XDG_"))}
    return kept | {"HOME": str(home)}


@pytest.fixture
def run(tmp_path):
    """Starts ./run; what still runs at the end is ended."""
    # Tasks of an agent that is root run as another user.
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    started = []

    def start(*words, directory=tmp_path):
        started.append(Run(directory, *words))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGTERM)
            one.process.wait(60)


def await_state(run, job, *states, seconds=60):
    deadline = time.monotonic() + seconds
    while (seen := run.job(job))["state"] not in states:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)
    return seen


def submit(run, **fields):
    tenant = (run.data / "tenant").read_text().strip()
    answer = run.ask("POST", "/api/v1/jobs", {"tenant_id": tenant, "gpu_count": 1, **fields})
    return json.loads(answer)["job_id"]


def commands_to_try(run):
    """The three that it prints, to be run literally, in the checkout, by the same user."""
    said = run.said().partition("Three commands to try")[2].partition("Ctrl-C")[0]
    return [line.strip() for line in said.splitlines() if line.startswith("  ")]


def try_command(run, command):
    return subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=clean_environment(run.home), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60)


def status_without_token(run):
    try:
        return urllib.request.urlopen(run.url + "/api/v1/jobs", timeout=60).status
    except urllib.error.HTTPError as refused:
        return refused.code


def test_a_first_run_ends_in_a_finished_job_and_the_next_goes_on_from_there(run, tmp_path):
    first = run().wait_ready()
    assert "simulated" in first.said() or "those of this machine" in first.said()
    assert "open: everyone on this machine may do everything" in first.said()
    assert status_without_token(first) == 200
    assert stat.S_IMODE((first.data / "admin.token").stat().st_mode) == 0o600
    job = submit(first, name="hello", script="echo hello")
    assert await_state(first, job, "completed", "failed")["state"] == "completed"
    assert first.ask("GET", f"/api/v1/jobs/{job}/logs") == "hello\n"
    commands = commands_to_try(first)
    assert len(commands) == 3
    for command in commands:
        tried = try_command(first, command)
        assert tried.returncode == 0, (command, tried)
    # Before it, the output may say that the task's user cannot enter the checkout.
    assert re.search(r"^hello from GPU-", try_command(first, commands[0]).stdout, re.M)
    second = subprocess.run(
        [ROOT / "run", "--data", first.data, *ANY_PORT], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, env=clean_environment(tmp_path))
    assert second.returncode == 1
    assert f"Another ./run uses {first.data}, and serves at {first.url}" in second.stderr
    outlives = submit(first, script="sleep 4; echo outlived")
    await_state(first, outlives, "running")
    first.control_c()
    assert "Still running, for the next ./run to find: 1" in first.said()

    # Another context is in use by now: it stays, and the one of this service is renewed.
    elsewhere = "bin/gpu-cli config set-context elsewhere --server http://elsewhere.example:80"
    assert try_command(first, f"{elsewhere} && bin/gpu-cli config use-context elsewhere").returncode == 0

    again = run("--sign-in").wait_ready()
    for command in commands_to_try(again):
        assert command.startswith("bin/gpu-cli --context local "), command
        tried = try_command(again, command)
        assert tried.returncode == 0, (command, tried)
    assert "by token: an administrator's is in" in again.said()
    assert status_without_token(again) == 401
    assert again.token == first.token
    assert again.job(job)["state"] == "completed"
    assert len(json.loads(again.ask("GET", "/api/v1/tenants"))["tenants"]) == 1
    assert await_state(again, outlives, "completed", "failed")["state"] == "completed"
    assert again.ask("GET", f"/api/v1/jobs/{outlives}/logs") == "outlived\n"
    again.control_c()
    assert "Stopped. Everything is kept" in again.said()


def test_a_port_that_is_taken_is_said_with_a_command_that_works(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        refused = subprocess.run(
            [ROOT / "run", "--data", tmp_path / "data", "--http-port", str(taken), "--grpc-port", "0",
             "--metrics-port", "0"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
            env=clean_environment(tmp_path))
    assert refused.returncode == 1
    assert re.search(rf"uses port {taken} \(http\)\. These are free: \./run .*--http-port (?!{taken})\d+",
                     refused.stderr), refused.stderr


def test_the_demonstrated_cluster_is_busy_and_leaves_nothing_running(run):
    one = run("--demo").wait_ready()
    deadline = time.monotonic() + 60
    while True:
        status = json.loads(one.ask("GET", "/api/v1/cluster/status"))
        slots = json.loads(one.ask("GET", "/api/v1/scheduler/slots"))
        if status["running_jobs"] >= 5 and any(slot["status"] == "ready" for slot in slots):
            break
        assert time.monotonic() < deadline, (status, slots)
        time.sleep(0.2)
    assert status["total_nodes"] == 6 and status["total_gpus"] == 40
    one.control_c()
    assert not list(one.data.glob("*/works/*")), one.said()


def test_demo_sh_shows_what_it_says(tmp_path):
    shown = subprocess.run([ROOT / "demo.sh"], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=120, env=clean_environment(tmp_path))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for word in ("Tenants", "Priorities", "A gang", "A shared GPU", "A preemption",
                 "All of it happened as it says"):
        assert word in shown.stdout
