"""Web pages that want to use a service on their visitor's machine: the open default."""

from test_websocket import handshake

from attack import attack, defeat

EVIL_ORIGINS = ["http://evil.example", "null", "https://localhost.evil.example", "file://",
                "http://127.0.0.1.evil.example", "http://localhost:1", "http://evil.example:8080",
                "http://LOCALHOST.evil.example", "http://[::1].evil.example", "chrome-extension://x"]
EVIL_HOSTS = ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example",
              "127.0.0.1.nip.io", "localhost@evil.example", "evil.example.", "0x7f000001.evil.example",
              "localhost:80@evil.example", "[::1].evil.example", "evil.example#localhost"]


def submit(site, extra, host=None, kind="text/plain", method="POST"):
    """A request as a page can make it; its status."""
    port = site.http.port
    body = b'{"tenant_id":"tenant-1","name":"by-a-page","command":["true"]}'
    head = (f"{method} /api/v1/jobs HTTP/1.1\r\nHost: {host or f'localhost:{port}'}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{extra}\r\n")
    answer = site.http.ask(head.encode() + body)
    return int(answer.split(b" ", 2)[1])


def judge(site, statuses):
    """Decides for the enemy where a job was submitted or a list was read."""
    bad = {what: status for what, status in statuses.items() if status < 400}
    defeat(bad, f"let in: {bad}")
    jobs = site.scheduler.get("/api/v1/jobs?name=by-a-page").json()["jobs"]
    defeat(jobs, f"{len(jobs)} jobs were submitted by a page")
    return f"{len(statuses)} requests got {sorted(set(statuses.values()))}"


@attack("anonymous", "a web page submits a job to the service on its visitor's machine")
def cross_origin(world):
    site = world.open
    statuses = {}
    for origin in EVIL_ORIGINS:
        for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded"):
            statuses[f"{origin} {kind}"] = submit(site, f"Origin: {origin}\r\n", kind=kind)
    return judge(site, statuses)


@attack("anonymous", "a web page makes its own name point to this machine (DNS rebinding)")
def rebinding(world):
    site = world.open
    statuses = {host: submit(site, "", host=host) for host in EVIL_HOSTS}
    for host in EVIL_HOSTS:
        statuses[f"{host} with its origin"] = submit(site, f"Origin: http://{host}\r\n", host=host)
    return judge(site, statuses)


@attack("anonymous", "a page of another site comes in by a browser that sends no Origin")
def fetch_metadata(world):
    site = world.open
    statuses = {}
    for word in ("cross-site", "same-site"):
        for method in ("POST", "GET"):
            statuses[f"{method} {word}"] = submit(site, f"Sec-Fetch-Site: {word}\r\n", method=method)
    good = submit(site, "Sec-Fetch-Site: same-origin\r\n", method="GET")
    assert good < 500, good
    return judge(site, statuses)


@attack("anonymous", "of two Origin or Host headers the harmless one is believed")
def two_headers(world):
    site = world.open
    port = site.http.port
    own = f"Origin: http://localhost:{port}\r\n"
    evil = "Origin: http://evil.example\r\n"
    statuses = {"own, evil": submit(site, own + evil), "evil, own": submit(site, evil + own),
                "two hosts": submit(site, "Host: evil.example\r\n"),
                "a list": submit(site, f"Origin: http://localhost:{port} http://evil.example\r\n")}
    return judge(site, statuses)


@attack("anonymous", "a page is permitted by the answer to its preflight")
def preflight(world):
    site = world.open
    for origin in EVIL_ORIGINS:
        answer = site.http.ask(
            f"OPTIONS /api/v1/jobs HTTP/1.1\r\nHost: localhost:{site.http.port}\r\nOrigin: {origin}\r\n"
            "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n"
            "Connection: close\r\n\r\n".encode()).lower()
        defeat(b"access-control-allow-origin" in answer.partition(b"\r\n\r\n")[0],
               f"{origin} is allowed: {answer[:200]!r}")
    return f"{len(EVIL_ORIGINS)} origins: no permission in the answer"


@attack("anonymous", "a page opens the live stream, metrics or gRPC of the service on this machine")
def other_doors(world):
    site = world.open
    host = f"Host: localhost:{site.http.port}\r\n".encode()
    for origin in EVIL_ORIGINS:
        request = handshake(b"/api/v1/stream", b"Origin: " + origin.encode() + b"\r\n")
        with site.http.connect() as client:
            client.sendall(request.replace(b"Host: x\r\n", host))
            defeat(client.recv(1000).startswith(b"HTTP/1.1 101"), f"a socket for {origin}")
        answer = site.scheduler.get("/metrics", headers={"Origin": origin})
        defeat(answer.status == 200, f"metrics for {origin}")
    for path in ("/scheduler.SchedulerService/SubmitJob",):
        answer = site.scheduler.post(path, b"\0\0\0\0\0", headers={
            "Origin": "http://evil.example", "Content-Type": "application/grpc-web"})
        defeat(answer.status == 200, f"gRPC for a page: {answer}")
    return f"{len(EVIL_ORIGINS)} origins at 3 doors: refused"
