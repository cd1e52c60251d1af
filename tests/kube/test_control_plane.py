"""Pods on a real control plane: what the small API server cannot show. Run by
scripts/kube-tests."""

import os
import threading

import pytest

from churn import Churn
from control_plane import Failed, Webhook
from pods import Pods, await_that, member, node, pod, unschedulable


@pytest.fixture
def start(plane, tmp_path):
    begun = []

    def begin(*nodes, **settings):
        for one in nodes:
            plane.create("nodes", one)
        await_that(plane.nodes_ready, "ready nodes")
        begun.append(Pods(plane, tmp_path, plane.kubeconfig, **settings))
        return begun[-1]
    yield begin
    for pods in begun:
        pods.scheduler.stop()


def gpus_of(pods):
    return sorted(p["metadata"]["annotations"]["gpu-scheduler.io/gpus"] for p in pods)


def test_16_halves_of_8_gpus_are_two_on_each(plane, start):
    pods = start(node("a", memory=46068))
    for i in range(16):
        plane.create("pods", pod(f"half-{i}", annotations={"gpu-fraction": "0.5"}))
    pods.await_bound("half-", 16)
    assert gpus_of(plane.bound()) == sorted([f"GPU-a-{i}" for i in range(8)] * 2)


def test_23_of_24_pods_of_2000_mib_fit_and_the_last_says_how_much_it_misses(plane, start):
    pods = start(node("a", gpus=1, memory=46068, **{"nvidia.com/gpu.replicas": "4"}))
    for i in range(24):
        plane.create("pods", pod(f"m-{i}", annotations={"gpu-memory": "2000"}))
    pods.await_bound("m-", 23)
    [late] = [p["metadata"]["name"] for p in plane.pods() if not p["spec"].get("nodeName")]
    await_that(lambda: "1932 MiB short" in unschedulable(plane, late),
               "the number that was short")
    await_that(lambda: any(event["reason"] == "FailedScheduling"
                           for event in plane.events if event["regarding"]["name"] == late),
               "an event")
    plane.finish_pod(plane.bound("m-")[0]["metadata"]["name"])
    pods.await_bound("m-", 24)


def test_of_two_gangs_for_8_gpus_one_runs_whole_and_one_waits_whole(plane, start):
    pods = start(node("a"))
    for i in range(8):
        for gang in "xy":
            plane.create("pods", member(gang, 8, f"{gang}-{i}"))
    await_that(lambda: len(plane.bound()) == 8, "one gang")
    first = plane.bound()[0]["metadata"]["name"][0]
    other = "y" if first == "x" else "x"
    assert len(plane.bound(first)) == 8
    await_that(lambda: unschedulable(plane, f"{other}-0"), "an explanation")
    assert not plane.bound(other)
    for i in range(8):
        plane.finish_pod(f"{first}-{i}")
    pods.await_bound(other, 8)


def await_webhook(plane):
    """The API server learns of a webhook a moment after it was made."""
    plane.create("pods", pod("probe", scheduler="nobody"))

    def is_refused():
        try:
            plane.request("POST",
                          "/api/v1/namespaces/default/pods/probe/binding?dryRun=All",
                          {"metadata": {"name": "probe"},
                           "target": {"kind": "Node", "name": "a"}})
        except Failed as failure:
            return failure.status == 403
        return False
    await_that(is_refused, "a webhook that is asked")
    plane.delete_pod("probe")


def test_a_gang_whose_third_binding_a_webhook_rejects_leaves_no_half(plane, start):
    lock, bindings = threading.Lock(), []

    def judge(request):
        if request["name"] == "probe":
            return "it is asked"
        if not request["name"].startswith("g-"):
            return None
        with lock:
            bindings.append(request["name"])
            return "no third of a gang" if len(bindings) % 8 == 3 else None
    webhook = Webhook(plane, judge)
    try:
        pods = start(node("a"))
        await_webhook(plane)
        for i in range(8):
            plane.create("pods", member("g", 8, f"g-{i}"))
        await_that(lambda: any(event["reason"] == "FailedBinding" for event in plane.events),
                   "the refusal")
        await_that(lambda: not plane.bound("g-"), "an end of the half gang")
        # Nobody else starves.
        for i in range(8):
            plane.create("pods", pod(f"single-{i}", 1))
        pods.await_bound("single-", 8)
        assert not plane.bound("g-")
    finally:
        webhook.stop()


CHURN_S = int(os.environ.get("KUBE_CHURN_S", "0"))
needs_churn = pytest.mark.skipif(CHURN_S == 0, reason="pods come and go in 'make kube-churn' alone")


@needs_churn
def test_beside_kube_scheduler_no_node_gives_more_than_it_has(plane, tmp_path):
    seconds = CHURN_S
    churn = Churn(plane, tmp_path, seconds=seconds, kills=max(2, seconds // 30),
                  server_kills=seconds // 180, shares_nodes=True)
    churn.run()
    print(churn.report())
    churn.judge(corrected_s=10)


@needs_churn
def test_with_nodes_of_their_own_no_bindings_cross(plane, tmp_path):
    seconds = CHURN_S
    churn = Churn(plane, tmp_path, seconds=seconds, kills=max(1, seconds // 30),
                  server_kills=0, shares_nodes=False)
    churn.run()
    print(churn.report())
    churn.judge(corrected_s=10)
