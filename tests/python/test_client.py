"""The Python client against the real service."""

import ast
import asyncio
import pathlib
import socket
import sys
import threading

import pytest

import gpu_scheduler
from scheduler import Scheduler
from gpu_scheduler import (AsyncClient, BadRequest, Client, ConfigError, ConnectionFailed, JobFailed,
                           NotFound, NotSignedIn, WaitTimeout, mib)

SERVER = r'''
import http.server, json, sys

class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer("text/plain", b"ok")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = asked["messages"][-1]["content"].upper().split()
        if asked.get("stream"):
            events = [{"choices": [{"delta": {"content": word + " "}}]} for word in words]
            text = "".join("data: %s\n\n" % json.dumps(one) for one in events)
            self.answer("text/event-stream", (text + "data: [DONE]\n\n").encode())
        else:
            said = {"choices": [{"message": {"role": "assistant", "content": " ".join(words)}}]}
            self.answer("application/json", json.dumps(said).encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Model).serve_forever()
'''


def test_a_job_runs_and_its_lines_come_as_they_are_printed(client):
    job = client.submit(["sh", "-c", "echo one; echo two; printf three"], gpus=1, name="lines")
    assert list(client.logs(job)) == ["one", "two", "three"]
    done = client.wait(job, 60, check=True)
    assert done.succeeded and done.exit_code == 0 and len(done.gpus) == 1
    assert done.started_at <= done.completed_at
    assert client.output(job) == "one\ntwo\nthree"
    assert client.output(job, tail=5) == "three"


def test_fields_reach_the_service(client):
    job = client.submit(script="#!/bin/sh\necho $COLOR", gpu_memory="20G", memory="1G", cpus=0.5,
                        environment={"COLOR": "red"}, labels={"kind": "test"}, priority=700)
    shown = client.job(job)
    assert shown["gpu_memory_mb"] == 20480 and shown["memory_mb"] == 1024
    assert shown["cpu_cores"] == 0.5 and shown["priority"] == 700
    client.wait(job, 60, check=True)
    assert client.output(job) == "red\n"
    part = client.submit(["true"], gpus=0.25)
    assert client.job(part)["gpu_fraction"] == 0.25
    assert [one.id for one in client.jobs(label="kind=test")] == [job]


def test_what_depends_on_a_job_waits_for_it(client):
    first = client.submit(["sleep", "0.5"])
    second = client.submit(["true"], depends_on=[client.job(first)])
    assert client.wait(second, 60).succeeded
    assert client.job(first).completed_at <= client.job(second).started_at


def test_failure_is_an_exception_where_it_is_asked_for(client):
    job = client.submit(["sh", "-c", "exit 3"])
    assert client.wait(job, 60).exit_code == 3
    with pytest.raises(JobFailed) as failed:
        client.wait(job, check=True)
    assert failed.value.job.exit_code == 3 and job in str(failed.value)
    with pytest.raises(JobFailed):
        client.run(["false"])
    assert client.run(["echo", "fine"]) == "fine\n"


def test_waiting_ends_at_its_time_and_a_job_can_be_cancelled(client):
    job = client.submit(["sleep", "600"])
    with pytest.raises(WaitTimeout, match=job):
        client.wait(job, 0.2)
    client.cancel(job)
    assert client.wait(job, 60).state == "cancelled"


def test_held_jobs_wait(client):
    job = client.submit(["sleep", "600"], gpus=99)
    client.hold(job)
    assert client.job(job)["held"]
    client.release(job)
    assert not client.job(job)["held"]
    assert client.why(job)["why"]
    client.cancel(job)


def test_errors_carry_the_sentence_of_the_service(client):
    with pytest.raises(NotFound) as missing:
        client.job("job-999999")
    assert missing.value.status == 404 and missing.value.request_id
    with pytest.raises(BadRequest, match="gpuz"):
        client.submit(["true"], gpuz=1)
    with pytest.raises(TypeError, match="list of words"):
        client.submit("python3 train.py")
    with pytest.raises(ValueError, match="whole number"):
        client.submit(["true"], gpus=1.5)


def test_an_array_has_an_id_for_each_element(client):
    jobs = client.submit_array("3-5", ["sh", "-c", "echo $GPU_SCHEDULER_ARRAY_INDEX"])
    assert len(jobs) == 3
    client.wait_all(jobs, 60, check=True)
    assert [client.output(job) for job in jobs] == ["3\n", "4\n", "5\n"]


def test_many_are_submitted_at_once_and_each_is_told_what_became_of_it(client):
    first, second, third = client.submit_many(
        [{"command": ["true"]}, {"name": "nothing to run"}, {"command": ["true"], "gpus": 1}])
    assert first.startswith("job-") and third.startswith("job-")
    assert "command" in str(second)
    refused = client.submit_many([{"command": ["true"]}, {"name": "no"}], all_or_none=True)
    assert all(isinstance(one, Exception) for one in refused)


def test_long_lists_come_whole(client):
    before = len(client.jobs(name="page"))
    client.submit_many([{"command": ["true"], "name": "page", "gpus": 0} for _ in range(1100)])
    assert len(client.jobs(name="page")) == before + 1100
    assert len(client.jobs(name="page", limit=7)) == 7
    for job in client.jobs(name="page", state="pending"):
        client.cancel(job)


