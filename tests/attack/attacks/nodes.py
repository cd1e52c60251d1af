"""A node that lies: what it says about others, about itself, and bytes that are no message."""

import queue
import random
import threading
import time

import grpc

from attack import attack, defeat
from calls import agent_pb2, health_pb2
from node import EXITED, LOAD, READY, REFUSED, RELEASED, STARTED
from target import CANARY, REAL


def hear(node, name, seconds=10):
    """The next message of that name; None where the session ends, or it does not come."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            message = node.got.get(timeout=0.02)
            if message["name"] == name:
                return message
        except queue.Empty:
            if not node.ended.empty():
                return None
    return None


def victims_job(site):
    """A job on a real node that takes a whole GPU."""
    job = site.victim.submit(script="sleep 100000", gpu_count=1, node_labels=REAL)
    site.await_state(job, "running")
    return job


def lie(site, say):
    """Connects as a node of the enemy's, says something for every small reservation number, and
    waits until the scheduler has read it all."""
    node = site.fake_node("evil").begin()
    try:
        for number in range(1, 60):
            say(node, {"reservation_id": number, "kind": 0})
        node.say("beat", sent_ms=7)
        hear(node, "renew")  # or it was thrown out, which is as good
    finally:
        node.close()
        site.forget_node("evil")


def judge_job(site, job, evidence):
    """Decides for the enemy where the victim's job does not run on as before."""
    now = site.job(job)
    site.victim.delete(f"/api/v1/jobs/{job}")
    site.await_state(job, "cancelled", "failed", "completed")
    defeat(now["state"] != "running", f"the victim's job is {now['state']}: {now['message']}")
    return evidence


@attack("node", "a node ends the jobs of other nodes and has their GPUs given away twice")
def end_others(world):
    site = world.site
    job = victims_job(site)

    def say(node, order):
        node.change(EXITED, order, exit_code=7, message="ended by evil")
        node.change(RELEASED, order)

    lie(site, say)
    return judge_job(site, job, "59 reservations of others named: the victim's job runs on")


@attack("node", "a node refuses work that was given to others")
def refuse_others(world):
    site = world.site
    job = victims_job(site)
    lie(site, lambda node, order: node.change(REFUSED, order, reason=1, message="no"))
    return judge_job(site, job, "the victim's job runs on")


@attack("node", "a node takes over the requests to a model on another node")
def take_over_slot(world):
    """A model is loaded on a node of the administrator's; the enemy says where it is."""
    site = world.site
    made = site.admin.post("/api/v1/models", {
        "name": "victims-model", "tenant_id": site.victim.tenant, "runtime": "vllm",
        "gpu_memory_mb": 100, "gpu_model": ["TAKEN"]})
    good = site.fake_node("good", gpus=0)
    good.gpus = 1
    good.hello()
    good.expect("welcome")
    good.say("snapshot", True, name="good", boot=good.boot, cpu_milli=8000, host_bytes=1 << 36,
             devices=[{"uuid": "GPU-good", "model": "TAKEN", "capacity_mib": 80000, "healthy": 1}],
             snapshot=1)
    good.expect("ack")
    assert made.status == 201, made
    model = made.json()["id"]
    try:
        answers = queue.Queue()
        threading.Thread(target=lambda: answers.put(site.victim.post(
            f"/api/v1/models/{model}/leases?wait=30s")), daemon=True).start()
        order = good.order()
        assert order["kind"] == LOAD, order
        good.change(STARTED, order)
        good.change(READY, order, address="http://127.0.0.1:8000")
        first = answers.get(timeout=30).json()
        lie(site, lambda node, one: node.say(
            "change", True, kind=READY, reservation_id=one["reservation_id"], slot=1,
            address="http://evil.example:666"))
        lease = site.victim.post(f"/api/v1/models/{model}/leases?wait=5s")
        defeat("evil" in str(lease.body), f"the victim's next lease: {lease}")
        return f"the address stays {first.get('address')}"
    finally:
        site.admin.delete(f"/api/v1/models/{model}")
        good.close()
        site.forget_node("good")


