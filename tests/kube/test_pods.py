"""Pods of Kubernetes, scheduled beside a small API server that fails on demand."""

import pytest

from fake_api import Refused
from pods import Pods, await_that, member, node, pod, unschedulable, write_kubeconfig


@pytest.fixture
def start(api, tmp_path):
    begun = []

    def begin(**settings):
        begun.append(Pods(api, tmp_path, write_kubeconfig(api, tmp_path), **settings))
        return begun[-1]
    yield begin
    for pods in begun:
        pods.scheduler.stop()


def test_16_halves_of_8_gpus_are_two_on_each(api, start):
    api.create("nodes", node("a", memory=46068))
    pods = start()
    for i in range(16):
        api.create("pods", pod(f"half-{i}", annotations={"gpu-fraction": "0.5"}))
    pods.await_bound("half-", 16)
    gpus = [p["metadata"]["annotations"]["gpu-scheduler.io/gpus"] for p in api.bound()]
    assert sorted(gpus) == sorted([f"GPU-a-{i}" for i in range(8)] * 2)
    assert {p["metadata"]["annotations"]["gpu-scheduler.io/limits"]
            for p in api.bound()} == {"23034"}
    api.create("pods", pod("one-more", annotations={"gpu-fraction": "0.5"}))
    await_that(lambda: unschedulable(api, "one-more"), "an explanation")


def test_23_of_24_pods_of_2000_mib_fit_and_the_last_says_how_much_it_misses(api, start):
    # Its 4 replicas are names of one GPU.
    api.create("nodes", node("a", gpus=1, memory=46068,
                             **{"nvidia.com/gpu.replicas": "4"}))
    pods = start()
    for i in range(24):
        api.create("pods", pod(f"m-{i}", annotations={"gpu-memory": "2000"}))
    pods.await_bound("m-", 23)
    [late] = [p["metadata"]["name"] for p in api.pods() if not p["spec"].get("nodeName")]
    await_that(lambda: "1932 MiB short" in unschedulable(api, late), "the number that was short")
    await_that(lambda: any(e["reason"] == "FailedScheduling" and e["regarding"]["name"] == late
                           for e in api.events), "an event")
    # One that ends makes room.
    api.finish_pod(api.bound("m-")[0]["metadata"]["name"])
    pods.await_bound("m-", 24)


def test_of_two_gangs_for_8_gpus_one_runs_whole_and_one_waits_whole(api, start):
    api.create("nodes", node("a"))
    pods = start()
    for i in range(8):
        for gang in "xy":
            api.create("pods", member(gang, 8, f"{gang}-{i}"))
    await_that(lambda: len(api.bound()) == 8, "one gang")
    first = api.bound()[0]["metadata"]["name"][0]
    other = "y" if first == "x" else "x"
    assert len(api.bound(first)) == 8
    await_that(lambda: unschedulable(api, f"{other}-0"), "an explanation")
    assert not api.bound(other)
    for i in range(8):
        api.finish_pod(f"{first}-{i}")
    pods.await_bound(other, 8)


def test_no_half_gang_is_left_where_one_binding_is_refused_for_good(api, start):
    api.create("nodes", node("a"))

    def refuse(method, path):
        if path.endswith("/pods/g-2/binding"):
            raise Refused(403, "admission webhook denied the request")
    api.fault = refuse
    pods = start()
    for i in range(8):
        api.create("pods", member("g", 8, f"g-{i}"))
    await_that(lambda: any(e["reason"] == "FailedBinding" for e in api.events), "the refusal")
    await_that(lambda: not api.bound("g-"), "an end of the half gang")
    # Nobody else starves.
    for i in range(8):
        api.create("pods", pod(f"single-{i}", 1))
    pods.await_bound("single-", 8)
    assert not api.bound("g-")


def test_a_gang_waits_until_all_of_its_pods_are_there(api, start):
    api.create("nodes", node("a"))
    pods = start()
    for i in range(3):
        api.create("pods", member("g", 4, f"g-{i}"))
    await_that(lambda: "has 3 of 4 pods" in unschedulable(api, "g-0"), "an explanation")
    assert not api.bound()
    api.create("pods", member("g", 4, "g-3"))
    pods.await_bound("g-", 4)


