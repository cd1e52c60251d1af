"""A service under attack: the real scheduler with sign-in, real agents, and people in it."""

import contextlib
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time
import types

import grpc

from calls import agent_pb2_grpc, claims, health_pb2_grpc, jwt, scheduler_pb2_grpc
from conftest import Server
from node import Node
from test_enrolment import SecuredCluster

JWT_SECRET = "a secret that has more than thirty-two bytes"
ISSUER = "https://issuer.example"
AUDIENCE = "gpu-scheduler"
CANARY = "canary-5d1f"  # in everything of the victim's that another must not see
SECRET = "topsecret-9c2e"
REAL = {"real": "1"}  # a label of nodes that have a real agent
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:")
SEALING_KEY = "k1:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="

# The agents of tests may run tasks as root. Those under attack are as an administrator
# would start them.
WITHOUT_ROOT = [sys.executable, "-c",
                "import os, sys; words = [w for w in sys.argv[1:] if w != '--allow-root']; "
                "os.execv(words[0], words)"]


class Door(Server):
    """A port of a service that runs already, to say any bytes to."""

    def __init__(self, port):
        self.port = port
        self.url = f"http://127.0.0.1:{port}"


class Person:
    """Somebody with a token: requests over REST and calls by gRPC."""

    def __init__(self, site, token, tenant=None, token_id=None):
        self.site, self.token, self.tenant, self.token_id = site, token, tenant, token_id
        self.metadata = [("authorization", f"Bearer {token}")]

    def ask(self, method, path, body=None, **options):
        return self.site.scheduler.request(method, path, body, token=self.token, **options)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.ask("POST", path, body, **options)

    def delete(self, path, **options):
        return self.ask("DELETE", path, **options)

    def submit(self, **fields):
        """The id of a job that was accepted."""
        answer = self.post("/api/v1/jobs", {"name": "job", **fields})
        assert answer.status == 201, answer
        return answer.json()["job_id"]

    def run(self, script, seconds=30, **fields):
        """Runs a script to its end on a node with a real agent; the job, and what it wrote."""
        job = self.submit(script=script, **{"node_labels": REAL, **fields})
        ended = self.site.await_state(job, "completed", "failed", seconds=seconds)
        return ended, self.site.logs(job)


def keys(directory):
    """An RSA and an EC key with their public halves."""
    for name, words in (("rsa", ["genrsa", "2048"]),
                        ("ec", ["ecparam", "-name", "prime256v1", "-genkey", "-noout"])):
        private, public = directory / f"{name}.pem", directory / f"{name}-public.pem"
        made = subprocess.run(["openssl", *words], check=True, capture_output=True).stdout
        private.write_bytes(made)
        shown = subprocess.run(["openssl", "pkey", "-pubout", "-in", private], check=True,
                               capture_output=True).stdout
        public.write_bytes(shown)


