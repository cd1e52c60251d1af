"""A real control plane for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
KWOK, started by kube-up on loopback. Objects are read and written as its administrator."""

import base64
import http.client
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
# What the documentation says that the scheduler's account needs; see docs/kubernetes.md.
RIGHTS = [
    ([""], ["nodes", "pods", "namespaces"], ["list", "watch"]),
    (["scheduling.k8s.io", "scheduling.run.ai", "scheduling.x-k8s.io",
      "scheduling.volcano.sh"], ["podgroups"], ["list", "watch"]),
    ([""], ["persistentvolumes", "persistentvolumeclaims"], ["list", "watch"]),
    (["scheduling.k8s.io"], ["priorityclasses"], ["list", "watch"]),
    (["scheduling.run.ai"], ["queues"], ["list", "watch"]),
    (["jobset.x-k8s.io"], ["jobsets"], ["list", "watch"]),
    (["kubeflow.org"], ["pytorchjobs", "mpijobs"], ["list", "watch"]),
    (["ray.io"], ["rayclusters"], ["list", "watch"]),
    (["resource.k8s.io"], ["resourceclaims", "resourceslices", "deviceclasses"],
     ["list", "watch"]),
    (["resource.k8s.io"], ["resourceclaims"], ["get", "patch"]),
    (["resource.k8s.io"], ["resourceclaims/status"], ["patch"]),
    (["resource.k8s.io"], ["resourceclaims/binding"], ["update", "patch"]),
    ([""], ["pods"], ["get", "delete"]),
    ([""], ["pods/binding", "pods/eviction"], ["create"]),
    ([""], ["pods/status"], ["patch"]),
    (["events.k8s.io"], ["events"], ["create"]),
]
PLURALS = {"nodes": "/api/v1/nodes", "namespaces": "/api/v1/namespaces",
           "pods": "/api/v1/namespaces/default/pods",
           "events": "/apis/events.k8s.io/v1/namespaces/default/events"}


class Failed(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status} {body[:300]!r}")
        self.status = status


def free_ports(count):
    """The first of that many neighbors that are free now."""
    for first in range(21000 + os.getpid() % 500 * 20, 60000, 20):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.create_server(("127.0.0.1", port)))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise AssertionError("no free ports")


