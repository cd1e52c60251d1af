"""gpu-agent --dra: a kubelet registers the driver, prepares claims and unprepares them, over the
driver's own sockets. GPUs are simulated."""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

from dra import (DRIVER, V1, V1BETA1, Call, DraApi, Kubelet, claim, device_name,  # noqa: E402
                 environment, text)
from pods import await_that, node, write_kubeconfig  # noqa: E402
from stub import Agent, Driver, clean_up  # noqa: E402


class Node:
    """An agent with two GPUs of 40 GiB, on a node of Kubernetes."""

    def __init__(self, api, directory):
        self.api, self.directory, self.name = api, directory, f"dra-{os.getpid()}"
        api.create("nodes", node(self.name))
        # The path of a socket has at most 107 bytes.
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="dra-"))
        self.kubelet = Kubelet(self.short)
        self.cdi, self.state = directory / "cdi", directory / "agent"
        self.gpus = [f"GPU-fake-{self.name}-{i}" for i in range(2)]
        self.scheduler = Driver()
        self.agent = Agent(self.scheduler.port, self.state, self.name, gpus="2x40G", arguments=[
            "--kubernetes", "--dra", "--kubelet-dir", self.short, "--cdi-dir", self.cdi,
            "--kubeconfig", write_kubeconfig(api, directory)])
        self.await_sockets()

    def await_sockets(self):
        def answers():
            try:
                return self.kubelet.info()
            except OSError:
                return None
        await_that(answers, "the driver's sockets")

    def restart(self):
        self.agent.kill()
        self.agent.start()
        self.await_sockets()

    def claim(self, name, memory, gpu=0):
        return self.api.add(claim(name, self.name, device_name(self.gpus[gpu]), memory))

    def file(self, item):
        return self.cdi / f"gpu-scheduler.io-gpu_{item['metadata']['uid']}.json"

    def control(self, *lines):
        """What the simulated GPUs do; seen by the next measurement."""
        path = self.state / "fake-gpus"
        new = path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(path)

    def prepared(self):
        return sorted(path.stem for path in (self.state / "claims").glob("*.json"))

    def devices(self):
        found = self.api.slices.get(f"{self.name}-{DRIVER}")
        return {device["name"]: device for device in found["spec"]["devices"]} if found else {}

    def stop(self):
        self.agent.kill()
        self.scheduler.stop()
        clean_up([self.name])
        shutil.rmtree(self.short)


@pytest.fixture
def dra(tmp_path):
    api = DraApi()
    made = Node(api, tmp_path)
    yield made
    made.stop()
    api.stop()


def test_the_kubelet_finds_the_driver(dra):
    info = dra.kubelet.info()
    assert text(info, 1) == "DRAPlugin"
    assert text(info, 2) == DRIVER
    assert text(info, 3) == str(dra.kubelet.endpoint)
    assert [version.decode() for version in info[4]] == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
    assert dra.kubelet.registered()[0] == 0
    for path in (dra.kubelet.registration, dra.kubelet.endpoint):
        assert path.stat().st_mode & 0o777 == 0o600


def test_gpus_are_published_as_devices(dra):
    devices = await_that(dra.devices, "a slice")
    assert sorted(devices) == sorted(map(device_name, dra.gpus))
    first = devices[device_name(dra.gpus[0])]
    assert first["allowMultipleAllocations"] is True
    assert first["attributes"]["uuid"] == {"string": dra.gpus[0]}
    assert first["capacity"]["memory"]["value"].endswith("Mi")
    published = dra.api.slices[f"{dra.name}-{DRIVER}"]
    assert published["spec"]["nodeName"] == dra.name
    assert published["metadata"]["ownerReferences"][0]["kind"] == "Node"
    before = int(first["capacity"]["memory"]["value"].removesuffix("Mi"))
    dra.control("0 foreign 10240", "1 unhealthy")

    def changed():
        now = dra.devices()
        offered = int(now[device_name(dra.gpus[0])]["capacity"]["memory"]["value"][:-2])
        taints = now[device_name(dra.gpus[1])].get("taints", [])
        return offered == before - 10240 and \
            [taint["key"] for taint in taints] == ["gpu-scheduler.io/unhealthy"]
    await_that(changed, "a slice that tells")
    assert dra.api.slices[f"{dra.name}-{DRIVER}"]["spec"]["pool"]["generation"] > 1


@pytest.mark.parametrize("service", [V1, V1BETA1])
def test_a_claim_is_prepared_and_unprepared(dra, service):
    one = dra.claim("one", "10Gi")
    error, devices = dra.kubelet.prepare(one, service)
    assert error == ""
    assert len(devices) == 1
    uid = one["metadata"]["uid"]
    assert text(devices[0], 1) == "gpu"
    assert text(devices[0], 2) == dra.name
    assert text(devices[0], 3) == device_name(dra.gpus[0])
    assert text(devices[0], 4) == f"gpu-scheduler.io/gpu={uid}"
    given = environment(dra.file(one))
    assert given["NVIDIA_VISIBLE_DEVICES"] == dra.gpus[0]
    assert given["CUDA_VISIBLE_DEVICES"] == dra.gpus[0]
    assert given["GPU_SCHEDULER_MEMORY_MIB"] == f"{dra.gpus[0]}=10240"
    assert dra.prepared() == [uid]
    # A kubelet asks again whenever it is not sure.
    assert dra.kubelet.prepare(one, service) == (error, devices)
    assert dra.kubelet.unprepare(one, service) == ""
    assert not dra.file(one).exists()
    assert dra.prepared() == []
    assert dra.kubelet.unprepare(one, service) == ""


