"""The webhook that judges pods before the API server takes them, on a real control plane. Run by
scripts/kube-tests."""

import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from control_plane import Failed, free_ports
from pods import Pods, await_that, node, pod

GROUP = "/apis/admissionregistration.k8s.io/v1/"
KINDS = {"validate": "validatingwebhookconfigurations", "mutate": "mutatingwebhookconfigurations"}


def configuration(way, port):
    return {"metadata": {"name": "gpu-scheduler"},
            "webhooks": [{
                "name": f"{way}.pods.gpu-scheduler.io", "failurePolicy": "Ignore",
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                           "resources": ["pods"]}]}]}


class Hook:
    def __init__(self, plane, directory):
        self.plane, self.port = plane, free_ports(20) + 19
        for way, kind in KINDS.items():
            plane.request("POST", GROUP + kind, configuration(way, self.port))
        self.pods = Pods(plane, directory, plane.kubeconfig, webhook_port=self.port,
                         webhook_host="127.0.0.1")
        self.data = self.pods.scheduler.data
        for way in KINDS:
            self.await_certificate(way)

    def await_certificate(self, way):
        try:
            await_that(lambda: "caBundle" in self.client(way), "the certificate")
        except AssertionError as failure:
            log = self.pods.scheduler.errors.read_text()[-3000:]
            raise AssertionError(f"{failure}; the log: {log}") from failure

    def client(self, way):
        found = self.plane.request("GET", f"{GROUP}{KINDS[way]}/gpu-scheduler")
        return found["webhooks"][0]["clientConfig"]

    def refusal(self, item):
        """The sentence with which the API server refuses to create it; "": it does not."""
        for container in item["spec"]["containers"]:
            container.setdefault("image", "none")
        try:
            self.plane.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", item)
        except Failed as failure:
            assert failure.status == 403
            return failure.message
        return ""

    def stop(self):
        self.pods.scheduler.stop()
        for kind in KINDS.values():
            self.plane.request("DELETE", f"{GROUP}{kind}/gpu-scheduler")


@pytest.fixture
def hook(plane, tmp_path):
    plane.create("nodes", node("a", gpus=2, memory=46068))
    await_that(plane.nodes_ready, "ready nodes")
    made = Hook(plane, tmp_path)
    yield made
    made.stop()


def test_a_pod_that_asks_for_the_impossible_is_refused_when_it_is_created(hook):
    # The API server learns of the webhook, and the scheduler of the nodes, a moment later.
    refused = await_that(lambda: hook.refusal(pod("big", 3)), "a refusal")
    assert "It would never start: " in refused
    told = hook.pods.scheduler.post("/api/v1/jobs?check=true", {
        "name": "big", "command": ["true"], "tenant_id": "tenant-1", "gpu_count": 3}).json()
    assert told["message"].startswith("It would never start: ")
    assert "the annotation gpu-fraction is '2'" in hook.refusal(
        pod("odd", annotations={"gpu-fraction": "2"}))
    assert "may not use tenant other" in hook.refusal(
        pod("strange", 1, labels={"gpu-scheduler.io/tenant": "other"}))
    for good in (pod("two", 2), pod("part", annotations={"gpu-memory": "46068"}),
                 pod("theirs", 100, scheduler="somebody"), pod("none")):
        assert hook.refusal(good) == ""
    # What waits for others is not impossible.
    hook.plane.create("pods", pod("all", 2))
    hook.pods.await_bound("all", 1)
    assert hook.refusal(pod("late", 2)) == ""


def test_a_pod_with_a_part_of_a_gpu_finds_it_in_its_environment(hook):
    await_that(lambda: hook.refusal(pod("big", 3)), "a webhook that is asked")

    def is_mutated():
        made = hook.plane.create("pods", pod("part", annotations={"gpu-fraction": "0.5"}))
        [container] = made["spec"]["containers"]
        if "env" not in container:
            hook.plane.delete_pod("part")
            return None
        return container
    container = await_that(is_mutated, "environment")
    fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
    assert fields == {"NVIDIA_VISIBLE_DEVICES": "metadata.annotations['gpu-scheduler.io/gpus']",
                      "CUDA_VISIBLE_DEVICES": "metadata.annotations['gpu-scheduler.io/gpus']",
                      "GPU_SCHEDULER_LIMITS_MIB":
                          "metadata.annotations['gpu-scheduler.io/limits']"}
    assert container["resources"]["limits"] == {"gpu-scheduler.io/gpu": "1"}
    hook.pods.await_bound("part", 1)


def test_the_certificate_is_kept_and_renewed_and_strangers_learn_nothing(hook):
    before = hook.client("validate")
    context = ssl.create_default_context(cafile=str(hook.data / "webhook.crt"))
    assert (hook.data / "webhook.key").stat().st_mode & 0o777 == 0o600
    for path in ("/", "/validate", f"/{'0' * 48}/validate"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"https://127.0.0.1:{hook.port}{path}", data=b"{}",
                                   context=context, timeout=60)
        assert refused.value.code == 404
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(before["url"], data=b"[]", context=context, timeout=60)
    assert refused.value.code == 400
    # Somebody removes what the scheduler has written.
    found = hook.plane.request("GET", f"{GROUP}{KINDS['validate']}/gpu-scheduler")
    del found["webhooks"][0]["clientConfig"]["caBundle"]
    hook.plane.request("PUT", f"{GROUP}{KINDS['validate']}/gpu-scheduler", found)
    await_that(lambda: hook.client("validate") == before, "the same as before")
    # A certificate that ends soon is made again at the next start, with its own key.
    hook.pods.scheduler.stop()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "20", "-subj", "/CN=old",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                    hook.data / "webhook.key", "-out", hook.data / "webhook.crt"], check=True,
                   capture_output=True, timeout=60)
    hook.pods.scheduler.start()
    await_that(lambda: hook.client("validate")["caBundle"] != before["caBundle"], "a new one")
    await_that(lambda: hook.refusal(pod("big", 3)), "a refusal")
