"""Broken sequences and floods of HTTP/2, without a token."""

import test_hostile
from test_hostile import Http2, frame

from attack import attack, defeat
from conftest import read_all

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
GET_HEALTH = (b"\x82\x86\x84\x41\x09localhost")  # GET http localhost /


def broken(name, *frames):
    return name, b"".join(frames)


SEQUENCES = [
    broken("DATA on stream 0", frame(DATA, 0, 0, b"x")),
    broken("DATA on an idle stream", frame(DATA, 0, 1, b"x")),
    broken("HEADERS on stream 0", frame(HEADERS, 5, 0, GET_HEALTH)),
    broken("HEADERS on an even stream", frame(HEADERS, 5, 2, GET_HEALTH)),
    broken("a stream number that goes back", frame(HEADERS, 5, 9, GET_HEALTH),
           frame(HEADERS, 5, 3, GET_HEALTH)),
    broken("HEADERS twice", frame(HEADERS, 5, 1, GET_HEALTH), frame(HEADERS, 5, 1, GET_HEALTH)),
    broken("CONTINUATION alone", frame(CONTINUATION, 4, 1, GET_HEALTH)),
    broken("PING inside a header block", frame(HEADERS, 1, 1, b"\x82"), frame(PING, 0, 0, b"12345678")),
    broken("CONTINUATION of another stream", frame(HEADERS, 1, 1, b"\x82"),
           frame(CONTINUATION, 4, 3, b"\x86")),
    broken("DATA inside a header block", frame(HEADERS, 0, 1, b"\x82"), frame(DATA, 1, 1, b"x")),
    broken("PRIORITY of 4 bytes", frame(PRIORITY, 0, 1, b"\0\0\0\0")),
    broken("PRIORITY on itself", frame(PRIORITY, 0, 1, b"\0\0\0\1\x10")),
    broken("HEADERS that depend on themselves", frame(HEADERS, 0x25, 1, b"\0\0\0\1\x10" + GET_HEALTH)),
    broken("RST_STREAM on stream 0", frame(RESET, 0, 0, b"\0\0\0\0")),
    broken("RST_STREAM on an idle stream", frame(RESET, 0, 7, b"\0\0\0\0")),
    broken("RST_STREAM of 3 bytes", frame(RESET, 0, 1, b"\0\0\0")),
    broken("SETTINGS on a stream", frame(SETTINGS, 0, 1, b"")),
    broken("SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, b"12345")),
    broken("SETTINGS that acknowledge with a body", frame(SETTINGS, 1, 0, b"\0\1\0\0\0\0")),
    broken("a window of 2^31", frame(SETTINGS, 0, 0, b"\0\4\x80\0\0\0")),
    broken("frames of 2^24", frame(SETTINGS, 0, 0, b"\0\5\1\0\0\0")),
    broken("ENABLE_PUSH 2", frame(SETTINGS, 0, 0, b"\0\2\0\0\0\2")),
    broken("PUSH_PROMISE from a client", frame(PUSH, 4, 1, b"\0\0\0\2" + GET_HEALTH)),
    broken("PING of 7 bytes", frame(PING, 0, 0, b"1234567")),
    broken("PING on a stream", frame(PING, 0, 1, b"12345678")),
    broken("GOAWAY on a stream", frame(GOAWAY, 0, 1, bytes(8))),
    broken("GOAWAY of 4 bytes", frame(GOAWAY, 0, 0, bytes(4))),
    broken("WINDOW_UPDATE of 0", frame(WINDOW, 0, 0, bytes(4))),
    broken("WINDOW_UPDATE over 2^31", frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 2),
    broken("WINDOW_UPDATE on an idle stream", frame(WINDOW, 0, 5, b"\0\0\0\1")),
    broken("WINDOW_UPDATE of 3 bytes", frame(WINDOW, 0, 0, b"\0\0\1")),
    broken("padding longer than the frame", frame(HEADERS, 0xD, 1, b"\xff" + GET_HEALTH)),
    broken("a frame of 1 MiB", (1 << 20).to_bytes(3, "big") + bytes([DATA, 0]) + bytes(4)),
    broken("an index of HPACK that is not there", frame(HEADERS, 5, 1, b"\xff\xff\xff\x0f")),
    broken("a table of HPACK that is too large", frame(HEADERS, 5, 1, b"\x3f\xff\xff\xff\x0f" + GET_HEALTH)),
    broken("a number of HPACK without end", frame(HEADERS, 5, 1, b"\x7f" + b"\xff" * 40)),
    broken("Huffman code that ends in EOS", frame(HEADERS, 5, 1, b"\x00\x84\xff\xff\xff\xff\x00")),
    broken("an unknown frame of 16 KiB, many times", frame(0xEE, 0xFF, 0, bytes(16384)) * 50),
]


@attack("anonymous", "a broken sequence of frames is taken, hangs its connection or stops the service")
def broken_sequences(world):
    """The connection is closed or the stream refused; another one works at once."""
    with world.flood(16, "nothing is kept for them"):
        for name, data in SEQUENCES:
            client = Http2(world.site.http)
            try:
                client.socket.sendall(data)
                client.socket.settimeout(0.05)
                while client.socket.recv(65536):
                    pass
            except OSError:
                pass
            client.socket.close()
            health = world.site.scheduler.get("/health")
            defeat(health.status != 200, f"after '{name}': {health}")
    return f"{len(SEQUENCES)} sequences, each followed by a request that was answered"


def flood(world, frames, count, bound):
    """Sends frames until the service closes, at most so many; decides for the enemy where it
    takes all of them."""
    client = Http2(world.site.http)
    sent = 0
    with world.flood(16, bound):
        try:
            while sent < count:
                client.socket.sendall(frames)
                sent += 1
            client.socket.settimeout(30)
            data = read_all(client.socket)
            closed = True
        except TimeoutError:
            closed = False
        except OSError:
            closed = True
    client.socket.close()
    defeat(not closed, f"{count} frames were taken, and the connection is still open")
    return f"closed, after {sent} were sent"


@attack("anonymous", "a flood of PING")
def ping_flood(world):
    return flood(world, frame(PING, 0, 0, b"12345678") * 20, 500, "control_frames_per_second")


@attack("anonymous", "a flood of SETTINGS, each of which must be acknowledged")
def settings_flood(world):
    return flood(world, frame(SETTINGS, 0, 0, b"\0\4\0\0\xff\xff") * 20, 500, "control_frames_per_second")


@attack("anonymous", "a flood of PRIORITY")
def priority_flood(world):
    return flood(world, frame(PRIORITY, 0, 99, b"\0\0\0\0\x10") * 20, 500, "control_frames_per_second")


@attack("anonymous", "a flood of CONTINUATION without end")
def continuation_flood(world):
    client = Http2(world.site.http)
    sent = 0
    with world.flood(16, "head_bytes 16 KiB"):
        try:
            client.socket.sendall(frame(HEADERS, 0, 1, b"\x82"))
            while sent < 20000:
                client.socket.sendall(frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 100))
                sent += 1
        except OSError:
            pass
    client.socket.close()
    defeat(sent >= 20000, "20,000 frames were taken")
    return f"closed, after {sent} were sent"


