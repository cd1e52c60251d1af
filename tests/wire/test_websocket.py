"""WebSockets: a real client, and raw frames for what a real client would not send."""

import asyncio
import base64
import os
import socket
import struct

import pytest
import websockets

from conftest import read_all, read_until


def handshake(path=b"/socket", extra=b""):
    key = base64.b64encode(os.urandom(16))
    return (
        b"GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n" % (path, key, extra)
    )


def frame(opcode, payload=b"", fin=True, mask=b"\x01\x02\x03\x04"):
    size = len(payload)
    head = bytes([opcode | (0x80 if fin else 0)])
    flag = 0x80 if mask else 0
    if size < 126:
        head += bytes([flag | size])
    elif size < 65536:
        head += bytes([flag | 126]) + struct.pack(">H", size)
    else:
        head += bytes([flag | 127]) + struct.pack(">Q", size)
    if mask:
        payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
    return head + mask + payload


def join(server, path=b"/socket"):
    client = server.connect()
    client.sendall(handshake(path))
    assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    return client


def close_code(data):
    """The code of the close frame that the data ends with."""
    at = data.rindex(b"\x88")
    return struct.unpack(">H", data[at + 2 : at + 4])[0] if data[at + 1] else None


def test_a_real_client_gets_its_messages_back(server):
    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{server.port}/socket") as socket:
            for message in ("", "grüße", "x" * 200, "y" * 70000, b"\x00\xff" * 100000):
                await socket.send(message)
                assert await socket.recv() == message
            await (await socket.ping())

    asyncio.run(talk())


def test_a_message_in_fragments_is_one_message(server):
    with join(server) as client:
        client.sendall(frame(1, b"one ", fin=False) + frame(9, b"?") + frame(0, b"two"))
        client.sendall(frame(8))
        data = read_all(client)
        assert b"\x8a\x01?" in data and b"\x81\x07one two" in data


def test_frames_that_come_with_the_request_are_not_lost(server):
    with server.connect() as client:
        client.sendall(handshake() + frame(1, b"early"))
        assert read_until(client, b"early").endswith(b"\x81\x05early")


@pytest.mark.parametrize(
    "bytes_sent, code",
    [
        (frame(1, b"not masked", mask=b""), 1002),
        (frame(1, b"\xff\xfe"), 1007),
        (frame(1, b"\xc3", fin=False) + frame(0, b"\x28"), 1007),
        (frame(9, b"x" * 126), None),
        (frame(9, b"", fin=False), None),
        (frame(0, b"continues nothing"), 1002),
        (frame(1, b"a", fin=False) + frame(1, b"b"), 1002),
        (frame(0x71, b"reserved bits"), 1002),
        (frame(3, b"unknown opcode"), 1002),
        (frame(8, struct.pack(">H", 1000) + b"\xff"), 1007),
        (frame(8, struct.pack(">H", 999)), 1002),
        (frame(8, struct.pack(">H", 1000) + b"bye"), 1000),
    ],
)
def test_what_breaks_the_protocol_is_closed_with_its_code(server, bytes_sent, code):
    with join(server) as client:
        client.sendall(bytes_sent)
        assert close_code(read_all(client)) == code


def test_a_message_over_the_limit_is_closed_with_1009(start):
    server = start(message_bytes=1000)
    with join(server) as client:
        client.sendall(frame(1, b"x" * 1000))
        read_until(client, b"x" * 1000)
        client.sendall(frame(1, b"x" * 600, fin=False) + frame(0, b"x" * 401))
        assert close_code(read_all(client)) == 1009
    with join(server) as client:
        client.sendall(b"\x81\xff" + struct.pack(">Q", 1 << 62) + b"maskdata")
        assert close_code(read_all(client)) == 1009


def test_a_flood_of_pings_is_closed_with_1008(start):
    server = start(control_frames_per_second=100)
    with join(server) as client:
        client.sendall(frame(9, b"x") * 2000)
        assert close_code(read_all(client)) == 1008


def test_a_flood_of_empty_fragments_is_closed_with_1008(start):
    server = start(control_frames_per_second=100)
    with join(server) as client:
        client.sendall(frame(1, b"", fin=False) + frame(0, b"", fin=False) * 2000)
        assert close_code(read_all(client)) == 1008


@pytest.mark.parametrize(
    "change",
    [
        (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8"),
        (b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Key: short"),
        (b"Upgrade: websocket", b"Upgrade: other"),
        (b"GET ", b"POST "),
    ],
)
def test_an_improper_handshake_is_refused_in_words(server, change):
    request = handshake().replace(*change).replace(b"keep-alive, Upgrade", b"Upgrade, close")
    assert server.ask(request).startswith(b"HTTP/1.1 426 ")


def publish(server, body, times=1):
    request = b"POST /publish?times=%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (
        times,
        len(body),
    )
    answer = server.ask(request + b"Connection: close\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 204 ")


def test_every_listener_gets_every_event_once_and_in_order(server):
    clients = [join(server, b"/fan") for _ in range(50)]
    for i in range(20):
        publish(server, b"event %02d" % i)
    wanted = b"".join(b"\x81\x08event %02d" % i for i in range(20))
    for client in clients:
        assert read_until(client, b"event 19") == wanted
        client.close()


def test_a_listener_that_does_not_read_slows_nobody_and_is_told(start):
    server = start(output_bytes=65536, gather_ms=1)
    quick, slow = join(server, b"/fan"), join(server, b"/fan")
    event = b"e" * 1000
    total = 0
    for _ in range(100):
        publish(server, event, times=60)
        while total % (60 * 1004) != 0 or total == 0:
            total += len(quick.recv(1 << 20))
        total = 0
    assert server.counters()["refused"] > 0
    data = b""
    while b'{"missed":true}' not in data:
        part = slow.recv(1 << 20)
        assert part
        data = data[-100:] + part
    quick.close()
    slow.close()


def test_a_listener_that_never_reads_is_closed_in_the_end(start):
    server = start(output_bytes=65536, write_ms=300)
    stuck = join(server, b"/fan")
    for _ in range(300):
        publish(server, b"e" * 50000)
        if server.counters()["websockets"] == 0:
            break
    server.await_counter("websockets", 0)
    stuck.close()


def test_a_silent_listener_is_asked_and_then_closed(start):
    server = start(ping_ms=200)
    with join(server) as client:
        assert read_until(client, b"\x89\x00")
        client.sendall(frame(10))
        data = read_all(client)
        assert data.startswith(b"\x89\x00")
    assert server.counters()["websockets"] == 0