def test_what_others_take_is_taken(api, start):
    api.create("nodes", node("a", gpus=2))
    taken = pod("theirs", 1, scheduler="default-scheduler", nodeName="a")
    taken["status"] = {"phase": "Running"}
    api.create("pods", taken)
    pods = start()
    api.create("pods", pod("two", 2))
    api.create("pods", pod("one", 1))
    pods.await_bound("one", 1)
    await_that(lambda: unschedulable(api, "two"), "an explanation")
    api.delete_pod("theirs")
    api.finish_pod("one")
    pods.await_bound("two", 1)


def test_a_binding_whose_answer_was_lost_happens_once(api, start):
    api.create("nodes", node("a"))
    lost = []

    def lose(method, path):
        if path.endswith("/binding") and not lost:
            lost.append(path)
            api.cut_later = True
            return "lose"
        return None
    api.fault = lose
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    api.cut()  # the answer never comes
    await_that(lambda: pods.job_of("p") and pods.job_of("p")["state"] == "running",
               "a running job")
    assert [name for _, name, _ in api.bindings] == ["p"]


def test_refusals_that_pass_are_tried_again(api, start):
    api.create("nodes", node("a"))
    tries = []

    def busy(method, path):
        if path.endswith("/binding"):
            tries.append(path)
            if len(tries) < 3:
                raise Refused(429 if len(tries) == 1 else 503, "too many requests")
    api.fault = busy
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    assert len(api.bindings) == 1


@pytest.mark.parametrize("goodbye", [False, True])
def test_watches_are_taken_up_where_they_ended(api, start, goodbye):
    api.create("nodes", node("a"))
    pods = start()
    api.create("pods", pod("before", 1))
    pods.await_bound("before", 1)
    api.cut(goodbye)
    api.create("pods", pod("after", 1))
    pods.await_bound("after", 1)


def test_a_server_that_forgot_the_version_is_asked_for_all(api, start):
    api.create("nodes", node("a", gpus=2))
    pods = start()
    api.create("pods", pod("gone", 2))
    pods.await_bound("gone", 1)
    api.forget()
    with api.lock:
        # Deleted while nobody looked, and the event with it.
        api.cut()
        api.delete_pod("gone")
        api.history.clear()
        api.forget()
    api.create("pods", pod("next", 2))
    pods.await_bound("next", 1)


def test_a_server_that_lists_in_pages_is_read_to_the_end(api, start):
    api.paged_only = True
    for name in "abcdefgh":
        api.create("nodes", node(name, gpus=1))
    pods = start()
    for i in range(8):
        api.create("pods", pod(f"p-{i}", 1))
    pods.await_bound("p-", 8)


def test_after_a_kill_no_pod_is_bound_twice_and_none_is_lost(api, start):
    api.create("nodes", node("a"))
    pods = start()
    for i in range(12):
        api.create("pods", pod(f"p-{i}", 1))
    pods.await_bound("p-", 8)
    pods.scheduler.kill()
    for pod_name in [p["metadata"]["name"] for p in api.bound()][:2]:
        api.finish_pod(pod_name)
    api.delete_pod([p["metadata"]["name"] for p in api.bound()
                    if p["status"]["phase"] == "Running"][0])
    pods.scheduler.start()
    await_that(lambda: len([p for p in api.bound() if p["status"]["phase"] == "Running"]) == 8,
               "8 that run")
    uids = [uid for uid, _, _ in api.bindings]
    assert len(uids) == len(set(uids)) == 11


def test_a_pod_that_ended_is_a_job_that_ended(api, start):
    api.create("nodes", node("a"))
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    api.finish_pod("p")
    await_that(lambda: pods.job_of("p")["state"] == "completed", "a completed job")


def test_a_cancelled_job_takes_its_pod_along(api, start):
    api.create("nodes", node("a", gpus=1))
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    api.create("pods", pod("waits", 1))
    for name in ["waits", "p"]:
        job = await_that(lambda n=name: pods.job_of(n), "its job")
        assert pods.scheduler.delete(f"/api/v1/jobs/{job['id']}").status in (200, 202, 204)
        await_that(lambda n=name: api.pod(n) is None, "a deleted pod")


def test_an_evicted_pod_that_is_made_again_takes_its_place(api, start):
    api.create("nodes", node("a", gpus=1))
    pods = start()
    api.create("pods", pod("low-1", 1, owner="set"))
    pods.await_bound("low-1", 1)
    await_that(lambda: pods.job_of("low-1")["state"] == "running", "a running job")
    job = pods.job_of("low-1")["id"]
    pods.scheduler.post(f"/api/v1/jobs/{job}/requeue", {})
    await_that(lambda: api.pod("low-1") is None, "an eviction")
    assert ("POST", "/api/v1/namespaces/default/pods/low-1/eviction") in api.requests
    api.create("pods", pod("low-2", 1, owner="set"))
    pods.await_bound("low-2", 1)
    bound = api.pod("low-2")["metadata"]["annotations"]["gpu-scheduler.io/job"]
    assert bound == f"{job}/0"


