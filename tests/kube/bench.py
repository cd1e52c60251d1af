"""Bindings a second on a real control plane: ours, kube-scheduler's, and a client's that does nothing
else. Started by scripts/bench-kube; writes JSON. Pods are there before the clock runs, and KWOK is
stopped while it runs: bindings are measured, not kubelets."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "service"))

from control_plane import PLURALS, ControlPlane, Failed  # noqa: E402
from pods import Pods, await_that, pod  # noqa: E402

ROOT = HERE.parent.parent
NODES = int(os.environ.get("BENCH_KUBE_NODES", "500"))
PODS = int(os.environ.get("BENCH_KUBE_PODS", "5000"))
ROUNDS = int(os.environ.get("BENCH_KUBE_ROUNDS", "3"))
FLIGHT = 64  # requests on their way, as the scheduler's writer has
LABELS = {"app": "bench"}
SPREAD = {"topologySpreadConstraints": [{
    "maxSkew": 5, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": LABELS}}]}
APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": LABELS}}]}}}


class Binds:
    """When pods were first seen bound."""

    def __init__(self, plane):
        self.plane, self.seen, self.stopped = plane, {}, False
        version = plane.request("GET", PLURALS["pods"] + "?limit=1")["metadata"]["resourceVersion"]
        self.thread = threading.Thread(target=self.follow, args=(version,), daemon=True)
        self.thread.start()

    def follow(self, version):
        while not self.stopped:
            try:
                for kind, item in self.plane.watch("pods", version):
                    version = item["metadata"]["resourceVersion"]
                    if kind == "MODIFIED" and item["spec"].get("nodeName"):
                        self.seen.setdefault(item["metadata"]["uid"], time.monotonic())
                    if self.stopped:
                        return
            except (OSError, http.client.HTTPException):
                pass

    def await_all(self, count):
        await_that(lambda: len(self.seen) >= count, f"{count} bindings", 600)
        self.stopped = True
        times = sorted(self.seen.values())
        return {"binds": count, "seconds": round(times[-1] - times[0], 3),
                "per_second": round((count - 1) / (times[-1] - times[0]), 1)}


def in_parallel(function, items, width=8):
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        list(pool.map(function, items))


class Bench:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.plane = ControlPlane(self.directory / "plane")
        self.runs = 0

    def make_nodes(self):
        def make(i):
            amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
            name = f"node-{i}"
            self.plane.create("nodes", {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
                                                      "zone": f"z{i % 5}"}},
                "status": {"allocatable": amounts, "capacity": amounts}})
        in_parallel(make, range(NODES))
        await_that(lambda: len(self.plane.request("GET", PLURALS["nodes"])["items"]) == NODES and
                   self.plane.nodes_ready(), "ready nodes", 300)

    def make_pods(self, scheduler, count, gpus=0, spec=None, prefix="pod"):
        def make(i):
            one = pod(f"{prefix}-{i}", gpus, labels=LABELS, scheduler=scheduler, **(spec or {}))
            one["spec"]["containers"][0].setdefault("resources", {})["requests"] = {"cpu": "100m"}
            self.plane.create("pods", one)
        in_parallel(make, range(count))

    def clear_pods(self):
        path = PLURALS["pods"] + "?limit=1"
        while self.plane.request("GET", path)["items"]:
            try:
                self.plane.request("DELETE", PLURALS["pods"], {"gracePeriodSeconds": 0})
            except Failed as failure:
                if failure.status < 500 and failure.status != 404:
                    raise
            time.sleep(0.2)

    def pause(self, name, paused):
        os.kill(self.plane.pid(name), signal.SIGSTOP if paused else signal.SIGCONT)

    def measured(self, scheduler, count, begin, **pods):
        """`begin` starts to bind, and returns what ends that."""
        self.pause("kwok", True)
        end = None
        try:
            self.make_pods(scheduler, count, **pods)
            binds = Binds(self.plane)
            end = begin()
            return binds.await_all(count)
        finally:
            self.pause("kwok", False)
            if end:
                end()
            self.clear_pods()

    def ours(self, count, **more):
        def begin():
            self.runs += 1
            pods = Pods(self.plane, self.directory / f"ours-{self.runs}", self.plane.kubeconfig)
            self.memory = lambda: resident_mib(pods.scheduler.process.pid)

            def end():
                self.memory_mib = self.memory()
                pods.scheduler.stop()
            return end
        (self.directory / f"ours-{self.runs + 1}").mkdir()
        result = self.measured("gpu-scheduler", count, begin, **more)
        return result | {"memory_mib": self.memory_mib}

    def theirs(self, count, **more):
        self.pause("scheduler", True)

        def begin():
            self.pause("scheduler", False)
            return lambda: None
        result = self.measured("default-scheduler", count, begin, **more)
        return result | {"memory_mib": resident_mib(self.plane.pid("scheduler"))}

    def bare(self, count, watches):
        def begin():
            arguments = [ROOT / "build/release/src/bench_bind",
                         self.plane.kubeconfig, str(count), str(NODES), str(FLIGHT)]
            process = subprocess.Popen(arguments + (["watch"] if watches else []),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            return process.wait
        return self.measured("nobody", count, begin)


def resident_mib(pid):
    for line in open(f"/proc/{pid}/status", encoding="utf-8"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return None


def main(output):
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(directory)
        try:
            bench.make_nodes()
            apart = min(NODES, PODS)
            kinds = {"plain": (PODS, {}), "gpus": (min(800, NODES * 8), {"gpus": 1}),
                     "spread": (min(1000, PODS), {"spec": SPREAD}),
                     "anti-affinity": (apart, {"spec": APART})}
            wanted = os.environ.get("BENCH_KUBE_KINDS", ",".join(kinds)).split(",")
            result = {"nodes": NODES, "in_flight": FLIGHT, "processors": os.cpu_count(), "runs": []}
            for number in range(ROUNDS):
                for kind in wanted:
                    count, more = kinds[kind]
                    run = {"kind": kind, "round": number,
                           "ours": bench.ours(count, **more),
                           "kube_scheduler": bench.theirs(count, **more),
                           "bare_with_watches": bench.bare(count, True),
                           "bare": bench.bare(count, False)}
                    print(json.dumps(run), flush=True)
                    result["runs"].append(run)
                    pathlib.Path(output).write_text(json.dumps(result, indent=1) + "\n")
        finally:
            bench.plane.down()


if __name__ == "__main__":
    main(sys.argv[1])