@attack("node", "a node says that a slot of its own is at an address that is not its own")
def foreign_address(world):
    site = world.site
    made = site.admin.post("/api/v1/models", {
        "name": "elsewhere", "tenant_id": site.victim.tenant, "runtime": "vllm",
        "gpu_memory_mb": 100, "gpu_model": ["ELSE"]})
    assert made.status == 201, made
    model = made.json()["id"]
    node = site.fake_node("liar")
    node.hello()
    node.expect("welcome")
    node.say("snapshot", True, name="liar", boot=node.boot, cpu_milli=8000, host_bytes=1 << 36,
             devices=[{"uuid": "GPU-liar", "model": "ELSE", "capacity_mib": 80000, "healthy": 1}],
             snapshot=1)
    node.expect("ack")
    try:
        answers = queue.Queue()
        threading.Thread(target=lambda: answers.put(site.victim.post(
            f"/api/v1/models/{model}/leases?wait=4s")), daemon=True).start()
        order = node.order()
        node.change(STARTED, order)
        node.change(READY, order, address="http://169.254.169.254:80")
        lease = answers.get(timeout=30)
        defeat(b"169.254" in lease.body, f"the victim is sent to {lease}")
        return f"the address was not believed: {lease.status}"
    finally:
        site.admin.delete(f"/api/v1/models/{model}")
        node.close()
        site.forget_node("liar")


@attack("node", "a node says that it runs what was given to others, and keeps it")
def adopt_others(world):
    """A snapshot that claims all reservations; then one that has none of them any more."""
    site = world.site
    job = victims_job(site)
    node = site.fake_node("evil")
    node.hello()
    node.expect("welcome")
    node.snapshot(running=range(1, 60))
    hear(node, "ack", 2)
    node.say("snapshot", True, name="evil", boot="b1", cpu_milli=1, host_bytes=1, devices=[],
             snapshot=2, running=[])
    node.say("beat", sent_ms=7)
    hear(node, "renew", 2)
    node.close()
    site.forget_node("evil")
    return judge_job(site, job, "a snapshot with 59 reservations of others changed nothing")


@attack("node", "a node measures memory on the GPUs and in the reservations of others")
def measure_others(world):
    site = world.site
    job = victims_job(site)
    uuids = [gpu["uuid"] for gpu in site.admin.get("/api/v1/gpus").json()["gpus"]]
    before = {gpu["uuid"]: gpu for gpu in site.admin.get("/api/v1/gpus").json()["gpus"]}

    def say(node, order):
        rows = [{"reservation_id": order["reservation_id"], "uuid": uuid, "memory_mib": 70000,
                 "reserved_mib": 1} for uuid in uuids]
        samples = [{"uuid": uuid, "foreign_mib": 80000, "used_mib": 80000, "temperature_c": 120,
                    "healthy": 0} for uuid in uuids]
        node.say("beat", sent_ms=1, samples=samples, uses=rows)

    lie(site, say)
    after = {gpu["uuid"]: gpu for gpu in site.admin.get("/api/v1/gpus").json()["gpus"]}
    for uuid in uuids:
        if uuid not in after:
            continue
        for field in ("healthy", "hot", "foreign_memory", "over", "present"):
            defeat(before[uuid][field] != after[uuid][field],
                   f"{uuid} {field}: {before[uuid][field]} -> {after[uuid][field]}")
    return judge_job(site, job, f"beats about {len(uuids)} GPUs of others changed nothing")


