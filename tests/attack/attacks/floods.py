"""Clients that want the memory, the connections or the time of the scheduler and its agents."""

import http.client
import resource
import socket
import threading
import time

import h2.settings
from test_hostile import Http2

from attack import Skipped, attack, defeat
from calls import agent_pb2
from target import REAL


@attack("anonymous", "answers behind a window of 0 fill the memory, without a token")
def closed_window(world):
    """Many requests for a large answer that the client never takes. PINGs keep it open."""
    connections, streams = (2, 300) if world.quick else (8, 512)
    site = world.site
    clients = []
    with world.flood(connections * 4, f"4 MiB for each of {connections} connections"):
        for _ in range(connections):
            client = Http2(site.http)
            client.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
            client.connection.remote_settings.update({3: 1 << 20})
            try:
                for stream in range(1, 2 * streams, 2):
                    client.request(stream, "/openapi.json")
                client.flush()
            except OSError:
                pass
            clients.append(client)
        site.scheduler.get("/health")  # the requests before it were read
    held = hold_open(world, clients)
    for client in clients:
        client.socket.close()
    return f"{connections} x {streams} requests: {world.floods[-1]}; {held}"


def hold_open(world, clients):
    """PINGs for three times the site's write_ms; whether connections that take nothing end."""
    if world.quick:
        return "how long they last is for the whole run"
    until = time.monotonic() + 8
    open_ones = list(clients)
    while open_ones and time.monotonic() < until:
        time.sleep(0.5)
        for client in list(open_ones):
            try:
                client.connection.ping(b"12345678")
                client.flush()
                client.socket.settimeout(0.05)
                data = client.socket.recv(1 << 16)
                # A reset of its streams is as good as an end.
                if not data or b"\0\0\4\3" in data:
                    open_ones.remove(client)
            except TimeoutError:
                continue
            except OSError:
                open_ones.remove(client)
    defeat(open_ones, f"{len(open_ones)} connections took nothing for 8 s, write_ms is 2 s")
    return "ended within 8 s"


@attack("anonymous", "a window that opens byte by byte holds an answer for as long as it likes", quick=False)
def dripping_window(world):
    """Opens a window by one byte a second: it takes something, so only what is held is judged."""
    site = world.site
    with world.flood(4, "one answer of openapi.json for each of 200 streams, shared"):
        client = Http2(site.http)
        client.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1})
        for stream in range(1, 400, 2):
            client.request(stream, "/openapi.json")
        client.flush()
        for _ in range(5):
            time.sleep(0.5)
            for stream in range(1, 400, 2):
                client.connection.increment_flow_control_window(1, stream)
            try:
                client.flush()
            except OSError:
                break
    client.socket.close()
    return str(world.floods[-1])


@attack("node", "a node sends output that nobody reads until the scheduler's memory is full")
def unread_output(world):
    """A reader asks for a job's output and does not read; the node sends beyond its window."""
    site = world.site
    node = site.fake_node("talker", gpus=7).begin()
    site.victim.submit(command=["true"], gpu_count=7)
    order = node.order()
    node.change(0, order)
    job = f"job-{order['job_id']}"
    site.await_state(job, "running")
    reader = http.client.HTTPConnection("127.0.0.1", site.scheduler.port, timeout=60)
    reader.request("GET", f"/api/v1/jobs/{job}/logs?follow=1",
                   headers={"Authorization": f"Bearer {site.victim.token}"})
    request = node.others.get(timeout=60)
    while not request.HasField("output_request"):
        request = node.others.get(timeout=60)
    wanted, piece = request.output_request, b"x" * 65536
    pieces = (48 << 20 if world.quick else 192 << 20) // len(piece)
    with world.flood(8, f"window {wanted.window >> 10} KiB, output_bytes 1 MiB"):
        for i in range(pieces):
            if not node.ended.empty() or is_stopped(node):
                break
            node.out.put(agent_pb2.Envelope(output_chunk=agent_pb2.OutputChunk(
                request_id=wanted.request_id, offset=i * len(piece), data=piece)))
            while node.out.qsize() > 64 and node.ended.empty():
                time.sleep(0.001)
        settle(node)
    reader.close()
    node.close()
    return f"{(i + 1) * len(piece) >> 20} MiB sent beyond a window: {world.floods[-1]}"


def is_stopped(node):
    """True if the scheduler told the node to stop sending."""
    while not node.others.empty():
        if node.others.get().HasField("output_stop"):
            return True
    return False


def settle(node, seconds=10):
    """Until what was queued for the node is on the wire, or its session has ended."""
    until = time.monotonic() + seconds
    while node.out.qsize() and node.ended.empty() and time.monotonic() < until:
        time.sleep(0.01)


@attack("anonymous", "one client takes all connections, those of agents too")
def all_connections(world):
    """Counts how many idle connections one address gets before it is told no. The limit of all is
    set low here; that of one address is what the service makes of it."""
    total = 200
    wanted = {"limits": {"connections": total}, "auth": {"enable": False}}
    with world.scheduler(sections=wanted) as one:
        clients = []
        for _ in range(total + 20):
            connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=5)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().read() and connection.sock:
                    clients.append(connection)
                    continue
            except (OSError, http.client.HTTPException):
                pass
            break
        taken = len(clients)
        for connection in clients:
            connection.close()
    defeat(taken >= total, f"one address has all {taken} of {total} connections")
    return f"one address is refused after {taken} of {total} connections"


