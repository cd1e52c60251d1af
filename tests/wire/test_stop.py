"""Stopping: what is in flight is finished, the rest is refused."""

import time

import h2.config
import h2.connection

from conftest import read_all, read_until
from test_hostile import frame, read_frames
from test_websocket import close_code, join

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_nothing_in_flight_is_the_end_at_once(start):
    server = start(linger_ms=60000)
    with server.connect() as idle:
        idle.sendall(GET)
        read_until(idle, b"hello\n")
        began = time.monotonic()
        assert "stopped" in server.stop()
        assert time.monotonic() - began < 30
        assert idle.recv(100) == b""


def test_what_is_in_flight_is_finished_and_more_is_refused(start):
    server = start()
    with server.connect() as busy, server.connect() as other, server.connect() as third:
        other.sendall(GET)
        read_until(other, b"hello\n")
        other.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
        busy.sendall(b"GET /flow?parts=2000&size=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
        third.sendall(b"GE")
        time.sleep(0.2)
        server.process.terminate()
        time.sleep(0.2)
        third.sendall(b"T / HTTP/1.1\r\nHost: x\r\n\r\n")
        refused = read_all(third)
        assert refused.startswith(b"HTTP/1.1 503 ") and b"connection: close" in refused
        other.sendall(b"cd")
        finished = read_all(other)
        assert finished.startswith(b"HTTP/1.1 200 ") and finished.endswith(b"abcd")
        assert b"connection: close" in finished
        data = read_all(busy)
        assert data.count(b"x") >= 120000000
        assert data.endswith(b"0\r\n\r\n")


def test_what_never_ends_is_cut_off_after_the_grace(start):
    server = start()
    with server.connect() as client:
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        began = time.monotonic()
        server.stop()
        assert 2 < time.monotonic() - began < 60


def test_websockets_are_closed_with_1001(start):
    server = start(linger_ms=200)
    with join(server) as client:
        server.process.terminate()
        assert close_code(read_all(client)) == 1001


def test_http2_is_told_goaway_and_finishes_its_streams(start):
    server = start()
    connection = h2.connection.H2Connection(h2.config.H2Configuration())
    connection.initiate_connection()
    headers = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/echo")]
    connection.send_headers(1, headers)
    connection.send_data(1, b"ab")
    with server.connect() as client:
        client.sendall(connection.data_to_send())
        time.sleep(0.2)
        server.process.terminate()
        body = b""
        for kind, _, stream, payload in read_frames(client):
            if kind == 7:
                assert payload[:8] == b"\0\0\0\x01\0\0\0\0"
                client.sendall(frame(0, 1, 1, b"cd"))
            if kind == 0 and stream == 1:
                body += payload
        assert body == b"abcd"
