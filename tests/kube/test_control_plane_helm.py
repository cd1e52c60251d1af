"""The chart and the manifests of deploy/kubernetes on a real control plane: what the API server says
of each object, and install, upgrade, rollback and removal. Run by scripts/kube-tests."""

import base64
import json
import os
import pathlib
import subprocess

import pytest

from control_plane import HERE, RIGHTS, Failed
from pods import await_that, node
from test_control_plane_dra import RIGHTS as AGENT_RIGHTS

pytestmark = pytest.mark.skipif(not os.environ.get("KUBE_CONTROL_PLANE"),
                                reason="needs a control plane: scripts/kube-tests")
ROOT = HERE.parent.parent
CHART = ROOT / "deploy" / "kubernetes" / "chart"
MANIFEST = ROOT / "deploy" / "kubernetes" / "gpu-scheduler.yaml"
SPACE = "gpu-scheduler"


def program(script):
    found = subprocess.run([ROOT / "scripts" / script], capture_output=True, text=True,
                           env=os.environ | {"KUBE_FIND_ONLY": "yes"}, timeout=120)
    if found.returncode == 3:
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


@pytest.fixture(scope="module")
def kubectl(control_plane):
    path = pathlib.Path(program("kube-tools")) / "kubectl"

    def run(*words, stdin=None, fails=False):
        done = subprocess.run([path, "--kubeconfig", control_plane.directory / "kubeconfig", *words],
                              input=stdin, capture_output=True, text=True, timeout=300)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout
    return run


@pytest.fixture(scope="module")
def helm(control_plane):
    path = program("helm-tool")

    def run(*words):
        done = subprocess.run(
            [path, *words, "--namespace", SPACE,
             "--kubeconfig", control_plane.directory / "kubeconfig"],
            capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.fixture
def space(plane, kubectl):
    """The namespace, and nothing of ours in it before and after."""
    kubectl("create", "namespace", SPACE)
    yield SPACE
    kubectl("delete", "namespace", SPACE, "--wait=false")
    # The pods of a namespace end with it; KWOK has none that hold it up.
    await_that(lambda: SPACE not in kubectl("get", "namespaces", "-o", "name"),
               "the end of the namespace", 120)


def objects(text):
    """Of a manifest, by kind and name, as kubectl understands them."""
    return {(item["kind"], item["metadata"]["name"]): item for item in json.loads(text)["items"]}


def dry_run(kubectl, manifest):
    text = kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=manifest)
    return objects(text)


