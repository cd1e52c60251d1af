"""Clients that ask and do not read: what is held for them is bounded, and ends."""

import os
import resource
import socket
import time

import h2.events
import h2.settings
from conftest import read_all, read_until
from test_hostile import Http2

UPGRADE = (b"GET /fan HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
           b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n\r\n")


class Shut(Http2):
    """An HTTP/2 client with windows of 0."""

    def __init__(self, server):
        super().__init__(server)
        self.connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        self.flush()

    def ask(self, count, path, first=0, extra=()):
        for i in range(first, first + count):
            self.request(2 * i + 1, path, extra=extra)
        self.flush()

    def wait_for_ends(self, count):
        """PINGs until so many streams have ended; their error codes and statuses."""
        ends = {}
        deadline = time.monotonic() + 60
        self.socket.settimeout(0.05)
        while len(ends) < count:
            assert time.monotonic() < deadline, f"{len(ends)} of {count} streams have ended"
            try:
                data = self.socket.recv(65536)
            except socket.timeout:
                self.connection.ping(b"12345678")
                self.flush()
                continue
            assert data, "the connection was closed"
            for event in self.connection.receive_data(data):
                if isinstance(event, h2.events.StreamReset):
                    ends[event.stream_id] = int(event.error_code)
        return ends


def test_streams_that_take_nothing_end_although_pings_come(start):
    server = start(write_ms=300)
    client = Shut(server)
    client.ask(20, "/big?bytes=20000&plain=1")
    ends = client.wait_for_ends(20)
    assert set(ends.values()) == {0xB}
    server.await_counter("held_bytes", 0)
    client.socket.close()


def test_a_stream_whose_window_opens_is_not_ended(start):
    server = start(write_ms=300)
    client = Shut(server)
    client.ask(1, "/big?bytes=3000&plain=1")
    taken, deadline = 0, time.monotonic() + 30
    client.socket.settimeout(0.05)
    while taken < 3000:
        assert time.monotonic() < deadline
        client.connection.increment_flow_control_window(200, 1)
        client.flush()
        try:
            data = client.socket.recv(65536)
        except socket.timeout:
            continue
        for event in client.connection.receive_data(data):
            assert not isinstance(event, h2.events.StreamReset), event
            taken += len(getattr(event, "data", b"") or b"")
    client.socket.close()


def test_what_one_connection_holds_is_bounded(start):
    limit = 1 << 20
    server = start(held_bytes_per_connection=limit)
    client = Shut(server)
    client.ask(512, "/big?bytes=20000&plain=1")
    statuses = [int(dict(event.headers)[b":status"])
                for event in collect(client, h2.events.ResponseReceived, 512)]
    assert statuses.count(200) > 10
    assert statuses.count(503) > 400
    assert server.counters()["held_bytes"] < limit + (1 << 19)
    client.socket.close()
    server.await_counter("held_bytes", 0)


def collect(client, kind, count):
    """So many events of a kind."""
    found = []
    for event in client.events():
        found += [event] if isinstance(event, kind) else []
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count}")


def test_streams_of_one_connection_share_what_it_may_hold(start):
    limit = 1 << 20
    server = start(held_bytes_per_connection=limit, write_ms=60000)
    client = Shut(server)
    client.ask(100, "/flow?parts=100000&size=60000")
    collect(client, h2.events.ResponseReceived, 90)
    server.await_counter("exchanges", 101 - 10, least=True)
    assert server.counters()["held_bytes"] < limit + (1 << 19)
    client.socket.close()


def test_what_all_connections_hold_is_bounded_and_the_worst_is_closed(start):
    server = start(held_bytes_per_connection=1 << 20, held_bytes=4 << 20, write_ms=60000)
    clients = [Shut(server) for _ in range(12)]
    for client in clients:
        client.ask(60, "/big?bytes=20000&plain=1")
    deadline = time.monotonic() + 60
    while True:
        counters = server.counters()
        assert counters["held_bytes"] < (4 << 20) + (1 << 20)
        if counters["connections_shed"] + counters["answers_dropped"] > 0:
            break
        assert time.monotonic() < deadline
    assert server.ask(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
        b"HTTP/1.1 200 ")
    for client in clients:
        client.socket.close()


