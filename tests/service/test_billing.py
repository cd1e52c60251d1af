"""The billing export of each day, posted until it is taken, and signed with its time."""

import hashlib
import hmac
import http.server
import json
import threading
import time

import pytest

from scheduler import Scheduler

SECRET = "books-of-the-month"


class Books(http.server.ThreadingHTTPServer):
    """Takes posts; the first ones fail, as many as it is told to."""

    def __init__(self, failures):
        super().__init__(("127.0.0.1", 0), Post)
        self.failures, self.posts = failures, []
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/gpu"


class Post(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posts.append((dict(self.headers.items()), body))
        self.send_response(503 if len(self.server.posts) <= self.server.failures else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def books():
    servers = []

    def start(failures=0):
        servers.append(Books(failures))
        return servers[-1]
    yield start
    for server in servers:
        server.shutdown()


def await_posts(server, count):
    deadline = time.monotonic() + 90
    while len(server.posts) < count:
        assert time.monotonic() < deadline, server.posts
        time.sleep(0.05)
    return server.posts[:count]


def started(tmp_path, url):
    return Scheduler(tmp_path, sections={"notifications": {"billing_webhook": url, "billing_secret": SECRET}})


def test_a_day_is_posted_until_it_is_taken(tmp_path, books):
    server = books(failures=1)
    one = started(tmp_path, server.url)
    try:
        posts = await_posts(server, 2)
        assert posts[0][1] == posts[1][1]
        for headers, body in posts:
            signed = f"{headers['X-GPU-Scheduler-Time']}.".encode() + body
            expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
            assert headers["X-GPU-Scheduler-Signature"] == f"sha256={expected}"
            assert abs(int(headers["X-GPU-Scheduler-Time"]) - time.time()) < 3600
            assert headers["X-GPU-Scheduler-Event"] == "billing.day"
        sent = json.loads(posts[1][1])
        day = sent["from"][:10]
        assert sent["event"] == "billing.day" and sent["to"] > sent["from"] and sent["tenants"] == []
        same = one.get(f"/api/v1/reports/billing?from={sent['from']}&to={sent['to']}").json()
        assert same["id"] == sent["id"] and sent["id"].startswith(day)
    finally:
        one.stop()


def test_a_day_that_was_taken_is_not_posted_again(tmp_path, books):
    first, second = books(), books()
    one = started(tmp_path, first.url)
    await_posts(first, 1)
    deadline = time.monotonic() + 60
    while b"gpu_scheduler_notifications_total 1\n" not in one.get("/metrics").body:
        assert time.monotonic() < deadline, one.get("/metrics").body
        time.sleep(0.05)
    one.stop()
    first.shutdown()
    one = started(tmp_path, second.url)
    try:
        # It looks for days to send a second after its start; what it sends then would be there by now.
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            assert not [body for _, body in second.posts if body == first.posts[0][1]]
            time.sleep(0.1)
    finally:
        one.stop()


def test_lines_of_an_export_have_ids_that_stay(tmp_path):
    one = Scheduler(tmp_path)
    try:
        path = "/api/v1/reports/billing?from=2026-01-01&to=2026-02-01"
        assert one.get(path).json()["id"] == "2026-01-01T00:00:00Z/2026-02-01T00:00:00Z"
        table = one.get(path + "&format=csv").body.decode()
        assert table.splitlines()[0].split(",")[-1] == "id"
        tenant = one.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
        usage = one.get(f"/api/v1/tenants/{tenant}/usage?from=2026-01-01&to=2026-02-01").json()["usage"]
        assert usage["id"] == f"2026-01-01T00:00:00Z/2026-02-01T00:00:00Z/{tenant}"
    finally:
        one.stop()
