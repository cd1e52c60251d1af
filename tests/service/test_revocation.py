"""Streams end when the sign-in that they were opened with no longer holds."""

import asyncio
import http.client
import json
import queue
import threading
import urllib.parse

import grpc
import pytest
import websockets

from calls import agent_pb2, agent_pb2_grpc, claims, jwt, wait_for
from node import STARTED, Node
from scheduler import make_tenant

OLD, NEW = "the secret that is taken away, of 32 bytes", "the secret that comes instead of it"
KINDS = {"websocket", "logs", "lease", "connect", "heartbeat", "assignments"}


class Cluster:
    """A scheduler with sign-in, and a node whose own token stays: it runs a job of the tenant
    'lab' and has no room for the model 'large'."""

    def __init__(self, start):
        self.scheduler = start(sections={"auth": {"enable": True, "jwt_secret": OLD},
                                         "api": {"stop_grace_ms": 100}})
        self.scheduler.token = jwt(claims(sub="maker"), OLD)
        self.scheduler.token = self.token("admin")
        self.lab = make_tenant(self.scheduler, "lab")
        made = self.scheduler.post("/api/v1/models", {
            "name": "large", "tenant_id": self.lab, "runtime": "vllm", "gpu_memory_mb": 70000})
        assert made.status == 201, made
        self.model = made.json()["id"]
        self.channel = grpc.insecure_channel(self.scheduler.grpc.split("//")[-1])
        self.agent = agent_pb2_grpc.AgentServiceStub(self.channel)
        self.node = Node(self, "host", metadata=bearer(self.token("agent"))).begin()
        job = self.scheduler.post("/api/v1/jobs", {"tenant_id": self.lab, "gpu_count": 1,
                                                   "command": ["true"]})
        self.job = job.json()["job_id"]
        self.node.change(STARTED, self.node.order())
        path = f"/api/v1/jobs/{self.job}"
        wait_for(lambda: self.scheduler.get(path).json()["state"] == "running")

    def make_token(self, role, **more):
        made = self.scheduler.post("/api/v1/tokens", {"role": role, **more})
        assert made.status == 201, made
        return made.json()

    def token(self, role, **more):
        return self.make_token(role, **more)["token"]

    def told(self, field):
        """The next envelope to the node that has the field."""
        while not (envelope := self.node.others.get(timeout=60)).HasField(field):
            pass
        return getattr(envelope, field)

    def close(self):
        self.node.close()
        self.channel.close()


def bearer(token):
    return [("authorization", f"Bearer {token}")]


class Listener:
    """A WebSocket that listens in a thread; `closed` has the code and the reason."""

    def __init__(self, scheduler, token, query=""):
        self.url = scheduler.url.replace("http", "ws") + "/api/v1/stream" + query
        self.token = token
        self.got, self.closed = queue.Queue(), queue.Queue()
        threading.Thread(target=lambda: asyncio.run(self.listen()), daemon=True).start()
        assert json.loads(self.got.get(timeout=60))["type"] == "hello"

    async def listen(self):
        headers = {"Authorization": f"Bearer {self.token}"}
        async with websockets.connect(self.url, extra_headers=headers) as socket:
            try:
                while True:
                    self.got.put(await socket.recv())
            except websockets.exceptions.ConnectionClosed as closed:
                self.closed.put((closed.rcvd.code, closed.rcvd.reason))


