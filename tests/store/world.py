"""Clients and agents around a scheduler process, and what they were promised."""

import os
import random
import signal
import socket
import subprocess
import threading
import time


class Process:
    """One store_driver. Its lines are read by a thread."""

    def __init__(self, program, database, name, socket_path, *more):
        self.socket_path = str(socket_path)
        if os.path.exists(self.socket_path):
            os.unlink(self.socket_path)
        arguments = [str(program), str(database), name, self.socket_path, *map(str, more)]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.strip())
                self.changed.notify_all()

    def said(self, word):
        return [line for line in self.lines if line.startswith(word)]

    def wait_for(self, word, timeout=120):
        """The first line that begins with the word."""
        until = time.monotonic() + timeout
        with self.changed:
            while not self.said(word):
                left = until - time.monotonic()
                if left <= 0 or self.process.poll() is not None and not self.reader.is_alive():
                    raise AssertionError(f"it never said '{word}': {self.lines[-3:]}")
                self.changed.wait(min(left, 0.1))
            return self.said(word)[0]

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.reader.join()


class Link(threading.Thread):
    """A peer's connection to one scheduler, made again whenever it ends."""

    def __init__(self, peer, path):
        super().__init__(daemon=True)
        self.peer, self.path = peer, path
        self.connection = None
        self.greeted = False

    def run(self):
        while not self.peer.world.over:
            try:
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.settimeout(2)
                    connection.connect(self.path)
                    self.connection = connection
                    self.serve()
            except OSError:
                pass
            except Exception as problem:  # pylint: disable=broad-except
                self.peer.world.complain(f"{type(self.peer).__name__} failed: {problem!r}")
            with self.peer.lock:
                self.greeted = False
            time.sleep(0.005)

    def serve(self):
        """Talks until the connection ends. One that nobody greets is left."""
        rest = b""
        while not self.peer.world.over:
            try:
                data = self.connection.recv(65536)
                if not data:
                    return
            except socket.timeout:
                if not self.greeted:
                    return
                data = b""
            *lines, rest = (rest + data).split(b"\n")
            with self.peer.lock:
                for line in lines:
                    words = line.decode().split(" ", 2)
                    if words[0] == "hello":
                        self.greeted = True
                        self.connection.settimeout(0.01)
                        self.peer.hello(self, int(words[1]))
                    else:
                        self.peer.heard(self, words)
                if self.greeted:
                    self.peer.act()

    def send(self, text):
        """A line that cannot be sent at once ends the connection."""
        try:
            if self.greeted:
                self.connection.sendall(text.encode() + b"\n")
        except OSError:
            self.greeted = False
            self.connection.close()


class Peer:
    """Has a link to each scheduler, and says everything to all of them."""

    def __init__(self, world):
        self.world = world
        self.random = random.Random(world.random.random())
        self.number = 0
        self.lock = threading.Lock()
        self.links = [Link(self, path) for path in world.sockets]
        for link in self.links:
            link.start()

    def request(self, text):
        """A number for a request, which replaces the {} in its line."""
        self.number += 1
        return self.number, text.format(self.number)

    def send(self, text):
        for link in self.links:
            link.send(text)


class Client(Peer):
    """Submits jobs, cancels some, and remembers what was acknowledged."""

    def __init__(self, world, name):
        self.name = name
        self.waiting = {}
        self.keys = 0
        super().__init__(world)

    def hello(self, link, term):
        del term
        for _, line in self.waiting.values():
            link.send(line)

    def act(self):
        while len(self.waiting) < 8:
            known = list(self.world.acknowledged.values())
            if known and self.random.random() < 0.1:
                job = self.random.choice(known[-50:])
                number, line = self.request(f"cancel {{}} {job}")
                self.waiting[number] = (("cancel", job), line)
            else:
                self.keys += 1
                key = f"{self.name}-{self.keys}"
                gpus = self.random.choice([1, 1, 2])
                number, line = self.request(f"submit {{}} {key} {gpus}")
                self.waiting[number] = (("submit", key), line)
            self.send(line)

    def heard(self, link, words):
        del link
        (verb, what), _ = self.waiting.pop(int(words[1]), ((None, None), None))
        if verb is None:  # another scheduler has answered
            return
        if verb == "cancel":
            if words[0] == "ok":
                self.world.cancelled.add(what)
        elif words[0] == "ok":
            self.world.acknowledged[what] = int(words[2])
        else:
            self.world.complain(f"{what} was refused: {words[2]}")


