"""Runs programs and frameworks under the guard on a real GPU, and reports what became of them.

    guard_report.py WORK OUT

WORK has what guard.sh has built: libgpuguard.so, gpu-guard-run, driver, and runtime where
there is nvcc. Leaves OUT/report.md, which is also printed, and OUT/log.txt. Every step has a
time limit, and steps that would begin too late are left out, so that it always ends.
"""

import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_MIB = 20480
NEIGHBOUR_LIMIT_MIB = 10240
LAST_START_S = 310
END_S = 350
MIB = 1 << 20


class Run:
    """All steps of one run: what they gave, what was checked, and the report."""

    def __init__(self, work, out):
        self.work = pathlib.Path(work)
        self.out = pathlib.Path(out)
        self.log = open(self.out / "log.txt", "w")
        self.lines = []
        self.passed = 0
        self.failed = 0
        self.began = time.monotonic()
        self.number = 0

    def say(self, text):
        """Progress, on the terminal and in the log."""
        line = f"[{time.monotonic() - self.began:5.0f} s] {text}"
        print(line)
        self.log.write(line + "\n")
        self.log.flush()

    def report(self, text=""):
        self.lines.append(text)

    def check(self, what, holds):
        self.passed += bool(holds)
        self.failed += not holds
        if not holds:
            self.say(f"FAILED: {what}")

    def under(self, limit_mib, *command):
        """The command line that runs a command under the guard; where its books are while it
        runs, and where they are written when it has ended."""
        self.number += 1
        segment = self.work / f"segment{self.number}"
        books = self.work / f"books{self.number}.json"
        return [str(self.work / "gpu-guard-run"), "--library", str(self.work / "libgpuguard.so"),
                "--quiet", "--json", str(books), "--limit", f"{limit_mib}M",
                "--segment", str(segment), *map(str, command)], segment, books

    def start(self, command, environment=None):
        """Starts a command in a process group of its own, so that all of it can be ended."""
        out = open(self.work / f"out{time.monotonic_ns()}", "w+")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=self.log,
                                   env=dict(os.environ, **(environment or {})),
                                   start_new_session=True)
        process.out = out
        return process

    def finish(self, process, timeout_s):
        """Waits for a command: its last line of JSON; None if there is none in time."""
        timeout_s = max(1, min(timeout_s, END_S - (time.monotonic() - self.began)))
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.say(f"not done in {timeout_s:.0f} s, ended: {process.args}")
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.out.seek(0)
        text = process.out.read().strip()
        self.log.write(text + "\n")
        try:
            return json.loads(text.splitlines()[-1])
        except (IndexError, ValueError):
            return None

    def step(self, title, command, timeout_s=60, environment=None):
        """One step: what its command found, or None."""
        if time.monotonic() - self.began > LAST_START_S:
            self.say(f"{title}: left out, it is too late")
            return None
        began = time.monotonic()
        result = self.finish(self.start(command, environment), timeout_s)
        self.say(f"{title} ({time.monotonic() - began:.0f} s): {json.dumps(result)}")
        return result