class ControlPlane:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.port = free_ports(6)
        self.up()
        self.context = self.tls("kubeconfig")
        self.kubeconfig = self.directory / "gpu-scheduler.conf"
        self.grant()

    def up(self):
        done = subprocess.run(
            [HERE / "kube-up", "--port", str(self.port), "--nodes", "0", self.directory],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        logs = {log.name: log.read_text(errors="replace")[-2000:]
                for log in self.directory.glob("log/*")} if done.returncode else ""
        assert done.returncode == 0, f"{done.stderr}\n{logs}"

    def down(self):
        subprocess.run([HERE / "kube-down", self.directory], check=True, timeout=120)

    @staticmethod
    def program(name):
        """Of those that kube-up has built: 'kubectl'."""
        done = subprocess.run([HERE / "kube-up", "--build-only"], check=True, timeout=120,
                              env=os.environ | {"KUBE_FIND_ONLY": "yes"},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return pathlib.Path(done.stdout.strip()) / name

    def pid(self, name):
        return int((self.directory / "run" / f"{name}.pid").read_text())

    def tls(self, kubeconfig):
        """The credentials of a kubeconfig of kube-up, whose lines are known."""
        values = {}
        for line in (self.directory / kubeconfig).read_text().splitlines():
            key, _, value = line.strip().partition(": ")
            if key.endswith("-data"):
                values[key] = base64.b64decode(value)
        context = ssl.create_default_context(
            cadata=values["certificate-authority-data"].decode())
        pair = self.directory / f"{kubeconfig}.pem"
        pair.write_bytes(values["client-certificate-data"] + values["client-key-data"])
        context.load_cert_chain(pair)
        return context

    def connect(self, timeout=60):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                           context=self.context)

    def request(self, method, path, body=None, content_type="application/json"):
        connection = self.connect()
        try:
            connection.request(method, path, body=json.dumps(body) if body else None,
                               headers={"Content-Type": content_type})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Failed(answer.status, data)
        return json.loads(data)

    def grant(self):
        rules = [{"apiGroups": groups, "resources": resources, "verbs": verbs}
                 for groups, resources, verbs in RIGHTS]
        group = "rbac.authorization.k8s.io"
        self.request("POST", f"/apis/{group}/v1/clusterroles",
                     {"metadata": {"name": "gpu-scheduler"}, "rules": rules})
        self.request("POST", f"/apis/{group}/v1/clusterrolebindings",
                     {"metadata": {"name": "gpu-scheduler"},
                      "roleRef": {"apiGroup": group, "kind": "ClusterRole",
                                  "name": "gpu-scheduler"},
                      "subjects": [{"apiGroup": group, "kind": "User",
                                    "name": "gpu-scheduler"}]})

    # The same words as the small API server's.

    def create(self, resource, item):
        for container in item.get("spec", {}).get("containers", []):
            container.setdefault("image", "none")
        return self.request("POST", PLURALS[resource], item)

    def pods(self):
        return self.request("GET", PLURALS["pods"])["items"]

    def pod(self, name):
        return next((pod for pod in self.pods() if pod["metadata"]["name"] == name), None)

    def bound(self, prefix=""):
        """Those that are bound and not on their way out."""
        return [pod for pod in self.pods()
                if pod["spec"].get("nodeName") and pod["metadata"]["name"].startswith(prefix)
                and "deletionTimestamp" not in pod["metadata"]]

    @property
    def events(self):
        return self.request("GET", PLURALS["events"])["items"]

    def finish_pod(self, name, phase="Succeeded"):
        self.request("PATCH", f"{PLURALS['pods']}/{name}/status", {"status": {"phase": phase}},
                     "application/strategic-merge-patch+json")

    def delete_pod(self, name):
        try:
            self.request("DELETE", f"{PLURALS['pods']}/{name}", {"gracePeriodSeconds": 0})
        except Failed as failure:
            if failure.status != 404:
                raise

    def nodes_ready(self):
        return all(not any("not-ready" in taint["key"] or "unreachable" in taint["key"]
                           for taint in node["spec"].get("taints", []))
                   and any(condition["type"] == "Ready" and condition["status"] == "True"
                           for condition in node["status"].get("conditions", []))
                   for node in self.request("GET", PLURALS["nodes"])["items"])

    def clear(self):
        """Removes what a test has made."""
        group = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        for webhook in self.request("GET", group)["items"]:
            self.request("DELETE", f"{group}/{webhook['metadata']['name']}")
        end = time.monotonic() + 120
        while self.pods() and time.monotonic() < end:
            for pod in self.pods():
                self.delete_pod(pod["metadata"]["name"])
        self.request("DELETE", PLURALS["nodes"])

    def watch(self, resource, version):
        """The events after a version, as they come: (type, object), until the server ends it."""
        connection = self.connect(timeout=30)
        query = urllib.parse.urlencode({"watch": "1", "resourceVersion": version,
                                        "allowWatchBookmarks": "true"})
        try:
            connection.request("GET", f"{PLURALS[resource]}?{query}")
            answer = connection.getresponse()
            if answer.status != 200:
                raise Failed(answer.status, answer.read())
            while line := answer.readline():
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()


class Webhook:
    """An admission webhook that is asked about bindings. `judge(request)` returns None, or the
    reason for a no."""

    def __init__(self, plane, judge):
        pki = plane.directory / "pki"
        for command in (
                ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1",
                 "-keyout", pki / "webhook.key", "-out", pki / "webhook.csr"],
                ["x509", "-req", "-in", pki / "webhook.csr", "-CA", pki / "ca.crt",
                 "-CAkey", pki / "ca.key", "-copy_extensions", "copy", "-days", "30",
                 "-set_serial", str(time.time_ns()), "-out", pki / "webhook.crt"]):
            subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=60)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reason = judge(review["request"])
                body = json.dumps({
                    "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                    "response": {"uid": review["request"]["uid"], "allowed": not reason,
                                 "status": {"message": reason or "", "code": 403}}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "webhook.crt", pki / "webhook.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        plane.request("POST",
                      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                      {"metadata": {"name": "bindings"},
                       "webhooks": [{
                           "name": "bindings.example.com", "failurePolicy": "Fail",
                           "sideEffects": "None", "admissionReviewVersions": ["v1"],
                           "timeoutSeconds": 30,
                           "clientConfig": {
                               "url": f"https://127.0.0.1:{self.server.server_address[1]}/",
                               "caBundle": base64.b64encode(
                                   (pki / "ca.crt").read_bytes()).decode()},
                           "rules": [{"apiGroups": [""], "apiVersions": ["v1"],
                                      "operations": ["CREATE"],
                                      "resources": ["pods/binding"]}]}]})

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