class Agent(Peer):
    """A node: starts what it is told once, under the highest term it has heard of."""

    def __init__(self, world, name, gpus):
        self.name, self.gpus = name, gpus
        self.term = 0
        self.running = {}  # reservation: (job, task), when it ends
        self.facts = {}  # number: reservation, line; until they are acknowledged
        self.seen = set()
        super().__init__(world)

    def hello(self, link, term):
        self.term = max(self.term, term)
        here = set(self.running) | {reservation for reservation, _ in self.facts.values()}
        listed = ",".join(map(str, sorted(here))) or "-"
        link.send(f"node 0 {self.name} {self.gpus} {listed}")
        for _, line in self.facts.values():
            link.send(line)

    def tell(self, verb, reservation, rest=""):
        number, line = self.request(f"{verb} {{}} {reservation}{rest}")
        self.facts[number] = (reservation, line)
        self.send(line)

    def heard(self, link, words):
        if words[0] in ("ok", "no"):
            self.facts.pop(int(words[1]), None)
            return
        term, rest = int(words[1]), words[2].split()
        reservation, job, task = (int(word) for word in rest)
        if term < self.term:
            self.world.refused += 1
            return
        self.term = term
        self.world.ordered(term, link.path)
        if words[0] == "start":
            self.start_task(reservation, (job, task))
        else:
            self.stop_task(reservation)

    def start_task(self, reservation, task):
        if reservation in self.seen:
            return
        self.seen.add(reservation)
        self.world.begin(task)
        lasts = self.random.uniform(0.005, 0.08)
        self.running[reservation] = (task, time.monotonic() + lasts)
        self.tell("started", reservation)

    def stop_task(self, reservation):
        if reservation in self.running:
            self.world.end(self.running.pop(reservation)[0], None)
        self.tell("released", reservation)

    def act(self):
        now = time.monotonic()
        for reservation, (task, ends) in list(self.running.items()):
            if ends <= now:
                code = self.random.choice([0, 0, 0, 1])
                del self.running[reservation]
                self.world.end(task, code)
                self.tell("exited", reservation, f" {code}")


class World:
    """What everyone knows together, and what must hold."""

    def __init__(self, seed, sockets):
        self.random = random.Random(seed)
        self.sockets = sockets
        self.over = False
        self.lock = threading.Lock()
        self.problems = []
        self.acknowledged = {}  # key: job
        self.cancelled = set()
        self.running = set()  # (job, task)
        self.done = set()  # that ended with 0
        self.starts = self.refused = 0
        self.terms = {}  # of accepted orders: which scheduler gave them
        self.peers = [Client(self, f"client{i}") for i in range(3)]
        self.peers += [Agent(self, f"node{i}", 4) for i in range(2)]

    def complain(self, text):
        with self.lock:
            self.problems.append(text)

    def begin(self, task):
        with self.lock:
            self.starts += 1
            if task in self.running:
                self.problems.append(f"task {task} runs twice")
            if task in self.done:
                self.problems.append(f"task {task} was started after it had succeeded")
            self.running.add(task)

    def end(self, task, code):
        with self.lock:
            self.running.discard(task)
            if code == 0:
                self.done.add(task)

    def ordered(self, term, path):
        with self.lock:
            if self.terms.setdefault(term, path) != path:
                self.problems.append(f"two schedulers gave orders in term {term}")

    def stop(self):
        self.over = True
        for peer in self.peers:
            for link in peer.links:
                link.join(5)

    def check(self, fetch):
        """What was acknowledged until now is in fetch(): (id, key, state) each."""
        acknowledged, cancelled = dict(self.acknowledged), set(self.cancelled)
        stored = {int(job): (key, state) for job, key, state in fetch()}
        for key, job in acknowledged.items():
            if job not in stored:
                self.complain(f"job {job} ({key}) was acknowledged and is not there")
            elif stored[job][0] != key:
                self.complain(f"job {job} was acknowledged for {key}: {stored[job]}")
        for job in cancelled:
            if stored[job][1] not in ("cancelled", "completed", "failed"):
                self.complain(f"job {job} was cancelled and is {stored[job][1]}")
        keys = [key for key, _ in stored.values()]
        if len(keys) != len(set(keys)):
            self.complain("a key was used for two jobs")
        assert not self.problems, self.problems[:5]
