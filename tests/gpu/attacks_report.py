"""attacks_report.py WORK [NAME...] - each attack of attack.py under a limit of 20 GiB, alone
and beside a neighbor that stays within its own: how much the GPU's memory rose, how far beyond the
limit that is, and how many of the neighbor's allocations failed. Ends with 'N passed, M failed':
an attack fails if it gets no more than 1 GiB beyond its limit."""

import ctypes as C
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from attack_names import ATTACKS

WORK = pathlib.Path(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_MIB = 20480
ALLOWED_MIB = 1024
SECONDS = 20


class Memory(C.Structure):
    _fields_ = [("total", C.c_ulonglong), ("free", C.c_ulonglong), ("used", C.c_ulonglong)]


class Meter(threading.Thread):
    """The most that was in use, looked at every 10 ms."""

    def __init__(self):
        super().__init__(daemon=True)
        self.nvml, self.device, self.most, self.over = C.CDLL("libnvidia-ml.so.1"), C.c_void_p(), 0, False
        self.nvml.nvmlInit_v2()
        self.nvml.nvmlDeviceGetHandleByIndex_v2(0, C.byref(self.device))
        self.start()

    def used(self):
        memory = Memory()
        self.nvml.nvmlDeviceGetMemoryInfo(self.device, C.byref(memory))
        return memory.used >> 20

    def run(self):
        while not self.over:
            self.most = max(self.most, self.used())
            time.sleep(0.01)


def guarded(limit_mib, *words):
    return [str(WORK / "gpu-guard-run"), "--quiet", "--library", str(WORK / "libgpuguard.so"),
            "--limit", f"{limit_mib}M", sys.executable, *map(str, words)]


def attack(name):
    """What the device's memory rose by, and how the program ended."""
    idle = Meter()
    base = idle.used()
    idle.over = True
    meter = Meter()
    program = subprocess.Popen(guarded(LIMIT_MIB, HERE / "attack.py", name), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watchdog = threading.Timer(SECONDS, program.terminate)
    watchdog.start()
    said = program.stdout.readline().strip() or "ended"
    time.sleep(0.1)
    meter.over = True
    program.stdin.close()
    program.wait()
    watchdog.cancel()
    deadline = time.monotonic() + 5
    while idle.used() > base + 64 and time.monotonic() < deadline:
        time.sleep(0.01)
    return meter.most - base, said


class Neighbor(threading.Thread):
    """A program that counts how many of its allocations fail; `counts` is what it said last."""

    def __init__(self):
        super().__init__(daemon=True)
        self.program = subprocess.Popen(guarded(119808, HERE / "neighbor.py", 100, 16, 600),
                                        stdout=subprocess.PIPE, text=True)
        self.counts = self.read(self.program.stdout.readline())
        self.start()

    @staticmethod
    def read(line):
        return tuple(int(word) for word in line.split())

    def run(self):
        for line in self.program.stdout:
            self.counts = self.read(line)


def main():
    names = sys.argv[2:] or ATTACKS
    print("| attack | taken | beyond the limit | neighbor's failed allocations |\n|---|---|---|---|")
    passed = failed = 0
    rows = {name: attack(name) for name in names}
    beside = Neighbor()
    lost = {}
    for name in names:
        before = beside.counts
        attack(name)
        after = beside.counts
        lost[name] = f"{after[0] - before[0]} of {after[1] - before[1]}"
    beside.program.terminate()
    for name, (taken, said) in rows.items():
        beyond = max(taken - LIMIT_MIB, 0)
        good = beyond <= ALLOWED_MIB
        passed += good
        failed += not good
        print(f"| {name} | {taken} | {beyond}{'' if good else ' **'}{'' if said == 'done' else ' (' + said + ')'} "
              f"| {lost.get(name, '-')} |", flush=True)
    print(f"{passed} passed, {failed} failed")


main()
