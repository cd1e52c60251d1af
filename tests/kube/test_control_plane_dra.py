"""gpu-agent --dra on a real control plane: kube-scheduler gives out what the agent publishes, and the
agent decides with what it measures. Run by scripts/kube-tests."""

import base64
import json
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

from control_plane import Failed  # noqa: E402
from dra import DRIVER, Kubelet, device_name  # noqa: E402
from pods import await_that, node  # noqa: E402
from stub import Agent, Driver, clean_up  # noqa: E402

pytestmark = pytest.mark.skipif(not os.environ.get("KUBE_CONTROL_PLANE"),
                                reason="needs a control plane: scripts/kube-tests")
RBAC = "/apis/rbac.authorization.k8s.io/v1/"
RESOURCES = "/apis/resource.k8s.io/v1/"
CLAIMS = f"{RESOURCES}namespaces/default/resourceclaims"
# Those of the ClusterRole gpu-agent of deploy/kubernetes.
RIGHTS = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
          {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
          {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"],
           "verbs": ["get", "create", "update"]}]


def account(plane, directory, rights):
    """A kubeconfig with the token of an account that has these rights alone."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    for path, body in (
            (accounts, {"metadata": {"name": "dra-agent"}}),
            (f"{RBAC}clusterroles", {"metadata": {"name": "dra-agent"}, "rules": rights}),
            (f"{RBAC}clusterrolebindings", {
                "metadata": {"name": "dra-agent"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                            "name": "dra-agent"},
                "subjects": [{"kind": "ServiceAccount", "name": "dra-agent",
                              "namespace": "default"}]})):
        try:
            plane.request("POST", path, body)
        except Failed as failure:
            assert failure.status == 409
    plane.request("PUT", f"{RBAC}clusterroles/dra-agent",
                  {"metadata": {"name": "dra-agent"}, "rules": rights})
    token = plane.request("POST", f"{accounts}/dra-agent/token",
                          {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    authority = base64.b64encode((plane.directory / "pki" / "ca.crt").read_bytes()).decode()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "real", "user": "me"}}],
        "clusters": [{"name": "real", "cluster": {
            "server": f"https://127.0.0.1:{plane.port}",
            "certificate-authority-data": authority}}],
        "users": [{"name": "me", "user": {"token": token}}]}))
    return kubeconfig


class Node:
    """A node with one GPU of 40 GiB and the driver."""

    def __init__(self, plane, directory, rights=None):
        self.plane, self.name = plane, f"dra-{os.getpid()}"
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="dra-"))
        self.state, self.gpu = directory / "agent", f"GPU-fake-{self.name}-0"
        self.kubelet = Kubelet(self.short)
        plane.create("nodes", node(self.name))
        await_that(plane.nodes_ready, "ready nodes")
        try:
            plane.request("POST", f"{RESOURCES}deviceclasses", {
                "metadata": {"name": DRIVER},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
        except Failed as failure:
            assert failure.status == 409
        self.scheduler = Driver()
        self.agent = Agent(self.scheduler.port, self.state, self.name, gpus="1x40G", arguments=[
            "--kubernetes", "--dra", "--kubelet-dir", self.short, "--cdi-dir", directory / "cdi",
            "--kubeconfig", account(plane, directory, rights or RIGHTS)])

    def slice(self):
        found = self.plane.request("GET", f"{RESOURCES}resourceslices")["items"]
        return next((item for item in found if item["spec"].get("nodeName") == self.name), None)

    def log(self):
        return pathlib.Path(f"{self.state}.log").read_text()

    def control(self, *lines):
        path = self.state / "fake-gpus"
        new = path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(path)

    def run(self, name, memory):
        """A pod with a claim of its own, for kube-scheduler."""
        self.plane.request("POST", CLAIMS, {
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
                "deviceClassName": DRIVER, "capacity": {"requests": {"memory": memory}}}}]}}})
        self.plane.create("pods", {
            "metadata": {"name": name},
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                     "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}]}})

    def claim(self, name):
        return self.plane.request("GET", f"{CLAIMS}/{name}")

    def reserved(self, name):
        found = self.claim(name)
        return found if found.get("status", {}).get("reservedFor") else None

    def stop(self):
        self.agent.kill()
        self.scheduler.stop()
        clean_up([self.name])
        shutil.rmtree(self.short)
        self.plane.request("DELETE", CLAIMS)
        self.plane.request("DELETE", f"{RESOURCES}resourceslices")


@pytest.fixture
def dra(plane, tmp_path):
    made = Node(plane, tmp_path)
    yield made
    made.stop()


def test_the_api_server_keeps_all_that_a_node_offers(dra):
    found = await_that(dra.slice, "a slice")
    [device] = found["spec"]["devices"]
    assert device["name"] == device_name(dra.gpu)
    assert device["allowMultipleAllocations"] is True
    assert "memory" in device["capacity"]
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", dra.name)
    dra.control("0 unhealthy")
    await_that(lambda: [taint["key"] for taint in dra.slice()["spec"]["devices"][0].get(
        "taints", [])] == ["gpu-scheduler.io/unhealthy"], "a taint")


def test_pods_that_kube_scheduler_placed_obey_what_is_measured(dra):
    await_that(dra.slice, "a slice")
    dra.run("one", "20Gi")
    one = await_that(lambda: dra.reserved("one"), "an allocation")
    [result] = one["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == (DRIVER, dra.name)
    assert result["consumedCapacity"] == {"memory": "20Gi"}
    # Memory that somebody else takes between the decision and the start.
    dra.control("0 foreign 30720")
    assert "foreign 30720 + 0 others 0 + asked 20480" in dra.kubelet.prepare(one)[0]
    dra.control()
    error, devices = dra.kubelet.prepare(one)
    assert error == ""
    assert len(devices) == 1
    # Two share the GPU, and a third does not fit by kube-scheduler's own sums.
    dra.run("two", "15Gi")
    two = await_that(lambda: dra.reserved("two"), "an allocation")
    assert dra.kubelet.prepare(two)[0] == ""
    dra.run("three", "15Gi")
    await_that(lambda: any(condition["reason"] == "Unschedulable" for condition in
                           dra.plane.pod("three").get("status", {}).get("conditions", [])),
               "a pod that waits")
    assert dra.kubelet.unprepare(two) == ""
    dra.plane.delete_pod("two")
    await_that(lambda: dra.reserved("three"), "an allocation")
    assert dra.kubelet.prepare(dra.claim("three"))[0] == ""


@pytest.mark.parametrize("missing", range(len(RIGHTS)), ids=["nodes", "claims", "slices"])
def test_an_account_needs_each_of_its_rights(plane, tmp_path, missing):
    rights = [right for i, right in enumerate(RIGHTS) if i != missing]
    limited = Node(plane, tmp_path, rights)
    try:
        if RIGHTS[missing]["resources"] == ["resourceslices"]:
            await_that(lambda: '"status":403' in limited.log(), "a refusal in the log")
            assert limited.slice() is None
            return
        found = await_that(limited.slice, "a slice")
        if RIGHTS[missing]["resources"] == ["nodes"]:
            assert "ownerReferences" not in found["metadata"]
            return
        limited.run("one", "20Gi")
        one = await_that(lambda: limited.reserved("one"), "an allocation")
        assert "status 403" in limited.kubelet.prepare(one)[0]
    finally:
        limited.stop()
