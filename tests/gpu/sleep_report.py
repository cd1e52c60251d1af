"""sleep_report.py BUNDLE DIRECTORY - models that sleep and wake under the agent and the real driver, beside
fresh loads of the same server. Ends with 'N passed, M failed'."""

import pathlib
import statistics
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster, smi

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TIMES = 5  # sleeps and wakes of each model
PART_MIB = 32000  # two models do not fit beside one another and what is left alone
LEFT_MIB = 90000


def used_mib():
    return int(smi("gpu=memory.used")[0][0])


def put(cluster, name, gib, folder, **fields):
    return cluster.ask("POST", "/api/v1/models", {
        "name": name, "tenant_id": cluster.tenant, "runtime": "custom", "gpu_memory_mb": PART_MIB, "idle_ttl": "100ms",
        "health_path": "/health", "max_concurrency": 4, "shared": True,
        "command": f"exec {sys.executable} {HERE / 'serve.py'} {{port}} {folder / name}.bin {gib}", **fields})["id"]


def slot(cluster, name):
    found = [one for one in cluster.ask("GET", "/api/v1/scheduler/slots") if one["model"] == name]
    return found[0] if found else None


def use(cluster, name):
    """A lease from its beginning to its end: how long it took to get it."""
    began = time.monotonic()

    def ask():
        try:
            return cluster.ask("POST", f"/api/v1/models/{name}/leases?wait=10", {})
        except Exception as error:  # 503: not yet
            if ": 503" not in str(error):
                raise
            return None
    lease = cluster.wait(ask, f"a lease of {name}", 240)
    took_s = time.monotonic() - began
    cluster.ask("DELETE", f"/api/v1/leases/{lease['lease_id']}")
    return took_s


def status(cluster, name, wanted):
    cluster.wait(lambda: (slot(cluster, name) or {}).get("status") == wanted, f"{name} is {wanted}", 120)


def turns(cluster, gib):
    """The same two models, once with sleep and once without."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    lines = []
    for how in ("off", "driver"):
        names = [f"{how}{number}" for number in (1, 2)]
        for name in names:
            put(cluster, name, gib, folder, sleep=how)
        first = [use(cluster, name) for name in names]  # writes the files
        took = [use(cluster, name) for _ in range(TIMES) for name in names]
        if how == "driver":
            other = names[0]
            status(cluster, other, "asleep")
            why = cluster.ask("GET", f"/api/v1/models/{other}/why")
            lines.append(f"asleep beside a model of {gib} GiB: {used_mib()} MiB in use on the GPU; {why}")
            model = next(one for one in cluster.ask("GET", "/api/v1/models")["models"] if one["name"] == other)
            lines.append(f"the scheduler's wake time {model['wake_time']}, load time {model['load_time']}")
        lines.append(f"{how}: first {first[0]:.1f} and {first[1]:.1f} s, then median "
                     f"{statistics.median(took):.2f} s, most {max(took):.2f} s of {len(took)}")
        for name in names:
            cluster.ask("DELETE", f"/api/v1/models/{name}")
        cluster.wait(lambda: not any(slot(cluster, name) for name in names), "both are gone", 120)
    return "; ".join(lines)


TRIALS = [("two models of 8 GiB", lambda cluster: turns(cluster, 8)),
          ("two models of 26 GiB", lambda cluster: turns(cluster, 26))]


def main():
    passed = failed = 0
    cluster = Cluster(BUNDLE, OUT)
    print("| what | result | |\n|---|---|---|")
    try:
        others = cluster.submit("sleep 1000", gpu_memory_mb=LEFT_MIB)
        cluster.state(others, "running")
        for name, trial in TRIALS:
            try:
                result, word = trial(cluster), "passed"
                passed += 1
            except Exception as error:  # each is judged by itself
                traceback.print_exc()
                result, word = str(error), "failed"
                failed += 1
                print((OUT / "agent.log").read_text()[-3000:], file=sys.stderr)
            print(f"| {name} | {result} | {word} |", flush=True)
        cluster.ask("DELETE", f"/api/v1/jobs/{others}")
    finally:
        cluster.stop()
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
