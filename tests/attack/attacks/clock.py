"""A clock that jumps, as one without a battery or with a lying time server does."""

import functools
import pathlib
import subprocess
import tempfile
import time
import types

import grpc

from attack import Skipped, attack, defeat
from calls import agent_pb2_grpc
from node import EXITED, RELEASED, STARTED, Node

HERE = pathlib.Path(__file__).resolve().parent.parent
YEARS = 3 * 365 * 24 * 3600


@functools.cache
def shim():
    """A library that adds what a file says to the clock of the process it is loaded into."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="gpu-attack-shim-")) / "clock_shim.so"
    made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, HERE / "clock_shim.c", "-ldl"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        raise Skipped(f"no C compiler makes the shim: {made.stderr[:100]}")
    return path


class JumpingScheduler:
    """A scheduler whose clock is ours, and a node that runs what it is told."""

    def __init__(self, world):
        self.offset = world.directory / "clock-offset"
        self.offset.write_text("0")
        self.context = world.scheduler(environment={"LD_PRELOAD": str(shim()),
                                                    "CLOCK_OFFSET_FILE": str(self.offset)})

    def __enter__(self):
        self.service = self.context.__enter__()
        self.channel = grpc.insecure_channel(self.service.grpc)
        calls = types.SimpleNamespace(agent=agent_pb2_grpc.AgentServiceStub(self.channel))
        self.node = Node(calls, "n1").begin()
        made = self.service.post("/api/v1/tenants", {"name": "t", "cost_per_gpu_hour": 1})
        self.tenant = made.json()["id"]
        return self

    def __exit__(self, *error):
        self.node.close()
        self.channel.close()
        return self.context.__exit__(*error)

    def jump(self, seconds):
        self.offset.write_text(str(seconds))

    def begin_job(self):
        job = self.service.post("/api/v1/jobs", {"tenant_id": self.tenant, "command": ["x"],
                                                 "gpu_count": 1}).json()["job_id"]
        order = self.node.order()
        self.node.change(STARTED, order)
        self.wait(lambda: self.service.get(f"/api/v1/jobs/{job}").json()["state"] == "running")
        return job, order

    def end_job(self, job, order):
        self.node.change(EXITED, order)
        self.node.change(RELEASED, order)
        self.wait(lambda: self.service.get(f"/api/v1/jobs/{job}").json()["state"] == "completed")

    @staticmethod
    def wait(condition):
        until = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < until, "did not happen"
            time.sleep(0.02)


@attack("local user", "one jump of the clock makes a short job cost thousands of GPU-hours", quick=False)
def billed_jump(world):
    with JumpingScheduler(world) as one:
        job, order = one.begin_job()
        one.jump(YEARS)
        time.sleep(1.5)
        one.jump(0)
        time.sleep(0.5)
        one.end_job(job, order)
        tenant = one.service.get(f"/api/v1/tenants/{one.tenant}").json()
    hours = float(tenant["total_gpu_hours"])
    defeat(hours > 1, f"a job of 2 s cost {hours} GPU-hours, {tenant['total_cost']}")
    return f"{hours:.4f} GPU-hours"


@attack("local user", "one jump of the clock stops the scheduler's time for years", quick=False)
def standing_time(world):
    with JumpingScheduler(world) as one:
        one.jump(YEARS)
        time.sleep(1.5)
        one.jump(0)
        time.sleep(0.5)
        job, order = one.begin_job()
        shown = one.service.get(f"/api/v1/jobs/{job}").json()["submitted_at"]
        one.end_job(job, order)
        log = one.service.errors.read_text()
    year = int(shown[:4])
    defeat(year > time.gmtime().tm_year + 1, f"a job submitted now is of {shown}")
    told = [line for line in log.splitlines() if "clock" in line]
    return f"a job submitted now is of {shown}; the log says: {told[:1]}"