@attack("node", "a node says that it has the GPUs of others")
def steal_uuids(world):
    site = world.site
    uuid = site.agents[0].uuid()
    node = site.fake_node("evil")
    node.hello()
    node.expect("welcome")
    node.say("snapshot", True, name="evil", boot="b1", cpu_milli=1000, host_bytes=1 << 30, snapshot=1,
             devices=[{"uuid": uuid, "model": "A100", "capacity_mib": 80000, "healthy": 1}])
    hear(node, "ack", 2)
    gpus = [gpu for gpu in site.admin.get("/api/v1/gpus").json()["gpus"] if gpu["uuid"] == uuid]
    node.close()
    site.forget_node("evil")
    owners = {gpu.get("node") or gpu.get("node_id") or gpu.get("node_name") for gpu in gpus}
    defeat(owners != {site.agents[0].name}, f"{uuid} belongs to {owners}")
    return f"{uuid} stays with its node"


@attack("node", "a token speaks for a node that it is not bound to, or is no node's token at all")
def wrong_token(world):
    site = world.site
    name = site.agents[0].name
    people = {"another node's": site.node_token("other"), "a tenant's": site.enemy,
              "a viewer's": site.person(site.enemy.tenant, role="viewer")}
    for what, person in people.items():
        node = site.fake_node(name, person)
        node.hello()
        try:
            code, _ = node.ended.get(timeout=60)
        except queue.Empty:
            code = None
        node.close()
        defeat(code is not grpc.StatusCode.PERMISSION_DENIED, f"{what} token: {code}")
    anonymous = site.calls.agent.Connect(iter([agent_pb2.Envelope(message=b"x")]))
    try:
        list(anonymous)
        defeat(True, "no token is needed")
    except grpc.RpcError as error:
        defeat(error.code() is not grpc.StatusCode.UNAUTHENTICATED, error.code())
    return "three tokens and none: PERMISSION_DENIED, UNAUTHENTICATED"


@attack("node", "a node speaks for another by the older calls: registers, beats and ends its jobs")
def legacy_for_others(world):
    site = world.site
    job = victims_job(site)
    person, name, pb = site.node_token("evil"), site.agents[0].name, agent_pb2
    calls = site.calls.agent
    asks = [lambda: calls.RegisterAgent(pb.RegisterAgentRequest(
                node_id=name, total_cpu_cores=1, gpus=[pb.GPUInfo(gpu_id="G", memory_total_mb=9)]),
                metadata=person.metadata, timeout=60),
            lambda: calls.ReportMetrics(pb.ReportMetricsRequest(node_id=name, job_metrics=[
                pb.JobMetrics(job_id=job, state="failed")]), metadata=person.metadata, timeout=60),
            lambda: calls.ReportMetrics(pb.ReportMetricsRequest(node_id="evil", job_metrics=[
                pb.JobMetrics(job_id=job, state="completed")]), metadata=person.metadata, timeout=60),
            lambda: list(calls.Heartbeat(iter([pb.HeartbeatRequest(node_id=name)]),
                                         metadata=person.metadata, timeout=60)),
            lambda: next(calls.ReceiveJobAssignment(iter([pb.JobAssignmentRequest(
                node_id=name, status="ready")]), metadata=person.metadata, timeout=3))]
    codes = []
    for ask in asks:
        try:
            codes.append(str(ask())[:60])
        except StopIteration:
            codes.append("ended")
        except grpc.RpcError as error:
            codes.append(error.code().name)
    return judge_job(site, job, f"answers: {codes}")


