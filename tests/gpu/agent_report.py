"""agent_report.py BUNDLE DIRECTORY - the scheduler and an agent on real GPUs: each step is tried,
what was seen is printed as a table, and 'N passed, M failed' at the end."""

import json
import pathlib
import platform
import shlex
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from cluster import Cluster, smi

BUNDLE, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HOLD = str(pathlib.Path(__file__).resolve().parent / "hold.py")
BARE = str(pathlib.Path(__file__).resolve().parent / "bare.py")
CONTEXT_MIB = 1024  # what a CUDA context and its libraries take beside what is allocated

LOAD = f"""#!{sys.executable}
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + 20
while time.monotonic() < end:
    for _ in range(20):
        b = a @ a
    torch.cuda.synchronize()
print("done")
"""


def hold(mib, seconds, *more):
    return [sys.executable, HOLD, mib, seconds, *more]


def bare(words):
    """The same without the guard: unsetting its variables is not enough."""
    return " ".join(shlex.quote(str(word)) for word in [sys.executable, BARE, *words])


def inventory(cluster):
    rows = smi("gpu=uuid,name,memory.total")
    ours = {gpu["uuid"]: gpu for gpu in cluster.gpus()}
    for uuid, name, total in rows:
        assert ours[uuid]["model"] == name, (ours[uuid], name)
        assert abs(ours[uuid]["total_memory"] - int(float(total))) <= 1, (ours[uuid], total)
    assert len(ours) == len(rows)
    gpu = ours[rows[0][0]]
    return (
        f"{len(rows)} x {rows[0][1]}, {rows[0][2]} MiB each, as nvidia-smi says; "
        f"{gpu['overhead_memory']} MiB of that reserved by the driver, {gpu['foreign_memory']} MiB foreign"
    )


def two_share_and_a_third_waits(cluster):
    total = cluster.gpus()[0]["total_memory"]
    part = total * 2 // 5
    jobs = [
        cluster.submit(hold(part - CONTEXT_MIB, 15), gpu_memory_mb=part) for _ in range(3)
    ]
    cluster.state(jobs[0], "running")
    cluster.state(jobs[1], "running")
    for job in jobs[:2]:
        cluster.wait(lambda job=job: "has" in cluster.logs_of(job), f"{job} has its memory")
    states = [cluster.job(job)["state"] for job in jobs]
    used = smi("gpu=memory.used")[0][0]
    assert states == ["running", "running", "pending"], states
    assert int(used) > 2 * (part - CONTEXT_MIB), used
    third = states[2]
    for job in jobs:
        assert cluster.state(job, "completed", "failed")["state"] == "completed", cluster.logs_of(job)
    return f"two of {part} MiB ran side by side ({used} MiB used), the third was {third} until one ended"