def test_pods_with_gates_and_of_others_are_left_alone(api, start):
    api.create("nodes", node("a"))
    pods = start()
    gated = api.create("pods", pod("gated", 1, schedulingGates=[{"name": "wait"}]))
    api.create("pods", pod("others", 1, scheduler="default-scheduler"))
    api.create("pods", pod("ours", 1))
    pods.await_bound("ours", 1)
    assert [name for _, name, _ in api.bindings] == ["ours"]
    with api.lock:
        stored = api.objects["pods"][("default", gated["metadata"]["name"])]
        del stored["spec"]["schedulingGates"]
        api.change("pods", stored)
    pods.await_bound("gated", 1)


def test_a_volume_that_cannot_be_judged_is_named(api, start):
    api.create("nodes", node("a"))
    start()
    api.create("pods", pod("p", 1, volumes=[
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    await_that(lambda: "its claim data does not exist" in unschedulable(api, "p"),
               "an explanation")


def volume(name, zone):
    return {"metadata": {"name": name}, "spec": {"nodeAffinity": {"required": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": [zone]}]}]}}}}


def test_a_pod_goes_where_its_bound_volume_is_and_waits_until_it_is_bound(api, start):
    for name in "ab":
        api.create("nodes", node(name, zone=f"zone-{name}"))
    pods = start()
    api.create("persistentvolumes", volume("disk", "zone-b"))
    claim = api.create("persistentvolumeclaims", {
        "metadata": {"name": "data", "namespace": "default"}, "spec": {},
        "status": {"phase": "Pending"}})
    api.create("pods", pod("p", 1, volumes=[
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    await_that(lambda: "its claim data is not bound" in unschedulable(api, "p"),
               "an explanation")
    claim["spec"]["volumeName"], claim["status"]["phase"] = "disk", "Bound"
    api.replace("persistentvolumeclaims", claim)
    pods.await_bound("p", 1)
    assert api.pod("p")["spec"]["nodeName"] == "b"


def test_a_pod_that_never_preempts_waits_for_one_of_a_lower_priority(api, start):
    api.create("nodes", node("a", 1))
    pods = start()
    api.create("pods", pod("low", 1, owner="set", priority=10))
    pods.await_bound("low", 1)
    api.create("pods", pod("patient", 1, priority=90, preemptionPolicy="Never"))
    await_that(lambda: unschedulable(api, "patient"), "an explanation")
    assert [p["metadata"]["name"] for p in api.bound()] == ["low"]
    api.create("pods", pod("urgent", 1, priority=90))
    pods.await_bound("urgent", 1)
    assert not api.bound("patient")


def test_nodes_of_kubernetes_take_no_other_jobs(api, start):
    api.create("nodes", node("a"))
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    job = pods.scheduler.post("/api/v1/jobs", {"name": "alone", "command": ["true"],
                                               "tenant_id": "tenant-1", "gpu_count": 1}).json()
    api.create("pods", pod("q", 1))
    pods.await_bound("q", 1)
    assert pods.scheduler.get(f"/api/v1/jobs/{job['job_id']}").json()["state"] == "pending"


def test_a_namespace_without_a_tenant_waits_with_that_reason(api, start):
    api.create("nodes", node("a"))
    start(default_tenant="")
    api.create("pods", pod("p", 1))
    await_that(lambda: "namespace default has no tenant" in unschedulable(api, "p"),
               "an explanation")


def test_a_tenant_is_for_the_namespaces_that_are_listed(api, start):
    api.create("nodes", node("a"))
    pods = start(tenants=["default=vision"])
    pods.scheduler.post("/api/v1/tenants", {"name": "vision"})
    pods.scheduler.post("/api/v1/tenants", {"name": "speech"})
    api.create("pods", pod("mine", 1, labels={"gpu-scheduler.io/tenant": "vision"}))
    api.create("pods", pod("foreign", 1, labels={"gpu-scheduler.io/tenant": "speech"}))
    pods.await_bound("mine", 1)
    await_that(lambda: "may not use tenant speech" in unschedulable(api, "foreign"),
               "an explanation")


def test_a_pod_deleted_by_force_holds_its_gpus_for_a_while(api, start):
    api.create("nodes", node("a", gpus=1))
    pods = start(force_release_ms=3600000)
    api.create("pods", pod("forced", 1))
    pods.await_bound("forced", 1)
    api.delete_pod("forced", terminal=False)
    api.create("pods", pod("next", 1))
    await_that(lambda: unschedulable(api, "next"), "an explanation")
    assert not api.bound("next")


def test_a_group_that_is_made_again_is_a_job_of_its_own(api, start):
    api.create("nodes", node("a"))
    pods = start()
    for run in range(2):
        for i in range(2):
            api.create("pods", member("g", 2, f"run-{run}-{i}"))
        pods.await_bound(f"run-{run}", 2)
        for i in range(2):
            api.finish_pod(f"run-{run}-{i}")
        await_that(lambda n=run: pods.job_of(f"run-{n}-0")["state"] == "completed",
                   "a completed job")


def test_a_group_whose_pods_were_replaced_during_a_restart_runs(api, start):
    api.create("nodes", node("a"))
    pods = start()
    for i in range(4):
        api.create("pods", member("g", 4, f"g-{i}"))
    pods.await_bound("g-", 4)
    pods.scheduler.kill()
    for i in range(4):
        api.delete_pod(f"g-{i}")
    pods.scheduler.start()
    for i in range(4):
        api.create("pods", member("g", 4, f"again-{i}"))
    pods.await_bound("again-", 4)


def test_a_pod_gives_way_where_another_scheduler_bound_one_at_the_same_time(api, start):
    api.create("nodes", node("a", gpus=2))
    pods = start()
    api.create("pods", pod("ours", 2, owner="set"))
    pods.await_bound("ours", 1)
    theirs = pod("theirs", 1, scheduler="default-scheduler", nodeName="a")
    theirs["status"] = {"phase": "Running"}
    api.create("pods", theirs)
    await_that(lambda: api.pod("ours") is None, "an eviction")
    await_that(lambda: any(event["reason"] == "CrossedBinding" for event in api.events),
               "an event")
    api.create("pods", pod("ours-again", 2, owner="set"))
    await_that(lambda: unschedulable(api, "ours-again"), "an explanation")
    api.finish_pod("theirs")
    pods.await_bound("ours-again", 1)


def test_a_group_stays_whole_where_new_pods_come_before_the_old_ones_have_left(api, start):
    api.create("nodes", node("a", gpus=4))
    pods = start(force_release_ms=3000)
    for i in range(4):
        api.create("pods", member("g", 4, f"g-{i}", owner="set"))
    pods.await_bound("g-", 4)
    await_that(lambda: pods.job_of("g-0")["state"] == "running", "a running group")
    # Deleted without a last word: their memory counts for a while.
    for i in range(4):
        api.delete_pod(f"g-{i}", terminal=False)
        api.create("pods", member("g", 4, f"again-{i}", owner="set"))
    pods.await_bound("again-", 4)
    jobs = {p["metadata"]["annotations"]["gpu-scheduler.io/job"] for p in api.bound("again-")}
    assert len({job.split("/")[0] for job in jobs}) == 1 and len(jobs) == 4


def test_pods_that_were_decided_and_not_bound_before_a_kill_are_bound_after_it(api, start):
    api.create("nodes", node("a"))
    asked = []

    def swallow(method, path):
        if path.endswith("/binding"):
            asked.append(path)
            raise Refused(503, "not now")
    api.fault = swallow
    pods = start()
    api.create("pods", pod("single", 1))
    for i in range(4):
        api.create("pods", member("g", 4, f"g-{i}"))
    await_that(lambda: len(set(asked)) == 5, "five decisions")
    pods.scheduler.kill()
    api.fault = lambda method, path: None
    pods.scheduler.start()
    pods.await_bound("single", 1)
    pods.await_bound("g-", 4)


def test_a_conflict_that_is_none_is_looked_up_and_bound_at_once(api, start):
    api.create("nodes", node("a"))
    tries = []

    def conflict(method, path):
        if path.endswith("/binding"):
            tries.append(path)
            if len(tries) < 3:
                raise Refused(409, "etcdserver: request timed out")
    api.fault = conflict
    pods = start()
    api.create("pods", pod("p", 1))
    pods.await_bound("p", 1)
    assert not [e for e in api.events if e["reason"] == "FailedBinding"]
    assert ("GET", "/api/v1/namespaces/default/pods/p") in api.requests
