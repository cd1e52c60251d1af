"""Counts what pods take of nodes, from the API server alone: independent of the scheduler."""

import collections
import http.client
import threading
import time

from control_plane import PLURALS, Failed

COUNTED = ["cpu", "pods", "nvidia.com/gpu"]


def amount(text):
    """Cores, or a count."""
    text = str(text)
    return int(text[:-1]) / 1000 if text.endswith("m") else int(text)


class Pod:
    def __init__(self, item, seen):
        self.name, self.uid = item["metadata"]["name"], item["metadata"]["uid"]
        self.node, self.seen = item["spec"]["nodeName"], seen
        self.is_ours = item["spec"]["schedulerName"] == "gpu-scheduler"
        self.takes = collections.Counter(pods=1)
        for container in item["spec"]["containers"]:
            for name, value in container.get("resources", {}).get("requests", {}).items():
                if name in COUNTED:
                    self.takes[name] += amount(value)
        annotations = item["metadata"].get("annotations", {})
        uuids = annotations.get("gpu-scheduler.io/gpus", "")
        mib = annotations.get("gpu-scheduler.io/limits", "")
        self.memory = dict(zip(uuids.split(","), map(int, mib.split(",")))) if uuids else {}


class Excess:
    """A node gives more than it has, from `began` to `ended` (None: still)."""

    def __init__(self, node, resource, pods, began):
        self.node, self.resource, self.began, self.ended = node, resource, began, None
        latest = sorted(pods, key=lambda pod: pod.seen)
        self.ours = next((pod for pod in reversed(latest) if pod.is_ours), None)
        self.theirs = next((pod for pod in reversed(latest) if not pod.is_ours), None)

    def crossed(self):
        """A binding of each, at about the same time."""
        return bool(self.ours and self.theirs)

    def __str__(self):
        def told(pod):
            return f"{pod.name} at {pod.seen:.3f}" if pod else "none"
        lasted = f"{self.ended - self.began:.3f} s" if self.ended else "until the end"
        return (f"{self.node} {self.resource}: ours {told(self.ours)}, "
                f"theirs {told(self.theirs)}, for {lasted}")


class Checker:
    """Follows all pods. `capacity`: of each node by resource, `memory`: MiB of each GPU."""

    def __init__(self, plane, capacity, memory):
        self.plane, self.capacity, self.memory = plane, capacity, memory
        self.pods, self.nodes_of = {}, {}
        self.excesses, self.over, self.faults = [], {}, []
        self.bindings = collections.Counter()
        self.stopped = False
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        version = None
        while not self.stopped:
            try:
                if version is None:
                    version = self.read_all()
                for kind, item in self.plane.watch("pods", version):
                    if kind == "ERROR":
                        version = None
                        break
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self.take(item, kind == "DELETED")
                    if self.stopped:
                        return
            except Failed:
                version = None
                time.sleep(0.2)
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.2)  # the server was killed, or said nothing for a while

    def read_all(self):
        answer = self.plane.request("GET", PLURALS["pods"])
        uids = {item["metadata"]["uid"] for item in answer["items"]}
        for uid in [uid for uid in self.pods if uid not in uids]:
            self.remove(self.pods[uid])
        for item in answer["items"]:
            self.take(item, False)
        return answer["metadata"]["resourceVersion"]

    def take(self, item, deleted):
        uid, node = item["metadata"]["uid"], item["spec"].get("nodeName")
        if node and self.nodes_of.setdefault(uid, node) != node:
            self.faults.append(f"{item['metadata']['name']} was bound twice")
        ended = deleted or item.get("status", {}).get("phase") in ("Succeeded", "Failed")
        known = self.pods.get(uid)
        if known and ended:
            self.remove(known)
        elif node and not known and not ended:
            pod = Pod(item, time.monotonic())
            self.pods[uid] = pod
            self.bindings["ours" if pod.is_ours else "theirs"] += 1
            self.check(node)

    def remove(self, pod):
        del self.pods[pod.uid]
        self.check(pod.node)

    def check(self, node):
        there = [pod for pod in self.pods.values() if pod.node == node]
        taken, memory = collections.Counter(), collections.Counter()
        for pod in there:
            taken.update(pod.takes)
            memory.update(pod.memory)
        for uuid, mib in memory.items():
            if mib > self.memory:
                self.faults.append(f"{uuid} gives {mib} MiB: "
                                   f"{[pod.name for pod in there if uuid in pod.memory]}")
        for resource in COUNTED:
            # What a node does not advertise is not its kubelet's to give.
            key, most = (node, resource), self.capacity[node].get(resource)
            is_over = most is not None and taken[resource] > most
            if is_over and key not in self.over:
                users = [pod for pod in there if pod.takes[resource]]
                self.over[key] = Excess(node, resource, users, time.monotonic())
                self.excesses.append(self.over[key])
            elif not is_over and key in self.over:
                self.over.pop(key).ended = time.monotonic()

    def stop(self):
        self.stopped = True
