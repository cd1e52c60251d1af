"""Claims of pods that this scheduler allocates, on a real control plane, beside the driver of the
node. Run by scripts/kube-tests."""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

from control_plane import Failed  # noqa: E402
from dra import DRIVER, Kubelet, device_name  # noqa: E402
from pods import Pods, await_that, node, pod, unschedulable  # noqa: E402
from stub import Agent, clean_up  # noqa: E402
from test_agent import Group, groups  # noqa: E402

RESOURCES = "/apis/resource.k8s.io/v1/"
CLAIMS = f"{RESOURCES}namespaces/default/resourceclaims"
TEMPLATES = f"{RESOURCES}namespaces/default/resourceclaimtemplates"


def request_of(memory=None, count=1, device_class=DRIVER, **more):
    exactly = {"deviceClassName": device_class, "count": count, **more}
    if memory:
        exactly["capacity"] = {"requests": {"memory": memory}}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def claiming(name, claim=None, template=None, **more):
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    made = pod(name, resourceClaims=[{"name": "gpu", **source}],
               terminationGracePeriodSeconds=0, **more)
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return made


class Node:
    """A scheduler, and a node with two GPUs of 40 GiB whose driver is our agent."""

    def __init__(self, plane, directory, **settings):
        self.plane, self.name = plane, f"claims-{os.getpid()}"
        self.short = pathlib.Path(tempfile.mkdtemp(prefix="dra-"))
        self.state = directory / "agent"
        self.kubelet = Kubelet(self.short)
        try:
            plane.request("POST", f"{RESOURCES}deviceclasses", {
                "metadata": {"name": DRIVER},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}})
        except Failed as failure:
            assert failure.status == 409
        plane.create("nodes", node(self.name, gpus=0))
        await_that(plane.nodes_ready, "ready nodes")
        self.pods = Pods(plane, directory, plane.kubeconfig, **settings)
        self.scheduler = self.pods.scheduler
        # After a restart it is where the agent looks for it.
        self.scheduler.ports["grpc"] = port = self.scheduler.grpc.rpartition(":")[2]
        self.agent = Agent(port, self.state, self.name, gpus="2x40G", arguments=[
            "--kubernetes", "--dra", "--kubelet-dir", self.short, "--cdi-dir", directory / "cdi",
            "--kubeconfig", plane.directory / "kubeconfig"])
        await_that(self.slice, "a slice")

    def slice(self):
        found = self.plane.request("GET", f"{RESOURCES}resourceslices")["items"]
        return next((item for item in found if item["spec"].get("nodeName") == self.name), None)

    def control(self, *lines):
        path = self.state / "fake-gpus"
        new = path.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(path)

    def make(self, name, **request):
        self.plane.request("POST", CLAIMS, {"metadata": {"name": name},
                                            "spec": request_of(**request)})

    def template(self, name, **request):
        self.plane.request("POST", TEMPLATES, {"metadata": {"name": name},
                                               "spec": {"spec": request_of(**request)}})

    def claim(self, name):
        return self.plane.request("GET", f"{CLAIMS}/{name}")

    def claims(self):
        return self.plane.request("GET", CLAIMS)["items"]

    def claim_of(self, name):
        """Of a pod whose claim was made of a template."""
        [status] = self.plane.pod(name)["status"]["resourceClaimStatuses"]
        return self.claim(status["resourceClaimName"])

    def results(self, claim):
        return claim["status"]["allocation"]["devices"]["results"]

    def stop(self):
        self.agent.kill()
        self.scheduler.stop()
        clean_up([self.name])
        shutil.rmtree(self.short)
        for pod_there in self.plane.pods():
            self.plane.delete_pod(pod_there["metadata"]["name"])
        self.plane.request("DELETE", CLAIMS)
        self.plane.request("DELETE", TEMPLATES)
        self.plane.request("DELETE", f"{RESOURCES}resourceslices")


@pytest.fixture
def dra(plane, tmp_path):
    made = Node(plane, tmp_path)
    yield made
    made.stop()


def test_a_claim_is_allocated_as_the_ledger_decided_and_its_driver_prepares_it(dra):
    dra.make("ten", memory="10Gi")
    dra.plane.create("pods", claiming("p", claim="ten"))
    dra.pods.await_bound("p", 1)
    claim, bound = dra.claim("ten"), dra.plane.pod("p")
    [result] = dra.results(claim)
    assert (result["driver"], result["pool"]) == (DRIVER, dra.name)
    assert result["consumedCapacity"] == {"memory": "10Gi"}
    assert result["device"] == device_name(bound["metadata"]["annotations"]["gpu-scheduler.io/gpus"])
    assert [one["uid"] for one in claim["status"]["reservedFor"]] == [bound["metadata"]["uid"]]
    assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]
    assert bound["metadata"]["annotations"]["gpu-scheduler.io/limits"] == "10240"
    # Memory that somebody takes between the decision and the start delays it, and is told.
    index = result["device"].rpartition("-")[2]
    dra.control(f"{index} foreign 35000")
    assert "foreign 35000 + 0 others 0 + asked 10240" in dra.kubelet.prepare(claim)[0]
    dra.control()
    error, devices = dra.kubelet.prepare(claim)
    assert error == ""
    assert len(devices) == 1


