"""The history of the last day and week: /api/v1/history."""

import sqlite3
import time

import pytest
from crowd import Crowd
from scheduler import Scheduler


def wait_for(test, seconds=60):
    end = time.monotonic() + seconds
    while True:
        found = test()
        if found:
            return found
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    scheduler = Scheduler(tmp_path_factory.mktemp("history"))
    scheduler.post("/api/v1/tenants", {"name": "lab", "cost_per_gpu_hour": 2})
    crowd = Crowd(scheduler.grpc, 1, gpus=2)
    scheduler.post("/api/v1/jobs", {"tenant_id": "lab", "gpu_count": 1, "command": ["true"]})
    yield scheduler, crowd
    crowd.close()
    scheduler.stop()


def history(scheduler, query=""):
    answer = scheduler.get(f"/api/v1/history{query}")
    assert answer.status == 200, answer
    return answer.json()


def test_the_last_day_has_the_cluster_and_its_tenants(recorded):
    scheduler, _ = recorded
    found = wait_for(lambda: (h := history(scheduler))["cluster"]["gpu_utilization"][-1] is not None
                     and h["tenants"] and h["tenants"][0]["gpus"][-1] is not None and h)
    assert found["period"] == "day" and found["step_seconds"] == 300
    assert len(found["cluster"]["total_gpus"]) == 288
    assert found["cluster"]["total_gpus"][-1] == 2
    assert found["cluster"]["total_gpus"][0] is None
    assert found["tenants"][0]["tenant"] == "lab"


def test_a_week_has_longer_steps(recorded):
    scheduler, _ = recorded
    found = history(scheduler, "?period=week")
    assert found["step_seconds"] == 1800 and len(found["cluster"]["total_gpus"]) == 336


def test_a_gpu_has_its_own_history(recorded):
    scheduler, crowd = recorded
    uuid = crowd.nodes[0].uuid(1)
    wait_for(lambda: scheduler.get(f"/api/v1/history?gpu={uuid}").status == 200)
    gpu = history(scheduler, f"?gpu={uuid}")["gpu"]
    assert gpu["uuid"] == uuid and gpu["temperature_c"][-1] > 0 and gpu["memory_mb"][-1] > 0


def test_what_is_asked_wrongly_is_refused(recorded):
    scheduler, _ = recorded
    assert scheduler.get("/api/v1/history?period=year").status == 400
    assert scheduler.get("/api/v1/history?gpu=GPU-none").status == 404


def test_it_is_kept_in_the_database(recorded):
    scheduler, _ = recorded

    def kept():
        with sqlite3.connect(f"file:{next(scheduler.data.glob('*.db'))}?mode=ro", uri=True) as db:
            return {key for (key,) in db.execute("select key from kept where kind = 'history'")}

    wait_for(lambda: {"cluster", "tenant-1"} <= kept())