@attack("anonymous", "10,000 idle connections take the memory of the scheduler", quick=False)
def idle_connections(world):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 12000:
        raise Skipped(f"this process may open {hard} files, and 10,000 connections are meant")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients, refused = [], 0
    with world.flood(64, "connections 16,384 of some KiB each"):
        for _ in range(10000):
            try:
                client = socket.create_connection(("127.0.0.1", world.site.http.port), timeout=10)
            except OSError:
                refused += 1
                continue
            clients.append(client)
    flood = world.floods[-1]
    for client in clients:
        client.close()
    return f"{len(clients)} opened, {refused} refused: {flood}"


@attack("tenant", "many large bodies at once fill the memory", quick=False)
def many_bodies(world):
    """40 bodies of 7 MiB that never quite end."""
    site, clients, refused = world.site, [], 0
    head = (b"POST /api/v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            + site.enemy.token.encode() + b"\r\nContent-Length: 7340032\r\n\r\n")
    with world.flood(256, "buffered_bytes 256 MiB"):
        for _ in range(40):
            client = site.http.connect()
            try:
                client.sendall(head + b" " * 7340031)
            except OSError:
                refused += 1
            clients.append(client)
    for client in clients:
        client.close()
    return f"40 bodies of 7 MiB, {refused} refused: {world.floods[-1]}"


@attack("tenant", "jobs of many tasks fill the queue and the memory far beyond its limit", quick=False)
def large_requests(world):
    """A job of many tasks is small as a request and large in memory, so the queue must count
    tasks."""
    jobs = [{"command": ["true"], "name": "large", "gpu_count": 900}] * 600
    with world.site.settings_changed("scheduler", max_queue_size=20000):
        with world.flood(16, "scheduler.max_queue_size 20,000"):
            answer = world.site.enemy.post("/api/v1/jobs", jobs)
            taken = answer.json().get("submitted")
    return f"{taken} of 600 jobs of 900 tasks were taken: {world.floods[-1]}"


@attack("anonymous", "tokens that are all different fill what remembers them")
def many_tokens(world):
    """Forged tokens, each another one: caches and counters must not grow with them."""
    site = world.site
    count = 2000 if world.quick else 20000
    connection = http.client.HTTPConnection("127.0.0.1", site.scheduler.port, timeout=20)
    with world.flood(8, f"nothing is kept for {count} forged tokens"):
        for number in range(count):
            token = f"gst_{number:043d}" if number % 2 else site.jwt(secret="x" * 40, sub=str(number))
            connection.request("GET", "/api/v1/jobs", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            defeat(answer.status == 200, token)
            if answer.getheader("connection") == "close":
                connection.close()
    connection.close()
    return str(world.floods[-1])


@attack("tenant", "requests that wait for a model pile up without end", quick=False)
def waiting_leases(world):
    site = world.site
    made = site.enemy.post("/api/v1/models", {"name": "never", "gpu_memory_mb": 100, "runtime": "vllm",
                                              "gpu_model": ["NONE"]})
    assert made.status == 201, made
    model = made.json()["id"]
    statuses = []

    def ask():
        try:
            statuses.append(site.enemy.post(f"/api/v1/models/{model}/leases?wait=3s", timeout=30).status)
        except OSError:
            statuses.append(0)

    with world.flood(16, "requests in flight, some KiB each"):
        threads = [threading.Thread(target=ask, daemon=True) for _ in range(300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    site.enemy.delete(f"/api/v1/models/{model}")
    defeat(any(status == 201 for status in statuses), "a lease for a model that was never loaded")
    return f"300 waiting requests ended with {sorted(set(statuses))}"


def small_jobs(world, count, **fields):
    """Tenant B posts many small jobs; what happened to the node and to tenant A meanwhile."""
    site = world.site
    mine = site.victim.submit(script="sleep 100000", on_lease_loss="stop", node_labels=REAL)
    site.await_state(mine, "running")
    states, began = set(), time.monotonic()
    name = f"small-{time.monotonic_ns()}"
    jobs = [{"command": ["true"], "name": name, "node_labels": REAL, **fields}] * count
    answer = site.enemy.post("/api/v1/jobs", jobs)
    assert answer.status == 201, answer
    first, done = None, 0
    while time.monotonic() - began < 100:
        for agent in site.agents:
            states.add(site.node(agent.name)["state"])
        now = site.job(mine)
        defeat(now["state"] != "running" or now["preempted_count"], f"the victim's job is {now['state']}")
        if first is None:
            first = time_of_job(site)
        done = site.enemy.get(f"/api/v1/jobs?name={name}&state=completed&limit=1").json()["total"]
        if done >= count:
            break
        time.sleep(0.2)
    defeat(states - {"online"}, f"the nodes were {states} while {done} of {count} jobs ran")
    return f"{done} of {count} done in {time.monotonic() - began:.0f} s, nodes online, another tenant " \
           f"got its job done in {first:.1f} s"


def time_of_job(site):
    """Seconds that a job of the victim's takes from its submission to its end."""
    asked = time.monotonic()
    try:
        site.victim.run("true", seconds=60)
    except AssertionError as error:
        defeat(True, f"a job of the victim's meanwhile: {error}")
    return time.monotonic() - asked


@attack("tenant", "a flood of 2,000 small jobs takes nodes away, and with them others' jobs", quick=False)
def flood_of_jobs(world):
    return small_jobs(world, 2000, gpu_memory_mb=10)


@attack("tenant", "a flood of small jobs without GPUs keeps another tenant's job from starting", quick=False)
def flood_without_gpus(world):
    return small_jobs(world, 1000)
