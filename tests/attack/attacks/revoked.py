"""Tokens that were revoked, expired, or whose key was taken away: what they still have open."""

import asyncio
import http.client
import json
import queue
import threading
import time

import grpc
import websockets

from attack import attack, defeat
from calls import agent_pb2
from target import SECRET

CLOSED_WITHIN = 20  # seconds, for closing that should take one


class Listener:
    """A WebSocket of live events, kept open in a thread."""

    def __init__(self, site, token, query=""):
        self.url = site.scheduler.url.replace("http", "ws") + "/api/v1/stream" + query
        self.token = token
        self.heard, self.joined, self.closed = queue.Queue(), threading.Event(), threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.listen()), daemon=True).start()
        assert self.joined.wait(20), "the stream did not open"

    async def listen(self):
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            async with websockets.connect(self.url, extra_headers=headers) as socket:
                async for message in socket:
                    self.joined.set()
                    self.heard.put(json.loads(message))
        except (OSError, websockets.WebSocketException):
            pass
        self.closed.set()


def judge_listener(site, listener, submit, what):
    """Decides for the enemy where the stream stays open and tells of a new job."""
    if listener.closed.wait(CLOSED_WITHIN):
        return f"the stream of {what} was closed"
    while not listener.heard.empty():
        listener.heard.get()
    submit()
    try:
        event = listener.heard.get(timeout=10)
    except queue.Empty:
        event = "nothing, but it stays open"
    defeat(not listener.closed.is_set(), f"{CLOSED_WITHIN} s later {what} hears {event}")
    return f"the stream of {what} was closed late"


def submit_quietly(site):
    """A job that ends at once, so that a listener of the enemy's tenant hears of it."""
    site.person(site.enemy.tenant, role="tenant").submit(command=["true"])


@attack("token thief", "a stream of events goes on after its token was revoked")
def revoked_stream(world):
    site = world.site
    person = site.person(site.enemy.tenant, role="tenant")
    listener = Listener(site, person.token)
    site.revoke(person)
    return judge_listener(site, listener, lambda: submit_quietly(site), "a revoked token")


@attack("token thief", "a viewer's stream goes on after its token was revoked")
def revoked_viewer(world):
    site = world.site
    person = site.person(site.enemy.tenant, role="viewer")
    listener = Listener(site, person.token, "?topics=jobs,gpus")
    site.revoke(person)
    return judge_listener(site, listener, lambda: submit_quietly(site), "a revoked viewer")


@attack("token thief", "a stream of events goes on after its API token expired", quick=False)
def expired_stream(world):
    site = world.site
    person = site.person(site.enemy.tenant, role="tenant", expires_in="3s")
    listener = Listener(site, person.token)
    time.sleep(4)
    return judge_listener(site, listener, lambda: submit_quietly(site), "an expired API token")


@attack("token thief", "a stream of events goes on after its JSON web token expired", quick=False)
def expired_jwt_stream(world):
    site = world.site
    listener = Listener(site, site.jwt("tenant", tenant=site.enemy.tenant, seconds=2))
    time.sleep(8)  # clocks may differ by 5 s
    return judge_listener(site, listener, lambda: submit_quietly(site), "an expired JWT")


@attack("token thief", "a stream of events goes on after its tenant was deleted")
def stream_of_deleted_tenant(world):
    site = world.site
    person = site.tenant_person("deleted-later")
    listener = Listener(site, person.token)
    assert site.admin.delete(f"/api/v1/tenants/{person.tenant}").status in (200, 204)
    return judge_listener(site, listener, lambda: submit_quietly(site), "a deleted tenant")


@attack("token thief", "a stream of events goes on after the key of its token was taken away")
def key_taken_away(world):
    site = world.site
    listener = Listener(site, site.jwt("tenant", tenant=site.enemy.tenant))

    def is_known(name):
        token = site.jwt("tenant", tenant=site.enemy.tenant, sub=name)
        return site.scheduler.get("/api/v1/jobs", token=token).status == 200

    with site.settings_changed("auth", jwt_secret="another secret of more than thirty-two bytes"):
        site.wait(lambda: not is_known("during"))
        said = judge_listener(site, listener, lambda: submit_quietly(site), "a key taken away")
    site.wait(lambda: is_known("after"))
    return said


