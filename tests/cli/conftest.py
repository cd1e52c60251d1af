"""gpu-cli against the real scheduler, with agents that have simulated GPUs."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "agent"))
sys.path.insert(0, str(HERE.parent / "service"))

from cluster import Cluster
from cli import Cli


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes of four GPUs with 80 GiB, and the tenant 'physics'."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    for name in ("alpha", "beta"):
        cluster.agent(f"{name}-{os.getpid()}", gpus="4x80G")
    yield cluster
    cluster.stop()


@pytest.fixture
def cli(cluster, tmp_path):
    return Cli(tmp_path, cluster.scheduler.url)


@pytest.fixture
def full(cluster, cli):
    """Every GPU is taken, so that what comes waits."""
    holders = [cli.submit("--gpus", "4", "--no-preemptible", "--", "sleep", "300") for _ in range(2)]
    for job in holders:
        cluster.await_state(job, "running")
    yield holders
    cli.run("cancel", *holders)
    for job in holders:
        cluster.await_state(job, "cancelled")
