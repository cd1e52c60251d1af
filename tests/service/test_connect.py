"""Sessions of nodes over agent.AgentService/Connect, message by message."""

import threading

import grpc
import pytest

from calls import Calls, agent_pb2, claims, jwt, scheduler_pb2, wait_for
from node import EXITED, LOAD, READY, RELEASED, START, STARTED, STOP, Node

SECRET = "a secret that has more than thirty-two bytes"


@pytest.fixture
def calls(tmp_path):
    one = Calls(tmp_path / "store.db")
    yield one
    one.stop()


def submit(calls, **fields):
    return calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
        tenant_id="lab", **fields), timeout=60).job_id


def state(calls, job):
    return calls.scheduler.GetJobStatus(
        scheduler_pb2.GetJobStatusRequest(job_id=job), timeout=60).state


def free_gpus(calls):
    return calls.scheduler.GetClusterStatus(
        scheduler_pb2.GetClusterStatusRequest(), timeout=60).available_gpus


def test_a_job_is_ordered_runs_and_ends(calls):
    node = Node(calls).begin()
    assert free_gpus(calls) == 1
    job = submit(calls, gpu_count=1, command=["true"])
    order = node.order()
    assert order["kind"] == START and f"job-{order['job_id']}" == job
    assert order["parts"][0]["uuid"] == "GPU-n1-0"
    assert '"command":["true"]' in order["payload"]
    node.change(STARTED, order)
    wait_for(lambda: state(calls, job) == "running")
    node.change(EXITED, order)
    wait_for(lambda: state(calls, job) == "completed")
    assert free_gpus(calls) == 0
    node.change(RELEASED, order)
    wait_for(lambda: free_gpus(calls) == 1)
    node.close()


def test_changes_are_acknowledged_when_they_are_durable(calls):
    node = Node(calls).begin()
    submit(calls, gpu_count=1, command=["true"])
    order = node.order()
    node.change(STARTED, order)
    while node.expect("ack")["acknowledged"] < node.number:
        pass
    node.close()


def test_an_order_that_is_not_acknowledged_comes_again(calls):
    node = Node(calls).begin()
    submit(calls, gpu_count=1, command=["true"])
    first = node.expect("order")
    again = node.expect("order")
    assert again["body"] == first["body"] and again["number"] == first["number"]
    node.close()


def test_a_job_that_is_cancelled_is_told_to_stop(calls):
    node = Node(calls).begin()
    job = submit(calls, gpu_count=1, command=["sleep", "99"])
    order = node.order()
    node.change(STARTED, order)
    wait_for(lambda: state(calls, job) == "running")
    calls.scheduler.CancelJob(scheduler_pb2.CancelJobRequest(job_id=job), timeout=60)
    stop = node.order()
    assert stop["kind"] == STOP and stop["reservation_id"] == order["reservation_id"]
    node.close()


def test_a_beat_is_answered_with_a_lease(calls):
    node = Node(calls).begin()
    node.say("beat", sent_ms=77, samples=[{"uuid": "GPU-n1-0", "used_mib": 5, "healthy": 1,
                                           "utilisation": 640, "temperature_c": 50}])
    renewal = node.expect("renew")["body"]
    assert renewal["sent_ms"] == 77 and renewal["lease_ms"] > 0
    status = calls.scheduler.GetClusterStatus(
        scheduler_pb2.GetClusterStatusRequest(), timeout=60)
    assert status.avg_gpu_utilization == 64
    node.close()


def test_a_node_has_one_connection(calls):
    first = Node(calls, connection=5).begin()
    second = Node(calls, connection=6).begin()
    assert first.ended.get(timeout=60)[0] == grpc.StatusCode.ABORTED
    old = Node(calls, connection=4)
    old.hello()
    refusal = old.expect("refuse")["body"]
    assert refusal["connection"] == 6
    assert old.ended.get(timeout=60)[0] == grpc.StatusCode.OK
    job = submit(calls, gpu_count=1, command=["true"])
    assert f"job-{second.order()['job_id']}" == job
    second.close()


def test_what_runs_is_found_again_by_a_new_connection(calls):
    node = Node(calls, connection=1).begin()
    job = submit(calls, gpu_count=1, command=["sleep", "99"])
    order = node.order()
    node.change(STARTED, order)
    wait_for(lambda: state(calls, job) == "running")
    node.close()
    node.ended.get(timeout=60)
    back = Node(calls, connection=2)
    back.hello()
    back.expect("welcome")
    back.snapshot(running=[order["reservation_id"]])
    back.expect("ack")
    back.change(EXITED, order)
    back.change(RELEASED, order)
    wait_for(lambda: state(calls, job) == "completed")
    back.close()


@pytest.mark.parametrize("message", [b"", b"\x00", b"\xff" * 40, bytes(range(256))])
def test_bytes_that_are_no_message_end_the_call(calls, message):
    node = Node(calls)
    node.out.put(agent_pb2.Envelope(message=message or b"\x7f"))
    assert node.ended.get(timeout=60)[0] == grpc.StatusCode.INVALID_ARGUMENT
    raw = calls.channel.stream_stream("/agent.AgentService/Connect")
    with pytest.raises(grpc.RpcError) as error:
        list(raw(iter([b"\xff\xff\xff\xff"]), timeout=60))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_hello_comes_first(calls):
    node = Node(calls)
    node.snapshot()
    assert node.ended.get(timeout=60)[0] == grpc.StatusCode.FAILED_PRECONDITION


