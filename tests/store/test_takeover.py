"""Two schedulers on one PostgreSQL: one leads, the other takes over when it must."""

import os
import random
import signal
import time

import postgres
import proxy
import world

TIMES = int(os.environ.get("TAKEOVER_TIMES", "3"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
TAKEOVER_S = 20  # five on a machine that has time; how long it took is printed
JOBS = "SELECT id, idempotency_key, state FROM jobs"


class Scheduler:
    """A name, its way to the database, and its process, which is started again."""

    def __init__(self, program, server, folder, name):
        self.program, self.name = program, name
        self.way = proxy.Proxy(server.folder / proxy.SOCKET)
        self.path = folder / name
        self.process = None

    def start(self):
        self.process = world.Process(self.program, self.way.database, self.name, self.path)

    def end(self, how):
        """Takes it out of the game; what brings it back is returned."""
        if how == "kill":
            self.process.kill()
            return lambda: None
        if how == "stop":
            self.process.process.send_signal(signal.SIGSTOP)
            return lambda: self.process.process.send_signal(signal.SIGCONT)
        self.way.cut()
        return self.way.join

    def is_over(self):
        """It finds that it does not lead any more, and ends."""
        assert self.process.process.wait(120) in (3, -signal.SIGKILL), self.process.lines
        self.process.kill()


def test_one_at_most_is_active_whatever_happens_to_it(programs, tmp_path):
    chance = random.Random(SEED)
    server = postgres.Server()
    both = [Scheduler(programs / "store_driver", server, tmp_path, name) for name in ("a", "b")]
    people = world.World(SEED, [str(one.path) for one in both])
    longest = 0
    try:
        both[0].start()
        both[0].process.wait_for("leading")
        both[1].start()
        for number in range(TIMES):
            active, waiting = both[number % 2], both[1 - number % 2]
            time.sleep(chance.uniform(0.1, 0.5))
            how = ("kill", "stop", "cut")[number % 3]
            began = time.monotonic()
            bring_back = active.end(how)
            waiting.process.wait_for("leading")
            took = time.monotonic() - began
            longest = max(longest, took)
            assert took < TAKEOVER_S, f"{how}: the other took over after {took:.1f} s"
            time.sleep(chance.uniform(0, 0.3))
            bring_back()
            active.is_over()
            active.start()
            people.check(lambda: server.sql(JOBS))
        time.sleep(0.3)
        people.stop()
        for one in both:
            one.process.kill()
        people.check(lambda: server.sql(JOBS))
        assert len(people.terms) > TIMES / 2, "too few terms gave orders to mean anything"
        print(f"{TIMES} take-overs, the longest took {longest:.1f} s; {people.starts} tasks", end=" ")
        print(f"started, {people.refused} late orders refused, {len(people.acknowledged)} jobs")
    finally:
        people.over = True
        for one in both:
            one.way.join()
            if one.process:
                one.process.kill()
            one.way.stop()
        server.stop()
