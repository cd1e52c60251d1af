"""What owners of a GPU use, and what is in flight in a slot, as measured last."""

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
def shared(tmp_path_factory):
    scheduler = Scheduler(tmp_path_factory.mktemp("measured"))
    scheduler.post("/api/v1/tenants", {"name": "lab"})
    crowd = Crowd(scheduler.grpc, 1, gpus=1)
    yield scheduler
    crowd.close()
    scheduler.stop()


def test_each_owner_of_a_shared_gpu_has_its_own_use(shared):
    jobs = [shared.post("/api/v1/jobs", {"tenant_id": "lab", "gpu_memory_mb": mib,
                                         "command": ["true"]}).json()["job_id"]
            for mib in (10000, 20000)]

    def owners():
        holders = [one for gpu in shared.get("/api/v1/gpus?holders=true").json()["gpus"]
                   for one in gpu["holders"]]
        return len(holders) == 2 and all(one["measured_memory_mb"] > 0 for one in holders) and holders

    for owner in wait_for(owners):
        assert owner["measured_memory_mb"] <= owner["memory_mb"]
    for job in jobs:
        part = shared.get(f"/api/v1/jobs/{job}").json()["allocations"][0]["gpus"][0]
        assert 0 < part["measured_memory_mb"] <= part["memory_mb"]


def test_a_lease_counts_in_its_slot(shared):
    model = shared.post("/api/v1/models", {"name": "answers", "tenant_id": "lab", "runtime": "vllm",
                                           "path": "/answers", "gpu_memory_mb": 10000,
                                           "min_replicas": 1}).json()["id"]
    wait_for(lambda: shared.get(f"/api/v1/models/{model}").json()["ready_slots"] == 1)
    assert shared.post(f"/api/v1/models/{model}/leases?wait=30s", {}).status in (200, 201)
    slots = shared.get("/api/v1/scheduler/slots").json()
    assert [slot["active_requests"] for slot in slots] == [1]
