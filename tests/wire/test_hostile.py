"""Clients that mean no good, or do not know what they do."""

import select
import socket
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import hpack
import pytest

from conftest import read_all, read_until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head, body",
    [
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n"),
        (b"Content-Length: 5\r\nContent-Length: 5", b"12345"),
        (b"Content-Length: 5\r\nContent-Length: 0", b"12345"),
        (b"Content-Length: 5, 5", b"12345"),
        (b"Content-Length: +5", b"12345"),
        (b"Content-Length: 0x5", b"12345"),
        (b"Content-Length: -1", b""),
        (b"Content-Length: 99999999999999999999", b""),
        (b"Content-Length : 5", b"12345"),
        (b"Content-Length: 5\n", b"12345"),
        (b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding : chunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding: xchunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding:\x0bchunked", b"0\r\n\r\n"),
        (b"X: y\r\n Transfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"X: y\rTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"X: y\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"X: \x00", b""),
        (b"Transfer-Encoding: chunked", b"0x5\r\n12345\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"-5\r\n12345\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"ffffffffffffffff1\r\n"),
        (b"Transfer-Encoding: chunked", b"5\r\n12345XX0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"5\n12345\n0\n\n"),
        (b"Transfer-Encoding: chunked", b"5;\n12345\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"5 \r\n12345\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"5;" + b"x" * 70000),
        (b"Transfer-Encoding: chunked", b"0\r\n" + b"X: y\r\n" * 5000),
        (b"Host: y", b""),
    ],
)
def test_lengths_that_can_be_read_in_two_ways_end_the_connection(server, head, body):
    request = b"POST /echo HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + body
    answer = server.ask(request + SMUGGLED)
    assert status_of(answer) in (400, 501)
    assert answer.count(b"content-length:") == 1
    assert b"smuggled" not in answer


def test_chunk_extensions_and_trailers_are_read_past(server):
    request = (
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"3;name=value\r\nabc\r\n3;x\r\ndef\r\n0\r\nHost: evil\r\nContent-Length: 7\r\n\r\n"
    )
    answer = server.ask(request)
    assert status_of(answer) == 200 and answer.endswith(b"abcdef")


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\n: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n", 400),
        (b"GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /a/%2e%2e/b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET //b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /?a=1&a=2 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /?%=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n", 417),
        (b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nOrigin: http://y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nauthorization: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n", 400),
        (b"GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://x@y/ HTTP/1.1\r\nHost: x@y\r\n\r\n", 400),
        (b"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"ffffffffffffffff\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"3\r\nabc\r\n7fffffffffffffff\r\n", 413),
        (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"y" * 1000000, 431),
    ],
)
def test_a_request_that_makes_no_sense_is_told_so_and_closed(server, request_bytes, status):
    answer = server.ask(request_bytes)
    assert status_of(answer) == status
    assert b"connection: close" in answer and b'{"error":"' in answer


def test_two_names_of_the_host_must_agree_on_a_stream(server):
    client = Http2(server)
    client.request(1, "/", extra=[("host", "x")])
    client.request(3, "/", extra=[("host", "y")])
    client.flush()
    statuses = {}
    for event in client.events():
        if isinstance(event, h2.events.ResponseReceived):
            statuses[event.stream_id] = int(dict(event.headers)[b":status"])
        if len(statuses) == 2:
            break
    assert statuses == {1: 200, 3: 400}
    client.socket.close()


def test_every_answer_says_that_its_type_is_not_to_be_guessed(server):
    for request in (GET, b"GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"HEAD /describe HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"GET /flow HTTP/1.1\r\nHost: x\r\n\r\n"):
        with server.connect() as client:
            client.sendall(request)
            assert b"x-content-type-options: nosniff\r\n" in read_until(client, b"\r\n\r\n")
    client = Http2(server)
    client.request(1)
    client.flush()
    headers = dict(client.until(h2.events.ResponseReceived).headers)
    assert headers[b"x-content-type-options"] == b"nosniff"
    client.socket.close()


def test_a_body_of_a_gibibyte_is_refused_before_it_is_sent(server):
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n")
        answer = read_until(client, b"}")
        assert status_of(answer) == 413


def test_a_body_without_end_is_refused_on_the_way(server):
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        try:
            for _ in range(2000):
                client.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            pytest.fail("131 MB were taken where 8 MiB are allowed")
    assert server.counters()["buffered_bytes"] == 0


def test_all_bodies_together_are_bounded(start):
    server = start(body_bytes=1000000, buffered_bytes=2500000)
    clients = [server.connect() for _ in range(4)]
    statuses = []
    for client in clients:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
        client.sendall(b"x" * 899999)
        time.sleep(0.1)
    for client in clients:
        try:
            client.sendall(b"x")
            statuses.append(status_of(client.recv(1000)))
        except (BrokenPipeError, ConnectionResetError):
            statuses.append(503)
        client.close()
    assert statuses.count(200) == 2 and statuses.count(503) == 2


@pytest.mark.parametrize("start_of_request", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX"])
def test_a_head_that_drips_in_is_closed(start, start_of_request):
    server = start(head_ms=300, idle_ms=300, linger_ms=300)
    with server.connect() as client:
        client.sendall(start_of_request)
        began = time.monotonic()
        answer = b""
        try:
            for _ in range(20):
                if select.select([client], [], [], 0.1)[0]:
                    answer += (part := client.recv(1000))
                    if not part:
                        break
                if start_of_request:
                    client.sendall(b"y")
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert b" 200 " not in answer + read_all(client)
        assert time.monotonic() - began < 60
    assert server.counters()["connections"] == 1


def test_a_body_that_stalls_is_told_so(start):
    server = start(stall_ms=200)
    answer = server.ask(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    assert status_of(answer) == 408 and b"body" in answer


def test_a_body_that_drips_in_is_told_so(start):
    server = start(stall_ms=1000, body_ms=400)
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
        client.settimeout(0.1)
        answer = b""
        for _ in range(30):
            client.sendall(b"x")
            try:
                answer = client.recv(1000)
                break
            except TimeoutError:
                continue
        assert status_of(answer) == 408


def test_an_idle_connection_is_closed_without_a_word(start):
    server = start(idle_ms=200)
    with server.connect() as client:
        client.sendall(GET)
        read_until(client, b"hello\n")
        assert client.recv(100) == b""


def test_a_client_that_stops_reading_holds_a_bounded_amount(start):
    server = start(output_bytes=65536, write_ms=500)
    with server.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /flow?parts=100000&size=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
        server.await_counter("exchanges", 2)
        server.await_counter("exchanges", 1)
        assert server.counters()["timeouts"] == 1


def test_a_client_that_asks_on_without_reading_is_not_read_on(start):
    server = start(output_bytes=65536)
    with server.connect() as client:
        client.settimeout(1)
        request = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000
        sent = 0
        try:
            while sent < 200000000:
                sent += client.send(request * 10)
        except TimeoutError:
            pass
        assert sent < 100000000


def test_a_client_that_goes_is_noticed(server):
    with server.connect() as client:
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        server.await_counter("exchanges", 2)
    server.await_counter("exchanges", 1)


def test_more_connections_than_allowed_are_refused_in_words(start):
    server = start(connections=10, connections_reserved=0)
    clients = [server.connect() for _ in range(10)]
    time.sleep(0.1)
    answer = server.ask(GET)
    assert status_of(answer) == 503 and answer.endswith(b'"code":"unavailable"}')
    clients.pop().close()
    time.sleep(0.1)
    with server.connect() as client:
        client.sendall(GET)
        assert status_of(read_until(client, b"hello\n")) == 200
    for client in clients:
        client.close()


def test_more_connections_from_one_address_than_allowed_are_refused(start):
    server = start(connections_per_address=5)
    clients = [server.connect() for _ in range(5)]
    time.sleep(0.1)
    assert status_of(server.ask(GET)) == 503
    for client in clients:
        client.close()
    server.await_counter("connections", 1)


def test_more_requests_at_once_than_allowed_are_refused(start):
    server = start(exchanges=5)
    clients = [server.connect() for _ in range(5)]
    for client in clients:
        client.sendall(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    time.sleep(0.1)
    assert status_of(server.ask(GET)) == 503
    for client in clients:
        client.close()
    server.await_counter("exchanges", 1)


def test_ten_thousand_idle_connections_cost_little(start):
    server = start(connections_per_address=16384)
    before = resident_kib(server)
    clients = []
    for _ in range(9000):
        client = server.connect()
        client.sendall(GET)
        clients.append(client)
    for client in clients:
        assert client.recv(1000).endswith(b"hello\n")
    assert server.counters()["connections"] == 9001
    # 2 KiB each without a sanitizer, whose shadow is many times that.
    assert resident_kib(server) - before < 9000 * 64
    for client in clients:
        client.close()
    server.await_counter("connections", 1)


def resident_kib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


class Http2:
    """A client that can send what it likes."""

    def __init__(self, server):
        self.socket = server.connect()
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(
                validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        self.connection.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())

    def request(self, stream, path="/", end=True, method="GET", extra=()):
        headers = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", path)]
        self.connection.send_headers(stream, headers + list(extra), end_stream=end)

    def events(self):
        """Events until the server closes or has nothing more to say for a while."""
        while True:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                return
            if not data:
                return
            yield from self.connection.receive_data(data)
            self.flush()

    def until(self, kind):
        for event in self.events():
            if isinstance(event, kind):
                return event
        return None

    def goaway_code(self):
        event = self.until(h2.events.ConnectionTerminated)
        return event.error_code if event else None


def frame(kind, flags, stream, payload=b""):
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def send_frame(client, *parts):
    client.socket.sendall(frame(*parts))


def read_frames(client):
    """Frames, as kind, flags, stream and payload, until the server closes."""
    data = b""
    while True:
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            end = 9 + int.from_bytes(data[:3], "big")
            yield data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:end]
            data = data[end:]
        try:
            part = client.recv(65536)
        except ConnectionResetError:
            return
        if not part:
            return
        data += part


CALM = h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


def test_requests_that_are_taken_back_at_once_end_the_connection(start):
    server = start(resets_per_second=50)
    client = Http2(server)
    try:
        for stream in range(1, 4001, 2):
            client.request(stream, "/wait")
            client.connection.reset_stream(stream)
            client.flush()
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert client.goaway_code() in (CALM, h2.errors.ErrorCodes.INTERNAL_ERROR)
    client.socket.close()
    server.await_counter("exchanges", 1)


@pytest.mark.parametrize(
    "kind, flags, stream, payload",
    [(6, 0, 0, b"12345678"), (4, 0, 0, b""), (2, 0, 99, b"\0\0\0\0\x10")],
)
def test_floods_of_frames_that_ask_for_nothing_end_the_connection(
    start, kind, flags, stream, payload
):
    server = start(control_frames_per_second=100)
    client = Http2(server)
    try:
        for _ in range(2000):
            send_frame(client, kind, flags, stream, payload)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert client.goaway_code() == CALM


def test_a_flood_of_empty_data_ends_the_connection(start):
    server = start(control_frames_per_second=100)
    client = Http2(server)
    client.request(1, "/echo", end=False, method="POST")
    client.flush()
    try:
        for _ in range(2000):
            send_frame(client, 0, 0, 1)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert client.goaway_code() == CALM


def test_a_flood_of_continuations_ends_the_connection(server):
    client = Http2(server)
    send_frame(client, 1, 0, 1, b"\x82")
    try:
        for _ in range(5000):
            send_frame(client, 9, 0, 1, b"\x00\x01a\x01b" * 100)
    except (BrokenPipeError, ConnectionResetError):
        pass
    read_all(client.socket)


def test_headers_that_are_too_many_or_too_large_are_refused(server):
    client = Http2(server)
    client.request(1, extra=[(f"x-{i}", "y") for i in range(200)])
    client.request(3, extra=[("x", "y" * 20000)])
    client.request(5, "/" + "x" * 9000)
    client.request(7)
    client.flush()
    statuses = {}
    for event in client.events():
        if isinstance(event, h2.events.ResponseReceived):
            statuses[event.stream_id] = dict(event.headers)[b":status"]
        if len(statuses) == 4:
            break
    assert statuses == {1: b"431", 3: b"431", 5: b"414", 7: b"200"}


def test_a_header_bomb_is_not_unpacked(server):
    client = Http2(server)
    # One entry of 4,000 bytes in the table, then named 12,000 times.
    bomb = b"\x82\x86\x84\x41\x01x" + b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000 + b"\xbe" * 12000
    send_frame(client, 1, 5, 1, bomb)
    for kind, _, _, payload in read_frames(client.socket):
        assert kind != 0
        if kind == 1:
            assert hpack.Decoder().decode(payload)[0] == (":status", "431")
        if kind in (1, 3, 7):
            break
    else:
        pytest.fail("no answer at all")
    client.socket.close()


def test_a_header_block_that_never_ends_is_closed(start):
    server = start(head_ms=200)
    client = Http2(server)
    send_frame(client, 1, 0, 1, b"\x82")
    goodbyes = [payload for kind, _, _, payload in read_frames(client.socket) if kind == 7]
    assert [int.from_bytes(payload[4:8], "big") for payload in goodbyes] == [CALM]


def test_a_body_that_stalls_on_a_stream_is_told_so(start):
    server = start(stall_ms=200)
    client = Http2(server)
    client.request(1, "/echo", end=False, method="POST")
    client.flush()
    event = client.until(h2.events.ResponseReceived)
    assert dict(event.headers)[b":status"] == b"408"


def test_more_streams_than_allowed_are_refused(start):
    server = start(streams=10)
    client = Http2(server)
    client.until(h2.events.RemoteSettingsChanged)
    client.connection.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS] = 100
    client.connection.remote_settings.acknowledge()
    for stream in range(1, 60, 2):
        client.request(stream, "/wait")
    client.flush()
    event = client.until((h2.events.StreamReset, h2.events.ConnectionTerminated))
    assert event.error_code in (
        h2.errors.ErrorCodes.REFUSED_STREAM,
        h2.errors.ErrorCodes.PROTOCOL_ERROR,
    )
    client.socket.close()


def test_an_http2_client_that_stops_reading_holds_a_bounded_amount(start):
    server = start(output_bytes=65536, write_ms=500)
    client = Http2(server)
    client.connection.increment_flow_control_window(1 << 30)
    client.request(1, "/flow?parts=100000&size=60000")
    client.connection.increment_flow_control_window(1 << 30, 1)
    client.flush()
    server.await_counter("exchanges", 2)
    server.await_counter("exchanges", 1)
    client.socket.close()


def test_a_stream_window_that_is_never_opened_is_not_filled_up(start):
    server = start(ping_ms=200)
    client = Http2(server)
    client.request(1, "/flow?parts=100000&size=60000")
    client.flush()
    # Neither reads nor answers PING: closed after twice ping_ms.
    server.await_counter("exchanges", 2)
    server.await_counter("exchanges", 1)
    client.socket.close()


def test_a_silent_http2_connection_with_an_open_stream_is_asked_and_closed(start):
    server = start(ping_ms=200)
    client = Http2(server)
    client.request(1, "/wait")
    client.flush()
    assert client.until(h2.events.PingReceived)
    client.socket.close()


def test_an_idle_http2_connection_is_told_goodbye(start):
    server = start(idle_ms=200)
    client = Http2(server)
    assert client.goaway_code() == 0


@pytest.mark.parametrize(
    "headers",
    [
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("Upper", "x")],
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("connection", "close")],
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":path", "/2")],
        [(":method", "GET"), (":scheme", "http"), (":authority", "x")],
        [(":path", "/"), (":scheme", "http"), (":authority", "x")],
        [(":method", "GET"), (":path", ""), (":scheme", "http"), (":authority", "x")],
        [(":method", "GET"), (":path", "/"), (":scheme", "http"), ("a", "b\r\nc: d")],
    ],
)
def test_improper_http2_headers_reset_the_stream(server, headers):
    client = Http2(server)
    client.connection.send_headers(1, headers, end_stream=True)
    client.flush()
    event = client.until((h2.events.StreamReset, h2.events.ConnectionTerminated))
    assert event is not None
    client.socket.close()


def test_a_length_that_is_not_that_of_the_body_resets_the_stream(server):
    client = Http2(server)
    client.request(1, "/echo", end=False, method="POST", extra=[("content-length", "5")])
    client.connection.send_data(1, b"123456789", end_stream=True)
    client.flush()
    assert client.until(h2.events.StreamReset)
    client.socket.close()


def test_rubbish_after_the_preface_ends_the_connection(server):
    with server.connect() as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"rubbish" * 100)
        read_all(client)