class Sampler(threading.Thread):
    """Asks nvidia-smi again and again what all processes together use; the most it said."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most_mib = 0
        self.samples = 0
        self.ended = threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.2):
            used = used_by_processes()
            if used:
                self.samples += 1
                self.most_mib = max(self.most_mib, sum(used))

    def end(self):
        self.ended.set()
        self.join(20)
        return self.most_mib if self.samples else None


def smi(*arguments, environment=None):
    try:
        return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL,
                              env=dict(os.environ, **(environment or {}))).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def used_by_processes():
    """MiB of each process, as far as nvidia-smi says."""
    text = smi("--query-compute-apps=used_memory", "--format=csv,noheader,nounits")
    return [int(line) for line in text.split() if line.isdigit()]


def read_books(path):
    try:
        return json.loads(path.read_text())["gpus"][0]
    except (OSError, ValueError, LookupError):
        return {"peak_bytes": 0, "refusals": 0}


def refused(run):
    """Each program takes all that it can get, is refused, and goes on."""
    frameworks = [sys.executable, HERE / "guard_frameworks.py"]
    programs = [("driver API by dlopen", None, [run.work / "driver", "fill", "2"], {})]
    if (run.work / "runtime").exists():
        programs.append(("CUDA runtime, static", None, [run.work / "runtime", "fill"], {}))
    programs += [
        ("PyTorch", "torch", [*frameworks, "torch"], {}),
        ("PyTorch, expandable segments", "torch", [*frameworks, "torch"],
         {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        ("PyTorch, cudaMallocAsync", "torch", [*frameworks, "torch"],
         {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
        ("JAX", "jax", [*frameworks, "jax"], {}),
        ("JAX, platform allocator", "jax", [*frameworks, "jax"],
         {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}),
        ("CuPy", "cupy", [*frameworks, "cupy"], {}),
        ("CuPy, the driver's pools", "cupy", [*frameworks, "cupy_async"], {}),
        ("PyTorch DataLoader, 3 workers", "torch", [*frameworks, "loader"], {}),
    ]
    run.report("| program | size shown | free at first | taken until refused | most by nvidia-smi "
               "| refusals | says | goes on |")
    run.report("|---|---|---|---|---|---|---|---|")
    missing = []
    if not (run.work / "runtime").exists():
        missing.append("there is no nvcc, so no program with the static CUDA runtime was built.")
    for title, module, command, environment in programs:
        if module and not importable(module):
            missing.append(f"{module} is not installed: '{title}' was left out.")
            run.say(missing[-1])
            continue
        one_refused(run, title, command, environment)
    run.report()
    for sentence in missing:
        run.report(f"- Not tried: {sentence}")
    run.report()


def importable(module):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0


def one_refused(run, title, command, environment):
    sampler = Sampler()
    line, _, books_path = run.under(LIMIT_MIB, *command)
    result = run.step(title, line, 75, environment)
    most_mib = sampler.end()
    books = read_books(books_path)
    if result is None:
        run.check(f"{title} runs", False)
        run.report(f"| {title} | did not end as it should | | | | | | |")
        return
    run.report(f"| {title} | {result.get('shown_mib', '')} | {result.get('free_mib', '')} | "
               f"{result['taken_mib']} | {most_mib or 'not said'} | {books['refusals']} | "
               f"{result['said']} | {'yes' if result['goes_on'] else 'NO'} |")
    run.check(f"{title} takes no more than its limit", 0 < result["taken_mib"] <= LIMIT_MIB)
    run.check(f"{title} goes on", result["goes_on"])
    # JAX takes three quarters of what it is shown, at once, and refuses the rest by itself.
    run.check(f"{title} was refused by the guard", books["refusals"] > 0 or title == "JAX")
    run.check(f"{title} stays within the limit in the books",
              0 < books["peak_bytes"] <= LIMIT_MIB * MIB)
    if most_mib is not None:
        run.check(f"{title} stays within the limit by nvidia-smi",
                  result["taken_mib"] <= most_mib <= LIMIT_MIB)
    if "shown_mib" in result:
        run.check(f"{title} is shown its limit as the size", result["shown_mib"] == LIMIT_MIB)


def workers(run):
    """Four processes, one budget; one is killed; a tensor is shared."""
    if not importable("torch"):
        return
    line, _, books_path = run.under(LIMIT_MIB, sys.executable, HERE / "guard_frameworks.py", "workers")
    result = run.step("four PyTorch processes, one budget", line, 100)
    books = read_books(books_path)
    if result is None:
        run.check("four processes run", False)
        return
    run.report(f"Four PyTorch processes of one task took {result['taken_together_mib']} MiB together "
               f"and were then refused ({books['refusals']} refusals). One with "
               f"{result['victim_mib']} MiB was killed: free memory went from "
               f"{result['free_when_full_mib']} to {result['free_after_kill_mib']} MiB. A tensor of "
               f"512 MiB that one process made and another holds took "
               f"{result['shared_512_took_mib']} MiB of the budget, the contexts of both included "
               f"(one takes {result['context_mib']} MiB).")
    run.report()
    run.check("four processes take no more than one limit",
              0 < result["taken_together_mib"] <= LIMIT_MIB)
    run.check("the share of a killed process comes back",
              result["free_after_kill_mib"] >= result["free_when_full_mib"] + result["victim_mib"])
    run.check("a tensor arrives in another process", result["shared_tensor_is_right"])
    run.check("a tensor that is shared counts once",
              result["shared_512_took_mib"] < 1024 + result["context_mib"])


def ways(run):
    """What each way of the runtime to allocate counts, beside what it really takes."""
    if not (run.work / "runtime").exists():
        return
    plain = run.step("each way, without the guard", [str(run.work / "runtime"), "ways"])
    line, _, _ = run.under(LIMIT_MIB, run.work / "runtime", "ways")
    guarded = run.step("each way, under the guard", line)
    pages = run.step("pages", [str(run.work / "runtime"), "pages"])
    if not plain or not guarded or not pages:
        run.check("each way to allocate runs", False)
        return
    run.report("| 64 MiB (80 for the mipmap) by | taken from the GPU | in the books | in the books "
               "when freed |")
    run.report("|---|---|---|---|")
    for way, counted in guarded.items():
        run.report(f"| {way} | {plain[way]['held_mib']} MiB | {counted['held_mib']} MiB | "
                   f"{counted['left_mib']} MiB |")
        run.check(f"{way} counts what it takes", counted["error"] == "cudaSuccess" and
                  (way == "cudaMallocManaged" or
                   abs(counted["held_mib"] - plain[way]["held_mib"]) <= 4))
        run.check(f"{way} counts nothing when freed", counted["left_mib"] <= 0 or
                  counted["left_mib"] <= plain[way]["left_mib"])
    run.report()
    run.report("KiB that the driver takes for one of 64 allocations of so many bytes: " +
               ", ".join(f"{size}: {kib:g}" for size, kib in pages.items()) + ".")
    run.report()


def books_of(run, segment):
    """MiB in use, by the books of a task that runs; 0 if there are none yet."""
    shown = subprocess.run([str(run.work / "gpu-guard-run"), "--show", str(segment)],
                           capture_output=True, text=True, timeout=20,
                           check=False).stdout.splitlines()
    words = shown[1].split() if len(shown) > 1 else []
    return int(words[3]) if len(words) > 4 and words[3].isdigit() else 0


def agreement(run):
    """The books, nvidia-smi outside and nvidia-smi inside of a task that is full."""
    line, segment, _ = run.under(LIMIT_MIB, run.work / "driver", "fill", "8")
    process = run.start(line)
    used = 0
    deadline = time.monotonic() + 20
    while used < LIMIT_MIB - 2 and time.monotonic() < deadline:
        time.sleep(0.5)
        used = books_of(run, segment)
    outside = sum(used_by_processes())
    inside = smi("--query-gpu=memory.total,memory.used", "--format=csv,noheader,nounits",
                 environment={"LD_PRELOAD": str(run.work / "libgpuguard.so"),
                              "GPU_GUARD_SEGMENT": str(segment)})
    run.finish(process, 30)
    run.say(f"books {used}, nvidia-smi outside {outside}, inside {inside}")
    run.report(f"A program that has taken all it can: the books say {used} of {LIMIT_MIB} MiB, "
               f"nvidia-smi says {outside or 'nothing about processes'} MiB, and nvidia-smi inside of "
               f"the task says total, used: {inside or 'nothing'} MiB.")
    run.report()
    run.check("the books say that the task is full", LIMIT_MIB - 2 <= used <= LIMIT_MIB)
    if outside:
        run.check("nvidia-smi agrees with the books", abs(outside - used) <= 4)
    run.check("nvidia-smi inside of the task shows the limit",
              inside.split(",")[0] == str(LIMIT_MIB))


def times(run):
    kinds = {"without the guard": [], "under the guard": []}
    for number in range(3):
        plain = run.step(f"100,000 allocations without the guard, {number + 1}",
                         [str(run.work / "driver"), "times", "100000"])
        line, _, _ = run.under(LIMIT_MIB, run.work / "driver", "times", "100000")
        guarded = run.step(f"100,000 allocations under the guard, {number + 1}", line)
        if plain and guarded:
            kinds["without the guard"].append(plain)
            kinds["under the guard"].append(guarded)
    if not kinds["under the guard"]:
        run.check("times can be taken", False)
        return
    run.report("| ns for an allocation and its free, best of "
               f"{len(kinds['under the guard'])} | 100,000 of 4 KiB | 2,000 of 4 MiB | "
               "100,000 of 4 KiB from a pool |")
    run.report("|---|---|---|---|")
    best = {kind: {name: min(result[name] for result in results) for name in results[0]}
            for kind, results in kinds.items()}
    for kind, values in best.items():
        run.report(f"| {kind} | {values['small_ns']:.0f} | {values['large_ns']:.0f} | "
                   f"{values['pool_ns']:.0f} |")
    run.report()
    for name in ("small_ns", "pool_ns"):
        run.check(f"an allocation costs less than a microsecond more ({name})",
                  best["under the guard"][name] - best["without the guard"][name] < 1000)


def starts(run):
    """How long a program takes that only makes a context."""
    took_ms = {}
    for number in range(2):
        guarded, _, _ = run.under(LIMIT_MIB, run.work / "driver", "start")
        for kind, line in (("without the guard", [str(run.work / "driver"), "start"]),
                           ("under it", guarded)):
            began = time.monotonic()
            run.step(f"a start {kind}, {number + 1}", line)
            took = (time.monotonic() - began) * 1000
            took_ms[kind] = min(took, took_ms.get(kind, took))
    run.report("A program that makes a context, allocates 1 MiB and ends: " +
               ", ".join(f"{took:.0f} ms {kind}" for kind, took in took_ms.items()) + ".")
    run.report()


def neighbours(run):
    """Two tasks on one GPU; the second is calm, then greedy, in turns."""
    speeds = {"work": [], "greedy": []}
    run.report("| the neighbour | launches/s of the first task | launches/s of the neighbour | "
               "granted to it | its refusals |")
    run.report("|---|---|---|---|---|")
    for number in range(3):
        for kind, speeds_of_kind in speeds.items():
            line, _, _ = run.under(NEIGHBOUR_LIMIT_MIB, run.work / "driver", kind, "8")
            neighbour = run.start(line)
            time.sleep(0.5)
            line, _, _ = run.under(LIMIT_MIB, run.work / "driver", "work", "5")
            result = run.step(f"beside a neighbour that is {kind}, {number + 1}", line, 30)
            beside = run.finish(neighbour, 30)
            if result and beside:
                speeds_of_kind.append(result["launches_per_s"])
                run.report(f"| {'calm' if kind == 'work' else 'greedy'} | {result['launches_per_s']} "
                           f"| {beside['launches_per_s']} | {beside['granted_mib']} MiB | "
                           f"{beside['refused']} |")
                run.check("a greedy neighbour stays within its limit",
                          beside["granted_mib"] <= NEIGHBOUR_LIMIT_MIB)
    run.report()
    if not all(speeds.values()):
        run.check("two tasks share a GPU", False)
        return
    ratio = statistics.median(speeds["greedy"]) / statistics.median(speeds["work"])
    run.report(f"Beside greed, the first task runs at {ratio * 100:.1f}% of its speed beside the same "
               "neighbour without it (medians).")
    run.report()
    run.check("greed costs the neighbour less than 2%", ratio >= 0.98)


def main():
    run = Run(sys.argv[1], sys.argv[2])
    name = smi("--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    run.report(f"### The guard on {name[0] if name else 'an unknown GPU'}")
    run.report()
    run.report(f"Measured on {datetime.date.today()} by `tests/gpu/guard.sh`; limit {LIMIT_MIB} MiB, "
               "all sizes in MiB.")
    run.report()
    for part in (refused, agreement, workers, ways, times, starts, neighbours):
        try:
            part(run)
        except Exception as error:  # one part that breaks must not hide what the others found
            run.say(f"{part.__name__} broke: {error!r}")
            run.check(f"{part.__name__} runs to its end", False)
        (run.out / "report.md").write_text("\n".join(run.lines) + "\n")
    text = "\n".join(run.lines)
    print(f"\n{text}")
    print(f"({time.monotonic() - run.began:.0f} s)")
    print(f"{run.passed} passed, {run.failed} failed")
    sys.exit(run.failed != 0)


if __name__ == "__main__":
    main()
