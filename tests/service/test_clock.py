"""The system clock jumps: nobody is billed for that, and the scheduler's time stays right."""

import datetime
import pathlib
import struct
import subprocess
import time
import types

import grpc
import pytest

from calls import agent_pb2_grpc, wait_for
from node import EXITED, RELEASED, STARTED, Node
from scheduler import make_tenant

YEAR = 365 * 86400


class Clock:
    """The scheduler's wall clock: the system's, off by as many seconds as it is set to."""

    def __init__(self, directory):
        self.file = directory / "offset"
        self.set(0)
        library = directory / "clock_shim.so"
        source = pathlib.Path(__file__).with_name("clock_shim.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIM": str(self.file),
                            "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def set(self, seconds):
        self.seconds = seconds
        with open(self.file, "r+b" if self.file.exists() else "w+b") as file:
            file.write(struct.pack("q", seconds * 1000))


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


@pytest.fixture
def connect():
    """Connects nodes to a scheduler; they part with the test."""
    opened = []

    def one(service, **more):
        channel = grpc.insecure_channel(service.grpc)
        node = Node(types.SimpleNamespace(agent=agent_pb2_grpc.AgentServiceStub(channel)), **more)
        opened.append((node, channel))
        node.hello()
        node.expect("welcome")
        node.snapshot()
        return node

    yield one
    for node, channel in opened:
        node.close()
        channel.close()


def submit(service, tenant):
    made = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x", "command": ["x"],
                                         "gpu_count": 1})
    assert made.status == 201, made
    return made.json()["job_id"]


def submitted(service, job):
    text = service.get(f"/api/v1/jobs/{job}").json()["submitted_at"]
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def check_submitted(service, tenant, off=0):
    """A job that is submitted now has now as its time, by a clock that is so far off."""
    before = time.time()
    at = submitted(service, job := submit(service, tenant)) - off
    assert before - 10 < at < time.time() + 10
    service.delete(f"/api/v1/jobs/{job}")


def cost(service, tenant):
    return service.get(f"/api/v1/tenants/{tenant}").json()["total_cost"]


def warnings(service):
    return service.get("/health").json()["warnings"]


def metric(service, name):
    lines = service.get("/metrics").body.decode().splitlines()
    return float(next(line for line in lines if line.startswith(name + " ")).split()[1])


@pytest.mark.parametrize("seconds", [3 * YEAR, -YEAR])
def test_a_jump_that_comes_back_costs_nothing_and_is_told(start, clock, connect, seconds):
    service = start(environment=clock.environment)
    tenant = make_tenant(service, "lab", cost_per_gpu_hour=3600)  # a GPU costs 1 a second
    node = connect(service)
    began = time.monotonic()
    job = submit(service, tenant)
    order = node.order()
    node.change(STARTED, order)
    wait_for(lambda: cost(service, tenant) > 0.5)
    clock.set(seconds)
    (warning,) = wait_for(lambda: warnings(service))
    assert ("ahead of" if seconds > 0 else "behind") in warning
    assert metric(service, "gpu_scheduler_clock_offset_seconds") == pytest.approx(seconds, abs=5)
    assert metric(service, "gpu_scheduler_clock_steps_total") == 1
    check_submitted(service, tenant)
    time.sleep(1.5)
    clock.set(0)
    wait_for(lambda: not warnings(service))
    node.change(EXITED, order)
    node.change(RELEASED, order)
    wait_for(lambda: service.get(f"/api/v1/jobs/{job}").json()["state"] == "completed")
    took = time.monotonic() - began
    assert 0.5 < cost(service, tenant) <= took + 1
    check_submitted(service, tenant)
    assert any("the system clock jumped" in line["message"] for line in service.log())
    node.close()
    service.stop()
    service.start()
    assert 0.5 < cost(service, tenant) <= took + 1
    check_submitted(service, tenant)


@pytest.mark.parametrize("seconds", [3 * YEAR, -YEAR])
def test_a_clock_that_stays_off_is_followed_and_costs_nothing(start, clock, connect, seconds):
    service = start(environment=clock.environment, sections={"scheduler": {"clock_hold_ms": 1000}})
    tenant = make_tenant(service, "lab", cost_per_gpu_hour=3600)
    node = connect(service)
    began = time.monotonic()
    job = submit(service, tenant)
    order = node.order()
    node.change(STARTED, order)
    wait_for(lambda: cost(service, tenant) > 0.5)
    clock.set(seconds)
    wait_for(lambda: any("the system clock stays" in line["message"] for line in service.log()))
    wait_for(lambda: not warnings(service))
    check_submitted(service, tenant, off=seconds)
    node.change(EXITED, order)
    node.change(RELEASED, order)
    wait_for(lambda: service.get(f"/api/v1/jobs/{job}").json()["state"] == "completed")
    took = time.monotonic() - began
    assert 0.5 < cost(service, tenant) <= took + 1
    node.close()
    service.stop()
    service.start()
    assert 0.5 < cost(service, tenant) <= took + 1
    check_submitted(service, tenant, off=seconds)


def test_what_is_stored_three_years_ahead_is_set_right_at_the_start(start, clock, connect):
    clock.set(3 * YEAR)
    service = start(environment=clock.environment)
    tenant = make_tenant(service, "lab", cost_per_gpu_hour=3600)
    ahead = submit(service, tenant)
    assert submitted(service, ahead) > time.time() + YEAR
    service.stop()
    clock.set(0)
    service.start()
    began = time.monotonic()
    assert any("what is stored is 1095 days 0 h ahead of the system clock" in line["message"] or
               "what is stored is 1094 days 23 h ahead of the system clock" in line["message"]
               for line in service.log())
    assert submitted(service, ahead) < time.time() + 10
    check_submitted(service, tenant)
    node = connect(service)
    order = node.order()
    node.change(STARTED, order)
    wait_for(lambda: cost(service, tenant) > 0.5)
    node.change(EXITED, order)
    node.change(RELEASED, order)
    wait_for(lambda: service.get(f"/api/v1/jobs/{ahead}").json()["state"] == "completed")
    assert cost(service, tenant) <= time.monotonic() - began + 1
