"""Requests of HTTP/1.1 that can be read in two ways, or are no requests at all."""

import json
import re
import socket
import threading
import time

import test_hostile

from attack import attack, defeat
from conftest import read_all


def parameters(function):
    """The cases of a parametrized test: the same bytes go to the real service here."""
    return function.pytestmark[0].args[1]


def smuggle(site, head, body):
    """Sends a request that may be read in two ways, with another one behind it; the answers."""
    request = (b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body
               + b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return site.http.ask(request)


@attack("anonymous", "a request is hidden in another by two lengths, odd codings or bare line ends")
def hidden_request(world):
    cases = parameters(
        test_hostile.test_lengths_that_can_be_read_in_two_ways_end_the_connection)
    for head, body in cases:
        answer = smuggle(world.site, head, body)
        count = len(re.findall(rb"HTTP/1\.1 \d", answer))
        defeat(count > 1 or b'"openapi"' in answer, f"{head!r}: {count} answers")
    return f"{len(cases)} requests: one refusal each, and a closed connection"


@attack("anonymous", "a head that makes no sense is taken for a request")
def senseless_head(world):
    cases = parameters(test_hostile.test_a_request_that_makes_no_sense_is_told_so_and_closed)
    for request, status in cases:
        answer = world.site.http.ask(request)
        got = test_hostile.status_of(answer)
        # Without sign-in nothing is told about the path, so 401 is a refusal too.
        defeat(got is not None and got < 400, f"{request[:40]!r}: {got}")
    return f"{len(cases)} heads were refused"


@attack("tenant", "a request without a token rides on the token of the one before it")
def inherited_token(world):
    site = world.site
    first = (f"GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\n"
             f"Authorization: Bearer {site.admin.token}\r\n\r\n").encode()
    second = b"GET /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for together in (True, False):
        with site.http.connect() as client:
            if together:
                client.sendall(first + second)
            else:
                client.sendall(first)
                assert client.recv(65536).startswith(b"HTTP/1.1 200")
                client.sendall(second)
            answer = read_all(client)
        last = answer.rpartition(b"HTTP/1.1 ")[2]
        defeat(last.startswith(b"200"), "the second request was answered as an administrator's")
    return "pipelined and kept alive: 401"


@attack("anonymous", "20,000 requests at once on one connection mix up answers or stop the service")
def long_pipeline(world):
    count = 2000 if world.quick else 20000
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with world.flood(16, "pipeline 256, output_bytes 1 MiB"), world.site.http.connect(60) as client:

        def send():
            try:
                client.sendall(request * (count - 1) + last)
            except OSError:
                pass
        sender = threading.Thread(target=send)
        sender.start()
        answer = read_all(client)
        sender.join()
    got = answer.count(b"HTTP/1.1 200")
    defeat(got != count, f"{got} answers to {count} requests")
    return f"{got} answers, in order"


@attack("anonymous", "a target that names another host than Host gets past the check of Host")
def absolute_target(world):
    """RFC 9112: the authority of an absolute target counts, and Host is ignored."""
    port = world.open.http.port
    cases = {
        "an evil target, a good Host": (f"http://evil.example:{port}", f"localhost:{port}", False),
        "a good target, a good Host": (f"http://localhost:{port}", f"localhost:{port}", True),
    }
    for what, (target, host, is_good) in cases.items():
        answer = world.open.http.ask(f"GET {target}/api/v1/jobs HTTP/1.1\r\nHost: {host}\r\n"
                                     f"Connection: close\r\n\r\n".encode())
        let_in = answer.startswith(b"HTTP/1.1 200")
        defeat(let_in and not is_good, f"{what}: {answer[:60]!r}")
        assert let_in or not is_good or answer.startswith(b"HTTP/1.1 4"), answer[:200]
    return "the host of the target decides, or such targets are refused"


@attack("anonymous", "a chunk of 2^64 - 1 bytes keeps a connection and its memory for ever")
def huge_chunk(world):
    """The refusal comes with the size, or when the head's time has passed; never a body."""
    for size in (b"ffffffffffffffff", b"fffffffffffffffe", b"7fffffffffffffff", b"8000000000000000"):
        with world.site.http.connect() as client:
            client.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                           + world.site.enemy.token.encode()
                           + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n" + b"x" * 100)
            client.settimeout(15)
            try:
                answer = client.recv(65536)
            except TimeoutError:
                answer = b"nothing for 15 s"
        defeat(answer.startswith(b"HTTP/1.1 2") or b"nothing" in answer, f"{size.decode()}: {answer[:60]!r}")
    return "4 sizes were refused at once"


@attack("anonymous", "a path leaves the files of the dashboard")
def traversal(world):
    tails = ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//etc/passwd",
             "%252e%252e%252fetc%252fpasswd", "..\\..\\etc\\passwd", "index.html%00.png", "/etc/passwd",
             "%c0%ae%c0%ae/etc/passwd", "x/../../../../etc/passwd"]
    for tail in tails:
        for start in ("/assets/", "/", "/api/v1/assets/"):
            answer = world.site.http.ask(
                f"GET {start}{tail} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            defeat(b"root:" in answer, f"{start}{tail} shows /etc/passwd")
            status = test_hostile.status_of(answer)
            defeat(status == 200 and b"<html" not in answer, f"{start}{tail}: {answer[:80]!r}")
    return f"{len(tails) * 3} paths were refused"


@attack("anonymous", "a header of the request comes back as a header of the answer")
def injected_header(world):
    site = world.site
    for path in ("/api/v1/jobs/x%0d%0aSet-Cookie:%20a=b", "/api/v1/jobs?after=%0d%0aX-Evil:%201",
                 "/%0d%0aX-Evil:%201"):
        answer = site.http.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://x\r\n"
                               f"Authorization: Bearer {site.enemy.token}\r\n"
                               "X-Request-Id: a\tb\r\nConnection: close\r\n\r\n".encode())
        head = answer.partition(b"\r\n\r\n")[0].lower()
        defeat(b"\r\nset-cookie" in head or b"\r\nx-evil" in head, f"{path}: {head!r}")
    return "refused, or written as text"