@attack("node", "a stream that names two nodes leaves a pointer behind, and a stranger gets a job")
def two_names(world):
    site, calls = world.site, world.site.calls.agent
    person = site.node_token()
    words, assigned = queue.Queue(), queue.Queue()
    for name in ("two-a", "two-b"):
        register(calls, name, person)
    stream = calls.ReceiveJobAssignment(iter(words.get, None), metadata=person.metadata)
    threading.Thread(target=collect, args=(stream, assigned), daemon=True).start()
    jobs = []
    for name in ("two-a", "two-b"):
        words.put(agent_pb2.JobAssignmentRequest(node_id=name, status="ready"))
        jobs.append(site.victim.submit(command=["true"], gpu_count=5))
        try:
            if assigned.get(timeout=10) is None:
                return f"the stream was ended when it named {name} too"
        except queue.Empty:
            return f"the stream gets nothing for {name}, which it named second"
    first = "two-a" if site.job(jobs[0])["node_name"] == "two-a" else "two-b"
    for state in ("running", "completed"):
        report(calls, first, jobs[0], state, person)
    stream.cancel()
    words.put(None)
    heard = queue.Queue()
    site.calls.health.Check(health_pb2.HealthCheckRequest(), timeout=60)  # the end was read
    watches = [watch_raw(site, heard) for _ in range(20)]
    for _ in watches:
        heard.get(timeout=20)  # each is told the health at first
    last = site.victim.submit(command=["true", CANARY], gpu_count=5)
    site.await_state(last, "scheduled", "running")
    try:
        data = heard.get(timeout=2)
    except queue.Empty:
        data = b""
    for watch in watches:
        watch.cancel()
    defeat(CANARY.encode() in data, f"a stranger's health watch received {data}")
    return "20 strangers with open calls heard nothing but their own health"


def register(calls, name, person):
    gpus = [agent_pb2.GPUInfo(gpu_id=f"G-{name}-{i}", index=i, memory_total_mb=90000)
            for i in range(5)]
    calls.RegisterAgent(agent_pb2.RegisterAgentRequest(
        node_id=name, total_cpu_cores=8, total_memory_mb=1024, gpus=gpus),
        metadata=person.metadata, timeout=60)


def report(calls, name, job, state, person):
    calls.ReportMetrics(agent_pb2.ReportMetricsRequest(
        node_id=name, job_metrics=[agent_pb2.JobMetrics(job_id=job, state=state)]),
        metadata=person.metadata, timeout=60)


def collect(stream, into):
    """Puts what a stream brings into a queue, and None when it ends."""
    try:
        for message in stream:
            into.put(message)
    except grpc.RpcError:
        pass
    into.put(None)


def watch_raw(site, heard):
    """A health watch without a token; the bytes of what it is sent."""
    call = site.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
    threading.Thread(target=collect, args=(call, heard), daemon=True).start()
    return call


@attack("node", "a node names a GPU with 100,000 bytes, line ends or escapes")
def odd_uuids(world):
    site = world.site
    odd = {"long": "G" * 100000, "lines": "GPU\nfake\r\nX: y", "escape": "GPU\x1b[2J",
           "empty": ""}
    shown = []
    for what, uuid in odd.items():
        node = site.fake_node("odd")
        node.hello()
        node.expect("welcome")
        node.say("snapshot", True, name="odd", boot="b1", cpu_milli=1, host_bytes=1, snapshot=1,
                 devices=[{"uuid": uuid, "model": "A100", "capacity_mib": 80000, "healthy": 1}])
        hear(node, "ack", 1)
        if uuid and uuid in [gpu["uuid"] for gpu in site.admin.get("/api/v1/gpus").json()["gpus"]]:
            shown.append(what)
        node.close()
        site.forget_node("odd")
    defeat(shown, f"taken as names of GPUs: {shown}")
    return f"refused: {', '.join(odd)}"


@attack("node", "a node sends numbers that no GPU has")
def extreme_numbers(world):
    site = world.site
    values = [-1, 0, 1 << 31, (1 << 63) - 1, -(1 << 63)]
    for value in values:
        node = site.fake_node("extreme")
        node.hello()
        node.expect("welcome")
        node.say("snapshot", True, name="extreme", boot="b1", cpu_milli=value, host_bytes=value,
                 snapshot=value, devices=[{"uuid": "G-extreme", "model": "X", "place": value,
                                           "capacity_mib": value, "overhead_mib": value,
                                           "foreign_mib": value, "temperature_c": value,
                                           "nvlink_group": value, "healthy": value}])
        node.say("beat", sent_ms=value, samples=[{"uuid": "G-extreme", "used_mib": value,
                                                  "power_mw": value, "utilisation": value}])
        node.change(EXITED, {"reservation_id": value, "kind": 0}, exit_code=value, took_ms=value)
        hear(node, "renew", 1)
        node.close()
        site.forget_node("extreme")
    return f"{len(values)} sessions: refused or kept apart, nothing broke"


