"""Functions whose calls run as jobs."""

import dataclasses
import functools
import math
import os

import pytest

from gpu_scheduler import JobFailed, PackError, RemoteError
from gpu_scheduler.packing import pack, result_of

SCALE = 3


@dataclasses.dataclass
class Point:
    x: float
    y: float

    def norm(self):
        return math.hypot(self.x, self.y)


class TooFar(Exception):
    pass


def scaled(point, by=SCALE):
    return point.norm() * by


def move(point, far=False):
    print("moving", point.x)
    if far:
        raise TooFar(f"{point.x} is too far")
    return Point(scaled(point), point.y)


def slow_double(number):
    import time
    time.sleep(0.05 * (5 - number % 5))
    return 2 * number


def test_a_call_returns_what_the_function_returns(client):
    remote = client.function(gpus=1)(move)
    assert remote(Point(3, 4)) == Point(15.0, 4)
    job = client.job(client.jobs(name="move")[0])
    assert job.succeeded and len(job.gpus) == 1


def test_exceptions_come_back_with_their_traceback(client):
    remote = client.function(move)
    with pytest.raises(RemoteError, match="TooFar: 1 is too far") as raised:
        remote(Point(1, 2), far=True)
    assert isinstance(raised.value.__cause__, TooFar)
    line = move.__code__.co_firstlineno + 3
    assert f'test_functions.py", line {line}, in move' in str(raised.value)


def test_what_it_prints_comes_without_the_result(client):
    future = client.function(move).submit(Point(6, 8))
    assert [line for line in future.logs() if line] == ["moving 6"]
    assert future.result() == Point(30.0, 8) and future.done()
    assert future.result() == Point(30.0, 8)


def test_map_runs_an_array_and_keeps_the_order(client):
    remote = client.function(slow_double)
    assert list(remote.map(range(7), at_once=4)) == [0, 2, 4, 6, 8, 10, 12]
    assert list(remote.map([])) == []
    assert list(remote.map([21])) == [42]


def test_the_first_failure_of_a_map_cancels_the_others(client):
    def fail_or_sleep(number):
        import time
        if number == 0:
            raise ValueError("zero")
        time.sleep(600)

    remote = client.function(fail_or_sleep)
    futures = remote.submit_map([0, 1])
    with pytest.raises(RemoteError, match="zero"):
        futures[0].result(60)
    futures[1].cancel()
    assert client.wait(futures[1].job_id, 60).state == "cancelled"
    with pytest.raises(RemoteError, match="zero"):
        list(remote.map([0, 1, 2]))
    states = [client.wait(job, 60).state for job in client.jobs(name="fail_or_sleep")]
    assert "running" not in states and "pending" not in states


def test_options_change_the_jobs_of_one_call(client):
    def visible():
        return len([one for one in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if one])

    remote = client.function(gpus=1)(visible)
    assert remote() == 1 and remote.options(gpus=2)() == 2
    assert remote.__name__ == "visible" and callable(remote.local)


def test_a_job_that_dies_without_a_result_is_a_failed_job(client):
    def die():
        os.kill(os.getpid(), 9)

    with pytest.raises(JobFailed):
        client.function(die)()


def test_what_cannot_be_sent_is_refused_before_anything_is_submitted(client):
    before = len(client.jobs())
    secret = 3

    def uses_outside():
        return secret

    async def later():
        return 1

    with pytest.raises(PackError, match="secret"):
        client.function(uses_outside).submit()
    with pytest.raises(PackError, match="lambda"):
        client.function(lambda: 1).submit()
    with pytest.raises(PackError, match="plain result"):
        client.function(later).submit()
    with pytest.raises(PackError, match="def"):
        client.function(functools.partial(scaled)).submit()
    with pytest.raises(PackError, match="cannot send"):
        client.function(scaled).submit(open(os.devnull))
    assert len(client.jobs()) == before


def test_a_result_that_is_too_large_says_what_to_do(client):
    def large():
        import os
        return os.urandom(9 << 20)

    with pytest.raises(RemoteError, match="save it to a file"):
        client.function(large)()


def test_output_without_a_result_is_not_one():
    with pytest.raises(LookupError):
        result_of("hello\n")
    assert pack(slow_double, [((1,), {})], False, "python3.9").startswith(
        "#!/usr/bin/env python3.9\n")
