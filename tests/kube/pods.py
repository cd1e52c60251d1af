"""What tests of pods share: a scheduler that watches an API server, and objects for it."""

import json
import time

from scheduler import Scheduler

UNTIL_S = 60


def await_that(condition, what="it", seconds=UNTIL_S):
    """Waits for a condition; how long that takes is not the matter."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come about: {condition()}")


def node(name, gpus=8, memory=None, **labels):
    """A node with whole GPUs, or (with memory, in MiB) with GPUs that it declares."""
    annotations = {}
    if memory:
        declared = [{"uuid": f"GPU-{name}-{i}", "model": "L40S", "memory_mib": memory}
                    for i in range(gpus)]
        annotations["gpu-scheduler.io/node-gpus"] = json.dumps(declared)
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "256", "nvidia.com/gpu": str(gpus)}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels},
                         "annotations": annotations},
            "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts,
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, gpus=0, annotations=None, labels=None, owner=None, scheduler="gpu-scheduler",
        **spec):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    metadata = {"name": name, "annotations": annotations or {}, "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True, "kind": "ReplicaSet",
                                        "name": owner}]
    return {"metadata": metadata,
            "spec": {"schedulerName": scheduler,
                     "containers": [{"name": "c", "resources": {"limits": limits}}], **spec}}


def member(group, size, name, gpus=1, **more):
    return pod(name, gpus, annotations={"gpu-scheduler.io/group": group,
                                        "gpu-scheduler.io/group-size": str(size)}, **more)


def write_kubeconfig(api, directory):
    """Of a small API server."""
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps({
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "fake", "user": "me"}}],
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{api.port}"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}]}))
    return kubeconfig


class Pods:
    """A scheduler that watches an API server."""

    def __init__(self, api, directory, kubeconfig, arguments=(), **settings):
        self.api = api
        self.scheduler = Scheduler(
            directory / "scheduler", "--kubernetes", "--kubeconfig", kubeconfig, *arguments,
            sections={"kubernetes": {"default_tenant": "everyone", "force_release_ms": 500,
                                     "replace_ms": 60000, **settings}})
        self.scheduler.post("/api/v1/tenants", {"name": "everyone"})

    def await_bound(self, prefix, count):
        try:
            await_that(lambda: len(self.api.bound(prefix)) == count,
                       f"{count} bound pods {prefix}*")
        except AssertionError as failure:
            told = {pod["metadata"]["name"]: pod["status"].get("conditions")
                    for pod in self.api.pods() if not pod["spec"].get("nodeName")}
            raise AssertionError(f"{failure}; not bound: {told}") from failure

    def job_of(self, name):
        jobs = self.scheduler.get(
            f"/api/v1/jobs?label=pod%2Fdefault%2F{name}%3Dtrue").json()["jobs"]
        return jobs[0] if jobs else None


def unschedulable(api, name):
    for condition in api.pod(name)["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition["message"]
    return ""