def test_a_token_is_for_its_node_alone(tmp_path):
    calls = Calls(tmp_path / "store.db", "--jwt", SECRET)
    try:
        def metadata(*arguments, **more):
            return [("authorization", f"Bearer {jwt(claims(*arguments, **more), SECRET)}")]

        good = Node(calls, "n1", metadata=metadata("agent", node="n1")).begin()
        wrong = Node(calls, "n2", metadata=metadata("agent", node="n1"))
        wrong.hello()
        assert wrong.ended.get(timeout=60)[0] == grpc.StatusCode.PERMISSION_DENIED
        tenant = Node(calls, "n3", metadata=metadata("tenant", tenant="lab"))
        tenant.hello()
        assert tenant.ended.get(timeout=60)[0] == grpc.StatusCode.PERMISSION_DENIED
        good.close()
    finally:
        calls.stop()


def test_a_place_in_a_slot_is_waited_for_renewed_and_given_back(calls):
    node = Node(calls).begin()
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(
        calls.ask("POST", "/models/model-1/leases?wait=20s")))
    waiting.start()
    order = node.order()
    assert order["kind"] == LOAD and order["model"] == "tiny"
    node.change(STARTED, order)
    node.change(READY, order, address="http://n1:8000")
    waiting.join(timeout=60)
    status, lease = answers[0]
    assert status == 201, lease
    assert lease["address"] == "http://n1:8000" and lease["node"] == "n1"
    assert lease["slot_id"] == f"slot-{order['reservation_id']}"
    path = f"/leases/{lease['lease_id']}"
    status, renewed = calls.ask("POST", f"{path}/renew?lease=1h")
    assert status == 200 and renewed["expires_at"] > lease["expires_at"]
    assert calls.ask("GET", path)[1]["status"] == "granted"
    assert calls.ask("DELETE", path)[0] == 200
    assert calls.ask("DELETE", path)[0] == 404
    status, again = calls.ask("POST", "/models/model-1/leases")
    assert status == 201, again
    node.close()


def test_output_is_fetched_from_the_node(calls):
    node = Node(calls).begin()
    answers = []

    def read(path):
        thread = threading.Thread(target=lambda: answers.append(calls.ask("GET", path)))
        thread.start()
        return thread

    thread = read("/output/n1/7")
    request = node.others.get(timeout=60).output_request
    assert request.reservation_id == 7 and request.window > 0
    for offset, data in ((0, b"hello "), (6, b"world")):
        node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
            request_id=request.request_id, offset=offset, data=data)))
    node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
        request_id=request.request_id, end=True)))
    thread.join(timeout=60)
    assert answers.pop() == (200, "hello world")
    thread = read("/output/n1/8")
    request = node.others.get(timeout=60).output_request
    node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
        request_id=request.request_id, end=True, error="it is gone")))
    thread.join(timeout=60)
    assert answers.pop()[0] == 404
    thread = read("/output/n1/9")
    node.others.get(timeout=60)
    node.close()
    thread.join(timeout=60)
    assert answers.pop()[0] == 503
    assert calls.ask("GET", "/output/nowhere/1")[0] == 503
    # More than the node may send ahead.
    node = Node(calls, connection=2).begin()
    thread = read("/output/n1/10")
    request = node.others.get(timeout=60).output_request
    piece = b"x" * 65536
    for i in range(20):
        node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
            request_id=request.request_id, offset=i * 65536, data=piece)))
        taken = node.others.get(timeout=60).output_taken
        assert taken.offset == (i + 1) * 65536
    node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
        request_id=request.request_id, end=True)))
    thread.join(timeout=60)
    assert len(answers.pop()[1]) == 20 * 65536
    node.close()


def test_output_beyond_the_window_ends_the_reading_of_it(calls):
    node = Node(calls).begin()
    answers = []
    thread = threading.Thread(target=lambda: answers.append(calls.ask("GET", "/output/n1/7")))
    thread.start()
    request = node.others.get(timeout=60).output_request
    piece = b"x" * (request.window + 1)
    node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
        request_id=request.request_id, offset=0, data=piece)))
    stop = node.others.get(timeout=60).output_stop
    assert stop.request_id == request.request_id
    thread.join(timeout=60)
    status, answer = answers.pop()
    assert status == 503 and "more output than it was asked for" in str(answer), answer
    # Nor may it say the same again.
    thread = threading.Thread(target=lambda: answers.append(calls.ask("GET", "/output/n1/8")))
    thread.start()
    request = node.others.get(timeout=60).output_request
    for _ in range(2):
        node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
            request_id=request.request_id, offset=0, data=b"hello")))
    assert node.others.get(timeout=60).output_stop.request_id == request.request_id
    thread.join(timeout=60)
    node.close()


@pytest.mark.parametrize("uuid", ["G" * 100000, "GPU-1\nGPU-2", "GPU-\u00e9", "GPU 1"])
def test_a_gpu_whose_id_is_not_a_word_is_refused(calls, uuid):
    node = Node(calls)
    node.hello()
    node.say("snapshot", True, name=node.name, boot=node.boot, snapshot=1,
             devices=[{"uuid": uuid, "model": "A100", "capacity_mib": 80000, "healthy": 1}])
    code, reason = node.ended.get(timeout=60)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "the uuid of a device has" in reason, reason
