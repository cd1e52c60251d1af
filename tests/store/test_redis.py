"""Redis carries events and cached reads, and losing it loses nothing."""

import socket
import subprocess
import time

import world


class Redis:
    """A private server on a socket, without a disk."""

    def __init__(self, folder):
        self.path = str(folder / "redis")
        self.folder = folder
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path, "--save", ""]
            + ["--dir", str(self.folder)],
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 10
        while self.ask("PING") != ["PONG"]:
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.02)

    def ask(self, *words):
        answer = subprocess.run(
            ["redis-cli", "-s", self.path, *words], capture_output=True, text=True, check=False
        )
        return answer.stdout.splitlines()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Client:
    """One request after the other."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(10)
        self.connection.connect(str(path))
        self.file = self.connection.makefile("rw")
        self.file.readline()

    def ask(self, line):
        self.file.write(line + "\n")
        self.file.flush()
        return self.file.readline().split(" ", 2)


def eventually(check, what):
    until = time.monotonic() + 15
    while not check():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def job_in(redis, job):
    """What is cached of a job in the generation that readers are led to."""
    generation = redis.ask("GET", "gpu-scheduler:generation")
    if not generation:
        return {}
    lines = redis.ask("HGETALL", f"gpu-scheduler:{generation[0]}:job:{job}")
    return dict(zip(lines[::2], lines[1::2]))


def test_events_and_jobs_reach_redis_and_losing_it_loses_nothing(programs, tmp_path):
    redis = Redis(tmp_path)
    process = world.Process(
        programs / "store_driver", tmp_path / "db", "a", tmp_path / "socket", tmp_path / "journal", redis.path
    )
    try:
        process.wait_for("leading")
        client = Client(tmp_path / "socket")
        job = int(client.ask("submit 1 key-1 1")[2])
        eventually(lambda: job_in(redis, job), "the job is not cached")
        first = job_in(redis, job)
        assert first["name"] == "crash-test" and first["state"] == "pending"
        eventually(lambda: redis.ask("XLEN", "gpu-scheduler:events") != ["0"], "no events")
        assert "job_submitted" in redis.ask("XRANGE", "gpu-scheduler:events", "-", "+")

        client.ask(f"cancel 2 {job}")
        eventually(lambda: job_in(redis, job).get("state") == "cancelled", "the state is old")
        assert int(job_in(redis, job)["version"]) > int(first["version"])

        generation = redis.ask("GET", "gpu-scheduler:generation")
        redis.stop()
        for number in range(3, 40):
            assert client.ask(f"submit {number} key-{number} 1")[0] == "ok"
        eventually(lambda: "redis healthy" not in client.ask("health 40")[2], "nobody noticed")
        assert client.ask("health 41")[2].startswith("healthy")
        redis.start()
        last = int(client.ask("submit 42 key-42 1")[2])
        eventually(lambda: "redis healthy" in client.ask("health 43")[2], "it does not go on")

        def is_cached():
            client.ask("submit 44 key-44 1")
            return redis.ask("GET", "gpu-scheduler:generation") not in (generation, [""], [])

        eventually(is_cached, "no new generation")
        later = int(client.ask("submit 45 key-45 1")[2])
        assert later > last
        eventually(lambda: job_in(redis, later).get("name"), "the job is not cached")
    finally:
        process.kill()
        redis.stop()