def test_of_pods_with_claims_as_many_start_as_fit_and_the_last_says_how_much_it_misses(dra):
    dra.template("t", memory="12Gi")
    for i in range(7):
        dra.plane.create("pods", claiming(f"p-{i}", template="t"))
    dra.pods.await_bound("p-", 6)
    devices = [dra.results(dra.claim_of(one["metadata"]["name"]))[0]["device"]
               for one in dra.plane.bound("p-")]
    assert sorted(devices.count(device) for device in set(devices)) == [3, 3]
    [late] = [one["metadata"]["name"] for one in dra.plane.pods()
              if not one["spec"].get("nodeName")]
    await_that(lambda: "MiB short" in unschedulable(dra.plane, late), "the number")
    # The room of one that ends is the next one's, once the driver has measured it as free.
    dra.plane.delete_pod(dra.plane.bound("p-")[0]["metadata"]["name"])
    dra.pods.await_bound("p-", 6)
    assert dra.plane.pod(late)["spec"]["nodeName"] == dra.name


def test_a_gang_has_whole_gpus_by_claims_or_waits_whole(dra):
    dra.template("whole")
    gang = {"gpu-scheduler.io/group": "g", "gpu-scheduler.io/group-size": "3"}
    for i in range(3):
        dra.plane.create("pods", claiming(f"g-{i}", template="whole", annotations=gang))
    await_that(lambda: unschedulable(dra.plane, "g-2"), "an explanation")
    assert not dra.plane.bound("g-")
    assert not any(one.get("status", {}).get("allocation") for one in dra.claims())
    two = {"gpu-scheduler.io/group": "h", "gpu-scheduler.io/group-size": "2"}
    for i in range(2):
        dra.plane.create("pods", claiming(f"h-{i}", template="whole", annotations=two))
    dra.pods.await_bound("h-", 2)
    results = [dra.results(dra.claim_of(f"h-{i}"))[0] for i in range(2)]
    assert len({result["device"] for result in results}) == 2
    assert not any("consumedCapacity" in result for result in results)


@pytest.mark.parametrize("request_more, sentence", [
    ({"selectors": [{"cel": {"expression": "true"}}]}, "has selectors"),
    ({"device_class": "nobody"}, "DeviceClass nobody does not exist"),
    ({"count": 17}, "more than 16 GPUs"),
], ids=["selectors", "class", "count"])
def test_what_a_claim_asks_that_is_not_evaluated_is_told(dra, request_more, sentence):
    dra.make("odd", **request_more)
    dra.plane.create("pods", claiming("p", claim="odd"))
    await_that(lambda: sentence in unschedulable(dra.plane, "p"), "the reason")


def test_a_claim_of_another_pod_is_not_shared(dra):
    dra.make("one", memory="4Gi")
    dra.plane.create("pods", claiming("a", claim="one"))
    dra.pods.await_bound("a", 1)
    dra.plane.create("pods", claiming("b", claim="one"))
    await_that(lambda: "reserved for another pod" in unschedulable(dra.plane, "b"), "the reason")


def test_a_scheduler_that_was_killed_finishes_what_it_finds(dra):
    dra.template("t", memory="2Gi")
    for i in range(24):
        dra.plane.create("pods", claiming(f"p-{i}", template="t"))
    # Wherever it is with the claims and bindings of these.
    await_that(lambda: any((one.get("status") or {}).get("allocation") for one in dra.claims()),
               "an allocation")
    dra.scheduler.kill()
    dra.scheduler.start()
    dra.pods.await_bound("p-", 24)
    for one in dra.plane.bound("p-"):
        [result] = dra.results(dra.claim_of(one["metadata"]["name"]))
        assert result["device"] == device_name(
            one["metadata"]["annotations"]["gpu-scheduler.io/gpus"])
        assert result["consumedCapacity"] == {"memory": "2Gi"}
    used = {}
    for claim in dra.claims():
        [result] = dra.results(claim)
        used[result["device"]] = used.get(result["device"], 0) + 2048
    assert all(mib <= 40 * 1024 for mib in used.values())


@pytest.mark.parametrize("template", groups()[:1])
def test_what_is_preempted_gives_its_claim_back(dra, template):
    if template is None:
        pytest.skip("cgroups cannot be made here")
    dra.template("whole")
    for i in range(2):
        dra.plane.create("pods", claiming(f"low-{i}", template="whole",
                                          labels={"gpu-scheduler.io/preemptible": "true"}))
    dra.pods.await_bound("low-", 2)
    # What has not started is left alone.
    running = [Group(template, dra.plane.pod(f"low-{i}")["metadata"]["uid"]) for i in range(2)]
    dra.plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
                      {"metadata": {"name": f"high-{os.getpid()}"}, "value": 1000})
    try:
        dra.plane.create("pods", claiming("high", template="whole",
                                          priorityClassName=f"high-{os.getpid()}"))
        await_that(lambda: len(dra.plane.bound("low-")) == 1, "an eviction")
        gone = [i for i in range(2) if not dra.plane.bound(f"low-{i}")]
        assert not dra.plane.bound("high")
        running[gone[0]].end()
        dra.pods.await_bound("high", 1)
    finally:
        for group in running:
            group.end()
        dra.plane.request("DELETE",
                          f"/apis/scheduling.k8s.io/v1/priorityclasses/high-{os.getpid()}")
    device = dra.results(dra.claim_of("high"))[0]["device"]
    left = [dra.results(dra.claim_of(one["metadata"]["name"]))[0]["device"]
            for one in dra.plane.bound("low-")]
    assert device not in left