@attack("token thief", "a job's output is followed after the token was revoked")
def followed_logs(world):
    site = world.site
    job = site.enemy.submit(script="while :; do echo line; sleep 0.1; done")
    site.await_state(job, "running")
    person = site.person(site.enemy.tenant, role="tenant")
    connection = http.client.HTTPConnection("127.0.0.1", site.scheduler.port, timeout=20)
    try:
        connection.request("GET", f"/api/v1/jobs/{job}/logs?follow=1",
                           headers={"Authorization": f"Bearer {person.token}"})
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read(5) == b"line\n"
        site.revoke(person)
        return read_to_end(answer)
    finally:
        connection.close()
        site.enemy.delete(f"/api/v1/jobs/{job}")


def read_to_end(answer):
    """Decides for the enemy where an answer goes on for longer than closing may take."""
    until = time.monotonic() + CLOSED_WITHIN
    try:
        while time.monotonic() < until:
            if not answer.read(5):
                return "the output ended"
    except (OSError, http.client.HTTPException):
        return "the output was cut off"
    defeat(True, f"{CLOSED_WITHIN} s later the output still comes")
    return ""


@attack("token thief", "a revoked node is still given jobs and their secrets")
def revoked_node(world):
    """A node speaks by a token that is then revoked; a job that only it can run is submitted."""
    site = world.site
    person = site.node_token("revoked-node")
    node = site.fake_node("revoked-node", person, gpus=7).begin()
    site.revoke(person)
    try:
        try:
            node.ended.get(timeout=CLOSED_WITHIN)
            return "the session was ended"
        except queue.Empty:
            pass
        job = site.victim.submit(command=["true"], gpu_count=7,
                                 secret_environment={"TOKEN": SECRET})
        order = node.order()
        site.victim.delete(f"/api/v1/jobs/{job}")
        defeat(True, f"{CLOSED_WITHIN} s later it got {job}"
                     f"{' with its secret' if SECRET in order['payload'] else ''}")
    finally:
        node.close()
        site.forget_node("revoked-node")
    return ""


@attack("token thief", "a revoked node of another maker still takes assignments")
def revoked_legacy_node(world):
    site = world.site
    person = site.node_token("legacy-revoked")
    calls = site.calls.agent
    calls.RegisterAgent(agent_pb2.RegisterAgentRequest(
        node_id="legacy-revoked", total_cpu_cores=8, total_memory_mb=1024,
        gpus=[agent_pb2.GPUInfo(gpu_id=f"G-lr-{i}", index=i, memory_total_mb=1000)
              for i in range(6)]), metadata=person.metadata, timeout=60)
    words = queue.Queue()
    words.put(agent_pb2.JobAssignmentRequest(node_id="legacy-revoked", status="ready"))
    stream = calls.ReceiveJobAssignment(iter(words.get, None), metadata=person.metadata)
    ended, got = threading.Event(), queue.Queue()

    def collect():
        try:
            for assignment in stream:
                got.put(assignment)
        except grpc.RpcError:
            pass
        ended.set()

    threading.Thread(target=collect, daemon=True).start()
    try:
        site.wait(lambda: (site.node("legacy-revoked") or {}).get("reported"))
        site.revoke(person)
        if ended.wait(CLOSED_WITHIN):
            return "the stream was ended"
        job = site.victim.submit(command=["true"], gpu_count=6)
        try:
            assignment = got.get(timeout=10)
        finally:
            site.victim.delete(f"/api/v1/jobs/{job}")
        defeat(True, f"{CLOSED_WITHIN} s later it was assigned {assignment.job_id}")
    finally:
        words.put(None)
        stream.cancel()
        site.forget_node("legacy-revoked")
    return ""


@attack("token thief", "a request on a connection that was kept alive is answered after revocation")
def kept_alive(world):
    site = world.site
    person = site.person(site.enemy.tenant, role="tenant")
    connection = http.client.HTTPConnection("127.0.0.1", site.scheduler.port, timeout=20)
    headers = {"Authorization": f"Bearer {person.token}"}
    statuses = []
    for step in range(2):
        connection.request("GET", "/api/v1/jobs", headers=headers)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
        if step == 0:
            site.revoke(person)
    connection.close()
    defeat(statuses[1] != 401, f"answers: {statuses}")
    return f"answers: {statuses}"