def foreign_is_seen_and_respected(cluster):
    total = cluster.gpus()[0]["total_memory"]
    stranger = subprocess.Popen([str(w) for w in hold(total // 2, 15)], stdout=subprocess.PIPE)
    try:
        stranger.stdout.readline()
        begun = time.monotonic()
        gpu = cluster.wait(
            lambda: next((g for g in cluster.gpus() if g["foreign_memory"] >= total // 2), None),
            "foreign memory is told",
        )
        took = time.monotonic() - begun
        job = cluster.submit(hold(1000, 1), gpu_memory_mb=total * 2 // 3)
        time.sleep(2)
        waiting = cluster.job(job)["state"]
        assert waiting == "pending", waiting
    finally:
        stranger.wait(30)
    assert cluster.state(job, "completed", "failed")["state"] == "completed"
    return (
        f"{gpu['foreign_memory']} MiB of a process started by hand were told after {took:.1f} s; "
        "a job that did not fit beside it waited, and ran when it was gone"
    )


def guarded_by_default(cluster):
    neighbour = cluster.submit(hold(10000, 12), gpu_memory_mb=12000)
    cluster.state(neighbour, "running")
    greedy = cluster.submit(hold(2000, 10, 20000, 3), gpu_memory_mb=4000)
    live = cluster.wait(lambda: cluster.job(greedy)["guard"], "its guard is told")
    ended = cluster.state(greedy, "failed", "completed")
    said = cluster.logs_of(greedy)
    guard = ended["guard"]
    assert live["limit_mb"] == guard["limit_mb"] == 4000, (live, guard)
    assert ended["exit_code"] == 3 and "take 20000 MiB: error 2" in said, (ended, said)
    assert guard["refusals"] == 1 and guard["last_refused_mb"] == 20000, guard
    assert 2000 < guard["peak_mb"] <= 4000 and not guard["unguarded"], guard
    assert cluster.state(neighbour, "completed", "failed")["state"] == "completed"
    return f"20000 MiB more were refused with the driver's own error; the job shows {json.dumps(guard)}"


def unguarded_is_noticed(cluster):
    job = cluster.submit(bare(hold(2000, 8)), gpu_memory_mb=4000)
    cluster.wait(lambda: "has 2000" in cluster.logs_of(job), "it has its memory")
    begun = time.monotonic()
    message = cluster.wait(lambda: cluster.job(job)["message"], "it is told")
    took = time.monotonic() - begun
    events = cluster.ask("GET", f"/api/v1/jobs/{job}/events")["events"]
    assert "task_unguarded" in [event["type"] for event in events], events
    ended = cluster.state(job, "completed", "failed")
    assert ended["state"] == "completed" and ended["guard"]["unguarded"], ended
    return f"told {took:.1f} s after it had its memory: '{message}'"


def what_was_used_is_told(cluster):
    job = cluster.submit(LOAD, gpu_count=1)
    cluster.state(job, "running")
    energy, last = 0.0, time.monotonic()
    while (ended := cluster.job(job))["state"] == "running":
        power = float(smi("gpu=power.draw")[0][0])
        now = time.monotonic()
        energy, last = energy + power * (now - last), now
        time.sleep(0.2)
    assert ended["state"] == "completed", cluster.logs_of(job)
    assert ended["gpu_seconds"] > 19 and ended["peak_gpu_memory_mb"] > 400, ended
    assert 0.7 < ended["energy_joules"] / energy < 1.3, (ended["energy_joules"], energy)
    assert ended["cpu_seconds"] > 0 and ended["peak_memory_mb"] > 0, ended
    return (
        f"{ended['gpu_seconds']} GPU-seconds, {ended['energy_joules']:.0f} J ({energy:.0f} J by adding "
        f"up nvidia-smi's power), at most {ended['peak_gpu_memory_mb']} MiB of the GPU, "
        f"{ended['peak_memory_mb']} MiB of host memory, {ended['cpu_seconds']} s of processors"
    )


def overuse_is_stopped(cluster):
    neighbour = cluster.submit(hold(10000, 20), gpu_memory_mb=12000)
    cluster.state(neighbour, "running")
    greedy = cluster.submit(bare(hold(2000, 60, 20000, 3)), gpu_memory_mb=4000)
    cluster.state(greedy, "running")
    cluster.wait(lambda: "has 20000" in cluster.logs_of(greedy), "it takes more")
    begun = time.monotonic()
    ended = cluster.state(greedy, "failed", "completed")
    took = time.monotonic() - begun
    said = cluster.logs_of(greedy)
    assert ended["state"] == "failed", ended
    assert cluster.state(neighbour, "completed", "failed")["state"] == "completed"
    warning = next((line for line in said.splitlines() if "reserved" in line), "no warning")
    return f"without its guard: stopped {took:.1f} s after it took 20000 MiB beyond; it was told: '{warning}'; its neighbour went on"


def time_to_memory_back(cluster):
    total = cluster.gpus()[0]["total_memory"]
    job = cluster.submit(hold(total * 3 // 4, 600), gpu_memory_mb=total * 3 // 4 + CONTEXT_MIB)
    cluster.wait(lambda: "has" in cluster.logs_of(job), "it has its memory")
    before = int(smi("gpu=memory.used")[0][0])
    begun = time.monotonic()
    cluster.ask("DELETE", f"/api/v1/jobs/{job}")
    seen = None
    while (gpu := cluster.gpus()[0])["releasing_memory"] + gpu["reserved_memory"] > 0:
        if seen is None and int(smi("gpu=memory.used")[0][0]) < before // 4:
            seen = time.monotonic() - begun
        assert time.monotonic() - begun < 60
        time.sleep(0.01)
    confirmed = time.monotonic() - begun
    left = smi("gpu=memory.used")[0][0]
    return (
        f"{before} MiB: back by nvidia-smi after {seen or confirmed:.2f} s, confirmed to the scheduler "
        f"after {confirmed:.2f} s of the cancel, {left} MiB used then"
    )


def sensors_under_load(cluster):
    time.sleep(3)  # what was measured last is of an idle GPU then
    idle = cluster.gpus()[0]
    job = cluster.submit(LOAD, gpu_memory_mb=20000)
    cluster.state(job, "running")
    top = {"temperature_c": 0, "power_watts": 0, "utilization": 0}
    while (state := cluster.job(job)["state"]) == "running":
        gpu = cluster.gpus()[0]
        for name in top:
            top[name] = max(top[name], gpu.get(name) or 0)
        smi_row = smi("gpu=temperature.gpu,power.draw")[0]
        time.sleep(0.5)
    assert state == "completed", cluster.logs_of(job)
    assert top["power_watts"] > (idle.get("power_watts") or 0)
    return (
        f"idle {idle.get('temperature_c')} C, {idle.get('power_watts')} W; under load up to "
        f"{top['temperature_c']} C, {top['power_watts']} W, utilisation {top['utilization']} "
        f"(nvidia-smi near the end: {smi_row[0]} C, {smi_row[1]} W)"
    )


def agent_restart_under_a_job(cluster):
    job = cluster.submit(hold(5000, 12), gpu_memory_mb=7000)
    cluster.wait(lambda: "has" in cluster.logs_of(job), "it has its memory")
    cluster.agent.kill()
    cluster.agent.wait()
    time.sleep(1)
    cluster.start_agent()
    cluster.wait(lambda: cluster.ask("GET", "/api/v1/nodes")["nodes"][0]["connected"], "it is back")
    foreign = cluster.gpus()[0]["foreign_memory"]
    assert foreign < 5000, foreign
    assert cluster.state(job, "completed", "failed")["state"] == "completed"
    return "the job went on and completed; its memory was still its own after the restart"


STEPS = [
    ("inventory matches nvidia-smi", inventory),
    ("two jobs share a GPU, a third waits", two_share_and_a_third_waits),
    ("foreign use is seen and respected", foreign_is_seen_and_respected),
    ("under the guard by default", guarded_by_default),
    ("without the guard: noticed", unguarded_is_noticed),
    ("overuse is noticed and stopped", overuse_is_stopped),
    ("what a job used", what_was_used_is_told),
    ("time from kill to memory back", time_to_memory_back),
    ("temperature and power under load", sensors_under_load),
    ("agent killed and restarted under a job", agent_restart_under_a_job),
]


def main():
    driver = smi("gpu=driver_version")[0][0]
    print(f"Driver {driver}, kernel {platform.release()}, on {time.strftime('%Y-%m-%d')}\n")
    print("| what | result | seen |\n|---|---|---|")
    cluster = Cluster(BUNDLE, OUT, "--allow-root", "--user", "root", "--overuse", "stop")
    passed = failed = 0
    try:
        for name, step in STEPS:
            try:
                seen = step(cluster)
                passed += 1
                print(f"| {name} | passed | {seen} |")
            except Exception as error:  # each step is judged by itself
                failed += 1
                print(f"| {name} | FAILED | {type(error).__name__}: {error} |")
    finally:
        cluster.stop()
    log = (OUT / "agent.log").read_text()
    print("\nThe agent said:\n")
    for line in log.splitlines()[:6]:
        print(f"    {line}")
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
