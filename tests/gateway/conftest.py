"""What the tests of the gateway share."""

import json
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "agent"))
sys.path.insert(0, str(HERE.parent / "service"))

from cluster import Cluster
from gateway_parts import Gateway, Mock
from scheduler import Scheduler


@pytest.fixture
def mock():
    mock = Mock()
    yield mock
    mock.stop()


@pytest.fixture
def make_gateway(tmp_path):
    gateways = []

    def make(*arguments, routes=None):
        directory = tmp_path / f"gateway-{len(gateways)}"
        directory.mkdir()
        if routes is not None:
            (directory / "routes.json").write_text(json.dumps({"models": routes}))
            arguments = ("--routes", directory / "routes.json", *arguments)
        gateways.append(Gateway(directory, *arguments))
        return gateways[-1]

    yield make
    for gateway in gateways:
        gateway.kill()


@pytest.fixture
def gateway(make_gateway, mock):
    """One before the mock server, which serves the models m, with an alias, and o, by Ollama."""
    return make_gateway("--keep-alive-ms", 100, "--queue-ms", 1500, routes=[
        {"name": "m", "aliases": ["alias"], "slots": [mock.address], "concurrency": 64},
        {"name": "o", "runtime": "ollama", "slots": [mock.address]},
        {"name": "cold", "slots": []}])


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()


@pytest.fixture
def signed_in(tmp_path):
    """A scheduler that wants a sign-in; its requests carry an administrator's token."""
    one = Scheduler(tmp_path / "scheduler", sections={"auth": {"enable": True}}, starts=False)
    one.write_config()
    made = one.run("token", "create")
    assert made.returncode == 0, made.stderr
    one.token = made.stdout.strip()
    one.start()
    yield one
    one.stop()
