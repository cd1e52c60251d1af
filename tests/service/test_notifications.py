"""Webhooks and e-mail: signed, in order, again until they arrive, also after a restart."""

import base64
import email
import email.header
import hashlib
import hmac
import http.server
import json
import socket
import ssl
import subprocess
import threading

import grpc
import pytest

from calls import Calls, agent_pb2, scheduler_pb2, wait_for
from scheduler import Scheduler


class Receiver:
    """Takes webhooks; answers with what `answers` has, then with 200."""

    def __init__(self, tls=None):
        self.got = []
        self.answers = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.answers.pop(0) if outer.answers else 200
                outer.got.append((status, dict(self.headers), body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}/hook"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def taken(self):
        return [json.loads(body) for status, _, body in self.got if status == 200]

    def events(self):
        return [one["event"] for one in self.taken()]


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


class Mailbox:
    """A mail server that takes everything; with `tls` from the first byte on, or when it
    is asked to."""

    def __init__(self, tls=None, at_once=False, refusals=()):
        self.mails = []
        self.refusals = list(refusals)  # of recipients, one after the other
        self.connections = 0
        self.tls, self.at_once = tls, at_once
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.welcome, args=(client,), daemon=True).start()

    def welcome(self, client):
        try:
            if self.at_once:
                client = self.tls.wrap_socket(client, server_side=True)
            self.talk(client)
        except (OSError, ssl.SSLError):
            client.close()

    def talk(self, client, greets=True):
        lines, words = client.makefile("rwb"), []

        def say(text):
            lines.write(text + b"\r\n")
            lines.flush()

        if greets:
            say(b"220 here")
        for line in lines:
            words.append(line.strip())
            if line.startswith(b"EHLO"):
                say(b"250-here")
                say(b"250-STARTTLS")
                say(b"250-AUTH PLAIN")
                say(b"250 SIZE 1000000")
            elif line.startswith(b"STARTTLS"):
                say(b"220 go on")
                self.talk(self.tls.wrap_socket(client, server_side=True), greets=False)
                return
            elif line.startswith(b"RCPT") and self.refusals:
                say(self.refusals.pop(0))
            elif line.startswith(b"AUTH"):
                say(b"235 welcome")
            elif line.startswith(b"DATA"):
                say(b"354 go on")
                data = b""
                for part in lines:
                    if part == b".\r\n":
                        break
                    data += part
                self.mails.append((words, email.message_from_bytes(data)))
                say(b"250 taken")
            elif line.startswith(b"QUIT"):
                say(b"221 bye")
                break
            else:
                say(b"250 fine")
        client.close()


@pytest.fixture
def mailbox():
    one = Mailbox()
    yield one
    one.listener.close()


@pytest.fixture
def start(tmp_path):
    running = []

    def start_one(*arguments):
        running.append(Calls(tmp_path / "store.db", *arguments))
        return running[-1]

    yield start_one
    for one in running:
        one.stop()


def cancelled_job(calls, name="train"):
    job = calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
        tenant_id="lab", name=name, gpu_count=1, command=["true"]), timeout=60).job_id
    calls.scheduler.CancelJob(scheduler_pb2.CancelJobRequest(job_id=job), timeout=60)
    return job


def lab(receiver, **more):
    return "--notify", json.dumps({"notify_webhook": receiver.url, "notify_secret": "s3cret",
                                   **more})


def test_the_end_of_a_job_is_told_and_signed(start, receiver):
    calls = start(*lab(receiver))
    job = cancelled_job(calls)
    wait_for(lambda: receiver.got)
    _, headers, body = receiver.got[0]
    told = json.loads(body)
    assert told["event"] == "job.cancelled"
    assert told["job"]["id"] == job and told["job"]["name"] == "train"
    assert told["job"]["state"] == "cancelled"
    signature = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers["X-GPU-Scheduler-Signature"] == f"sha256={signature}"
    assert headers["X-GPU-Scheduler-Event"] == "job.cancelled"
    assert headers["X-GPU-Scheduler-Delivery"] == str(told["delivery"])


def test_only_what_was_asked_for_is_told(start, receiver):
    calls = start(*lab(receiver, notify_on=["failed"]))
    cancelled_job(calls)
    agent(calls, "false", "failed")
    wait_for(lambda: receiver.got)
    assert receiver.events() == ["job.failed"]


