"""Places in slots of models, over REST."""

import threading

import pytest

from calls import Calls, wait_for


@pytest.fixture
def calls(tmp_path):
    one = Calls(tmp_path / "store.db")
    yield one
    one.stop()


def test_without_a_place_who_asks_is_told_to_wait(calls):
    status, answer = calls.ask("POST", "/models/model-1/leases")
    assert status in (422, 503), answer
    assert answer["error"]


def test_what_makes_no_sense_is_refused(calls):
    assert calls.ask("POST", "/models/model-99/leases")[0] == 404
    assert calls.ask("POST", "/models/model-1/leases?wait=soon")[0] == 400
    assert calls.ask("POST", "/models/model-1/leases", {"tenant_id": "moon"})[0] == 400
    assert calls.ask("DELETE", "/leases/lease-12")[0] == 404
    assert calls.ask("POST", "/leases/lease-12/renew")[0] == 404
