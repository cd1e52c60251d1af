"""compute_report.py DIRECTORY [PART...] - how MPS divides a GPU's compute, as a table of loads that run
at the same time. Ends with 'N measured, M failed'."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
OUT = pathlib.Path(sys.argv[1]).resolve()
SECONDS = 3
PATIENCE_S = 60
NOBODY, SOMEBODY = 65534, 54321
PLAIN = None  # in place of a daemon: a process that is no client of MPS


class Daemon:
    """An MPS daemon with directories of its own."""

    def __init__(self, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mps-"))
        self.folder.chmod(0o755)
        self.environment = {}
        for name in ("pipe", "log"):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o777)
            self.environment[f"CUDA_MPS_{name.upper()}_DIRECTORY"] = str(self.folder / name)
        done = subprocess.run(
            ["nvidia-cuda-mps-control", "-d", *options],
            env=os.environ | self.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise RuntimeError(f"nvidia-cuda-mps-control -d {' '.join(options)}: {done.stdout}{done.stderr}")

    def ask(self, command):
        done = subprocess.run(
            ["nvidia-cuda-mps-control"], input=command + "\n", env=os.environ | self.environment,
            capture_output=True, text=True, timeout=PATIENCE_S)
        return " / ".join((done.stdout + done.stderr).split("\n")).strip(" /")

    def end(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.ask("quit -t 5")
        OUT.joinpath("mps").mkdir(exist_ok=True)
        for log in (self.folder / "log").glob("*"):
            with contextlib.suppress(OSError):
                shutil.copy(log, OUT / "mps" / f"{self.folder.name}-{log.name}")
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def daemon(*options):
    one = Daemon(*options)
    try:
        yield one
    finally:
        one.end()


class Load:
    def __init__(self, kind, server=PLAIN, percent=None, user=None, seconds=SECONDS, **more):
        environment = dict(os.environ)
        # A process that is no client must not find a daemon in the usual place either.
        environment["CUDA_MPS_PIPE_DIRECTORY"] = str(OUT / "no-mps")
        if server:
            environment |= server.environment
        if percent is not None:
            environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percent)
        words = [] if seconds is None else [str(seconds)]
        switch = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self.text = f"{kind} {'' if percent is None else f'{percent}%'}".strip()
        self.process = subprocess.Popen(
            [sys.executable, HERE / "load.py", kind, *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
            env=environment | more | {"HOME": "/tmp"}, **switch)
        self.answer = {}

    def read(self):
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            return {"error": f"silent for {PATIENCE_S} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with {self.process.wait(PATIENCE_S)}"}

    def ready(self):
        seen = self.read()
        if "ready" not in seen:
            raise RuntimeError(f"{self.text}: {seen}")
        self.sms = seen["sms"]
        return self

    def go(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        return self

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self

    def result(self):
        self.answer = self.read()
        return self.answer

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)

    def says(self):
        its = self.answer
        if "tflops" in its:
            return f"{its['tflops']:.0f} TFLOP/s"
        if "p50_ms" in its:
            return f"{its['p50_ms']:.2f} / {its['p99_ms']:.2f} ms"
        return str(its.get("error", "ended"))


@contextlib.contextmanager
def started(loads):
    try:
        yield [load.ready() for load in loads]
    finally:
        for load in loads:
            load.end()


def together(*loads):
    """What each load says after all have run at the same time, with what MPS shows it as the GPU."""
    with started(loads):
        for load in loads:
            load.go()
        for load in loads:
            load.result()
        return "; ".join(f"{load.text} ({load.sms} SMs): {load.says()}" for load in loads)


def four(percent, server=PLAIN, user=None):
    return [Load("matmul", server, percent, user) for _ in range(4)]


def alone():
    yield "matmul", lambda: together(Load("matmul"))
    yield "small", lambda: together(Load("small"))
    yield "two matmul", lambda: together(Load("matmul"), Load("matmul"))
    yield "one matmul beside four", lambda: together(Load("matmul"), *four(None))
    yield "small beside matmul", lambda: together(Load("small"), Load("matmul"))


def one():
    with daemon() as server:
        yield "small, no percentage", lambda: together(Load("small", server))
        for percent in (100, 50, 25, 12.5, 10):
            yield f"matmul alone at {percent}%", lambda p=percent: together(Load("matmul", server, p))
        yield "two without a percentage", lambda: together(Load("matmul", server), Load("matmul", server))
        yield "50 beside 50", lambda: together(Load("matmul", server, 50), Load("matmul", server, 50))
        yield "25 beside 75", lambda: together(Load("matmul", server, 25), Load("matmul", server, 75))
        yield "50 beside four of 50", lambda: together(Load("matmul", server, 50), *four(50, server))
        yield "50 beside four of 12.5", lambda: together(Load("matmul", server, 50), *four(12.5, server))
        yield "four of 12.5 alone", lambda: together(*four(12.5, server))
        yield "small at 50 alone", lambda: together(Load("small", server, 50))
        yield "small at 50 beside 50", lambda: together(Load("small", server, 50), Load("matmul", server, 50))
        yield "small at 50 beside four of 12.5", lambda: together(Load("small", server, 50), *four(12.5, server))
        yield "small at 50 beside four of 50", lambda: together(Load("small", server, 50), *four(50, server))
        yield "a client at 50 beside no client", lambda: together(Load("matmul", server, 50), Load("matmul"))
        yield "small at 50 beside no client", lambda: together(Load("small", server, 50), Load("matmul"))


def servers():
    with daemon() as first, daemon() as second:
        yield "two servers, no percentage", lambda: together(Load("matmul", first), Load("matmul", second))
        yield "two servers, 50 and 50", lambda: together(Load("matmul", first, 50), Load("matmul", second, 50))
        yield "two servers, one and four without a percentage", lambda: together(
            Load("matmul", first), *four(None, second))
        yield "two servers, 50 and four of 12.5", lambda: together(
            Load("matmul", first, 50), *four(12.5, second))
        yield "two servers, small at 50 beside 50", lambda: together(
            Load("small", first, 50), Load("matmul", second, 50))
        yield "two servers, small beside matmul", lambda: together(
            Load("small", first), Load("matmul", second))


def users():
    with daemon("--multiuser-server") as server:
        yield "--multiuser-server, two users, 50 and 50", lambda: together(
            Load("matmul", server, 50, NOBODY), Load("matmul", server, 50, SOMEBODY))
        yield "--multiuser-server, two users, small at 50 beside four of 12.5", lambda: together(
            Load("small", server, 50, NOBODY), *four(12.5, server, SOMEBODY))
    with daemon() as server:
        yield "without it, two users one after the other", lambda: "; then ".join(
            together(Load("matmul", server, 50, user)) for user in (NOBODY, SOMEBODY))


def status(server):
    server_of = server.ask("get_server_list")
    return f"servers {server_of or 'none'}: {server.ask(f'get_server_status {server_of}') if server_of else ''}"


def after_fault(first, second, other):
    """A client of the first daemon fails beside another of it, one of the second, and one of none."""
    near = Load("matmul", first, 50, seconds=6)
    far = Load("matmul", second, 50, seconds=6)
    plain = Load("matmul", seconds=6)
    bad = Load(*other)
    with started([near, far, plain, bad]):
        for load in (near, far, plain):
            load.go()
        time.sleep(1)
        before = status(first)
        began = time.monotonic()
        bad.go()
        told = bad.result()
        said = f"the one: {told}; its server before: {before}, after: {status(first)}"
        for load in (near, far, plain):
            load.result()
        said += f"; beside it: {near.says()}; other server: {far.says()}; no client: {plain.says()}"
    said += f"; all had ended after {time.monotonic() - began:.1f} s, {status(first)}"
    return f"{said}; a new client then: {together(Load('matmul', first, 50))}, {status(first)}"


def killed(server):
    """The client's server is killed, then a client is."""
    load = Load("matmul", server, 50, seconds=6)
    with started([load]):
        load.go()
        time.sleep(1)
        pid = int(server.ask("get_server_list").split()[0])
        os.kill(pid, 9)
        load.result()
        said = f"its server is killed: {load.says()}; {status(server)}"
    said += f"; a new client then: {together(Load('matmul', server, 50))}"
    near, bad = Load("matmul", server, 50, seconds=5), Load("matmul", server, 50, seconds=5)
    with started([near, bad]):
        near.go(), bad.go()
        time.sleep(1)
        bad.process.kill()
        near.result()
    return f"{said}; a client is killed: its neighbor {near.says()}, {status(server)}"


