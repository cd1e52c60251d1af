"""What the tests of operations share: the real scheduler with real agents."""

import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
for room in ("agent", "service"):
    sys.path.insert(0, str(TESTS / room))

from cluster import Cluster


@pytest.fixture
def make_cluster(tmp_path):
    """Starts a scheduler with the settings given; agents are added by the test."""
    made = []

    def make(**options):
        made.append(Cluster(tmp_path / f"cluster-{len(made)}", **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()
