"""Two schedulers on one PostgreSQL: when the active one dies or is stopped, the other goes on."""

import os
import signal
import time

import pytest

from people import People
from scheduler import Scheduler

TIMES = int(os.environ.get("TAKEOVER_TIMES", "3"))
JOBS = "SELECT id, idempotency_key, state FROM jobs"


def pair(folder, server):
    """Two schedulers, not started yet."""
    database = {"host": str(server.folder), "user": "postgres", "database": "postgres"}
    return [
        Scheduler(folder / name, sections={"database": database | {"name": name}}, starts=False)
        for name in ("one", "two")
    ]


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_the_other_takes_over_and_nothing_is_lost(tmp_path, postgres_server, way):
    postgres_server.clear()
    both = pair(tmp_path, postgres_server)
    both[0].start()
    made = both[0].post("/api/v1/tenants", {"name": "lab"})
    people = People(1, made.json()["id"])
    people.ports = [both[0].port]
    longest = 0
    try:
        for turn in range(TIMES):
            active, other = both[turn % 2], both[1 - turn % 2]
            other.start(waits=False)
            time.sleep(0.5)
            if way == "kill":
                active.kill()
            else:
                active.signal(signal.SIGSTOP)
            began = time.monotonic()
            other.wait_ready()
            longest = max(longest, time.monotonic() - began)
            people.ports = [active.port, other.port]
            if way == "stop":
                active.signal(signal.SIGCONT)
                # It finds that it does not lead any more, and ends.
                assert active.process.wait(timeout=60) == 3
                assert active.log()[-1]["message"] == "gpu-scheduler has ended"
            time.sleep(0.3)
            people.check(lambda: postgres_server.sql(JOBS))
        people.stop()
        people.check(lambda: postgres_server.sql(JOBS))
        assert len(people.acknowledged) > 10 * TIMES
        print(f"{way}: {TIMES} take-overs, the longest {longest:.1f} s,", end=" ")
        print(f"{len(people.acknowledged)} jobs acknowledged")
        assert longest < 5
    finally:
        people.over = True
        for one in both:
            if one.process:
                one.signal(signal.SIGCONT)
                one.kill()
