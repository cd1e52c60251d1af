"""bin/gpu-agent on simulated GPUs, and the scheduler's half of the conversation (scheduler_driver),
which gives the orders that a test wants."""

import errno
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIND = os.environ.get("BUILD_KIND", "release")
NVML_STANDIN = ROOT / "build" / KIND / "src" / "agent" / "test" / "libnvml_standin.so"


def program():
    """The agent under test: bin/'s, or that of the build that BUILD_KIND names."""
    if KIND == "release":
        return ROOT / "bin" / "gpu-agent"
    return ROOT / "build" / KIND / "src" / "agent" / "gpu-agent"


class Driver:
    """scheduler_driver; `seen` has what nodes told it, in order."""

    def __init__(self, port=0, lease_ms=10000):
        program = ROOT / "build" / KIND / "src" / "scheduler_driver"
        self.process = subprocess.Popen(
            [program, str(port), str(lease_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self.process.stdout.readline().split()[1])
        self.seen = []
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.seen.append(json.loads(line))
                self.changed.notify_all()

    def tell(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def wait(self, wanted, since=0, seconds=60):
        """The first message from `since` on for which wanted(message) holds."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                for message in self.seen[since:]:
                    if wanted(message):
                        return message
                left = deadline - time.monotonic()
                if left <= 0:
                    recent = "\n".join(map(str, self.seen[-20:]))
                    raise AssertionError(f"did not happen; the last that did:\n{recent}")
                self.changed.wait(left)

    def change(self, kind, reservation, **options):
        return self.wait(
            lambda m: m.get("change") == kind and m.get("reservation") == reservation, **options
        )

    def snapshot(self, node, since=0):
        return self.wait(lambda m: m["kind"] == "snapshot" and m["node"] == node, since)

    def start(self, node, reservation, command, **options):
        order = {
            "do": "start",
            "node": node,
            "reservation": reservation,
            "job": reservation,
            "tasks": 1,
            "grace_ms": 1000,
            "payload": {"command": command},
        }
        order.update(options)
        self.tell(**order)

    def output(self, node, reservation, follow=False, offset=0, request=None):
        """All of the output of a task, when it has come to its end."""
        request = request or len(self.seen) + 1
        since = len(self.seen)
        self.tell(
            do="output",
            node=node,
            request=request,
            reservation=reservation,
            follow=follow,
            offset=offset,
        )
        end = self.wait(lambda m: m.get("request") == request and m.get("end"), since)
        assert end["error"] == "", end
        return "".join(
            m["data"]
            for m in self.seen[since:]
            if m["kind"] == "output" and m["request"] == request and m["data"]
        )

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)


class Agent:
    """bin/gpu-agent, with a state directory that outlives it."""

    def __init__(self, port, state, name="node-a", gpus="2x80G", arguments=(), nvml=None, wrapper=(),
                 beat_ms=200, user="root"):
        """`nvml`: the file of the stand-in for NVIDIA's library, instead of simulated GPUs.
        `beat_ms`: how often it reports; None: as it is told. `user`: of tasks that name none;
        None: the agent decides."""
        self.user = user
        self.port, self.state, self.name, self.gpus = port, state, name, gpus
        self.nvml, self.wrapper = nvml, list(wrapper)
        self.arguments, self.beat_ms = list(arguments), beat_ms
        self.process = None
        self.start()

    def start(self):
        gpus = ["--fake-gpus", self.gpus] if self.gpus else ["--no-gpus"]
        environment = dict(os.environ)
        if self.nvml:
            gpus = ["--nvml", str(NVML_STANDIN)]
            environment["NVML_STANDIN"] = str(self.nvml)
        self.log = open(f"{self.state}.log", "a")
        self.process = subprocess.Popen(
            [
                *self.wrapper,
                program(),
                "--scheduler",
                f"127.0.0.1:{self.port}",
                "--name",
                self.name,
                "--state",
                str(self.state),
                "--allow-root",
                *(["--user", self.user] if self.user else []),
                "--trust-open-scheduler",
                "--address",
                "127.0.0.1",
                *(["--beat-ms", str(self.beat_ms)] if self.beat_ms else []),
                *gpus,
                *self.arguments,
            ],
            stderr=self.log,
            env=environment,
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.process.terminate()
        assert self.process.wait(60) == 0

    def label(self):
        """What its cgroups are named after: the node, and the state directory."""
        return f"{self.name}-{pathlib.Path(self.state, 'instance').read_text().strip()}"

    def uuid(self, index=0):
        return f"GPU-fake-{self.name}-{index}"

    def control(self, text):
        pathlib.Path(self.state, "fake-gpus").write_text(text)


# Keepers end processes and remove cgroups while we look; ENODEV is a cgroup that went while its
# file was open.
GONE = (errno.ENOENT, errno.ENODEV, errno.ESRCH)


def clean_up(names):
    """Ends what tests left running, by the cgroups of their agents, and removes those."""
    for name in names:
        for folder in (*pathlib.Path("/tmp").glob(f"gpu-agent-{name}-????????.tasks"),
                       *pathlib.Path("/var/tmp").glob(f"gpu-agent-{name}-????????.homes")):
            shutil.rmtree(folder, ignore_errors=True)
    for tree in pathlib.Path("/sys/fs/cgroup").glob("*/gpu-scheduler/*"):
        # Named after the node and the state directory.
        if not any(tree.name in (name, f"{name}-{tree.name[-8:]}") for name in names):
            continue
        groups = groups_below(tree)
        for group in groups:
            try:
                for pid in (group / "cgroup.procs").read_text().split():
                    os.kill(int(pid), 9)
            except OSError as error:
                if error.errno not in GONE:
                    raise
        for group in [*groups, tree]:
            remove_group(group)


def groups_below(tree):
    """The deepest first. Keepers remove theirs meanwhile."""
    for _ in range(100):
        try:
            found = [path for path in tree.rglob("*") if path.is_dir()]
            return sorted(found, key=lambda path: -len(path.parts))
        except OSError as error:
            if error.errno not in GONE:
                raise
    return []


def remove_group(group):
    deadline = time.monotonic() + 5
    while group.exists() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.02)
