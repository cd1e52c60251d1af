"""Clients of a scheduler that comes and goes, and what they were promised."""

import http.client
import json
import random
import threading
import time


class Client(threading.Thread):
    """Submits jobs and cancels some. What it has no answer to it asks again, under the
    same key, until it has one: so it knows of every job whether it must be there."""

    def __init__(self, people, number):
        super().__init__(daemon=True)
        self.people, self.name = people, f"client-{number}"
        self.random = random.Random(f"{people.seed}/{number}")
        self.count = 0
        self.connection = None
        self.port = None
        self.turn = number

    def ask(self, method, path, body=None):
        """(status, answer); None where the scheduler is not there, or went away."""
        try:
            ports = self.people.ports
            if not ports:
                time.sleep(0.005)
                return None
            port = ports[self.turn % len(ports)]
            if self.connection is None or self.port != port:
                self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                self.port = port
            text = None if body is None else json.dumps(body)
            self.connection.request(method, path, text, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.connection = None
            self.turn += 1
            time.sleep(0.005)
            return None

    def ask_until_answered(self, method, path, body=None):
        while not self.people.over:
            answer = self.ask(method, path, body)
            if answer and answer[0] != 503:
                return answer
            if answer:  # it waits, or its store fails
                self.turn += 1
                time.sleep(0.005)
        return None

    def submit(self):
        self.count += 1
        key = f"{self.name}-{self.count}"
        body = {"tenant_id": self.people.tenant, "name": key, "idempotency_key": key,
                "gpu_count": 1, "preemptible": False, "command": self.people.command(key)}
        answer = self.ask_until_answered("POST", "/api/v1/jobs", body)
        if not answer:
            return
        status, job = answer
        if status not in (200, 201):
            self.people.complain(f"{key} was refused: {status} {job}")
            return
        with self.people.lock:
            known = self.people.acknowledged.setdefault(key, job["job_id"])
            if known != job["job_id"]:
                self.people.complain(f"{key} is {known} and {job['job_id']}")

    def cancel(self):
        with self.people.lock:
            if not self.people.acknowledged:
                return
            key = self.random.choice(list(self.people.acknowledged))
            job_id = self.people.acknowledged[key]
        answer = self.ask_until_answered("DELETE", f"/api/v1/jobs/{job_id}")
        if answer and answer[0] == 200:
            with self.people.lock:
                self.people.cancelled.add(job_id)
        elif answer and answer[0] not in (409, 404):
            self.people.complain(f"{job_id} could not be cancelled: {answer}")

    def run(self):
        while not self.people.over:
            if self.random.random() < 0.1:
                self.cancel()
            else:
                self.submit()


class People:
    """Several clients, and all that they were told."""

    def __init__(self, seed, tenant, clients=3, command=lambda key: ["true"]):
        self.seed, self.tenant = seed, tenant
        self.command = command  # what the job of a key runs
        self.lock = threading.RLock()
        self.acknowledged, self.cancelled, self.complaints = {}, set(), []
        self.ports = []  # where schedulers are, or may be
        self.over = False
        self.clients = [Client(self, number) for number in range(clients)]
        for client in self.clients:
            client.start()

    def complain(self, text):
        with self.lock:
            self.complaints.append(text)

    def stop(self):
        self.over = True
        for client in self.clients:
            client.join(timeout=30)

    def check(self, read_jobs):
        """That everything they were told is among (id, key, state) of the jobs. What is
        told while it is read may be missing there, so the promises are taken first."""
        with self.lock:
            promised, cancelled = dict(self.acknowledged), set(self.cancelled)
            assert not self.complaints, self.complaints
        stored = {}
        for number, key, state in read_jobs():
            assert key not in stored, f"{key} is there twice"
            stored[key] = (f"job-{number}", state)
        for key, job_id in promised.items():
            assert key in stored, f"{key} ({job_id}) was acknowledged and is gone"
            assert stored[key][0] == job_id, f"{key} is {stored[key][0]}, not {job_id}"
        for job_id, state in stored.values():
            assert job_id not in cancelled or state == "cancelled", f"{job_id} is {state}"