def agent(calls, name, end):
    """Runs one job on a node that says how it ended."""
    calls.agent.RegisterAgent(agent_pb2.RegisterAgentRequest(
        node_id="n1", total_cpu_cores=8, total_memory_mb=1024,
        gpus=[agent_pb2.GPUInfo(gpu_id="GPU-1", memory_total_mb=1000)]), timeout=60)
    words = [agent_pb2.JobAssignmentRequest(node_id="n1", status="ready")]
    stream = calls.agent.ReceiveJobAssignment(iter(words))
    job = calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
        tenant_id="lab", name=name, gpu_count=1, command=[name]), timeout=60).job_id
    assert next(stream).job_id == job
    for state in ("running", end):
        calls.agent.ReportMetrics(agent_pb2.ReportMetricsRequest(
            node_id="n1", job_metrics=[agent_pb2.JobMetrics(job_id=job, state=state)]),
            timeout=60)
    stream.cancel()
    return job


def test_start_and_end_come_in_order(start, receiver):
    receiver.answers = [500, 503, 500]
    calls = start(*lab(receiver, notify_on=["started", "completed"]))
    agent(calls, "true", "completed")
    wait_for(lambda: len(receiver.taken()) == 2)
    assert receiver.events() == ["job.started", "job.completed"]
    numbers = [one["delivery"] for one in receiver.taken()]
    assert numbers == sorted(numbers)
    assert [status for status, _, _ in receiver.got] == [500, 503, 500, 200, 200]


def test_what_was_not_delivered_survives_a_restart(tmp_path, receiver):
    receiver.answers = [500] * 100000
    first = Calls(tmp_path / "store.db", *lab(receiver))
    job = cancelled_job(first)
    wait_for(lambda: receiver.got)
    first.stop()
    receiver.answers = []
    second = Calls(tmp_path / "store.db", *lab(receiver))
    try:
        told = wait_for(receiver.taken)
        assert told[0]["job"]["id"] == job
    finally:
        second.stop()
    third = Calls(tmp_path / "store.db", *lab(receiver))
    third.stop()
    # It may come twice if the first was taken at the very end; then its number says so.
    assert len({one["delivery"] for one in receiver.taken()}) == 1


def test_tenants_do_not_reach_into_private_networks(start, receiver):
    calls = start(*lab(receiver), "--public-only")
    cancelled_job(calls)
    agent(calls, "true", "completed")
    assert not receiver.got


def told_job(calls, *recipients, on=(), tenant="lab"):
    job = calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
        tenant_id=tenant, name="mine", gpu_count=1, command=["true"], notify=recipients,
        notify_on=on), timeout=60).job_id
    calls.scheduler.CancelJob(scheduler_pb2.CancelJobRequest(job_id=job), timeout=60)
    return job


def test_those_whom_a_job_names_are_told_of_its_end(start, receiver, mailbox):
    calls = start("--smtp", mailbox.port)
    cancelled_job(calls, name="of-another")
    job = told_job(calls, receiver.url, "alice@example.org")
    told = wait_for(receiver.taken)
    assert [one["job"]["id"] for one in told] == [job]
    assert told[0]["event"] == "job.cancelled"
    assert told[0]["text"] == told[0]["message"]  # what Slack shows
    words, mail = wait_for(lambda: mailbox.mails and mailbox.mails[0])
    assert b"RCPT TO:<alice@example.org>" in words
    assert len(receiver.got) == 1


def test_a_receiver_that_a_job_names_gets_no_signature_of_the_tenant(start, receiver):
    calls = start("--notify", json.dumps({"notify_secret": "s3cret"}))
    told_job(calls, receiver.url)
    wait_for(lambda: receiver.got)
    assert "X-GPU-Scheduler-Signature" not in receiver.got[0][1]


def test_the_tenants_own_receiver_is_told_once(start, receiver):
    calls = start(*lab(receiver))
    first = told_job(calls, receiver.url)
    second = told_job(calls)
    wait_for(lambda: len(receiver.taken()) == 2)
    assert [one["job"]["id"] for one in receiver.taken()] == [first, second]


def test_a_job_says_what_is_told(start, receiver):
    calls = start()
    told_job(calls, receiver.url, on=["started", "failed"])
    last = told_job(calls, receiver.url, on=["cancelled"])
    told = wait_for(receiver.taken)
    assert [one["job"]["id"] for one in told] == [last]


