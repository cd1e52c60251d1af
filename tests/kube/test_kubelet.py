"""gpu-agent --dra and a kubelet's own plugin manager and DRA manager (tests/kube/kubelet), which
scripts/kubelet-tests builds of each version of Kubernetes."""

import json
import os
import pathlib
import random
import subprocess
import threading

import pytest

from dra import DraApi, claim, environment
from pods import await_that
from test_dra import Node

PROGRAMS = [pathlib.Path(path) for path in os.environ.get("KUBELET_PROGRAMS", "").split()]
SEQUENCES = int(os.environ.get("KUBELET_SEQUENCES", "10"))


class RealKubelet:
    """Its DRA manager, with a state that outlives it."""

    def __init__(self, program, directory, node):
        self.program, self.directory, self.node = program, directory, node
        self.start()

    def start(self):
        self.answers, self.asked, self.changed = {}, 0, threading.Condition()
        self.log = open(self.directory / "kubelet.log", "a")
        self.process = subprocess.Popen(
            [self.program, self.directory, self.node], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        threading.Thread(target=self.read, args=(self.process,), daemon=True).start()

    def read(self, process):
        for line in process.stdout:
            answer = json.loads(line)
            with self.changed:
                self.answers[answer["id"]] = answer
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def begin(self, do, item, **more):
        with self.changed:
            self.asked += 1
            number = self.asked
            self.process.stdin.write(json.dumps({"id": number, "do": do, "claim": item, **more}) + "\n")
            self.process.stdin.flush()
            return number

    def is_answered(self, number):
        with self.changed:
            return number in self.answers

    def answer(self, number):
        with self.changed:
            assert self.changed.wait_for(lambda: number in self.answers, 120), "no answer"
            return self.answers[number]

    def ask(self, do, item, **more):
        return self.answer(self.begin(do, item, **more))

    def until(self, do, item, **more):
        """Tries again until it succeeds, as the workers of pods do."""
        def done():
            found = self.ask(do, item, **more)
            return found if not found["error"] else None
        return await_that(done, f"{do} of {item}", 120)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.log.close()

    def restart(self):
        self.kill()
        self.start()


@pytest.fixture(params=PROGRAMS or [None], ids=lambda path: path.parent.name if path else "none")
def real(request, tmp_path):
    if not request.param:
        pytest.skip("there is no kubelet: scripts/kubelet-tests builds it")
    api = DraApi()
    made = Node(api, tmp_path)
    made.real = RealKubelet(request.param, made.short, made.name)
    yield made
    made.real.kill()
    made.stop()
    api.stop()


def test_a_kubelet_registers_prepares_and_unprepares(real):
    one = real.claim("one", "10Gi")
    prepared = real.real.until("prepare", one)
    assert prepared["devices"] == [f"gpu-scheduler.io/gpu={one['metadata']['uid']}"]
    assert environment(real.file(one))["CUDA_VISIBLE_DEVICES"] == real.gpus[0]
    assert real.real.until("unprepare", one)["error"] == ""
    assert real.prepared() == []
    assert not real.file(one).exists()


def test_a_kubelet_tries_again_until_there_is_room(real):
    real.control("0 foreign 20480")
    one = real.claim("one", "30Gi")
    await_that(lambda: "has no room" in real.real.ask("prepare", one)["error"], "a refusal")
    real.control()
    real.real.until("prepare", one)


def test_either_side_may_restart_in_the_middle(real):
    one, two = real.claim("one", "30Gi"), real.claim("two", "30Gi")
    real.real.until("prepare", one)
    real.real.restart()
    assert real.real.until("prepare", one)["devices"]
    real.restart()
    real.file(one).unlink()  # a reboot: neither knows whether it is there
    real.real.restart()
    (real.short / "state" / "dra_manager_state").unlink()
    real.real.restart()
    real.real.until("prepare", one)
    assert real.file(one).exists()
    real.control("0 lingers 25600")
    ends = real.real.begin("unprepare", one)
    await_that(lambda: "has no room" in real.real.ask("prepare", two)["error"], "a refusal")
    assert not real.real.is_answered(ends)
    real.restart()
    real.control()
    real.real.until("unprepare", one)
    real.real.until("prepare", two)


def test_unprepare_gives_up_before_the_kubelet_does(real):
    one = real.claim("one", "30Gi")
    real.real.until("prepare", one)
    real.control("0 lingers 25600")
    assert real.real.ask("unprepare", one)["error"] == ""  # after 30 s; the kubelet waits for 45
    log = pathlib.Path(f"{real.state}.log").read_text()
    assert "memory of a claim did not come back in time" in log
    assert '"memory_mib":25600' in log
    assert real.prepared() == []


def random_step(real, choose, pods, calls):
    """`calls`: the last of each pod, whose worker waits for it before it makes another."""
    name = choose.choice(sorted(pods))
    step = choose.randrange(20)
    if step < 14:
        if name in calls:
            real.real.answer(calls.pop(name))
        calls[name] = real.real.begin("prepare" if step < 8 else "unprepare", pods[name])
    elif step < 16:
        real.control(f"{choose.randrange(2)} foreign {choose.randrange(40) * 1024}")
    elif step < 17:
        # Not for long: unprepare waits for it.
        real.control(f"{choose.randrange(2)} lingers {choose.randrange(20) * 1024}")
        real.control()
    elif step < 18:
        real.restart()
    elif step < 19:
        real.real.restart()
        calls.clear()
    else:
        real.control()


def test_random_sequences_leave_no_claim_behind(real):
    for sequence in range(SEQUENCES):
        choose = random.Random(sequence)
        pods = {f"p{i}": real.api.add(claim(f"s{sequence}-{i}", real.name,
                                            real.gpus[choose.randrange(2)].lower(),
                                            f"{1 + choose.randrange(30)}Gi"))
                for i in range(4)}
        calls = {}
        for _ in range(choose.randrange(4, 16)):
            random_step(real, choose, pods, calls)
        real.control()
        for number in calls.values():
            real.real.answer(number)
        for item in pods.values():
            real.real.until("unprepare", item)
        # A kubelet that was killed before it wrote down that it would prepare a claim, has not.
        assert real.prepared() == [], f"sequence {sequence}"
        assert list(real.cdi.iterdir()) == [], f"sequence {sequence}"
        kept = json.loads((real.short / "state" / "dra_manager_state").read_text())
        assert f"s{sequence}-" not in json.dumps(kept), f"sequence {sequence}"


def test_a_kubelet_counts_devices_and_is_given_the_same_for_each_container(real):
    real.agent.kill()
    real.agent.arguments += ["--device-plugin", "all"]
    real.agent.start()
    kubelet = real.real

    def count(resource):
        return kubelet.answer(kubelet.begin("count", None, resource=resource)).get("count")

    def given(*devices):
        return kubelet.until("allocate", None, resource="gpu-scheduler.io/gpu",
                             devices=devices)["given"]
    await_that(lambda: count("gpu-scheduler.io/gpu") == 1024, "markers")
    await_that(lambda: count("nvidia.com/gpu") == 2, "whole GPUs")
    assert given("any-1") == given("any-2", "any-3")
    for restart in (kubelet.restart, real.restart):
        restart()
        await_that(lambda: count("gpu-scheduler.io/gpu") == 1024, "markers")
        assert given("any-4")