def test_pipelined_requests_without_reading_are_not_read_on(start):
    server = start(held_bytes_per_connection=1 << 20, output_bytes=1 << 20, write_ms=500)
    with server.connect() as client:
        client.settimeout(1)
        try:
            for _ in range(2000):
                client.sendall(b"GET /big?bytes=100000&plain=1 HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        except (socket.timeout, ConnectionError):
            pass
        assert server.counters()["held_bytes"] < 3 << 20
    server.await_counter("connections", 1)


def test_listeners_that_do_not_read_share_what_may_be_held(start):
    server = start(held_bytes_per_connection=1 << 20, held_bytes=2 << 20, write_ms=60000)
    clients = [server.connect() for _ in range(30)]
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(UPGRADE)
        read_until(client, b"\r\n\r\n")
    body = b"x" * 50000
    for _ in range(5):
        server.ask(b"POST /publish?times=100 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert server.counters()["held_bytes"] < 4 << 20
    for client in clients:
        client.close()
    server.await_counter("websockets", 0)


def test_grpc_streams_without_reading_hold_a_bounded_amount(start):
    limit = 1 << 20
    server = start(held_bytes_per_connection=limit, write_ms=300)
    client = Shut(server)
    grpc = (("content-type", "application/grpc"), ("te", "trailers"))
    for stream in range(1, 60, 2):
        client.request(stream, "/echo.Echo/Stream", end=False, method="POST", extra=grpc)
        message = b"m" * 16000
        client.connection.send_data(stream, b"\0" + len(message).to_bytes(4, "big") + message)
        client.flush()
        for event in client.connection.receive_data(b""):
            pass
        if client.connection.outbound_flow_control_window < 20000:
            break
    assert server.counters()["held_bytes"] < limit + (1 << 19)
    client.socket.close()
    server.await_counter("exchanges", 1)


def test_messages_that_arrive_in_part_count_as_bodies(start):
    server = start(body_bytes=100000, message_bytes=200000, buffered_bytes=300000)
    client = Http2(server)
    grpc = (("content-type", "application/grpc"), ("te", "trailers"))
    refused = 0
    for stream in range(1, 40, 2):
        client.request(stream, "/echo.Echo/Stream", end=False, method="POST", extra=grpc)
        client.connection.send_data(stream, b"\0" + (150000).to_bytes(4, "big") + b"x" * 16000)
        client.flush()
        server.await_counter("buffered_bytes", 0, least=True)
        for event in client.connection.receive_data(drain(client.socket)):
            refused += isinstance(event, h2.events.TrailersReceived | h2.events.StreamEnded)
        client.flush()
    assert server.counters()["buffered_bytes"] <= 300000
    assert refused > 0
    client.socket.close()
    server.await_counter("buffered_bytes", 0)


def drain(client):
    """What has arrived."""
    client.settimeout(0.05)
    data = b""
    try:
        while part := client.recv(65536):
            data += part
    except socket.timeout:
        pass
    client.settimeout(10)
    return data


def test_strangers_make_place_when_connections_are_scarce(start):
    server = start(connections=8, connections_reserved=0, stranger_ms=200)
    trusted = server.connect()
    trusted.sendall(b"GET /trust HTTP/1.1\r\nHost: x\r\n\r\n")
    assert read_until(trusted, b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    idle = [server.connect() for _ in range(7)]
    deadline = time.monotonic() + 60
    while not server.ask(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 200 "):
        assert time.monotonic() < deadline
    assert read_all(idle[0]) == b""
    trusted.sendall(b"GET /trust HTTP/1.1\r\nHost: x\r\n\r\n")
    read_until(trusted, b"HTTP/1.1 200 ")
    for client in [trusted, *idle]:
        client.close()


def test_running_out_of_descriptors_is_told_and_overcome(start):
    server = start()
    pid = server.process.pid
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 10, 4096))
    clients = [server.connect() for _ in range(40)]
    closed = 0
    for client in clients[20:]:
        client.settimeout(10)
        closed += read_all(client) == b""
    assert closed >= 15
    for client in clients:
        client.close()
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        try:
            counters = server.counters()
            break
        except (ConnectionError, IndexError):
            continue
    assert counters["descriptors_exhausted"] >= 15
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (4096, 4096))
    server.process.terminate()
    _, errors = server.process.communicate(timeout=30)
    assert errors.count("no file descriptors are left") == 1