@pytest.mark.parametrize("recipients, on, reason", [
    (["nobody"], [], "mail addresses"),
    (["a@example.org\r\nBcc: b@example.org"], [], "mail addresses"),
    (["https://user:password@example.org/"], [], "notify is refused"),
    (["ftp://example.org/"], [], "mail addresses"),
    (["a@example.org"], ["finished"], "notify_on"),
    ([], ["failed"], "without notify"),
    ([f"a{n}@example.org" for n in range(9)], [], "more than 8"),
])
def test_recipients_that_cannot_be_told_are_refused(start, recipients, on, reason):
    calls = start()
    with pytest.raises(grpc.RpcError, match=reason):
        told_job(calls, *recipients, on=on)


def test_a_job_names_no_receiver_in_a_private_network(start, receiver):
    calls = start("--public-only")
    with pytest.raises(grpc.RpcError, match="private network"):
        told_job(calls, receiver.url)


def test_jobs_name_recipients_only_where_that_is_allowed(tmp_path):
    one = Scheduler(tmp_path, sections={"notifications": {"job_recipients": False}})
    try:
        tenant = one.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
        job = {"tenant_id": tenant, "command": ["true"], "notify": ["a@example.org"]}
        answer = one.post("/api/v1/jobs", job)
        assert answer.status == 403
        assert "job_recipients" in answer.json()["error"]
    finally:
        one.kill()


def test_recipients_of_jobs_are_of_the_domains_that_are_allowed(tmp_path):
    one = Scheduler(tmp_path, sections={"notifications": {
        "job_recipients_only": "example.org, ops@example.com", "allow_private_addresses": True}})
    try:
        tenant = one.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
        job = {"tenant_id": tenant, "command": ["true"], "hold": True}
        for good in ("a@example.org", "b@Lab.Example.ORG", "ops@example.com", "https://hook.example.org/x"):
            assert one.post("/api/v1/jobs", job | {"notify": [good]}).status == 201, good
        for bad in ("a@example.com", "a@badexample.org", "a@example.org.net", "https://example.com/example.org"):
            answer = one.post("/api/v1/jobs", job | {"notify": ["a@example.org", bad]})
            assert answer.status == 403 and "job_recipients_only" in answer.json()["error"], bad
    finally:
        one.kill()


def test_a_large_array_has_no_recipients_of_its_own(tmp_path):
    one = Scheduler(tmp_path)
    try:
        tenant = one.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
        job = {"tenant_id": tenant, "command": ["true"], "notify": ["a@example.org"], "hold": True}
        answer = one.post("/api/v1/jobs", job | {"array": "1-101"})
        assert answer.status == 400
        assert "at most 100 jobs" in answer.json()["error"]
        assert one.post("/api/v1/jobs", job | {"array": "1-100"}).status == 201
    finally:
        one.kill()


def test_the_operator_is_told_of_a_long_queue_by_webhook_and_mail(start, receiver, mailbox):
    calls = start("--webhook", receiver.url, "of-the-operator", "--smtp", mailbox.port)
    for _ in range(25):
        calls.scheduler.SubmitJob(scheduler_pb2.SubmitJobRequest(
            tenant_id="lab", gpu_count=1, command=["true"]), timeout=60)
    wait_for(lambda: receiver.got and mailbox.mails)
    told = receiver.taken()[0]
    assert told["event"] == "queue.long"
    assert "25 jobs wait" in told["message"]
    words, mail = mailbox.mails[0]
    assert b"RCPT TO:<operator@example.org>" in words
    assert b"MAIL FROM:<gpu@example.org>" in words
    subject = str(email.header.make_header(email.header.decode_header(mail["Subject"])))
    assert subject == "25 jobs wait in the queue"
    assert "25 jobs wait" in mail.get_payload(decode=True).decode()


def test_a_tenant_is_told_by_mail(start, mailbox):
    payload = {"email": "lab@example.org", "notify_email": True}
    calls = start("--notify", json.dumps(payload), "--smtp", mailbox.port)
    with pytest.raises(grpc.RpcError, match="control characters"):
        cancelled_job(calls, name="train\r\nBcc: x@example.org")
    cancelled_job(calls, name="trainé")
    words, mail = wait_for(lambda: mailbox.mails and mailbox.mails[0])
    assert b"RCPT TO:<lab@example.org>" in words
    assert mail["To"] == "<lab@example.org>"
    assert mail["Bcc"] is None
    assert "was cancelled" in mail.get_payload(decode=True).decode()


def test_a_mail_that_cannot_be_taken_now_is_sent_again(start):
    mailbox = Mailbox(refusals=[b"451 later"])
    calls = start("--notify", json.dumps({"notify_email": "lab@example.org"}), "--smtp", mailbox.port)
    cancelled_job(calls)
    wait_for(lambda: mailbox.mails)
    assert mailbox.connections == 2
    mailbox.listener.close()