def test_the_manifest_is_what_the_chart_makes():
    program("helm-tool")
    done = subprocess.run([ROOT / "scripts" / "kube-manifest", "--check"], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_api_server_takes_every_object(space, kubectl):
    found = dry_run(kubectl, MANIFEST.read_text())
    assert {kind for kind, _ in found} == {
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Service",
        "PersistentVolumeClaim", "PodDisruptionBudget", "Deployment", "NetworkPolicy", "DaemonSet",
        "DeviceClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
        "FlowSchema", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}
    assert len(found) == 20


@pytest.mark.parametrize("values", [
    ("postgresql.host=db.example.org", "postgresql.passwordSecret=gpu-scheduler-db"),
    ("agent.dra=false", "agent.devicePlugin=all", "networkPolicy=false", "admissionPolicy=false", "flowSchema=false", "webhook=false"),
    ("storage.className=fast", "scheduler.nodeSelector.pool=system",
     "agent.arguments={--verbosity=3}", "settings.kubernetes.kai_queues=true")])
def test_the_api_server_takes_what_other_values_make(space, helm, kubectl, values):
    words = [word for value in values for word in ("--set", value)]
    found = dry_run(kubectl, helm("template", "gpu-scheduler", str(CHART), "--kube-version",
                                  "1.36.0", *words))
    replicas = found[("Deployment", "gpu-scheduler")]["spec"]["replicas"]
    assert replicas == (2 if "postgresql" in values[0] else 1)
    assert (("DeviceClass", "gpu.gpu-scheduler.io") in found) == ("agent.dra=false" not in values)


def test_the_settings_of_the_chart_are_settings(space, helm, kubectl, tmp_path):
    found = dry_run(kubectl, MANIFEST.read_text())
    text = found[("ConfigMap", "gpu-scheduler")]["data"]["scheduler-config.yaml"]
    for file in ("tls.crt", "tls.key"):
        text = text.replace(f"/etc/gpu-scheduler/tls/{file}", str(tmp_path / file))
    text = text.replace("/var/lib/gpu-scheduler", str(tmp_path))
    config = tmp_path / "scheduler-config.yaml"
    config.write_text(text)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=here",
                    "-keyout", tmp_path / "tls.key", "-out", tmp_path / "tls.crt"],
                   check=True, capture_output=True, timeout=60)
    done = subprocess.run([ROOT / "bin" / "gpu-scheduler", "--config", config, "--check-config"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def covers(rules, group, resource, verb):
    return any(group in rule["apiGroups"] and resource in rule["resources"]
               and verb in rule["verbs"] for rule in rules)


def flat(rules):
    return {(group, resource, verb) for groups, resources, verbs in rules
            for group in groups for resource in resources for verb in verbs}


def test_accounts_have_the_rights_that_tests_run_with(space, kubectl):
    found = dry_run(kubectl, MANIFEST.read_text())
    scheduler = found[("ClusterRole", "gpu-scheduler")]["rules"]
    for group, resource, verb in flat(RIGHTS):
        assert covers(scheduler, group, resource, verb), f"{verb} {resource}.{group}"
    assert found[("ClusterRole", "gpu-agent")]["rules"] == [
        {key: rule[key] for key in ("apiGroups", "resources", "verbs")} for rule in AGENT_RIGHTS]


def secret(kubectl):
    return kubectl("get", "secret", "gpu-scheduler-tls", "-n", SPACE, "-o", "jsonpath={.data}")


def running(kubectl):
    """The uids of the pods of the release that run."""
    items = json.loads(kubectl("get", "pods", "-n", SPACE, "-o", "json"))["items"]
    return {item["metadata"]["labels"]["app.kubernetes.io/name"]: item["metadata"]["uid"]
            for item in items if item["status"]["phase"] == "Running"
            and "deletionTimestamp" not in item["metadata"]}


@pytest.fixture
def ungranted(plane):
    """Without the rights that other tests run with, whose names the chart has too."""
    for kind in ("clusterroles", "clusterrolebindings"):
        plane.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/gpu-scheduler")
    yield
    plane.grant()


def test_a_release_is_installed_upgraded_rolled_back_and_removed(plane, ungranted, space, helm,
                                                                 kubectl):
    plane.create("nodes", node("a"))
    await_that(plane.nodes_ready, "ready nodes")
    work = {"metadata": {"name": "work"}, "spec": {"containers": [{"name": "c"}]}}
    plane.create("pods", work)
    # KWOK has no volumes.
    chart = [str(CHART), "--set", "postgresql.host=db.example.org"]
    helm("install", "gpu-scheduler", *chart)
    pods = await_that(lambda: running(kubectl) if len(running(kubectl)) == 2 else None,
                      "pods of the release")
    before = secret(kubectl)
    certificate = base64.b64decode(json.loads(before)["tls.crt"])
    assert b"BEGIN CERTIFICATE" in certificate
    helm("upgrade", "gpu-scheduler", *chart, "--set", "agent.arguments={--verbosity=3}")
    assert secret(kubectl) == before  # agents trust it
    await_that(lambda: running(kubectl).get("gpu-agent") not in (None, pods["gpu-agent"]),
               "another agent")
    assert "--verbosity=3" in kubectl("get", "daemonset", "gpu-agent", "-n", SPACE, "-o", "yaml")
    helm("rollback", "gpu-scheduler", "1")
    assert "--verbosity=3" not in kubectl("get", "daemonset", "gpu-agent", "-n", SPACE, "-o",
                                          "yaml")
    helm("uninstall", "gpu-scheduler")
    assert kubectl("get", "clusterroles,flowschemas,deviceclasses,validatingadmissionpolicies",
                   "-l", "app.kubernetes.io/part-of=gpu-scheduler", "-o", "name") == ""
    assert plane.pod("work")["status"]["phase"] in ("Pending", "Running")


def test_only_the_scheduler_writes_what_a_pod_was_given(plane, space, kubectl):
    plane.create("nodes", node("a"))
    await_that(plane.nodes_ready, "ready nodes")
    found = objects(kubectl("apply", "--dry-run=client", "-o", "json", "-f", str(MANIFEST)))
    policies = [item for (kind, _), item in found.items() if "AdmissionPolicy" in kind]
    kubectl("apply", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": policies}))
    pod = {"metadata": {"name": "thief", "annotations": {"gpu-scheduler.io/gpus": "GPU-1"}},
           "spec": {"schedulerName": "nobody", "containers": [{"name": "c"}]}}
    try:
        def refused():
            try:
                plane.create("pods", pod)
                plane.delete_pod("thief")
                return False
            except Failed as failure:
                return "only gpu-scheduler writes" in str(failure)
        await_that(refused, "a refusal")  # a policy takes effect a moment later
        pod["metadata"] = {"name": "honest", "annotations": {"own": "1"}}
        plane.create("pods", pod)
        path = "/api/v1/namespaces/default/pods/honest"
        for annotations in ({"gpu-scheduler.io/limits": "1"}, {"gpu-scheduler.io/job": "job-1/0"}):
            with pytest.raises(Failed, match="only gpu-scheduler writes"):
                plane.request("PATCH", path, {"metadata": {"annotations": annotations}},
                              "application/merge-patch+json")
        plane.request("PATCH", path, {"metadata": {"annotations": {"own": "2"}}},
                      "application/merge-patch+json")
        # The binding of the scheduler's account brings them, whatever the policy says of others.
        plane.request("POST", f"{path}/binding", {
            "metadata": {"name": "honest", "annotations": {"gpu-scheduler.io/gpus": "GPU-1"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "a"}})
        assert plane.pod("honest")["metadata"]["annotations"]["gpu-scheduler.io/gpus"] == "GPU-1"
        with pytest.raises(Failed, match="only gpu-scheduler writes"):
            plane.request("PATCH", path,
                          {"metadata": {"annotations": {"gpu-scheduler.io/gpus": "GPU-2"}}},
                          "application/merge-patch+json")
        plane.finish_pod("honest")  # its kubelet still may
    finally:
        for item in policies:
            kubectl("delete", item["kind"], item["metadata"]["name"])