@attack("tenant", "a job's output is run as a page by a browser that guesses what it is")
def sniffed_type(world):
    site = world.site
    _, said = site.enemy.run("echo '<script>alert(1)</script>'")
    job = site.enemy.get("/api/v1/jobs?limit=1&name=job").json()["jobs"][0]["id"]
    bare = []
    for path in (f"/api/v1/jobs/{job}/logs", "/api/v1/jobs", "/health", "/openapi.json", "/metrics",
                 "/api/v1/jobs/job-99999"):
        answer = site.enemy.get(path)
        kind = answer.headers.get("content-type", "")
        defeat("html" in kind, f"{path} is {kind}")
        if answer.headers.get("x-content-type-options", "").lower() != "nosniff":
            bare.append(path)
    defeat(bare, f"without nosniff: {' '.join(bare)}")
    return f"nosniff on logs, JSON, metrics and errors; {json.dumps(said[:20])} stays text"


@attack("anonymous", "slow heads and bodies hold connections for as long as they like", quick=False)
def slow_loris(world):
    """The site's head_ms is 2 s. Each connection sends a byte now and then."""
    clients = [world.site.http.connect() for _ in range(300)]
    for client in clients:
        client.sendall(b"GET /health HTTP/1.1\r\nX: ")
        client.settimeout(0)
    open_ones, began = set(clients), time.monotonic()
    while open_ones and time.monotonic() - began < 15:
        time.sleep(0.3)
        for client in list(open_ones):
            try:
                client.send(b"y")
                if client.recv(1000) == b"":
                    open_ones.discard(client)
            except BlockingIOError:
                continue
            except OSError:
                open_ones.discard(client)
    took = time.monotonic() - began
    for client in clients:
        client.close()
    defeat(open_ones, f"{len(open_ones)} of 300 are still open after {took:.0f} s")
    return f"all 300 closed after {took:.1f} s, head_ms is 2 s"


@attack("anonymous", "the service says yes to a body of a gibibyte, or takes one without end")
def huge_body(world):
    site = world.site
    with site.http.connect() as client:
        client.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                       + site.enemy.token.encode() + b"\r\nContent-Length: 1073741824\r\n\r\n")
        answer = client.recv(65536)
    defeat(b" 413 " not in answer[:20] and b" 401 " not in answer[:20], answer[:80])
    with world.flood(16, "limits.body_bytes 8 MiB"):
        sent = endless_body(site)
    defeat(sent >= 1 << 30, "a gibibyte was taken")
    return f"413; a body without end was cut off after {sent >> 20} MiB"


def endless_body(site):
    part, sent = b"10000\r\n" + b" " * 0x10000 + b"\r\n", 0
    with site.http.connect(20) as client:
        client.sendall(b"POST /api/v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                       + site.enemy.token.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while sent < 1 << 30:
                client.sendall(part)
                sent += len(part)
        except (OSError, socket.timeout):
            pass
    return sent