def test_threads_share_a_client(client):
    jobs = [client.submit(["true"]) for _ in range(8)]
    states = {}

    def wait(job):
        states[job] = client.wait(job, 60).state

    threads = [threading.Thread(target=wait, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(states.values()) == {"completed"} and len(states) == 8


def test_a_submission_is_repeated_until_the_service_is_back_and_made_once(start_later):
    scheduler, client = start_later
    ids = []
    thread = threading.Thread(target=lambda: ids.append(client.submit(["true"], tenant="late")))
    scheduler.kill()
    thread.start()
    scheduler.start()
    thread.join(60)
    assert len(ids) == 1
    assert [one.id for one in client.jobs()] == ids


@pytest.fixture
def start_later(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    class Fixed(Scheduler):
        def command(self):
            words = super().command()
            words[words.index("--http-port") + 1] = str(port)
            return words

    one = Fixed(tmp_path / "scheduler")
    one.post("/api/v1/tenants", {"name": "late"})
    with Client(f"http://127.0.0.1:{port}", retry_s=60) as client:
        yield one, client
    one.kill()


def test_the_asynchronous_client_does_the_same(cluster):
    async def main():
        async with AsyncClient(cluster.scheduler.url, tenant="physics") as client:
            jobs = await asyncio.gather(
                *(client.submit(["sh", "-c", f"echo {n}"]) for n in range(5)))
            done = await client.wait_all(jobs, 60, check=True)
            assert [one.state for one in done] == ["completed"] * 5
            assert [line async for line in client.logs(jobs[3])] == ["3"]
            assert await client.run(["echo", "fine"], gpus=1) == "fine\n"
            with pytest.raises(NotFound):
                await client.job("job-999999")
            with pytest.raises(JobFailed):
                await client.run(["false"])
            slow = await client.submit(["sleep", "600"])
            with pytest.raises(WaitTimeout):
                await client.wait(slow, 0.1)
            await client.cancel(slow)
            assert (await client.status())["total_gpus"] == 4

    asyncio.run(main())


def test_models_are_leased_and_asked(cluster, client):
    client.request("POST", "/api/v1/models", {
        "name": "echo", "tenant_id": "physics", "runtime": "custom", "gpu_memory_mb": 1000,
        "command": [sys.executable, "-c", SERVER, "{port}"]})
    assert client.chat("echo", "hello there", wait_s=60) == "HELLO THERE"
    assert list(client.chat_stream("echo", [{"role": "user", "content": "a b"}])) == ["A ", "B "]
    with client.lease("echo", lease_s=30) as lease:
        assert lease.address.startswith("http://")
        assert client.renew(lease, 60)["expires_at"] > lease["expires_at"]
        assert client.model("echo")["active_requests"] >= 1
    assert "echo" in [one.name for one in client.models()]

    async def ask():
        async with AsyncClient(cluster.scheduler.url, tenant="physics") as other:
            pieces = [one async for one in other.chat_stream("echo", "c d")]
            return await other.chat("echo", "hi"), pieces

    assert asyncio.run(ask()) == ("HI", ["C ", "D "])


def test_tokens_and_addresses_come_from_arguments_environment_and_context(
        cluster, tmp_path, monkeypatch):
    folder = tmp_path / ".config" / "gpu-scheduler"
    folder.mkdir(parents=True)
    token = tmp_path / "token"
    token.write_text("gst_secret\n")
    token.chmod(0o600)
    (folder / "config.yaml").write_text(
        f'current_context: "lab"\ncontexts:\n  "lab":\n    server: "{cluster.scheduler.url}"\n'
        f'    token_file: "{token}"\n    tenant: "physics"\n  "empty": {{}}\n')
    client = Client()
    assert client.config.server == cluster.scheduler.url
    assert client.config.tenant == "physics" and client.config.token == "gst_secret"
    assert "gst_secret" not in repr(client.config)
    # The token of a context is for the server of that context.
    assert Client("http://127.0.0.1:1").config.token is None
    monkeypatch.setenv("GPU_SCHEDULER_TOKEN", "gst_other")
    assert Client("http://127.0.0.1:1").config.token == "gst_other"
    monkeypatch.delenv("GPU_SCHEDULER_TOKEN")
    token.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        Client()
    with pytest.raises(ConfigError, match="no context 'nowhere'"):
        Client(context="nowhere")
    (folder / "config.yaml").write_text("contexts:\n  lab:\n    sever: x\n")
    with pytest.raises(ConfigError, match="config.yaml:3: unknown key 'sever'"):
        Client()


def test_what_cannot_be_reached_says_so():
    with pytest.raises(ConnectionFailed, match="127.0.0.1:1"):
        Client("http://127.0.0.1:1", retry_s=0).status()
    with pytest.raises(ConfigError, match="expected http"):
        Client("ftp://somewhere")


def test_a_wrong_token_is_refused(tmp_path):
    one = Scheduler(tmp_path / "scheduler", sections={"auth": {"enable": True}}, starts=False)
    one.write_config()
    token = one.run("token", "create").stdout.strip()
    one.start()
    try:
        assert Client(one.url, token=token).jobs() == []
        with pytest.raises(NotSignedIn):
            Client(one.url, token="gst_wrong").jobs()
        with pytest.raises(NotSignedIn):
            Client(one.url).jobs()
    finally:
        one.stop()


def test_sizes_are_read_as_the_command_line_reads_them():
    assert (mib(512), mib("512"), mib("20G"), mib("1.5g"), mib("1T")) == (
        512, 512, 20480, 1536, 1048576)
    for bad in ("", "G", "20X", "-1G", None):
        with pytest.raises(ValueError):
            mib(bad)


def test_packages_depend_on_nothing():
    wanted = set()
    for file in pathlib.Path(gpu_scheduler.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {one.name.split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                wanted.add(node.module.split(".")[0])
    assert wanted <= set(sys.stdlib_module_names), wanted - set(sys.stdlib_module_names)