def test_a_mail_that_is_rejected_for_good_is_not_sent_again(start):
    mailbox = Mailbox(refusals=[b"550 no such person"])
    calls = start("--notify", json.dumps({"notify_email": "lab@example.org"}), "--smtp", mailbox.port)
    cancelled_job(calls, name="first")
    wait_for(lambda: mailbox.connections == 1 and not mailbox.refusals)
    cancelled_job(calls, name="second")
    wait_for(lambda: mailbox.mails)
    assert len(mailbox.mails) == 1
    assert mailbox.connections == 2
    mailbox.listener.close()


def raw_receiver(answer):
    """A server that takes one request after the other and sends these bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    heads = []

    def serve():
        while True:
            try:
                client, _ = listener.accept()
                heads.append(client.recv(65536))
                client.sendall(answer)
                client.close()
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    return listener, heads, f"http://127.0.0.1:{listener.getsockname()[1]}/hook"


def test_a_redirect_of_a_webhook_is_not_followed(start, receiver):
    listener, heads, url = raw_receiver(
        f"HTTP/1.1 307 Elsewhere\r\nLocation: {receiver.url}\r\nContent-Length: 0\r\n\r\n".encode())
    calls = start("--notify", json.dumps({"notify_webhook": url}))
    cancelled_job(calls)
    wait_for(lambda: len(heads) >= 2)
    assert not receiver.got
    listener.close()


def test_a_webhook_may_answer_in_chunks_and_at_length(start):
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + 4096 * b"x" + b"\r\n0\r\n\r\n"
    listener, heads, url = raw_receiver(answer)
    calls = start("--notify", json.dumps({"notify_webhook": url}))
    for number in range(3):
        cancelled_job(calls, name=f"job-{number}")
    wait_for(lambda: len(heads) == 3)
    assert len({head.split(b"Delivery: ")[1].split()[0] for head in heads}) == 3
    listener.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that is its own authority, and a context that shows it."""
    directory = tmp_path_factory.mktemp("certificate")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_mail_goes_by_tls_and_signs_in(start, certificate, security):
    path, context = certificate
    mailbox = Mailbox(context, at_once=security == "tls")
    payload = json.dumps({"notify_email": "lab@example.org"})
    calls = start("--notify", payload, "--smtp", mailbox.port, "--smtp-security", security,
                  "--ca", path)
    cancelled_job(calls)
    words, mail = wait_for(lambda: mailbox.mails and mailbox.mails[0])
    proof = base64.b64encode(b"\0someone\0hunter2")
    assert b"AUTH PLAIN " + proof in words
    assert mail["To"] == "<lab@example.org>"
    mailbox.listener.close()


def test_a_webhook_goes_by_tls_to_who_has_the_right_certificate(start, certificate):
    path, context = certificate
    receiver = Receiver(context)
    calls = start(*lab(receiver), "--ca", path)
    cancelled_job(calls)
    assert wait_for(receiver.events) == ["job.cancelled"]


def test_without_a_certificate_that_is_trusted_nothing_is_said(start, certificate):
    _, context = certificate
    receiver, mailbox = Receiver(context), Mailbox(context)
    calls = start(*lab(receiver, notify_email="lab@example.org"), "--smtp", mailbox.port,
                  "--smtp-security", "starttls")
    cancelled_job(calls)
    wait_for(lambda: mailbox.connections >= 3)
    assert not receiver.got and not mailbox.mails


@pytest.mark.parametrize("name, days", [("DNS:other.example", 2), ("IP:127.0.0.1", -1)],
                         ids=["of another name", "expired"])
def test_with_a_bad_certificate_of_a_trusted_authority_nothing_is_said(start, tmp_path, name, days):
    key, request, certificate, names = (tmp_path / part for part in ("key", "request", "pem", "names"))
    names.write_text(f"subjectAltName={name}\n")
    for command in (["req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request,
                     "-subj", "/CN=server"],
                    ["x509", "-req", "-in", request, "-signkey", key, "-days", str(days),
                     "-extfile", names, "-out", certificate]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    receiver, mailbox = Receiver(context), Mailbox(context, at_once=True)
    calls = start(*lab(receiver, notify_email="lab@example.org"), "--smtp", mailbox.port,
                  "--smtp-security", "tls", "--ca", certificate)
    cancelled_job(calls)
    wait_for(lambda: mailbox.connections >= 3)
    assert not receiver.got and not mailbox.mails