@attack("anonymous", "a flood of empty DATA")
def empty_data_flood(world):
    client = Http2(world.site.http)
    client.request(1, "/api/v1/jobs", end=False, method="POST")
    client.flush()
    sent = 0
    try:
        while sent < 20000:
            client.socket.sendall(frame(DATA, 0, 1) * 20)
            sent += 20
        client.socket.settimeout(30)
        read_all(client.socket)
    except TimeoutError:
        defeat(True, "20,000 frames were taken, and the connection is still open")
    except OSError:
        pass
    client.socket.close()
    return f"refused or closed, after {sent} were sent"


@attack("anonymous", "rapid reset: requests that are taken back at once cost the service more than the client")
def rapid_reset(world):
    client = Http2(world.site.http)
    sent = 0
    with world.flood(24, "resets_per_second 200"):
        try:
            for stream in range(1, 20001, 2):
                client.request(stream, "/openapi.json")
                client.connection.reset_stream(stream)
                client.flush()
                sent += 1
            client.socket.settimeout(30)
            read_all(client.socket)
        except TimeoutError:
            defeat(True, f"{sent} resets were taken, and the connection is still open")
        except OSError:
            pass
    client.socket.close()
    return f"closed, after {sent} were sent"


@attack("anonymous", "a header table unpacks a few bytes to many megabytes")
def hpack_bomb(world):
    bomb = GET_HEALTH + b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000 + b"\xbe" * 12000
    with world.flood(16, "head_bytes 16 KiB"):
        client = Http2(world.site.http)
        client.socket.sendall(frame(HEADERS, 5, 1, bomb))
        kinds = []
        for kind, _, _, _ in test_hostile.read_frames(client.socket):
            kinds.append(kind)
            if kind in (HEADERS, RESET, GOAWAY):
                break
        client.socket.close()
    defeat(DATA in kinds, "the request was answered")
    return "refused, not unpacked"


@attack("anonymous", "improper header fields get past the rules of HTTP/2")
def improper_headers(world):
    cases = test_hostile.test_improper_http2_headers_reset_the_stream.pytestmark[0].args[1]
    for headers in cases:
        client = Http2(world.site.http)
        client.connection.send_headers(1, headers, end_stream=True)
        client.flush()
        for kind, _, stream, _ in test_hostile.read_frames(client.socket):
            defeat(kind == HEADERS, f"{headers} was answered")
            if kind in (RESET, GOAWAY):
                break
        client.socket.close()
    return f"{len(cases)} heads reset their stream"
