"""Manifests of KAI on a real control plane: with another scheduler's name, and unchanged. Run by
scripts/kube-tests."""

import copy
import pathlib
import subprocess

import pytest

from pods import Pods, await_that, node, unschedulable

MANIFESTS = pathlib.Path(__file__).resolve().parent / "kai"
FIRST = ["crds.yaml", "priority-class.yaml", "queues.yaml"]
# Of which pods are made, and how many are bound; all but one of capped.yaml.
BOUND = {"gpu-pod": 1, "cpu-only-pod": 1, "fraction-": 3, "memory-pod": 1,
         "fractions-of-several": 1, "train-pod": 1, "build-pod": 1, "batch-job": 2,
         "group-of-two": 2, "capped": 1, "pytorch-job": 3}


def kubectl(plane, *arguments, text=None):
    done = subprocess.run([plane.program("kubectl"), "--kubeconfig", plane.directory / "kubeconfig",
                           *arguments], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(text):
    """The names of the custom resources in a file of definitions."""
    return [line.split("name: ")[1].rstrip("}") for line in text.splitlines()
            if line.startswith("metadata:")]


@pytest.fixture
def manifests(plane, tmp_path):
    texts = {path.name: path.read_text() for path in sorted(MANIFESTS.glob("*.yaml"))}
    begun = []

    def apply(scheduler_name, *arguments):
        crds = texts["crds.yaml"]
        kubectl(plane, "apply", "-f", "-", text=crds)
        kubectl(plane, "wait", "--for=condition=Established", "--timeout=60s", "crd",
                *names(crds))
        for name in ["a", "b"]:
            plane.create("nodes", node(name, memory=46068))
        await_that(plane.nodes_ready, "ready nodes")
        pods = Pods(plane, tmp_path, plane.kubeconfig, arguments=arguments, kai_queues=True)
        begun.append(pods)
        for name in FIRST[1:] + [name for name in texts if name not in FIRST]:
            kubectl(plane, "apply", "-f", "-",
                    text=texts[name].replace("kai-scheduler", scheduler_name))
        make_pods_of_pytorch_job(plane)
        return pods
    yield apply
    for pods in begun:
        pods.scheduler.stop()
    for name in [name for name in texts if name not in ["crds.yaml"]]:
        kubectl(plane, "delete", "--ignore-not-found", "--wait=false", "-f", "-",
                text=texts[name])


def make_pods_of_pytorch_job(plane):
    """As the training operator does."""
    job = plane.request("GET", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/pytorch-job")
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "pytorch-job",
             "uid": job["metadata"]["uid"], "controller": True}
    for role, replica in job["spec"]["pytorchReplicaSpecs"].items():
        for place in range(replica["replicas"]):
            plane.create("pods", {
                "metadata": {"name": f"pytorch-job-{role.lower()}-{place}",
                             "ownerReferences": [owner],
                             "labels": {"training.kubeflow.org/job-name": "pytorch-job",
                                        "training.kubeflow.org/replica-type": role.lower()}},
                "spec": copy.deepcopy(replica["template"]["spec"])})


def check(plane, pods):
    for prefix, count in BOUND.items():
        pods.await_bound(prefix, count)
    tenants = {tenant["name"]: tenant
               for tenant in pods.scheduler.get("/api/v1/tenants").json()["tenants"]}
    research, parent = tenants["research"], tenants["default-parent-queue"]
    assert research["parent_id"] == parent["id"]
    assert (research["quota_gpus"], research["max_gpus"]) == (3, 4)
    assert (research["quota_cpu_cores"], research["max_cpu_cores"]) == (4, 8)
    assert research["fair_share_weight"] == 3
    assert parent["max_gpus"] is None
    group = pods.job_of("group-of-two-0")
    assert (group["tenant_id"], group["priority"], group["preemptible"]) == \
        (research["id"], 60, False)
    assert pods.job_of("build-pod")["preemptible"] is False
    assert pods.job_of("train-pod")["preemptible"] is True
    assert pods.job_of("pytorch-job-worker-1")["tenant_id"] == tenants["default-queue"]["id"]
    assert pods.job_of("pytorch-job-worker-1")["min_available"] == 3
    [late] = [p["metadata"]["name"] for p in plane.pods()
              if p["metadata"]["name"].startswith("capped") and not p["spec"].get("nodeName")]
    await_that(lambda: "limit" in unschedulable(plane, late), "the limit of its queue")
    # The Queue says what its tenant is.
    kubectl(plane, "patch", "queue", "capped", "--type=merge", "-p",
            '{"spec": {"resources": {"gpu": {"quota": 1, "limit": 2}}}}')
    pods.await_bound("capped", 2)


def test_manifests_of_kai_run_with_the_schedulers_name_changed(plane, manifests):
    check(plane, manifests("gpu-scheduler"))


def test_manifests_of_kai_run_unchanged_under_its_name(plane, manifests):
    check(plane, manifests("kai-scheduler", "--scheduler-names", "kai-scheduler"))
