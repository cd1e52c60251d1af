"""Pods come and go beside kube-scheduler while schedulers and the API server are killed."""

import collections
import http.client
import os
import random
import signal
import subprocess
import time

from checker import Checker
from control_plane import Failed
from pods import Pods, await_that

MAPS = "/api/v1/namespaces/default/configmaps"
MEMORY = 46068
END_S = int(os.environ.get("KUBE_CHURN_END_S", "300"))
SEED = int(os.environ.get("KUBE_CHURN_SEED", "1"))
WAITING_MAX = 60  # sets that have not ended


def node(name, owner, gpus=0, declared=0):
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    annotations = {}
    if declared:
        gpus_text = ", ".join(f'{{"uuid": "GPU-{name}-{i}", "model": "L40S", '
                              f'"memory_mib": {MEMORY}}}' for i in range(declared))
        annotations["gpu-scheduler.io/node-gpus"] = f"[{gpus_text}]"
    return {"metadata": {"name": name, "labels": {"owner": owner}, "annotations": annotations},
            "status": {"allocatable": amounts, "capacity": amounts}}


def template(scheduler, count=1, gpus=0, cpu=1, annotations=None, owner=None, run_for="1s"):
    """A pod, and how many of it."""
    resources = {"requests": {"cpu": str(cpu)}, "limits": {}}
    if gpus:
        resources["limits"]["nvidia.com/gpu"] = str(gpus)
    spec = {"schedulerName": scheduler, "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "none", "resources": resources}]}
    if owner:
        spec["nodeSelector"] = {"owner": owner}
    return count, {"annotations": {"kube-up/run-for": run_for, **(annotations or {})}}, spec


class Set:
    """Pods that are made again until each has succeeded once. The Job controller would wait for
    minutes after some evictions; the owner is a ConfigMap, because one must exist."""

    def __init__(self, name, count, metadata, spec):
        self.name, self.metadata, self.spec = name, metadata, spec
        self.tries = dict.fromkeys(range(count), 0)
        self.uid = None

    def pod(self, place):
        self.tries[place] += 1
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self.uid,
                 "controller": True}
        return {"metadata": {"name": f"{self.name}.{place}.{self.tries[place]}",
                             "ownerReferences": [owner], **self.metadata}, "spec": self.spec}


