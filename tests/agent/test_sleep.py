"""Models whose slots sleep: the real scheduler and agents, simulated GPUs."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gateway"))

from test_slot_keys import ask, lease, make_model

SLEEPER = {"gpu_memory_mb": 150, "idle_ttl": "100ms", "sleep": "driver"}


def slots(cluster, name):
    every = cluster.scheduler.get("/api/v1/scheduler/slots").json()
    return [slot for slot in every if slot["model"] == name]


def await_status(cluster, name, *wanted):
    return cluster.wait(lambda: [slot["status"] for slot in slots(cluster, name)] == list(wanted))


def use(cluster, name):
    """Asks the model's server once, which answers with the number of its requests so far."""
    held = lease(cluster, name)
    assert ask(held, authorization=f"Bearer {held['key']}").status == 200
    seen = json.loads(ask(held, "GET", "/mock", None, x_slot_key=held["key"]).body)["requests"]
    assert cluster.scheduler.request("DELETE", f"/api/v1/leases/{held['lease_id']}").status == 200
    return held["slot_id"], seen


def model(cluster, name):
    every = cluster.scheduler.get("/api/v1/models").json()["models"]
    return next(one for one in every if one["name"] == name)


def test_two_models_take_turns_on_a_gpu_and_neither_is_loaded_twice(cluster):
    """Their servers are the same processes as before: they count on."""
    cluster.agent(gpus="1x256M")
    make_model(cluster, name="a", **SLEEPER)
    make_model(cluster, name="b", **SLEEPER)
    first, seen = use(cluster, "a")
    other, _ = use(cluster, "b")
    await_status(cluster, "a", "asleep")
    assert model(cluster, "a")["asleep_slots"] == 1
    again, seen_again = use(cluster, "a")
    assert again == first and seen_again > seen
    await_status(cluster, "b", "asleep")
    assert use(cluster, "b")[0] == other
    assert model(cluster, "a")["wake_time"] is not None
    metrics = cluster.scheduler.get("/metrics").body.decode()
    assert 'state="asleep"} 1' in metrics


def test_a_server_that_the_driver_refuses_is_stopped_instead(cluster):
    cluster.agent(gpus="1x256M")
    make_model(cluster, name="a", environment={"FAKE_GPU_SUSPEND": "refuse"}, **SLEEPER)
    make_model(cluster, name="b", **SLEEPER)
    first, _ = use(cluster, "a")
    use(cluster, "b")
    cluster.wait(lambda: not slots(cluster, "a"))
    again, _ = use(cluster, "a")
    assert again != first
