"""WebSocket frames that no browser sends, and listeners that do not listen."""

import struct

from test_websocket import close_code, frame, handshake, \
    test_what_breaks_the_protocol_is_closed_with_its_code as broken_frames

from attack import attack, defeat
from conftest import read_all, read_until


def join(site, path=b"/api/v1/stream"):
    """The socket of a listener who has been let in."""
    client = site.http.connect()
    client.sendall(handshake(path, b"Authorization: Bearer " + site.enemy.token.encode() + b"\r\n"))
    assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
    return client


def said_before_end(client):
    """What the service says until it closes; None where it does not close."""
    client.settimeout(30)
    try:
        return read_all(client)
    except TimeoutError:
        return None


@attack("tenant", "a frame that breaks the protocol is taken")
def broken(world):
    cases = broken_frames.pytestmark[0].args[1]
    for data, code in cases:
        with join(world.site) as client:
            client.sendall(data)
            said = said_before_end(client)
            defeat(said is None, f"{data[:12]!r}: the socket stays open")
    return f"{len(cases)} sequences of frames were closed"


@attack("tenant", "a message of 2^62 bytes, or in endless fragments, is waited for")
def huge_message(world):
    cases = {"2^62": b"\x81\xff" + struct.pack(">Q", 1 << 62) + b"maskdata",
             "2^63": b"\x81\xff" + struct.pack(">Q", 1 << 63) + b"maskdata",
             "fragments": frame(1, b"x" * 60000, fin=False) + frame(0, b"x" * 60000, fin=False) * 150}
    with world.flood(16, "message_bytes 4 MiB"):
        for what, data in cases.items():
            with join(world.site) as client:
                try:
                    client.sendall(data)
                    said = said_before_end(client)
                except OSError:
                    said = b""
                defeat(said is None, f"{what}: the socket stays open")
    return f"{len(cases)} messages were refused"


@attack("tenant", "floods of pings or empty fragments keep the service busy")
def control_flood(world):
    for data in (frame(9, b"x") * 3000, frame(1, b"", fin=False) + frame(0, b"", fin=False) * 3000):
        with join(world.site) as client:
            try:
                client.sendall(data)
                said = said_before_end(client)
            except OSError:
                said = b""
            defeat(said is None, "3,000 frames were taken, and the socket stays open")
            if said and b"\x88" in said:
                close_code(said)
    return "2 floods were closed"


def make_events(site, rounds):
    """Jobs that come and go, 200 a round. Their names are long."""
    jobs = [{"command": ["true"], "name": "x" * 200, "gpu_count": 9}] * 200
    for _ in range(rounds):
        answer = site.enemy.post("/api/v1/jobs", jobs)
        assert answer.status == 201, answer
        for one in answer.json()["jobs"]:
            site.enemy.delete(f"/api/v1/jobs/{one['job_id']}")


@attack("tenant", "listeners that do not read make the service keep all events for them")
def deaf_listeners(world):
    """30 listeners who read nothing, while jobs come and go."""
    site = world.site
    rounds = 1 if world.quick else 15
    make_events(site, rounds)  # what the jobs themselves cost is there before it is measured
    listeners = [join(site, b"/api/v1/stream?topics=jobs,nodes,slots,tenants,decisions,metrics,gpus")
                 for _ in range(30)]
    with world.flood(30, "output_bytes 1 MiB for each of 30"):
        make_events(site, rounds)
    for listener in listeners:
        listener.close()
    return f"{world.floods[-1]}"


@attack("anonymous", "a stranger opens the live stream without a token, or by a protocol that holds none")
def without_token(world):
    site = world.site
    extras = [b"", b"Sec-WebSocket-Protocol: events\r\n", b"Sec-WebSocket-Protocol: bearer.\r\n",
              b"Sec-WebSocket-Protocol: bearer.gst_x, events\r\n", b"Cookie: token=x\r\n",
              b"Authorization: Bearer x\r\n"]
    for extra in extras:
        with site.http.connect() as client:
            client.sendall(handshake(b"/api/v1/stream", extra + b"X-End: 1\r\n"))
            answer = client.recv(65536)
        defeat(answer.startswith(b"HTTP/1.1 101"), f"{extra!r} was let in")
    return f"{len(extras)} handshakes were refused"
