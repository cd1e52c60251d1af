"""Webhooks and mail that should reach into the service's own network, or say what was not meant."""

import http.server
import socket
import threading

from test_notifications import Receiver

from attack import attack, defeat
from calls import wait_for

# Ways to write loopback, private and link-local addresses; {port} is where a receiver listens.
INNER = ["http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://127.1:{port}/",
         "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://0177.0.0.1:{port}/",
         "http://0.0.0.0:{port}/", "http://0:{port}/", "http://[::1]:{port}/", "http://[::]:{port}/",
         "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/",
         "http://[0:0:0:0:0:ffff:7f00:0001]:{port}/", "http://127.0.0.1.:{port}/",
         "http://user@127.0.0.1:{port}/", "http://evil.example@127.0.0.1:{port}/",
         "http://127.0.0.1:{port}#@evil.example/", "http://127.0.0.2:{port}/",
         "http://[64:ff9b::7f00:1]:{port}/", "http://{name}:{port}/", "http://LOCALHOST:{port}/",
         "http://localhost.localdomain:{port}/", "http://ip6-localhost:{port}/"]


def tell(person):
    """A job of the tenant ends, so that its webhook is due."""
    job = person.submit(command=["true"], gpu_count=900)
    person.delete(f"/api/v1/jobs/{job}")


@attack("tenant", "a webhook reaches into the service's own machine or network")
def inner_addresses(world):
    site, receiver = world.site, Receiver()
    port = receiver.server.server_port
    taken = 0
    for number, form in enumerate(INNER):
        url = form.format(port=port, name=socket.gethostname())
        made = site.admin.post("/api/v1/tenants", {"name": f"hook-{number}", "notify_webhook": url})
        if made.status != 201:
            continue
        taken += 1
        tell(site.person(made.json()["id"], role="tenant"))
    try:
        wait_for(lambda: receiver.got, seconds=1 if world.quick else 5)
    except AssertionError:
        pass
    receiver.server.shutdown()
    receiver.server.server_close()
    defeat(receiver.got, f"{len(receiver.got)} posts arrived: {receiver.got[:1]}")
    return f"{len(INNER)} forms of inner addresses, {len(INNER) - taken} refused at once, no post"


@attack("tenant", "a webhook or mail address that is none is taken, and dropped in silence later")
def odd_addresses(world):
    site = world.site
    taken = []
    for number, fields in enumerate([
            {"notify_webhook": "file:///etc/passwd"}, {"notify_webhook": "gopher://127.0.0.1:25/x"},
            {"notify_webhook": "javascript:alert(1)"}, {"notify_webhook": "http://"},
            {"notify_webhook": "http://x\r\nHost: y/"}, {"notify_email": "a@b\r\nBCC: x@y"}, {"email": "a@b\r\nBCC: x@y"}]):
        answer = site.admin.post("/api/v1/tenants", {"name": f"odd-{number}", **fields})
        if answer.status == 201:
            taken.append(fields)
    defeat(taken, f"taken with 201: {taken}")
    return "6 addresses were refused"


@attack("tenant", "a webhook's receiver sends the service on to an inner address")
def redirected(world):
    """The receiver is the administrator's own here, and answers with a redirection."""
    hits = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            hits.append(self.path)
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/secret")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = world.site
    with site.settings_changed("notifications", allow_private_addresses=True):
        person = site.person(site.make_tenant("redirected", notify_webhook=(
            f"http://127.0.0.1:{server.server_port}/hook")), role="tenant")
        try:
            tell(person)
            wait_for(lambda: hits, seconds=20)
            try:
                wait_for(lambda: "/secret" in hits, seconds=1)
            except AssertionError:
                pass
        finally:
            server.shutdown()
            server.server_close()
            site.admin.delete(f"/api/v1/tenants/{person.tenant}")
    defeat("/secret" in hits, f"followed: {hits}")
    return "307 was not followed"


@attack("tenant", "a job's name breaks out of the JSON or the headers of a webhook")
def names_in_webhooks(world):
    site, receiver = world.site, Receiver()
    with site.settings_changed("notifications", allow_private_addresses=True):
        person = site.person(site.make_tenant("named", notify_webhook=receiver.url,
                                              notify_secret="s3cret"), role="tenant")
        name = 'x","event":"job.completed","y":"\u2028 </script>'
        answer = person.post("/api/v1/jobs", {"name": name, "command": ["true"], "gpu_count": 900})
        assert answer.status == 201, answer
        person.delete(f"/api/v1/jobs/{answer.json()['job_id']}")
        wait_for(lambda: receiver.got)
        site.admin.delete(f"/api/v1/tenants/{person.tenant}")
    receiver.server.shutdown()
    receiver.server.server_close()
    shown = receiver.taken()[0]
    defeat(shown["event"] != "job.cancelled" or shown["job"]["name"] != name, shown)
    return "the name arrived as it was, inside its text"