class Churn:
    def __init__(self, plane, directory, seconds, kills, server_kills, shares_nodes):
        self.plane, self.directory, self.seconds = plane, directory, seconds
        self.shares_nodes, self.random = shares_nodes, random.Random(SEED)
        self.kills_left, self.server_kills_left = kills, server_kills
        self.sets, self.number, self.served = {}, 0, 0
        self.counts = collections.Counter()

    def make_nodes(self):
        ours, theirs = ("all", "all") if self.shares_nodes else ("ours", "theirs")
        self.ours, self.theirs = ours, theirs
        nodes = [node("w-0", theirs, gpus=8), node("w-1", theirs, gpus=8),
                 node("w-2", ours, gpus=8), node("w-3", ours, gpus=8),
                 node("p-0", ours, declared=4), node("p-1", ours, declared=4)]
        for one in nodes:
            self.plane.create("nodes", one)
        await_that(self.plane.nodes_ready, "ready nodes")
        return {one["metadata"]["name"]:
                {name: int(amount) for name, amount in one["status"]["allocatable"].items()
                 if name != "memory"} for one in nodes}

    def next_set(self):
        self.number += 1
        kind = self.random.choice(["theirs", "theirs", "theirs cpu", "whole", "whole", "half",
                                   "memory", "cpu", "gang"])
        name = f"{kind.replace(' ', '-')}-{self.number}"
        run_for = f"{self.random.randint(500, 3000)}ms"
        gpus = self.random.randint(1, 4)
        if kind.startswith("theirs"):
            cpu = self.random.randint(8, 24) if kind.endswith("cpu") else 1
            return Set(name, *template("default-scheduler", cpu=cpu, owner=self.theirs,
                                       gpus=0 if kind.endswith("cpu") else gpus,
                                       run_for=run_for))
        more = {"whole": {"gpus": gpus},
                "half": {"annotations": {"gpu-fraction": "0.5"}},
                "memory": {"annotations": {"gpu-memory": "15000"}},
                "cpu": {"cpu": self.random.randint(8, 24)},
                "gang": {"count": 4, "gpus": 2,
                         "annotations": {"gpu-scheduler.io/group": name,
                                         "gpu-scheduler.io/group-size": "4"}}}[kind]
        return Set(name, *template("gpu-scheduler", owner=self.ours, run_for=run_for, **more))

    def begin_set(self):
        one = self.next_set()
        self.patiently(self.plane.request, "POST", MAPS, {"metadata": {"name": one.name}})
        made = self.patiently(self.plane.request, "GET", f"{MAPS}/{one.name}")
        one.uid = made["metadata"]["uid"]
        self.sets[one.name] = one

    def patiently(self, function, *arguments):
        """The API server may be down."""
        def tried():
            try:
                return [function(*arguments)]
            except Failed as failure:
                if failure.status == 409:
                    return [None]  # it was made, and the answer was lost
                if failure.status < 500 and failure.status != 429:
                    raise
            except (OSError, http.client.HTTPException):
                pass
            return None
        return await_that(tried, "an answer of the API server")[0]

    def control(self):
        """Makes the pods that are missing. How many sets are left."""
        there = {}
        for pod in self.patiently(self.plane.pods):
            name, place, _ = pod["metadata"]["name"].split(".")
            there[name, int(place)] = pod
        for name, one in list(self.sets.items()):
            for place in list(one.tries):
                pod = there.get((name, place))
                if not pod:
                    self.patiently(self.plane.create, "pods", one.pod(place))
                    self.counts["made again"] += one.tries[place] > 1
                elif pod["status"]["phase"] == "Succeeded":
                    del one.tries[place]
                elif pod["status"]["phase"] == "Failed":
                    self.patiently(self.plane.delete_pod, pod["metadata"]["name"])
            if not one.tries:
                del self.sets[name]
                self.served += 1
                self.patiently(self.plane.request, "DELETE", f"{MAPS}/{name}")
        return len(self.sets)

    def kill_server(self):
        pid = self.plane.pid("apiserver")
        command = open(f"/proc/{pid}/cmdline", encoding="utf-8").read().split("\0")[:-1]
        os.kill(pid, signal.SIGKILL)
        time.sleep(self.random.uniform(0, 5))
        with open(self.plane.directory / "log" / "apiserver.log", "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        (self.plane.directory / "run" / "apiserver.pid").write_text(str(process.pid))
        self.patiently(self.plane.request, "GET", "/version")
        self.counts["apiserver killed"] += 1

    def run(self):
        capacity = self.make_nodes()
        self.checker = Checker(self.plane, capacity, MEMORY)
        pods = Pods(self.plane, self.directory, self.plane.kubeconfig)
        began, step = time.monotonic(), self.seconds / (self.kills_left + 1)
        server_step = self.seconds / (self.server_kills_left + 1)
        kill_at, server_at = began + step, began + server_step
        try:
            while (now := time.monotonic()) < began + self.seconds or self.kills_left:
                if self.control() < WAITING_MAX:
                    for _ in range(5):
                        self.begin_set()
                if now >= kill_at and self.kills_left:
                    kill_at, self.kills_left = kill_at + step, self.kills_left - 1
                    pods.scheduler.kill()
                    pods.scheduler.start()
                    self.counts["scheduler killed"] += 1
                if now >= server_at and self.server_kills_left:
                    server_at += server_step
                    self.server_kills_left -= 1
                    self.kill_server()
                time.sleep(0.2)
            self.await_end()
            await_that(lambda: not self.checker.over, "an end of every excess")
        finally:
            self.checker.stop()
            pods.scheduler.stop()

    def await_end(self):
        try:
            await_that(lambda: self.control() == 0, "an end of all sets", END_S)
        except AssertionError as failure:
            told = [(pod["metadata"]["name"], pod["spec"].get("nodeName"), pod["status"])
                    for pod in self.plane.pods()
                    if pod["metadata"]["name"].split(".")[0] in self.sets]
            raise AssertionError(f"{len(self.sets)} sets were not served: {told}") from failure

    def report(self):
        lines = [f"{self.served} sets served, {self.checker.bindings['ours']} pods bound by "
                 f"us, {self.checker.bindings['theirs']} by kube-scheduler, "
                 f"{dict(self.counts)}, {len(self.checker.excesses)} times too much on a node"]
        return "\n".join(lines + [str(excess) for excess in self.checker.excesses])

    def judge(self, corrected_s=None):
        """Asserts what must be true of every run."""
        checker = self.checker
        assert not checker.faults, checker.faults
        assert self.counts["scheduler killed"] > 0
        assert checker.bindings["ours"] > 0 and checker.bindings["theirs"] > 0
        assert all(excess.crossed() and excess.ended for excess in checker.excesses), \
            self.report()
        if not self.shares_nodes:
            assert not checker.excesses, self.report()
        if corrected_s:
            assert all(excess.ended - excess.began <= corrected_s
                       for excess in checker.excesses), self.report()
