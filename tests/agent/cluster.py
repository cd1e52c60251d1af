"""The real scheduler with real agents, all of them processes of this machine."""

import os
import time

from scheduler import Scheduler
from stub import Agent, clean_up


class FixedScheduler(Scheduler):
    """One that serves agents on the same port each time that it starts."""

    grpc_port = "0"

    def command(self):
        words = super().command()
        words[words.index("--grpc-port") + 1] = self.grpc_port
        return words


class Cluster:
    """A scheduler, a tenant, and agents that are added."""

    def __init__(self, directory, **options):
        self.directory = directory
        options.setdefault("sections", {"scheduler": {"grace_ms": 2000}})
        self.scheduler = FixedScheduler(directory / "scheduler", **options)
        self.port = self.scheduler.grpc.rpartition(":")[2]
        self.scheduler.grpc_port = self.port
        self.agents = []
        self.tenant = self.make_tenant("physics")

    def stop(self):
        for agent in self.agents:
            if agent.process.poll() is None:
                agent.kill()
        clean_up([agent.name for agent in self.agents])
        self.scheduler.kill()

    def make_tenant(self, name, **fields):
        answer = self.scheduler.post("/api/v1/tenants", {"name": name, **fields})
        assert answer.status == 201, answer
        return answer.json()["id"]

    def agent(self, name=None, **options):
        """Starts one, and waits until the scheduler knows what it has."""
        name = name or f"node-{os.getpid()}-{len(self.agents)}"
        agent = Agent(self.port, self.directory / name, name, **options)
        self.agents.append(agent)
        self.wait(lambda: (self.node(name) or {}).get("reported"))
        return agent

    def wait(self, condition, seconds=60):
        """What the condition gives, when that is true."""
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            assert time.monotonic() < deadline, "did not happen"
            time.sleep(0.02)
        return result

    def node(self, name):
        for node in self.scheduler.get("/api/v1/nodes").json()["nodes"]:
            if node["id"] == name:
                return node
        return None

    def submit(self, script, **fields):
        fields = {"tenant_id": self.tenant, "name": "test", **fields}
        if script is not None:
            fields["script"] = script
        answer = self.scheduler.post("/api/v1/jobs", fields)
        assert answer.status in (200, 201, 202), answer
        return answer.json()["job_id"]

    def job(self, job):
        return self.scheduler.get(f"/api/v1/jobs/{job}").json()

    def await_state(self, job, *states, seconds=60):
        deadline = time.monotonic() + seconds
        while (seen := self.job(job))["state"] not in states:
            why = self.scheduler.get(f"/api/v1/jobs/{job}/why")
            assert time.monotonic() < deadline, f"{job} is {seen}: {why}"
            time.sleep(0.02)
        return seen

    def logs(self, job, **query):
        words = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.scheduler.get(f"/api/v1/jobs/{job}/logs?{words}")
        assert answer.status == 200, answer
        return answer.body.decode()
