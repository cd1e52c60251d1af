"""Tests of pods: a scheduler beside a small API server, and beside a real control plane where
one has been built."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "service"))

from fake_api import FakeApi  # noqa: E402


@pytest.fixture
def api():
    api = FakeApi()
    yield api
    api.stop()
