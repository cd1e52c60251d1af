"""attacks_report.py BUNDLE DIRECTORY [NAME...] - each attack of attack.py as a job of 20 GiB, under an
agent with its defaults: alone, and beside a job that stays within its own. Prints by how much the
GPU's memory rose, how far beyond the limit that is, how soon the agent told of it and ended it, and
how many of the other job's allocations failed. Ends with 'N passed, M failed': an attack fails if it
gets no more than 1 GiB beyond its limit, or is told within 1 s and ended within 2 s."""

import ctypes as C
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from attack_names import ATTACKS, LEAVING
from cluster import Cluster

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_MIB = 20480
TOLERATED_MIB = 512
ALLOWED_MIB = 1024
NEIGHBOR_MIB = 119808
PATIENCE_S = 25
HOLD_S = 8


class Memory(C.Structure):
    _fields_ = [("total", C.c_ulonglong), ("free", C.c_ulonglong), ("used", C.c_ulonglong)]


class Meter(threading.Thread):
    """What is in use beyond `base`, looked at every 5 ms: the most, since when it is more than
    `mark`, and when it was no longer."""

    def __init__(self):
        super().__init__(daemon=True)
        self.nvml, self.device = C.CDLL("libnvidia-ml.so.1"), C.c_void_p()
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, C.byref(self.device))
        self.begin(1 << 40)
        self.start()

    def used(self):
        memory = Memory()
        self.nvml.nvmlDeviceGetMemoryInfo(self.device, C.byref(memory))
        return memory.used >> 20

    def begin(self, mark):
        self.base, self.mark, self.most, self.over_at, self.back_at = self.used(), mark, 0, None, None

    def run(self):
        while True:
            rise = self.used() - self.base
            self.most = max(self.most, rise)
            if rise > self.mark:
                self.over_at, self.back_at = self.over_at or time.monotonic(), None
            elif self.over_at and not self.back_at:
                self.back_at = time.monotonic()
            time.sleep(0.005)


def is_over(state):
    return state in ("completed", "failed", "cancelled")


class Seen:
    """How an attack went."""

    def __init__(self, meter, noticed_at, state, message):
        self.taken, self.state, self.message = meter.most, state, message
        self.beyond = max(self.taken - LIMIT_MIB, 0)
        self.noticed_s = self.since(meter.over_at, noticed_at)
        self.stopped_s = self.since(meter.over_at, meter.back_at) if state == "failed" else None

    @staticmethod
    def since(begin, end):
        return max(end - begin, 0.0) if begin and end else None

    def is_good(self):
        return self.beyond <= ALLOWED_MIB or (
            self.noticed_s is not None and self.noticed_s <= 1.0
            and self.stopped_s is not None and self.stopped_s <= 2.0
        )


def attack(cluster, meter, name, settle):
    meter.begin(LIMIT_MIB + TOLERATED_MIB)
    base = meter.base
    job = cluster.submit([sys.executable, HERE / "attack.py", name], gpu_memory_mb=LIMIT_MIB,
                         environment={"ATTACK_HOLD": str(HOLD_S)})
    noticed_at, done_at, deadline = None, None, time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        state = cluster.job(job)["state"]
        if noticed_at is None and {"task_over", "task_unguarded"} & set(cluster.events(job)):
            noticed_at = time.monotonic()
        if is_over(state):
            break
        done_at = done_at or ("done" in cluster.logs_of(job) and time.monotonic())
        # One that is not far over its limit ends when it has held everything for a moment.
        if done_at and not meter.over_at and time.monotonic() > done_at + 0.3:
            break
        if done_at and time.monotonic() > done_at + HOLD_S:
            break
        time.sleep(0.01)
    if not is_over(cluster.job(job)["state"]):
        cluster.ask("DELETE", f"/api/v1/jobs/{job}")
    ended = cluster.state(job, "completed", "failed", "cancelled")
    settle(base)
    time.sleep(0.1)  # the meter looks once more
    seen = Seen(meter, noticed_at, ended["state"], ended["message"] or "")
    (OUT / "attacks.txt").open("a").write(
        f"== {name}: {ended['state']} {ended['exit_code']}: {ended['message']}\n"
        f"{cluster.events(job)} guard {ended['guard']}\n{cluster.logs_of(job)}\n")
    return seen


class Neighbor:
    def __init__(self, cluster, seconds):
        self.folder = tempfile.mkdtemp()
        os.chmod(self.folder, 0o777)
        self.file = pathlib.Path(self.folder) / "counts"
        self.cluster = cluster
        self.job = cluster.submit([sys.executable, HERE / "neighbor.py", 100, 16, seconds, self.file],
                                  gpu_memory_mb=NEIGHBOR_MIB)
        cluster.wait(lambda: self.counts()[1] > 3, "the neighbor takes turns")

    def counts(self):
        try:
            failed, count = self.file.read_text().split()
        except (OSError, ValueError):
            return 0, 0
        return int(failed), int(count)


def seconds(value):
    return "-" if value is None else f"{value:.2f} s"


def print_row(name, alone, lost):
    mark = "" if alone.is_good() else " **"
    print(f"| {name} | {alone.taken} | {alone.beyond}{mark} | {seconds(alone.noticed_s)} | "
          f"{seconds(alone.stopped_s)} | {lost} |", flush=True)


def main():
    names = sys.argv[3:] or ATTACKS + LEAVING
    cluster = Cluster(BUNDLE, OUT)
    meter = Meter()
    rows, lost = {}, {}
    try:
        def settle(base):
            deadline = time.monotonic() + 5
            while meter.used() > base + 64 and time.monotonic() < deadline:
                time.sleep(0.01)

        began = time.monotonic()
        for name in names:
            rows[name] = attack(cluster, meter, name, settle)
            print(f"# {name}: {vars(rows[name])} at {time.monotonic() - began:.0f} s", file=sys.stderr,
                  flush=True)
        idle = meter.used()
        neighbor = Neighbor(cluster, 900)
        for name in names:
            before = neighbor.counts()
            # The neighbor's turns rise above the mark: only its failures count here. What is left of
            # an attack must not be counted for the next.
            attack(cluster, meter, name, lambda base: settle(idle + NEIGHBOR_MIB))
            cluster.wait(lambda: cluster.gpus()[0]["releasing_memory"] == 0, "its memory is back", 20)
            after = neighbor.counts()
            lost[name] = f"{after[0] - before[0]} of {after[1] - before[1]}"
            print(f"# {name} beside: lost {lost[name]} at {time.monotonic() - began:.0f} s",
                  file=sys.stderr, flush=True)
        told = cluster.events(neighbor.job)
        said = cluster.job(neighbor.job)["message"]
    finally:
        print("| attack | taken | beyond the limit | noticed after | stopped after | neighbor's failed "
              "allocations |\n|---|---|---|---|---|---|")
        for name, seen in rows.items():
            print_row(name, seen, lost.get(name, "-"))
        cluster.stop()
    good = sum(seen.is_good() for seen in rows.values())
    print(f"\nThe neighbor was told {told.count('task_crowded')} times; its message: {said}")
    print(f"{good} passed, {len(rows) - good} failed")


if __name__ == "__main__":
    main()
