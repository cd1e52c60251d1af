"""What the tests of the store share: programs that only tests need, and servers."""

import os
import pathlib

import pytest

import postgres

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def programs():
    """The folder of the programs under test: a build's src/."""
    return ROOT / os.environ.get("TEST_BUILD", "build/release") / "src"


@pytest.fixture(scope="module")
def server():
    running = postgres.Server()
    yield running
    running.stop()
