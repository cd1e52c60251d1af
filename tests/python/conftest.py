"""What the tests of the Python client share: the real scheduler with an agent that has simulated
GPUs, and the client from clients/python."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for folder in (HERE.parent / "agent", HERE.parent / "service", ROOT / "clients" / "python"):
    sys.path.insert(0, str(folder))

from cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A node of four GPUs with 80 GiB, and the tenant 'physics'."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.agent(f"python-{os.getpid()}", gpus="4x80G")
    yield cluster
    cluster.stop()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    """The user's own context and variables do not reach the tests."""
    for name in [name for name in os.environ if name.startswith("GPU_SCHEDULER_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def client(cluster, no_settings):
    from gpu_scheduler import Client

    with Client(cluster.scheduler.url, tenant="physics") as one:
        yield one
