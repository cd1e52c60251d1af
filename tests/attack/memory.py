"""How much memory a process takes while it is flooded."""

import contextlib
import dataclasses
import os
import threading

from attack import Succeeded

MIB = 1 << 20
# A sanitizer keeps freed memory back, so only the figures of other builds are judged.
IS_JUDGED = os.environ.get("BUILD_KIND", "release") == "release"
# What any load costs once: SQLite's page cache, pools, fragmentation of the heap.
SLACK_MIB = 24


def resident_mib(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


@dataclasses.dataclass
class Flood:
    """What one flood cost: before, at most, and what it may be by the settings."""

    before_mib: float
    peak_mib: float
    limit_mib: float
    bound: str  # the setting or the reason behind the limit

    def growth(self):
        return self.peak_mib - self.before_mib

    def __str__(self):
        return (f"rss {self.before_mib:.0f} -> {self.peak_mib:.0f} MiB, "
                f"allowed +{self.limit_mib:.0f} MiB ({self.bound})")


@contextlib.contextmanager
def watch(world, pid, limit_mib, bound):
    """Samples a process while the block runs, notes the figures in world.floods, and decides
    for the enemy where it grew by more than the limit."""
    flood = Flood(resident_mib(pid), 0, limit_mib, bound)
    over = threading.Event()

    def sample():
        while not over.wait(0.01):
            with contextlib.suppress(OSError, IndexError):
                flood.peak_mib = max(flood.peak_mib, resident_mib(pid))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield flood
        flood.peak_mib = max(flood.peak_mib, resident_mib(pid))
    finally:
        over.set()
        sampler.join()
        world.floods.append(flood)
    if IS_JUDGED and flood.growth() > limit_mib + SLACK_MIB:
        raise Succeeded(f"the flood took {flood}")