@attack("node", "a node says valid messages in an order that nobody expects")
def random_messages(world):
    """A seed, so that a run can be repeated."""
    site, rng, sent = world.site, random.Random(7), 0
    for session in range(3 if world.quick else 12):
        node = site.fake_node("random", boot=f"b{session % 2}")
        for _ in range(60 if world.quick else 400):
            random_message(node, rng)
            sent += 1
        hear(node, "refuse", 1)
        node.close()
        site.forget_node("random")
    return f"{sent} messages, seed 7"


def random_message(node, rng):
    number = rng.choice([0, 1, 2, 3, 50, 1 << 40])
    device = {"uuid": f"G-r{rng.randrange(3)}", "model": "M", "capacity_mib": rng.choice([0, 80000]),
              "healthy": rng.randrange(2), "place": rng.randrange(3)}
    row = {"reservation_id": number, "uuid": device["uuid"], "memory_mib": rng.randrange(9000)}
    kind = rng.choice(["hello", "snapshot", "change", "beat", "ack", "order", "welcome", "renew"])
    body = {"hello": {"name": "random", "protocol": rng.randrange(3)},
            "snapshot": {"name": "random", "boot": node.boot, "devices": [device] * rng.randrange(3),
                         "running": [row] * rng.randrange(3), "snapshot": number},
            "change": {"kind": rng.randrange(6), "reservation_id": number, "slot": rng.randrange(2),
                       "samples": [device], "measurements": [row]},
            "beat": {"sent_ms": number, "samples": [device], "uses": [row]}}.get(kind, {})
    node.say(kind, bool(rng.randrange(2)), **body)


@attack("node", "bytes that are no message end more than the call they came in")
def not_messages(world):
    site, metadata = world.site, world.site.node_token("bytes").metadata
    raw = site.channel.stream_stream("/agent.AgentService/Connect")
    for data in (b"", b"\xff" * 4, b"\n\x05ab", b"\n" + b"\xff" * 9 + b"\x01", b"\x00" * 1000,
                 bytes(range(256)), b"\n\x02\x00\x00", b"\x1a\xff\xff\xff\xff\x0f"):
        try:
            list(raw(iter([data]), metadata=metadata, timeout=5))
        except grpc.RpcError as error:
            defeat(error.code() is grpc.StatusCode.UNAVAILABLE, f"{data[:8]}: {error.details()}")
    return "8 kinds of bytes: each ended its own call"


@attack("node", "a node answers a request for output that was put to another node")
def foreign_output(world):
    site = world.site
    job = site.victim.submit(script="echo real; sleep 100000")
    site.await_state(job, "running")
    site.wait(lambda: "real" in site.logs(job))
    node = site.fake_node("evil").begin()
    over = threading.Event()

    def shout():
        while not over.wait(0.0005):
            for request in range(1, 40):
                node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
                    request_id=request, offset=0, data=b"forged by evil", end=True)))
            if node.out.qsize() > 2000:
                over.wait(0.05)

    threading.Thread(target=shout, daemon=True).start()
    heard = [site.victim.get(f"/api/v1/jobs/{job}/logs").body for _ in range(10)]
    over.set()
    node.close()
    site.forget_node("evil")
    site.victim.delete(f"/api/v1/jobs/{job}")
    defeat(any(b"forged" in body for body in heard), f"the log has {heard}")
    return "10 reads while 40 requests were answered by a stranger: all real"
