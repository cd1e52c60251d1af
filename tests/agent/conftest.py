"""What the tests of the agent share."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "service"))

from cluster import Cluster
from stub import Agent, Driver, clean_up


@pytest.fixture
def driver():
    driver = Driver()
    yield driver
    driver.stop()


@pytest.fixture
def make_agent(driver, tmp_path):
    agents = []

    def make(name=None, **options):
        name = name or f"node-{tmp_path.name.replace('_', '-')[-20:]}-{len(agents)}-{os.getpid()}"
        port = options.pop("port", driver.port)
        state = options.pop("state", tmp_path / name)
        agents.append(Agent(port, state, name, **options))
        return agents[-1]

    yield make
    for agent in agents:
        if agent.process.poll() is None:
            agent.kill()
    clean_up([agent.name for agent in agents])


@pytest.fixture
def agent(driver, make_agent):
    agent = make_agent()
    driver.snapshot(agent.name)
    return agent


@pytest.fixture
def cluster(tmp_path):
    """The real scheduler; agents and a tenant are made by the test."""
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()
