"""A node whose token is in the wrong hands speaks for that node, and for no other."""

import types

import grpc
import pytest

from calls import agent_pb2, agent_pb2_grpc, wait_for
from node import EXITED, LOAD, READY, REFUSED, RELEASED, START, STARTED, Node
from scheduler import make_tenant


@pytest.fixture
def service(signed_in):
    return signed_in


@pytest.fixture
def connect(service):
    """Connects a node with a token of its own."""
    opened = []

    def one(name, **more):
        made = service.post("/api/v1/tokens", {"role": "agent", "node": name})
        assert made.status == 201, made
        metadata = [("authorization", f"Bearer {made.json()['token']}")]
        channel = grpc.insecure_channel(service.grpc)
        stub = agent_pb2_grpc.AgentServiceStub(channel)
        node = Node(types.SimpleNamespace(agent=stub), name=name, metadata=metadata, **more)
        node.stub, node.metadata = stub, metadata
        opened.append((node, channel))
        return node.begin()

    yield one
    for node, channel in opened:
        node.close()
        channel.close()


def misreports(service):
    lines = service.get("/metrics").body.decode().splitlines()
    name = "gpu_scheduler_node_misreports_total "
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def settled(node):
    """All that the node said is durable, or refused."""
    while node.expect("ack")["acknowledged"] < node.number:
        pass


def job_of(service, job):
    return service.get(f"/api/v1/jobs/{job}").json()


def test_a_node_does_not_end_anothers_job_nor_free_its_gpu(service, connect):
    victim, evil = connect("n1"), connect("evil", gpus=0)
    tenant = make_tenant(service, "lab")
    body = {"tenant_id": tenant, "name": "x", "command": ["x"], "gpu_count": 1}
    job = service.post("/api/v1/jobs", body).json()["job_id"]
    order = victim.order()
    victim.change(STARTED, order)
    wait_for(lambda: job_of(service, job)["state"] == "running")
    waiting = service.post("/api/v1/jobs", body).json()["job_id"]
    for kind in (EXITED, RELEASED, REFUSED):
        evil.change(kind, order, exit_code=7, message="ended by evil", samples=[
            {"uuid": "GPU-n1-0", "foreign_mib": 70000, "healthy": 0}])
    evil.snapshot(running=[order["reservation_id"]])
    settled(evil)
    assert evil.order()["reservation_id"] == order["reservation_id"]  # to stop it, if it has it
    assert job_of(service, job)["state"] == "running"
    assert job_of(service, waiting)["state"] == "pending"
    (gpu,) = service.get("/api/v1/gpus").json()["gpus"]
    assert gpu["healthy"] and gpu["foreign_memory"] == 0
    assert misreports(service) == 5
    warned = [line for line in service.log() if line.get("node") == "evil"]
    assert len(warned) == 1 and "which is on node n1" in warned[0]["message"]
    (entry,) = wait_for(lambda: [one for one in service.get("/api/v1/audit").json()["entries"]
                                 if one["action"] == "misreport"])
    assert entry["object"] == "evil" and "which is on node n1" in entry["detail"]
    victim.change(EXITED, order)
    victim.change(RELEASED, order)
    wait_for(lambda: job_of(service, job)["state"] == "completed")
    assert victim.order()["kind"] == START


def test_a_node_does_not_take_over_anothers_slot(service, connect):
    victim, evil = connect("n1"), connect("evil", gpus=0)
    tenant = make_tenant(service, "lab")
    made = service.post("/api/v1/models", {"name": "m", "tenant_id": tenant, "gpu_memory_mb": 1000,
                                           "runtime": "llama.cpp", "min_replicas": 1})
    assert made.status == 201, made
    order = victim.order()
    assert order["kind"] == LOAD
    evil.change(READY, order, address="http://evil.example:666")
    victim.change(STARTED, order)
    victim.change(READY, order, address="http://n1:8000")

    def slots():
        return service.get("/api/v1/scheduler/slots").json()
    wait_for(lambda: slots()[0]["status"] == "ready")
    assert slots()[0]["address"] == "http://n1:8000"
    evil.change(READY, order, address="http://evil.example:666")
    evil.change(EXITED, order)
    settled(evil)
    (slot,) = slots()
    assert (slot["status"], slot["address"]) == ("ready", "http://n1:8000")
    assert misreports(service) == 5  # the addresses count beside the slot


def test_a_slot_is_reached_at_its_node_whatever_that_announces(service, connect):
    node = connect("n1")
    tenant = make_tenant(service, "lab")
    service.post("/api/v1/models", {"name": "m", "tenant_id": tenant, "gpu_memory_mb": 1000,
                                    "runtime": "llama.cpp", "min_replicas": 1})
    order = node.order()
    node.change(STARTED, order)
    node.change(READY, order, address="http://evil.example:666")
    slots = wait_for(lambda: [slot for slot in service.get("/api/v1/scheduler/slots").json()
                              if slot["status"] == "ready"])
    assert slots[0]["address"] == "http://127.0.0.1:666"
    assert misreports(service) == 1


def test_a_registered_node_does_not_report_on_anothers_job(service, connect):
    victim, evil = connect("n1"), connect("evil", gpus=0)
    tenant = make_tenant(service, "lab")
    job = service.post("/api/v1/jobs", {"tenant_id": tenant, "name": "x", "command": ["x"],
                                        "gpu_count": 1}).json()["job_id"]
    victim.change(STARTED, victim.order())
    wait_for(lambda: job_of(service, job)["state"] == "running")
    evil.close()
    evil.ended.get(timeout=60)
    wait_for(lambda: evil.stub.RegisterAgent(agent_pb2.RegisterAgentRequest(
        node_id="evil", hostname="evil"), metadata=evil.metadata, timeout=60).success)
    evil.stub.ReportMetrics(agent_pb2.ReportMetricsRequest(node_id="evil", job_metrics=[
        agent_pb2.JobMetrics(job_id=job, state="failed", exit_code="7")]),
        metadata=evil.metadata, timeout=60)
    assert misreports(service) == 1
    assert job_of(service, job)["state"] == "running"
