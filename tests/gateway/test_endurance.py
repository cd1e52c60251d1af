"""What must hold however long it lasts and however many there are: a slice here, and all of it by
`make gateway-endurance`."""

import asyncio
import contextlib
import json
import os
import pathlib
import random
import socket
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "store"))

import postgres
from cluster import Cluster
from gateway_parts import await_true
from scheduler import Scheduler
from test_bills import Site
from test_session import make_model, slots

# A slice, or the full length.
FULL = bool(os.environ.get("GATEWAY_FULL"))
STREAMS = 500 if FULL else 24
KILLS = 20 if FULL else 2
CANCELS = 10000 if FULL else 200
USAGE_KILLS = 100 if FULL else 3
SLOW = 1000 if FULL else 100


async def open_chat(port, key="none", **more):
    """A connection with a request on it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}], **more}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer %s\r\n"
                 b"content-length: %d\r\n\r\n%s" % (key.encode(), len(body), body))
    await writer.drain()
    return reader, writer


async def read_stream(port, **more):
    """Everything up to the end of the answer; raises if it is cut."""
    reader, writer = await open_chat(port, stream=True, **more)
    answer = await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    return answer


def read_streams(gateway, done):
    """A thread that reads streams until the file is there, and the list that gets what came."""
    answers = []

    async def read_all():
        return await asyncio.gather(*(read_stream(gateway.port, mock={"until": str(done), "gap": 0.2})
                                      for _ in range(STREAMS)), return_exceptions=True)
    reads = threading.Thread(target=lambda: answers.extend(asyncio.run(read_all())))
    reads.start()
    return reads, answers


def check_streams(answers):
    assert len(answers) == STREAMS
    for answer in answers:
        assert isinstance(answer, bytes), answer
        assert b"data: [DONE]" in answer
        words = [json.loads(line[6:])["choices"][0]["delta"].get("content", "").strip()
                 for line in answer.splitlines() if line.startswith(b"data: {")]
        assert words[:-1] == [str(i) for i in range(len(words) - 1)], "events are missing"


def test_no_stream_is_cut_while_the_scheduler_is_killed(cluster, make_gateway, tmp_path):
    """And the slot that they are in stays, though another model wants its GPU."""
    cluster.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    make_model(cluster, idle_ttl="1s", gpu_memory_mb=70000, max_concurrency=STREAMS)
    make_model(cluster, name="b", gpu_memory_mb=70000)
    await_true(lambda: b'"b"' in gateway.request("GET", "/v1/models").body)
    assert gateway.chat().status == 200
    served = [slot["id"] for slot in slots(cluster)]
    done = tmp_path / "done"
    other = []
    reads, answers = read_streams(gateway, done)
    await_true(lambda: gateway.metric("in_flight") == STREAMS)
    asks = threading.Thread(target=lambda: other.append(gateway.request(
        "POST", "/v1/chat/completions", {"model": "b", "messages": []}, timeout=1200)))
    asks.start()
    try:
        for _ in range(KILLS):
            cluster.scheduler.kill()
            cluster.scheduler.start()
            cluster.wait(lambda: cluster.node(cluster.agents[0].name).get("reported"))
            assert gateway.metric("in_flight") == STREAMS
            assert set(served) <= {slot["id"] for slot in slots(cluster)}
    finally:
        done.touch()
        reads.join(300)
    check_streams(answers)
    asks.join(300)
    assert other[0].status == 200, other[0].body


class Pair(Cluster):
    """Two schedulers on one PostgreSQL; `scheduler` is the one that leads."""

    def __init__(self, directory, server):
        database = {"host": str(server.folder), "user": "postgres", "database": "postgres"}
        self.directory, self.agents = directory, []
        self.both = [Scheduler(directory / name, starts=False, grpc=free_port(),
                               sections={"database": database | {"name": name},
                                         "scheduler": {"grace_ms": 2000}})
                     for name in ("one", "two")]
        self.addresses = ",".join(f"127.0.0.1:{one.ports['grpc']}" for one in self.both)
        self.port = self.addresses.removeprefix("127.0.0.1:")
        self.scheduler = self.both[0].start()
        self.tenant = self.make_tenant("physics")

    def take_over(self):
        active, self.scheduler = self.scheduler, next(one for one in self.both if one is not self.scheduler)
        self.scheduler.start(waits=False)
        active.kill()
        self.scheduler.wait_ready()

    def stop(self):
        super().stop()
        for one in self.both:
            if one.process:
                one.kill()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def postgres_server():
    running = postgres.Server()
    yield running
    running.stop()


@pytest.fixture
def pair(tmp_path, postgres_server):
    pair = Pair(tmp_path, postgres_server)
    yield pair
    pair.stop()


def test_no_stream_is_cut_by_take_overs_on_postgresql(pair, make_gateway, tmp_path):
    pair.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", pair.addresses)
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    model = make_model(pair, idle_ttl="1s", gpu_memory_mb=70000, max_concurrency=STREAMS)
    await_true(lambda: b'"m"' in gateway.request("GET", "/v1/models").body)
    assert gateway.chat().status == 200
    served = [slot["id"] for slot in slots(pair)]
    done = tmp_path / "done"
    reads, answers = read_streams(gateway, done)
    await_true(lambda: gateway.metric("in_flight") == STREAMS)
    try:
        for _ in range(KILLS):
            pair.take_over()
            # The new one knows what is in flight, and so holds the slot.
            pair.wait(lambda: (pair.node(pair.agents[0].name) or {}).get("reported"))
            await_true(lambda: pair.scheduler.get(f"/api/v1/models/{model}").json()["active_requests"] >= STREAMS)
            await_true(lambda: [slot["active_requests"] for slot in slots(pair)] == [STREAMS])
            assert gateway.metric("in_flight") == STREAMS
            assert served == [slot["id"] for slot in slots(pair)]
    finally:
        done.touch()
        reads.join(300)
    check_streams(answers)


@pytest.mark.parametrize("way", ["client", "gateway"])
def test_what_was_cut_is_counted_to_within_a_tenth(tmp_path, way):
    """The server never says what it used: the client hangs up, or the gateway is killed."""
    tokens = 200
    site = Site(tmp_path)
    try:
        site.model("m", max_concurrency=64)
        key = site.knows(site.token(role="inference", tenant_id=site.asker))
        gateway = site.gateways[0]

        async def read_all_and_hang_up():
            reader, writer = await open_chat(gateway.port, stream=True, key=key["token"],
                                             mock={"tokens": tokens, "stalls": True})
            text = b""
            while text.count(b"data: ") < tokens:
                text += await reader.read(1 << 16)
            if way == "gateway":
                gateway.kill()
            writer.transport.abort()
        asyncio.run(read_all_and_hang_up())
        if way == "gateway":
            gateway.start()

        def line():
            return next((one for one in site.tokens()["lines"] if one["tenant"] == "asker" and one["cut"]), None)
        told = await_true(line)
        assert (told["requests"], told["cut"]) == (1, 1)
        assert 0.9 * tokens <= told["completion_tokens"] <= 1.1 * tokens, told
    finally:
        site.stop()


def test_every_client_that_hangs_up_ends_the_work(gateway, mock):
    """Before the first byte and after it, in streams and not."""
    chance = random.Random(7)

    async def hang_up(gate, kind):
        async with gate:
            mock_does = {"tokens": 100000, "gap": 0.05} if kind == "after" else {"delay": 3600}
            reader, writer = await open_chat(gateway.port, stream=kind != "whole", mock=mock_does)
            if kind == "after":
                await reader.readuntil(b"data: ")
            else:
                await asyncio.sleep(chance.random() * 0.05)
            writer.transport.abort()

    async def all_of_them():
        gate = asyncio.Semaphore(50)
        kinds = ["whole", "before", "after"]
        await asyncio.gather(*(hang_up(gate, kinds[i % 3]) for i in range(CANCELS)))
    asyncio.run(all_of_them())
    await_true(lambda: gateway.metric("in_flight") == 0 and gateway.metric("waiting") == 0)
    await_true(lambda: mock.state()["active"] == 0)
    await_true(lambda: (state := mock.state())["closed_early"] == state["requests"] >= CANCELS // 3)
    await_true(lambda: gateway.metric("upstream_connections") == 0)
    assert gateway.chat().status == 200


class SilentServer:
    """A server of models that never ends an answer, and notes when each connection was closed."""

    def __init__(self):
        self.came, self.closed = {}, {}

    async def serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        await reader.readexactly(int(headers["content-length"]))
        number, after = int(headers["x-number"]), headers["x-kind"] == "after"
        if after:
            event = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                         b"%x\r\n%s\r\n" % (len(event), event))
        self.came[number].set_result(None)
        with contextlib.suppress(OSError):
            assert await reader.read(1) == b""
        self.closed[number].set_result(time.monotonic())
        writer.close()


def test_a_hang_up_reaches_the_server_soon(make_gateway):
    """From the client's close to the close of the connection to the server: whole answers, streams before
    their first byte, and after it. How soon is looked at in the full length alone."""
    server = SilentServer()
    took = []

    async def hang_up(gate, gateway, number):
        kind = ("whole", "before", "after")[number % 3]
        loop = asyncio.get_running_loop()
        server.came[number], server.closed[number] = loop.create_future(), loop.create_future()
        async with gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            body = json.dumps({"model": "m", "messages": [], "stream": kind != "whole"}).encode()
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-number: %d\r\nx-kind: %s\r\n"
                         b"content-length: %d\r\n\r\n%s" % (number, kind.encode(), len(body), body))
            await asyncio.wait_for(server.came[number], 60)
            if kind == "after":
                await asyncio.wait_for(reader.readuntil(b"data: "), 60)
            begun = time.monotonic()
            writer.transport.abort()
            took.append(await asyncio.wait_for(server.closed[number], 60) - begun)

    async def all_of_them():
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        loop = asyncio.get_running_loop()
        gateway = await loop.run_in_executor(None, lambda: make_gateway(
            routes=[{"name": "m", "slots": [address], "concurrency": 64}]))
        gate = asyncio.Semaphore(8)
        await asyncio.gather(*(hang_up(gate, gateway, number) for number in range(CANCELS)))
        listener.close()
    asyncio.run(all_of_them())
    assert len(took) == CANCELS
    took.sort()
    print(f"hang-ups: p50 {took[CANCELS // 2] * 1000:.2f} ms, p99 {took[CANCELS * 99 // 100] * 1000:.2f} ms, "
          f"longest {took[-1] * 1000:.2f} ms of {CANCELS}")
    assert not FULL or took[CANCELS * 99 // 100] <= 0.050


def test_use_is_neither_lost_nor_counted_twice(tmp_path):
    """Gateway and scheduler are killed while requests run, and the sums are compared with what
    clients got."""
    site = Site(tmp_path)
    try:
        site.model("m", max_concurrency=64)
        key = site.knows(site.token(role="inference", tenant_id=site.asker))
        gateway = site.gateways[0]
        counts = {"whole": 0, "cut": 0}
        lock, stop = threading.Lock(), threading.Event()

        def ask(number):
            while not stop.is_set():
                try:
                    answer = site.chat(key, stream=number % 2 == 0, mock={
                        "tokens": 10, "prompt_tokens": 100, "gap": 0.01})
                except Exception:  # it was cut, or the gateway is not there
                    kind = "cut"
                else:
                    whole = answer.status == 200 and (number % 2 == 1 or b"[DONE]" in answer.body)
                    kind = "whole" if whole else "cut"
                with lock:
                    counts[kind] += 1
                stop.wait(0.01)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()

        def some_more():
            before = counts["whole"]
            await_true(lambda: counts["whole"] >= before + 16)
        for i in range(USAGE_KILLS):
            some_more()
            if i % 3 == 1:
                site.scheduler.kill()
                site.scheduler.start()
            else:
                gateway.kill()
                gateway.start()
            await_true(lambda: gateway.request("GET", "/health").status == 200)
        some_more()
        stop.set()
        for thread in threads:
            thread.join(120)

        def lines():
            return [line for line in site.tokens()["lines"] if line["tenant"] == "asker"]

        def sums():
            return {name: sum(line[name] for line in lines())
                    for name in ("requests", "prompt_tokens", "completion_tokens", "cut", "errors")}

        def is_all_told():
            page = gateway.request("GET", "/metrics", headers={"authorization": f"Bearer {site.scheduler.token}"})
            return b"\ngpu_gateway_spool_rows 0\n" in page.body
        await_true(is_all_told)
        told = sums()
        ended = told["requests"] - told["cut"] - told["errors"]
        # What ended at the gateway may not have reached its client.
        assert counts["whole"] <= ended <= counts["whole"] + counts["cut"], (told, counts)
        assert 10 * ended <= told["completion_tokens"] <= 10 * told["requests"], told
        assert 100 * ended <= told["prompt_tokens"] <= 100 * told["requests"], told
        # Nothing is counted again later.
        gateway.kill()
        gateway.start()
        site.scheduler.kill()
        site.scheduler.start()
        await_true(lambda: gateway.request("GET", "/health").status == 200)
        assert sums() == told
    finally:
        site.stop()


def resident_mib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_slow_readers_and_writers_hold_up_nobody_and_take_little(make_gateway, mock):
    gateway = make_gateway(routes=[{"name": "m", "slots": [mock.address], "concurrency": 2 * SLOW}])
    before = resident_mib(gateway.process)

    async def crowd():
        writers = []
        for i in range(SLOW):  # of a head, and of a body
            _, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=1024)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n"
                         + (b"x-slow: " if i % 2 else b'\r\n{"model":"m",'))
            await writer.drain()
            writers.append(writer)
        # Each would be 60 MB.
        for _ in range(SLOW):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=1024)
            reader._transport.pause_reading()
            body = json.dumps({"model": "m", "stream": True, "messages": [],
                               "mock": {"tokens": 200, "pad": 300000}}).encode()
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s"
                         % (len(body), body))
            writers.append(writer)
        loop = asyncio.get_running_loop()

        def is_served():
            assert gateway.chat(mock={"tokens": 1}).status == 200
            return gateway.metric("in_flight") >= 1
        for _ in range(20):
            await loop.run_in_executor(None, await_true, is_served)
        grown = resident_mib(gateway.process) - before
        for writer in writers:
            writer.transport.abort()
        return grown
    grown = asyncio.run(crowd())
    assert grown < 2 * min(SLOW, 60) + SLOW, f"{grown:.0f} MiB"
    await_true(lambda: gateway.metric("in_flight") == 0)
    assert gateway.chat().status == 200


BAD = {
    "cut off": b'{"model":"m","messages":[',
    "model twice": b'{"model":"m","model":"o","messages":[]}',
    "no object": b"[]",
    "no model": b'{"messages":[]}',
    "deep": b'{"model":"m","messages":' + b"[" * 100000,
    "a key with an escape": b'{"mod\\u0065l":"m","model":"o"}',
    "not UTF-8 text": b'{"model":"\xff\xfe"}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_is_refused(gateway, mock, name):
    before = mock.state()["requests"]
    answer = gateway.request("POST", "/v1/chat/completions", BAD[name])
    assert 400 <= answer.status < 500, answer.body
    assert json.loads(answer.body)["error"]["message"]
    assert mock.state()["requests"] == before
    assert gateway.chat().status == 200


def test_a_body_of_a_million_keys_is_passed_or_refused_at_once(gateway):
    body = b'{"model":"m","messages":[]' + b"".join(b',"k%d":1' % i for i in range(1_000_000)) + b"}"
    before = resident_mib(gateway.process)
    assert gateway.request("POST", "/v1/chat/completions", body).status == 200
    assert resident_mib(gateway.process) - before < 64 + 4 * len(body) / 1e6
    assert gateway.chat().status == 200


@pytest.mark.parametrize("length", [2**31, 2**63, 2**64, -1])
def test_an_impossible_length_is_refused(gateway, length):
    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % length)
        answer = await reader.readuntil(b"\r\n")
        writer.close()
        return int(answer.split()[1])
    assert asyncio.run(ask()) in (400, 413)
    assert gateway.chat().status == 200
