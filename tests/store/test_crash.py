"""A scheduler that is killed at random moments loses nothing that it acknowledged."""

import os
import random
import shutil
import sqlite3
import time

import pytest

import postgres
import world

KILLS = int(os.environ.get("CRASH_KILLS", "30"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
JOBS = "SELECT id, idempotency_key, state FROM jobs"


class Sqlite:
    """A file; it is looked at in a copy, so that recovery is left to the scheduler."""

    def __init__(self, folder):
        self.folder = folder
        self.database = str(folder / "store.db")

    def sql(self, statement):
        copy = self.folder / "copy"
        copy.mkdir(exist_ok=True)
        for suffix in ("", "-wal"):
            if os.path.exists(self.database + suffix):
                shutil.copy(self.database + suffix, copy / ("store.db" + suffix))
        connection = sqlite3.connect(copy / "store.db")
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()
            shutil.rmtree(copy)

    def stop(self):
        pass


def databases(folder, kind):
    return Sqlite(folder) if kind == "sqlite" else postgres.Server()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice(programs, tmp_path, kind):
    chance = random.Random(SEED)
    database = databases(tmp_path, kind)
    path = tmp_path / "socket"
    people = world.World(SEED, [str(path)])
    process = None
    try:
        for kill in range(KILLS):
            process = world.Process(programs / "store_driver", database.database, "one", path, tmp_path / "journal")
            if kill > 0 and chance.random() < 0.1:
                time.sleep(chance.uniform(0, 0.05))  # while it starts
            else:
                process.wait_for("leading")
                time.sleep(chance.uniform(0, 0.4))
            process.kill()
            assert not process.said("corrupt") and not process.said("over"), process.lines
            if kill < 30 or kill % 20 == 0:
                people.check(lambda: database.sql(JOBS))
        process = world.Process(programs / "store_driver", database.database, "one", path)
        process.wait_for("leading")
        time.sleep(0.3)
        people.stop()
        process.kill()
        people.check(lambda: database.sql(JOBS))
        assert len(people.acknowledged) > 10 * KILLS, "the test did too little to mean anything"
        assert people.starts > KILLS
        print(f"{kind}: {KILLS} kills, {len(people.acknowledged)} jobs acknowledged,", end=" ")
        print(f"{len(people.cancelled)} cancelled, {people.starts} tasks started")
    finally:
        people.over = True
        if process:
            process.kill()
        database.stop()
