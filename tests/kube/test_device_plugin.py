"""gpu-agent --device-plugin: a kubelet finds the plugin, counts its devices, and gets the same answer
for every container. GPUs are simulated."""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

from dra import Call, field, fields, text  # noqa: E402
from pods import await_that  # noqa: E402
from stub import Agent, Driver, clean_up  # noqa: E402

MARKER, WHOLE = "gpu-scheduler.io-gpu", "nvidia.com-gpu"
SERVICE = "v1beta1.DevicePlugin"
REGISTRATION = "pluginregistration.Registration"


class Node:
    """An agent with two simulated GPUs."""

    def __init__(self, directory, which):
        self.name = f"plugin-{os.getpid()}"
        # The path of a socket has at most 107 bytes.
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="plugin-"))
        self.scheduler = Driver()
        self.agent = Agent(self.scheduler.port, directory / "agent", self.name, gpus="2x40G",
                           arguments=["--kubernetes", "--device-plugin", which,
                                      "--kubelet-dir", self.short])

    def registration(self, plugin):
        return self.short / "plugins_registry" / f"{plugin}-reg.sock"

    def endpoint(self, plugin):
        return self.short / "plugins" / plugin / "plugin.sock"

    def info(self, plugin):
        def answers():
            try:
                status, _, message = Call(self.registration(plugin), REGISTRATION, "GetInfo",
                                          b"").answer()
            except OSError:
                return None
            assert status == 0
            return fields(message)
        return await_that(answers, "the plugin's sockets")

    def watch(self, plugin):
        """(the stream, names of devices by their health)"""
        call = Call(self.endpoint(plugin), SERVICE, "ListAndWatch", b"")
        found = {}
        for device in fields(call.part()).get(1, []):
            device = fields(device)
            found.setdefault(text(device, 2), []).append(text(device, 1))
        return call, found

    def allocate(self, plugin, *containers):
        message = b"".join(field(1, b"".join(field(1, name) for name in names))
                           for names in containers)
        status, _, answer = Call(self.endpoint(plugin), SERVICE, "Allocate", message).answer()
        return status, fields(answer).get(1, [])

    def stop(self):
        self.agent.kill()
        self.scheduler.stop()
        clean_up([self.name])
        shutil.rmtree(self.short)


@pytest.fixture
def start(tmp_path):
    made = []

    def begin(which):
        made.append(Node(tmp_path, which))
        return made[-1]
    yield begin
    for node in made:
        node.stop()


def test_a_marker_is_advertised_more_often_than_a_node_has_pods(start):
    node = start("marker")
    info = node.info(MARKER)
    assert text(info, 1) == "DevicePlugin"
    assert text(info, 2) == "gpu-scheduler.io/gpu"
    assert text(info, 3) == str(node.endpoint(MARKER))
    assert [version.decode() for version in info[4]] == ["v1beta1"]
    _, found = node.watch(MARKER)
    assert list(found) == ["Healthy"]
    assert len(set(found["Healthy"])) == 1024
    assert not node.registration(WHOLE).exists()


def test_whole_gpus_are_advertised_only_if_the_node_is_told_to(start):
    node = start("all")
    assert text(node.info(WHOLE), 2) == "nvidia.com/gpu"
    _, found = node.watch(WHOLE)
    assert len(found["Healthy"]) == 2
    node.info(MARKER)


def test_every_container_gets_the_same_answer(start):
    node = start("marker")
    node.info(MARKER)
    status, answers = node.allocate(MARKER, ["any-7"], ["any-900", "any-3"])
    assert status == 0
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert node.allocate(MARKER, ["any-1"])[1] == answers[:1]
    assert node.allocate(MARKER) == (0, [])


def test_a_kubelet_that_restarts_finds_the_plugin_again(start):
    node = start("marker")
    node.info(MARKER)
    stream, first = node.watch(MARKER)
    stream.sock.close()
    other, second = node.watch(MARKER)
    assert first == second
    # The agent ends streams when it ends, and not before.
    node.agent.process.terminate()
    assert node.agent.process.wait(60) == 0
    assert other.ended()
    assert not node.registration(MARKER).exists()
    node.agent.start()
    node.info(MARKER)
    assert node.watch(MARKER)[1] == first


def test_what_is_not_a_call_of_a_device_plugin_is_refused(start):
    node = start("marker")
    node.info(MARKER)
    endpoint = node.endpoint(MARKER)
    assert Call(endpoint, SERVICE, "GetDevicePluginOptions", b"").answer() == (0, "", b"")
    assert Call(endpoint, SERVICE, "PreStartContainer", b"").answer()[0] == 12
    assert Call(endpoint, "v1.Other", "Allocate", b"").answer()[0] == 12
    assert Call(endpoint, SERVICE, "Allocate", b"\xff\xff").answer()[0] == 3
    assert Call(endpoint, SERVICE, "Allocate", field(1, b"") * 257).answer()[0] == 3


def test_a_device_plugin_is_for_nodes_of_kubernetes(tmp_path):
    agent = Agent(1, tmp_path / "agent", "alone", arguments=["--device-plugin", "marker"])
    assert agent.process.wait(60) == 2
    log = pathlib.Path(f"{agent.state}.log").read_text()
    assert "--device-plugin is for nodes of Kubernetes" in log