def test_memory_that_is_not_there_is_refused_until_it_is(dra):
    dra.control("0 foreign 20480")
    one = dra.claim("one", "30Gi")
    error, devices = dra.kubelet.prepare(one)
    assert f"GPU {dra.gpus[0]} has no room" in error
    assert "foreign 20480 + 0 others 0 + asked 30720" in error
    assert devices == []
    assert not dra.file(one).exists()
    dra.control()
    assert dra.kubelet.prepare(one)[0] == ""
    # What was prepared counts, although nothing of it is in use yet.
    two = dra.claim("two", "20Gi")
    assert "1 others 30720 + asked 20480" in dra.kubelet.prepare(two)[0]
    assert dra.kubelet.prepare(dra.claim("three", "20Gi", gpu=1))[0] == ""


def test_memory_is_awaited_before_a_pod_counts_as_ended(dra):
    one, two = dra.claim("one", "30Gi"), dra.claim("two", "30Gi")
    assert dra.kubelet.prepare(one)[0] == ""
    dra.control("0 lingers 25600")  # of processes that have ended
    ends = dra.kubelet.begin("NodeUnprepareResources", [one])
    # The next one is refused for as long as that has not been answered.
    assert dra.kubelet.prepare(two)[0] != ""
    assert dra.prepared() == [one["metadata"]["uid"]]
    dra.control()
    assert dra.kubelet.end_unprepare(one, ends) == ""
    assert dra.prepared() == []
    assert dra.kubelet.prepare(two)[0] == ""


def test_what_was_prepared_outlives_agent_and_machine(dra):
    one, two = dra.claim("one", "30Gi"), dra.claim("two", "20Gi")
    assert dra.kubelet.prepare(one)[0] == ""
    dra.restart()
    dra.file(one).unlink()  # a reboot empties /var/run
    assert "1 others 30720" in dra.kubelet.prepare(two)[0]
    dra.api.claims.clear()  # it is not asked for again
    assert dra.kubelet.prepare(one)[0] == ""
    assert environment(dra.file(one))["NVIDIA_VISIBLE_DEVICES"] == dra.gpus[0]
    dra.control("0 lingers 25600")
    dra.kubelet.begin("NodeUnprepareResources", [one])
    unfinished = dra.file(one).with_suffix(".json.new")
    unfinished.write_text("{")
    dra.restart()  # in the middle of it
    assert not unfinished.exists()
    dra.control()
    assert dra.prepared() == [one["metadata"]["uid"]]
    assert dra.kubelet.unprepare(one) == ""
    assert dra.prepared() == []


def test_what_cannot_be_prepared_is_told(dra):
    missing = claim("missing", dra.name, device_name(dra.gpus[0]), "1Gi")
    assert "status 404" in dra.kubelet.prepare(missing)[0]
    other = dra.claim("other", "1Gi")
    stale = dict(other, metadata=dict(other["metadata"], uid="another"))
    assert "another uid" in dra.kubelet.prepare(stale)[0]
    elsewhere = dra.api.add(claim("elsewhere", "node-b", "gpu-x", "1Gi"))
    assert "no GPU of this node" in dra.kubelet.prepare(elsewhere)[0]
    strange = dra.api.add(claim("strange", dra.name, "gpu-x", "1Gi"))
    assert "GPU gpu-x is not on this node" in dra.kubelet.prepare(strange)[0]
    evil = claim("../../evil", dra.name, device_name(dra.gpus[0]), "1Gi", uid="../evil")
    assert "invalid" in dra.kubelet.prepare(evil)[0]
    assert "invalid" in dra.kubelet.unprepare(evil)
    assert dra.prepared() == []
    assert list(dra.cdi.iterdir()) == []


def test_what_is_not_a_call_is_refused(dra):
    endpoint = dra.kubelet.endpoint
    assert Call(endpoint, V1, "NodeEverything", b"").answer()[0] == 12
    assert Call(endpoint, "k8s.io.Other", "NodePrepareResources", b"").answer()[0] == 12
    assert Call(endpoint, V1, "NodePrepareResources", b"\xff\xff\xff").answer()[0] == 3
    assert Call(endpoint, V1, "NodePrepareResources", b"").answer() == (0, "", b"")
    assert Call(dra.kubelet.registration, V1, "GetInfo", b"").answer()[0] == 12


def test_a_driver_is_for_nodes_of_kubernetes(tmp_path):
    agent = Agent(1, tmp_path / "agent", "alone", arguments=["--dra"])
    assert agent.process.wait(60) == 2
    assert "--dra is for nodes of Kubernetes" in pathlib.Path(f"{agent.state}.log").read_text()
