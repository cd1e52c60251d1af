"""A scheduler that is killed at random moments loses nothing that it acknowledged."""

import os
import random
import shutil
import socket
import sqlite3
import time

import pytest

from people import People
from scheduler import Scheduler
from stub import Agent

KILLS = int(os.environ.get("CRASH_KILLS", "30"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
AGENT_DEATHS = float(os.environ.get("CRASH_AGENT_DEATHS", "0.3"))  # for each kill
JOBS = "SELECT id, idempotency_key, state FROM jobs"


class Sqlite:
    """Looked at in a copy, so that recovery is left to the scheduler."""

    def __init__(self, folder):
        self.folder = folder
        self.sections = {}

    def sql(self, statement):
        copy = self.folder / "copy"
        copy.mkdir()
        for suffix in ("", "-wal"):
            path = self.folder / "one" / "data" / f"scheduler.db{suffix}"
            if path.exists():
                shutil.copy(path, copy / f"scheduler.db{suffix}")
        try:
            with sqlite3.connect(copy / "scheduler.db") as database:
                return database.execute(statement).fetchall()
        finally:
            shutil.rmtree(copy)


class Postgres:
    def __init__(self, server):
        self.server = server
        self.sections = {"database": {"host": str(server.folder), "user": "postgres",
                                      "database": "postgres"}}

    def sql(self, statement):
        return self.server.sql(statement)


class Nodes:
    """Agents with simulated GPUs, some of which die too. Their tasks go on: each leaves a
    line in a file of its own, so that a second start would show."""

    def __init__(self, folder, port, chance):
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.chance = chance
        self.agents = [
            Agent(port, folder / name, name, "2x80G", ["--cgroup-parent", "none"])
            for name in ("node-a", "node-b")
        ]

    def command(self, key):
        return ["sh", "-c", f"echo started >> {self.runs}/{key}; sleep 0.1"]

    def disturb(self):
        if self.chance.random() < AGENT_DEATHS:
            agent = self.chance.choice(self.agents)
            agent.kill()
            agent.start()

    def check(self, jobs):
        """That nothing ran twice, and what has completed did run."""
        for path in self.runs.iterdir():
            deadline = time.monotonic() + 60
            while not path.read_text() and time.monotonic() < deadline:
                time.sleep(0.05)  # the shell has made the file, and has not written it yet
            assert path.read_text() == "started\n", f"{path.name} was started more than once"
        for _, key, state in jobs:
            assert state != "failed", f"{key} has failed"
            assert state != "completed" or (self.runs / key).exists(), f"{key} never ran"

    def stop(self):
        for agent in self.agents:
            agent.kill()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice(tmp_path, kind, request):
    chance = random.Random(SEED)
    if kind == "sqlite":
        database = Sqlite(tmp_path)
    else:
        database = Postgres(request.getfixturevalue("postgres_server"))
    one = Scheduler(tmp_path / "one", sections=database.sections, grpc=free_port())
    nodes = Nodes(tmp_path, one.ports["grpc"], chance)
    made = one.post("/api/v1/tenants", {"name": "lab"})
    assert made.status == 201, made
    people = People(SEED, made.json()["id"], command=nodes.command)
    try:
        for kill in range(KILLS):
            if kill > 0:
                one.start(waits=False)
            if kill > 0 and chance.random() < 0.1:
                time.sleep(chance.uniform(0, 0.05))  # while it starts
            else:
                one.wait_ready()
                people.ports = [one.port]
                time.sleep(chance.uniform(0, 0.4))
            one.kill()
            people.ports = []
            nodes.disturb()
            assert not [line for line in one.log() if line["level"] == "error"], one.log()
            if kill < 30 or kill % 20 == 0:
                people.check(lambda: database.sql(JOBS))
        one.start()
        people.ports = [one.port]
        await_completed(one, KILLS)
        people.stop()
        one.stop()
        jobs = database.sql(JOBS)
        people.check(lambda: jobs)
        nodes.check(jobs)
        assert one.run("check").returncode == 0
        assert len(people.acknowledged) > 10 * KILLS, "the test did too little to mean anything"
        print(f"{kind}: {KILLS} kills, {len(people.acknowledged)} jobs acknowledged,", end=" ")
        print(f"{len(people.cancelled)} cancelled, {len(list(nodes.runs.iterdir()))} started")
    finally:
        people.over = True
        one.kill()
        nodes.stop()


def await_completed(one, count, seconds=60):
    """Until so many jobs have been run to their end."""
    deadline = time.monotonic() + seconds
    while one.get("/api/v1/jobs?state=completed&limit=1").json()["total"] < count:
        assert time.monotonic() < deadline, one.get("/api/v1/cluster/status")
        time.sleep(0.1)