class Site(SecuredCluster):
    """A scheduler that wants a sign-in, two tenants who do not trust each other, and nodes."""

    def __init__(self, directory, sections=None):
        directory.mkdir(parents=True)
        keys(directory)
        super().__init__(directory, self.settings(directory, sections or {}))
        os.chmod(directory, 0o711)
        self.http = Door(self.scheduler.port)
        self.victims = types.SimpleNamespace()  # what the victim has that attacks must leave alone
        self.rpc = Door(int(self.port))
        self.admin = Person(self, self.scheduler.token)
        self.victim = self.tenant_person(f"victim-{CANARY}", unix_user="games")
        self.enemy = self.tenant_person("enemy", unix_user="nobody")
        self.open_channel()

    def open_channel(self):
        """A new one after each start: an old one waits before it tries again."""
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", [
            ("grpc.use_local_subchannel_pool", 1)])
        self.calls = types.SimpleNamespace(
            agent=agent_pb2_grpc.AgentServiceStub(self.channel),
            scheduler=scheduler_pb2_grpc.SchedulerServiceStub(self.channel),
            health=health_pb2_grpc.HealthStub(self.channel))

    @staticmethod
    def settings(directory, more):
        sections = {
            "auth": {"enable": True, "jwt_secret": JWT_SECRET, "jwt_audience": AUDIENCE,
                     "jwt_issuer": ISSUER,
                     "jwt_keys": [f"rsa:RS256:{directory}/rsa-public.pem",
                                  f"ec:ES256:{directory}/ec-public.pem"]},
            "store": {"secret_keys": SEALING_KEY},
            "scheduler": {"grace_ms": 500},
            "api": {"stop_grace_ms": 500},
            "limits": {"head_ms": 2000, "write_ms": 2000, "idle_ms": 20000},
        }
        for section, values in more.items():
            sections[section] = {**sections.get(section, {}), **values}
        return sections

    # People.

    def person(self, tenant=None, **what):
        """Somebody with a new API token."""
        answer = self.admin.post("/api/v1/tokens", {**what, **({"tenant_id": tenant} if tenant else {})})
        assert answer.status == 201, answer
        made = answer.json()
        return Person(self, made["token"], tenant, made["id"])

    def tenant_person(self, name, **fields):
        return self.person(self.make_tenant(name, **fields), role="tenant")

    def revoke(self, person):
        answer = self.admin.delete(f"/api/v1/tokens/{person.token_id}")
        assert answer.status in (200, 204), answer

    def jwt(self, role="admin", header=None, secret=JWT_SECRET, sign=None, **more):
        """A JSON web token, good unless the arguments spoil it."""
        named = {"iss": ISSUER, **claims(role, **more)}
        kept = {name: value for name, value in named.items() if value is not None}
        return jwt(kept, secret, header, sign)

    def jwt_person(self, role="admin", **more):
        return Person(self, self.jwt(role, **more))

    # Nodes.

    def add_agent(self, name, arguments=(), wrapper=(), **options):
        """A real agent with a token of its node, as an administrator would start it."""
        done, path = self.enroll(name)
        assert done.returncode == 0, done.stderr
        words = ["--token-file", str(path), "--user", "nobody", "--labels", "real=1", *arguments]
        return self.agent(name, arguments=words,
                                    wrapper=[*wrapper, *WITHOUT_ROOT], **options)

    def node_token(self, node=None):
        return self.person(role="agent", **({"node": node} if node else {}))

    def fake_node(self, name, person=None, **options):
        """A node whose agent does what the attack says. It has a good token for its name, and
        a connection number above all before it."""
        person = person or self.node_token(name)
        options.setdefault("connection", time.time_ns())
        return Node(self.calls, name, metadata=person.metadata, **options)

    def forget_node(self, name):
        """Removes a node that is not coming back, with what it was given."""
        self.admin.post(f"/api/v1/nodes/{name}/dead")
        self.admin.delete(f"/api/v1/nodes/{name}")

    # What is there, and whether it is well.

    def directory_for_all(self):
        """A new directory that tasks of any user can write to."""
        path = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        os.chmod(path, 0o777)
        return path

    def job(self, job):
        return self.admin.get(f"/api/v1/jobs/{job}").json()

    def illness(self):
        """What is wrong with the scheduler, its agents or its nodes; empty where all is well."""
        if (status := self.scheduler.process.poll()) is not None:
            return f"the scheduler died with status {status}: {self.last_words()}"
        for agent in self.agents:
            if (status := agent.process.poll()) is not None:
                return f"the agent {agent.name} died with status {status}"
        with contextlib.suppress(OSError):
            for log in self.logs_of_programs():
                if found := SANITIZER.search(log.read_text(errors="replace")):
                    return f"{log.name}: {found.group()}"
        return self.try_service()

    def try_service(self, seconds=60):
        """Asks for /health, looks at the nodes and runs a job on each. Waits: a service that is
        slow is not dead."""
        try:
            health = self.scheduler.get("/health", timeout=seconds)
            if health.status != 200:
                return f"/health is {health}"
            for agent in self.agents:
                self.wait(lambda: self.node(agent.name)["state"] in ("online", "ready"), seconds)
            if self.agents:
                ended, said = self.victim.run("echo well", seconds)
                if said != "well\n":
                    return f"a job of the victim's ended as {ended['state']}: {said}"
        except (OSError, AssertionError, ValueError) as error:
            return f"the service does not work: {type(error).__name__} {error}"
        return ""

    def logs_of_programs(self):
        return [*self.scheduler.directory.glob("errors-*"), *self.directory.glob("*.log")]

    def last_words(self):
        return self.scheduler.errors.read_text(errors="replace")[-300:].strip()

    def revive(self):
        """Starts what an attack ended, so that the next one has something to attack."""
        if self.scheduler.process.poll() is not None:
            self.scheduler.start()
            self.http = Door(self.scheduler.port)
            self.open_channel()
        for agent in self.agents:
            if agent.process.poll() is not None:
                agent.start()
        for agent in self.agents:
            self.wait(lambda: (self.node(agent.name) or {}).get("connected"), 60)

    def restart(self):
        self.scheduler.kill()
        self.revive()

    @contextlib.contextmanager
    def settings_changed(self, section, **values):
        """Settings that hold for the length of the block, by SIGHUP."""
        before = dict(self.scheduler.sections.get(section, {}))
        self.reload(section, {**before, **values})
        try:
            yield
        finally:
            self.reload(section, before)

    def reload(self, section, values):
        """Until the scheduler has read its settings again."""
        self.scheduler.sections[section] = values
        self.scheduler.write_config()
        if self.scheduler.process.poll() is not None:
            return  # its next start reads them
        told = lambda: self.scheduler.errors.read_text().count("the settings were read again")
        before = told()
        self.scheduler.reload()
        self.wait(lambda: told() > before or self.scheduler.process.poll() is not None)

    def tidy(self):
        """Ends the jobs and removes the nodes that an attack left behind."""
        kept = vars(self.victims).values()
        while left := [job["id"] for state in ("pending", "scheduled", "running")
                       for job in self.admin.get(f"/api/v1/jobs?state={state}&limit=50").json()["jobs"]
                       if job["id"] not in kept]:
            for job in left:
                self.admin.delete(f"/api/v1/jobs/{job}")
        names = [agent.name for agent in self.agents]
        for node in self.admin.get("/api/v1/nodes?limit=1000").json()["nodes"]:
            if node["id"] not in names:
                self.forget_node(node["id"])

    def stored_faults(self):
        """What `gpu-scheduler check` has to say when the service is stopped."""
        for agent in self.agents:
            agent.kill()
        self.scheduler.process.terminate()
        if (status := self.scheduler.process.wait(60)) != 0:
            return f"the scheduler ended with status {status}: {self.last_words()}"
        checked = self.scheduler.run("check")
        return "" if checked.returncode == 0 else (checked.stdout + checked.stderr).strip()


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)
