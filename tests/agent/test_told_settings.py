"""What the scheduler's configuration says about agents reaches them, unless their own options
say otherwise."""

import time

import pytest
from cluster import Cluster


@pytest.fixture
def told(tmp_path):
    """A cluster whose scheduler tells agents what the test says."""
    made = []

    def make(**settings):
        sections = {"scheduler": {"grace_ms": 2000, "refuse_backoff_ms": 200}, "agent": settings}
        made.append(Cluster(tmp_path, sections=sections))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


def tell(cluster, **settings):
    cluster.scheduler.sections["agent"] = settings
    cluster.scheduler.reload()


def told_of(cluster, agent, key, value):
    """Waits until the scheduler tells this of the first GPU of the agent, and when it did."""
    def gpu():
        gpus = cluster.scheduler.get("/api/v1/gpus").json()["gpus"]
        return [gpu for gpu in gpus if gpu["uuid"] == agent.uuid(0) and gpu[key] == value]

    cluster.wait(gpu)
    return time.monotonic()


def pause(cluster, agent, first, second):
    """How long after one piece of news the next one comes."""
    before = told_of(cluster, agent, "foreign_memory", change(agent, first))
    return told_of(cluster, agent, "foreign_memory", change(agent, second)) - before


def change(agent, foreign_mib):
    agent.control(f"0 foreign {foreign_mib}\n")
    return foreign_mib


def said(agent):
    with open(f"{agent.state}.log") as log:
        return log.read().count("the scheduler said how to run")


def test_agents_report_as_often_as_the_scheduler_says_and_hear_of_a_change(told):
    cluster = told(heartbeat_interval_ms=2000)
    agent = cluster.agent(beat_ms=None)
    assert pause(cluster, agent, 5000, 6000) > 1.5
    before = said(agent)
    tell(cluster, heartbeat_interval_ms=100)
    cluster.wait(lambda: said(agent) > before)
    assert pause(cluster, agent, 7000, 8000) < 1.5


def test_an_agents_own_options_win(told):
    cluster = told(heartbeat_interval_ms=5000, container_runtime="none")
    runtime = cluster.directory / "runtime"
    runtime.write_text("#!/bin/sh\n[ $1 = rm ] || echo \"as it was told: $@\"\n")
    runtime.chmod(0o755)
    agent = cluster.agent(beat_ms=200, arguments=["--container-runtime", str(runtime)])
    assert pause(cluster, agent, 5000, 6000) < 2
    job = cluster.submit(None, command=["train"], image="registry.example/train")
    cluster.await_state(job, "completed")
    assert "registry.example/train train" in cluster.logs(job)


def test_figures_come_as_often_as_the_scheduler_says_and_memory_at_once(told):
    cluster = told(heartbeat_interval_ms=100, metrics_interval_ms=3000)
    agent = cluster.agent(beat_ms=None)
    cluster.wait(lambda: said(agent))
    agent.control("0 temperature 60\n")
    before = told_of(cluster, agent, "temperature_c", 60)
    agent.control("0 temperature 61\n")
    assert told_of(cluster, agent, "temperature_c", 61) - before > 1.5
    assert pause(cluster, agent, 5000, 6000) < 1.5


def test_images_are_run_by_what_the_scheduler_says(told):
    cluster = told(container_runtime="none")
    agent = cluster.agent()
    job = cluster.submit(None, command=["train"], image="registry.example/train")
    cluster.wait(lambda: "runs no containers" in cluster.job(job)["message"]
                 or "runs no containers" in str(cluster.scheduler.get(f"/api/v1/jobs/{job}/why").body))
    assert agent.process.poll() is None