def faults():
    with daemon() as first, daemon() as second:
        yield "a client reads where nothing is", lambda: after_fault(first, second, ("fault", first, 50))
        yield "a client that is no client does", lambda: after_fault(first, second, ("fault",))
        yield "kills", lambda: killed(first)


def apps():
    return "; ".join(subprocess.run(
        ["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader"],
        capture_output=True, text=True, check=True).stdout.splitlines()) or "none"


def used():
    return subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader"],
                          capture_output=True, text=True, check=True).stdout.strip()


def sizes(server):
    said = f"daemon alone: {used()}, processes {apps()}"
    loads = [Load("idle", server, percent, seconds=None) for percent in (50, 25, 100)]
    with started(loads):
        said += f"; three clients: {used()}, processes {apps()}"
        said += f"; {server.ask('ps')}"
        for load in loads:
            load.go().close()
            load.result()
    time.sleep(1)
    said += f"; all ended: {used()}, processes {apps()}, {status(server)}"
    plain = Load("idle", seconds=None)
    with started([plain]):
        said += f"; a process that is no client: {used()}, processes {apps()}"
    return said


def control(server):
    """What can be changed while clients run."""
    load = Load("matmul", server, 50, seconds=None)
    with started([load]):
        pid = server.ask("get_server_list").split()[0]
        said = f"set_active_thread_percentage {pid} 25: {server.ask(f'set_active_thread_percentage {pid} 25')}"
        said += f"; a client with 50: {together(Load('matmul', server, 50))}"
        said += f"; a client without: {together(Load('matmul', server))}"
        said += "; CUDA_MPS_CLIENT_PRIORITY=1 beside 0: " + together(
            Load("matmul", server, 100, CUDA_MPS_CLIENT_PRIORITY="1"), Load("small", server, 100))
        said += f"; terminate_client: {server.ask(f'terminate_client {pid} {load.process.pid}')}"
    return said + f"; {status(server)}"


def memory():
    with daemon() as server:
        yield "memory", lambda: sizes(server)
        yield "control", lambda: control(server)
    yield "options", lambda: " / ".join(subprocess.run(
        ["nvidia-cuda-mps-control", "-h"], capture_output=True, text=True, check=False).stdout.split("\n"))


PARTS = {"alone": alone, "one": one, "servers": servers, "users": users, "faults": faults, "memory": memory}


def main():
    measured = failed = 0
    print("| part | what | seen |\n|---|---|---|")
    for part in sys.argv[2:] or PARTS:
        try:
            for name, step in PARTS[part]():
                try:
                    print(f"| {part} | {name} | {step()} |", flush=True)
                    measured += 1
                except Exception as error:  # each step is judged by itself
                    failed += 1
                    print(f"| {part} | {name} | FAILED | {type(error).__name__}: {error} |", flush=True)
        except Exception as error:
            failed += 1
            print(f"| {part} | FAILED | {type(error).__name__}: {error} |", flush=True)
    print(f"{measured} measured, {failed} failed")


if __name__ == "__main__":
    main()
