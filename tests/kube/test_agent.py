"""gpu-agent on a node of Kubernetes: pods are found by cgroups, which the test makes as a kubelet
would, and a release counts when nothing is left of them."""

import errno
import os
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

from pods import Pods, await_that, node, pod, unschedulable, write_kubeconfig  # noqa: E402
from stub import Agent, clean_up  # noqa: E402

ROOT = pathlib.Path("/sys/fs/cgroup")
UNIFIED = [tree for tree in (ROOT, ROOT / "unified") if (tree / "cgroup.controllers").exists()]
SPLIT = [tree for tree in (ROOT / "pids", ROOT / "freezer") if (tree / "cgroup.procs").exists()]


def groups():
    """Where and how a kubelet makes the group of a pod: a template, for each kind that this
    machine can have."""
    made = []
    for kind, trees in (("v2", UNIFIED), ("v1", SPLIT)):
        for tree in trees[:1]:
            base = f"kubepods-test-{os.getpid()}"
            made.append(pytest.param(
                f"{tree}/{base}.slice/{base}-burstable.slice/{base}-burstable-pod{{under}}.slice"
                "/cri-containerd-0123.scope", id=f"{kind}-systemd"))
            made.append(pytest.param(f"{tree}/{base}/burstable/pod{{uid}}/0123",
                                     id=f"{kind}-cgroupfs"))
    return made or [pytest.param(None, id="none")]


class Group:
    """The cgroup of a pod, with a process in it."""

    def __init__(self, template, uid):
        self.path = pathlib.Path(template.format(uid=uid, under=uid.replace("-", "_")))
        self.made = []
        at = self.path
        while not at.exists():
            self.made.append(at)
            at = at.parent
        try:
            self.path.mkdir(parents=True)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                pytest.skip(f"cgroups cannot be made here: {error}")
            raise
        self.process = subprocess.Popen(["sleep", "100000"], start_new_session=True)
        (self.path / "cgroup.procs").write_text(str(self.process.pid))

    def end(self):
        self.process.kill()
        self.process.wait()

        def is_removed(path):
            try:
                path.rmdir()
            except FileNotFoundError:
                return True
            except OSError:
                return False
            return True
        for path in self.made:
            # What other groups are in stays until they end.
            end = time.monotonic() + 60
            while not is_removed(path) and time.monotonic() < end:
                if any(child.is_dir() for child in path.iterdir()):
                    break
                time.sleep(0.05)


class Node:
    """A scheduler, an agent of a node of Kubernetes, and pods that a kubelet seems to run."""

    def __init__(self, api, directory):
        self.api, self.directory, self.groups = api, directory, []
        self.name = f"kube-{os.getpid()}"
        api.create("nodes", node(self.name, gpus=1))
        self.pods = Pods(api, directory, write_kubeconfig(api, directory))
        self.scheduler = self.pods.scheduler
        # After a restart it is where the agent looks for it.
        self.scheduler.ports["grpc"] = port = self.scheduler.grpc.rpartition(":")[2]
        self.agent = Agent(port, directory / "agent", self.name, gpus="1x45G",
                           arguments=["--kubernetes"])
        await_that(lambda: [gpu for gpu in self.gpus() if "fake" in gpu["uuid"]], "GPUs")

    def gpus(self):
        return self.scheduler.get("/api/v1/gpus").json()["gpus"]

    def gpu(self):
        return next(gpu for gpu in self.gpus() if "fake" in gpu["uuid"])

    def run(self, template, name):
        group = Group(template, self.api.pod(name)["metadata"]["uid"])
        self.groups.append(group)
        return group

    def state(self, name):
        return self.pods.job_of(name)["state"]

    def stop(self):
        self.agent.kill()
        clean_up([self.name])
        for group in reversed(self.groups):
            group.end()
        self.scheduler.stop()


@pytest.fixture
def kube_node(api, tmp_path):
    made = Node(api, tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("template", groups())
def test_a_pod_runs_at_its_first_process_and_is_released_when_nothing_is_left(
        api, kube_node, template):
    if not template:
        pytest.skip("this machine has no cgroups")
    api.create("pods", pod("p", annotations={"gpu-memory": "30000"}))
    kube_node.pods.await_bound("p", 1)
    assert api.pod("p")["metadata"]["annotations"]["gpu-scheduler.io/gpus"] == \
        kube_node.gpu()["uuid"]
    assert kube_node.state("p") == "scheduled"  # whatever the API server says
    group = kube_node.run(template, "p")
    await_that(lambda: kube_node.state("p") == "running", "a running pod")
    await_that(lambda: kube_node.gpu().get("utilization", 0) > 0, "its use")
    assert kube_node.gpu()["foreign_memory"] == 0  # its memory is its own
    # It has ended, as its kubelet says, and a process is left.
    api.finish_pod("p")
    await_that(lambda: kube_node.state("p") == "completed", "an end")
    api.create("pods", pod("next", annotations={"gpu-memory": "30000"}))
    await_that(lambda: unschedulable(api, "next"), "an explanation")
    assert not api.bound("next")
    group.end()
    kube_node.pods.await_bound("next", 1)


@pytest.mark.parametrize("template", groups()[:1])
def test_pods_are_followed_across_restarts_of_agent_and_scheduler(api, kube_node, template):
    if not template:
        pytest.skip("this machine has no cgroups")
    api.create("pods", pod("p", annotations={"gpu-memory": "30000"}))
    kube_node.pods.await_bound("p", 1)
    group = kube_node.run(template, "p")
    await_that(lambda: kube_node.state("p") == "running", "a running pod")
    kube_node.agent.kill()
    kube_node.scheduler.kill()
    kube_node.agent.start()
    kube_node.scheduler.start()
    await_that(lambda: kube_node.gpu().get("utilization", 0) > 0, "its use")
    assert kube_node.state("p") == "running"
    assert kube_node.gpu()["foreign_memory"] == 0
    api.delete_pod("p", terminal=False)
    api.create("pods", pod("next", annotations={"gpu-memory": "30000"}))
    await_that(lambda: unschedulable(api, "next"), "an explanation")
    kube_node.agent.kill()
    kube_node.agent.start()
    assert not api.bound("next")
    group.end()
    kube_node.pods.await_bound("next", 1)


def test_only_pods_go_to_a_node_of_kubernetes(api, kube_node):
    tenant = kube_node.scheduler.get("/api/v1/tenants").json()["tenants"][0]["id"]
    job = kube_node.scheduler.post("/api/v1/jobs", {
        "name": "alone", "command": ["true"], "tenant_id": tenant, "gpu_count": 1}).json()
    api.create("pods", pod("p", annotations={"gpu-memory": "1000"}))
    kube_node.pods.await_bound("p", 1)
    assert kube_node.scheduler.get(f"/api/v1/jobs/{job['job_id']}").json()["state"] == "pending"