class Streams:
    """One of each kind, opened with the tokens of a tenant and of an agent. How each ended is
    in `ends`; what still came is in `got`."""

    def __init__(self, cluster, tenant, agent, prefix):
        self.cluster, self.tenant, self.agent, self.prefix = cluster, tenant, agent, prefix
        self.ends, self.got = {}, queue.Queue()
        self.open_websocket()
        self.open_logs()
        self.open_lease()
        self.node = Node(cluster, f"{prefix}-connect", metadata=bearer(agent), gpus=0).begin()
        self.watch("connect", lambda: self.node.ended.get(timeout=40))
        self.open_legacy()

    def watch(self, kind, wait):
        def run():
            try:
                self.ends[kind] = wait()
            except (OSError, http.client.HTTPException, queue.Empty) as error:
                self.ends[kind] = error

        threading.Thread(target=run, daemon=True).start()

    def open_websocket(self):
        listener = Listener(self.cluster.scheduler, self.tenant, "?topics=jobs,metrics")
        self.watch("websocket", lambda: listener.closed.get(timeout=40))

    def connection(self):
        parts = urllib.parse.urlsplit(self.cluster.scheduler.url)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=40)

    def open_logs(self):
        connection = self.connection()
        connection.request("GET", f"/api/v1/jobs/{self.cluster.job}/logs?follow=1",
                           headers={"Authorization": f"Bearer {self.tenant}"})
        self.request_id = self.cluster.told("output_request").request_id
        self.print(0, b"first\n")
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert answer.status == 200 and answer.read(6) == b"first\n"

        def wait():
            try:
                return answer.read()
            except http.client.IncompleteRead as cut:
                return "cut", cut.partial

        self.watch("logs", wait)

    def print(self, offset, text):
        self.cluster.node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
            request_id=self.request_id, offset=offset, data=text)))

    def open_lease(self):
        connection = self.connection()
        connection.request("POST", f"/api/v1/models/{self.cluster.model}/leases?wait=2m",
                           headers={"Authorization": f"Bearer {self.tenant}"})

        def wait():
            answer = connection.getresponse()
            return answer.status, answer.read()

        self.watch("lease", wait)

    def open_legacy(self):
        name, metadata = f"{self.prefix}-legacy", bearer(self.agent)
        stub = self.cluster.agent
        gpu = agent_pb2.GPUInfo(gpu_id=f"GPU-{name}", model="A100", memory_total_mb=100)
        stub.RegisterAgent(agent_pb2.RegisterAgentRequest(node_id=name, gpus=[gpu]),
                           metadata=metadata, timeout=60)
        words = queue.Queue()
        beats = stub.Heartbeat(iter(words.get, None), metadata=metadata)
        words.put(agent_pb2.HeartbeatRequest(node_id=name))
        assert next(beats).acknowledged
        ready = queue.Queue()
        assignments = stub.ReceiveJobAssignment(iter(ready.get, None), metadata=metadata)
        ready.put(agent_pb2.JobAssignmentRequest(node_id=name))
        # The answer to a later message on the same connection: the service has both streams.
        words.put(agent_pb2.HeartbeatRequest(node_id=name))
        assert next(beats).acknowledged

        def wait(call):
            try:
                for message in call:
                    self.got.put(message)
                return grpc.StatusCode.OK, ""
            except grpc.RpcError as error:
                return error.code(), error.details()

        self.watch("heartbeat", lambda: wait(beats))
        self.watch("assignments", lambda: wait(assignments))

    def check_ended(self, reason, kinds=KINDS):
        """That all of them ended, each as its protocol says."""
        wait_for(lambda: set(self.ends) >= kinds, seconds=30)
        expected = {
            "websocket": (1008, reason),
            "logs": ("cut", b""),
            "connect": (grpc.StatusCode.UNAUTHENTICATED, reason),
            "heartbeat": (grpc.StatusCode.UNAUTHENTICATED, reason),
            "assignments": (grpc.StatusCode.UNAUTHENTICATED, reason),
        }
        for kind in kinds & set(expected):
            assert self.ends[kind] == expected[kind], (kind, self.ends[kind])
        if "lease" in kinds:
            status, body = self.ends["lease"]
            assert status == 401 and json.loads(body)["error"] == reason


@pytest.fixture
def cluster(start):
    one = Cluster(start)
    yield one
    one.close()


def test_revoking_a_token_ends_what_it_opened(cluster):
    tenant = cluster.make_token("tenant", tenant_id="lab")
    agent = cluster.make_token("agent")
    other = cluster.make_token("tenant", tenant_id="lab")
    streams = Streams(cluster, tenant["token"], agent["token"], "revoked")
    staying = Streams(cluster, other["token"], cluster.token("agent"), "staying")
    for one in (tenant, agent):
        assert cluster.scheduler.delete(f"/api/v1/tokens/{one['id']}").status == 200
    streams.check_ended("the token was revoked")
    assert not staying.ends, "streams of other tokens stay open"
    assert cluster.told("output_stop").request_id == streams.request_id
    staying.print(6, b"second\n")
    # A revoked agent gets no order, and is told why when it comes back.
    before = streams.node.got.qsize()
    again = Node(cluster, "revoked-connect", connection=2, metadata=bearer(agent["token"]))
    again.hello()
    assert again.ended.get(timeout=60)[0] == grpc.StatusCode.UNAUTHENTICATED
    assert again.got.empty() and streams.node.got.qsize() == before


