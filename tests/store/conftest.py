"""Servers that the tests of the store share."""

import pytest

import postgres


@pytest.fixture(scope="module")
def server():
    running = postgres.Server()
    yield running
    running.stop()
