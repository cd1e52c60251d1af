"""Tests of pods: a scheduler beside a small API server, and beside a real control plane where
scripts/kube-tests has one."""

import os
import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "service"))

from control_plane import ControlPlane  # noqa: E402
from fake_api import FakeApi  # noqa: E402

collect_ignore = [] if os.environ.get("KUBE_CONTROL_PLANE") else [
    "test_control_plane.py", "test_control_plane_claims.py", "test_control_plane_kai.py"]


@pytest.fixture
def api():
    api = FakeApi()
    yield api
    api.stop()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory):
    def interrupted(number, frame):
        raise KeyboardInterrupt
    # Its processes are nobody's children: they end with the tests, however these end.
    signal.signal(signal.SIGTERM, interrupted)
    plane = ControlPlane(tmp_path_factory.mktemp("control-plane"))
    yield plane
    plane.down()


@pytest.fixture
def plane(control_plane):
    """Without nodes and pods; what the test makes is removed."""
    yield control_plane
    control_plane.clear()
