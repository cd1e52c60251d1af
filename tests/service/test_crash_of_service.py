"""A scheduler that is killed at random moments loses nothing that it acknowledged."""

import os
import random
import shutil
import sqlite3
import time

import pytest

from people import People
from scheduler import Scheduler

KILLS = int(os.environ.get("CRASH_KILLS", "30"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
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


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_acknowledged_is_lost(tmp_path, kind, request):
    chance = random.Random(SEED)
    if kind == "sqlite":
        database = Sqlite(tmp_path)
    else:
        database = Postgres(request.getfixturevalue("postgres_server"))
    one = Scheduler(tmp_path / "one", sections=database.sections)
    made = one.post("/api/v1/tenants", {"name": "lab"})
    assert made.status == 201, made
    people = People(SEED, made.json()["id"])
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
            assert not [line for line in one.log() if line["level"] == "error"], one.log()
            if kill < 30 or kill % 20 == 0:
                people.check(lambda: database.sql(JOBS))
        one.start()
        people.ports = [one.port]
        time.sleep(0.3)
        people.stop()
        one.stop()
        people.check(lambda: database.sql(JOBS))
        assert one.run("check").returncode == 0
        assert len(people.acknowledged) > 10 * KILLS, "the test did too little to mean anything"
        print(f"{kind}: {KILLS} kills, {len(people.acknowledged)} jobs acknowledged,", end=" ")
        print(f"{len(people.cancelled)} cancelled")
    finally:
        people.over = True
        one.kill()