def test_streams_end_when_their_tokens_expire(cluster):
    for seconds in (4, 30, 120):  # a slow machine takes its time to open them
        try:
            by_token = Streams(
                cluster, cluster.token("tenant", tenant_id="lab", expires_in=f"{seconds}s"),
                cluster.token("agent", expires_in=f"{seconds}s"), f"token-{seconds}")
            by_jwt = Streams(cluster, jwt(claims("tenant", seconds, tenant="lab"), OLD),
                             jwt(claims("agent", seconds), OLD), f"jwt-{seconds}")
            break
        except Exception:
            if seconds == 120:
                raise
    by_token.check_ended("the token has expired")
    by_jwt.check_ended("the token has expired")


def test_taking_a_key_away_ends_what_it_let_in(cluster):
    by_key = Streams(cluster, jwt(claims("tenant", tenant="lab"), OLD),
                     jwt(claims("agent"), OLD), "key")
    by_token = Streams(cluster, cluster.token("tenant", tenant_id="lab"),
                       cluster.token("agent"), "token")
    # The same keys again end nothing.
    cluster.scheduler.reload()
    cluster.scheduler.await_log("the settings were read again")
    assert not by_key.ends
    cluster.scheduler.sections["auth"]["jwt_secret"] = NEW
    cluster.scheduler.reload()
    by_key.check_ended("the key of the token is not accepted any more")
    assert not by_token.ends


def test_a_changed_audience_ends_what_the_old_one_let_in(cluster):
    streams = Streams(cluster, jwt(claims("tenant", tenant="lab"), OLD),
                      jwt(claims("agent"), OLD), "audience")
    cluster.scheduler.sections["auth"]["jwt_audience"] = "another"
    cluster.scheduler.reload()
    streams.check_ended("the key of the token is not accepted any more")


def test_deleting_a_tenant_ends_its_streams_and_its_tokens(cluster):
    scheduler = cluster.scheduler
    make_tenant(scheduler, "gone")
    tokens = [cluster.token("tenant", tenant_id="gone"), cluster.token("viewer", tenant_id="gone"),
              jwt(claims("tenant", tenant="gone"), OLD)]
    listeners = [Listener(scheduler, token) for token in tokens]
    assert scheduler.delete("/api/v1/tenants/gone").status == 200
    for listener in listeners:
        code, reason = listener.closed.get(timeout=60)
        assert code == 1008 and "deleted" in reason
    for token in tokens:
        answer = scheduler.get("/api/v1/jobs", token=token)
        assert answer.status == 401 and "tenant" in answer.json()["error"]
    unknown = scheduler.get("/api/v1/jobs", token=jwt(claims("tenant", tenant="tenant-999"), OLD))
    assert unknown.status == 401 and "does not exist" in unknown.json()["error"]


def test_a_request_whose_token_is_revoked_before_its_body_is_there_does_nothing(cluster):
    scheduler = cluster.scheduler
    made = cluster.make_token("tenant", tenant_id="lab")
    body = json.dumps({"tenant_id": "lab", "name": "late", "command": ["true"]}).encode()
    parts = urllib.parse.urlsplit(scheduler.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.putrequest("POST", "/api/v1/jobs")
    connection.putheader("Authorization", f"Bearer {made['token']}")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    connection.send(body[:5])
    # Another request on the same loop comes after this head.
    assert scheduler.get("/api/v1/jobs").status == 200
    assert scheduler.delete(f"/api/v1/tokens/{made['id']}").status == 200
    connection.send(body[5:])
    answer = connection.getresponse()
    assert answer.status == 401, answer.read()
    names = [job["name"] for job in scheduler.get("/api/v1/jobs").json()["jobs"]]
    assert "late" not in names


def test_reading_the_settings_again_does_not_open_the_service(cluster):
    cluster.scheduler.sections["auth"]["enable"] = False
    cluster.scheduler.reload()
    cluster.scheduler.await_log("the settings were read again")
    cluster.scheduler.token = None
    assert cluster.scheduler.get("/api/v1/jobs").status == 401
