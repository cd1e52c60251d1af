"""Tasks that want to outlive their end, take what is not theirs, or harm the agent."""

import os
import pathlib
import time

from attack import attack, defeat
from processes import alive
from stub import groups_below
from target import SECRET


def unique(word):
    """A word for command lines, so that only its own processes are found by it."""
    return f"{word}-{os.getpid()}-{time.monotonic_ns()}"


def started(site, script, marker, **fields):
    """A job of the enemy's whose process with this marker runs."""
    job = site.enemy.submit(script=script, **fields)
    site.wait(lambda: alive(marker))
    return job


def gone(site, job, marker, evidence):
    """Cancels a job; decides for the enemy where a process with the marker stays."""
    site.admin.delete(f"/api/v1/jobs/{job}")
    try:
        site.wait(lambda: not alive(marker) and not alive(marker))
    except AssertionError:
        left = alive(marker)
        for pid in left:
            os.kill(pid, 9)
        defeat(left, f"{len(left)} processes are left after {job} was cancelled")
    return evidence


@attack("tenant", "a task outlives its job by a double fork and a session of its own")
def double_fork(world):
    mark = unique("daemon")
    inner = f"while :; do sleep 0.05; done # {mark}"
    job = started(world.site, f"(setsid setsid sh -c '{inner}' &) ; sleep 1000 # {mark}", mark)
    return gone(world.site, job, mark, "ended with its cgroup")


@attack("tenant", "a task outlives its job by ignoring every signal it can")
def ignored_signals(world):
    mark = unique("stubborn")
    script = f"trap '' TERM INT HUP QUIT USR1 USR2 TSTP\nsh -c 'while :; do sleep 0.05; done # {mark}'"
    return gone(world.site, started(world.site, script, mark), mark, "killed after its grace")


@attack("tenant", "a task outlives its job by forking faster than it is killed")
def fork_race(world):
    mark = unique("rabbit")
    script = ("import os, time\nuntil = time.time() + 60\nwhile time.time() < until:\n"
              "    if os.fork():\n        os._exit(0)\n    time.sleep(0.0005)\n")
    job = started(world.site, f"(python3 -c '{script}' {mark} &); sleep 1000", mark)
    return gone(world.site, job, mark, "frozen, then killed")


@attack("tenant", "one job takes every process number of its node")
def fork_bomb(world):
    """Counts to 3,000 processes; how many there may be is read, not tried."""
    site = world.site
    most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    mark = unique("crowd")
    job = started(site, f"sleep 1000 & sh -c 'sleep 1000; : {mark}'", mark)
    limits = []
    for tree in pathlib.Path("/sys/fs/cgroup").glob("*/gpu-scheduler/*"):
        if tree.name in [agent.label() for agent in site.agents]:
            for group in groups_below(tree):
                file = group / "pids.max"
                if file.exists() and (group / "cgroup.procs").read_text():
                    limits.append(file.read_text().strip())
    site.admin.delete(f"/api/v1/jobs/{job}")
    defeat(not limits, "no cgroup limits the processes of a task")
    worst = max(most if text == "max" else int(text) for text in limits)
    defeat(worst > most // 2, f"a task may have {worst} processes of {most} on the node")
    return f"at most {worst} of {most} processes"


@attack("tenant", "a job fills the disk of its node with its output")
def output_flood(world):
    """An agent of its own, whose limits are low enough to reach."""
    site = world.site
    name = f"attacked-o-{os.getpid()}"
    agent = site.add_agent(name, ["--output-file-mib", "1", "--output-files", "2", "--labels", "real=1,o=1"])
    try:
        job = site.enemy.submit(script="head -c 20000000 /dev/zero; echo done",
                                node_labels={"o": "1"})
        site.await_state(job, "completed", "failed", seconds=60)
        kept = sum(path.stat().st_size for path in pathlib.Path(agent.state).rglob("*")
                   if path.is_file())
    finally:
        site.agents.remove(agent)
        agent.terminate()
        site.forget_node(name)
    defeat(kept > 8 << 20, f"{kept >> 20} MiB are kept of 20 MB, allowed are 2 files of 1 MiB")
    return f"{kept >> 10} KiB kept of 20 MB"


@attack("tenant", "a task takes more host memory than it asked for")
def host_memory(world):
    script = "#!/usr/bin/env python3\nx = bytearray(400 << 20)\nprint(len(x))\n"
    ended, said = world.site.enemy.run(script, memory_mb=64)
    defeat(ended["state"] == "completed", f"400 MiB were taken where 64 were asked for: {said}")
    return f"ended with {ended['exit_code']}"


@attack("tenant", "a task reads the agent's journal, the node's token or another job's output")
def agents_files(world):
    site = world.site
    agent = site.agents[0]
    tokens = site.directory / f"{agent.name}-token"
    script = (f"for f in $(find {agent.state} {tokens} {site.scheduler.data} 2>/dev/null); do "
              "cat $f >/dev/null 2>&1 && [ -f $f ] && echo read $f; done; "
              f"ls {agent.state}/works {agent.state}/output; echo end")
    _, said = site.enemy.run(script)
    defeat("read " in said, said)
    assert "end" in said, said
    return "permission denied, everywhere"


@attack("tenant", "a task reads the environment and the secrets of another tenant's process")
def other_environment(world):
    site = world.site
    mark = unique("holder")
    job = site.victim.submit(script=f"sh -c 'sleep 1000; : {mark}'",
                             secret_environment={"TOKEN": SECRET})
    site.wait(lambda: alive(mark))
    _, said = site.enemy.run("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; "
                             "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; echo end")
    site.victim.delete(f"/api/v1/jobs/{job}")
    assert "end" in said
    defeat(SECRET in said, f"{SECRET} is readable under /proc")
    return "neither in an environment nor on a command line that nobody can read"


@attack("tenant", "a task kills its keeper, the agent or another tenant's process")
def kill_others(world):
    site = world.site
    mark = unique("target")
    job = site.victim.submit(script=f"sh -c 'sleep 1000; : {mark}'")
    target = site.wait(lambda: alive(mark))
    pids = " ".join(map(str, [*target, *[agent.process.pid for agent in site.agents],
                              site.scheduler.process.pid]))
    _, said = site.enemy.run(f"for p in $PPID {pids}; do kill -9 $p 2>/dev/null && echo killed $p; "
                             "done; echo end")
    defeat("killed" in said, said)
    state = site.job(job)["state"]
    site.victim.delete(f"/api/v1/jobs/{job}")
    defeat(state != "running", f"the victim's job is {state}")
    return "not permitted, for keeper, agents, scheduler and another's task"


@attack("tenant", "a task moves itself out of its cgroup, or raises its limits")
def leave_cgroup(world):
    script = ("for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | head -200); do "
              "(echo $$ > $f) 2>/dev/null && echo moved $f; done; "
              "for f in $(find /sys/fs/cgroup -name 'pids.max' -o -name 'memory.max' "
              "-o -name memory.limit_in_bytes 2>/dev/null | head -200); do "
              "(echo 999999999 > $f) 2>/dev/null && echo raised $f; done; echo end")
    _, said = world.site.enemy.run(script)
    assert "end" in said
    defeat("moved" in said or "raised" in said, said)
    return "no file of a cgroup can be written by a task"


@attack("tenant", "a job keeps the agent from ever starting again by taking its name")
def squatted_name(world):
    """Binds what an agent would bind, in the abstract namespace, then the agent is killed."""
    site = world.site
    agent = site.agents[1]
    script = ("#!/usr/bin/env python3\nimport socket, time\nheld = []\n"
              "print('squats', flush=True)\nuntil = time.time() + 120\n"
              "while time.time() < until:\n"
              "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):\n"
              "        try:\n            s = socket.socket(socket.AF_UNIX, kind)\n"
              f"            s.bind('\\0gpu-agent/{agent.name}')\n            held.append(s)\n"
              "        except OSError:\n            pass\n    time.sleep(0.002)\n")
    job = site.enemy.submit(script=script)
    site.await_state(job, "running")
    site.wait(lambda: "squats" in site.logs(job))
    agent.kill()
    site.wait(lambda: f"@gpu-agent/{agent.name}" in pathlib.Path("/proc/net/unix").read_text())
    is_back = any(comes_back(site, agent) for _ in range(3))
    site.admin.delete(f"/api/v1/jobs/{job}")
    site.await_state(job, "cancelled")
    if not is_back:
        agent.start()
    said = pathlib.Path(f"{agent.state}.log").read_text().strip().splitlines()[-1]
    defeat(not is_back, f"3 of 3 starts failed: {said}")
    return "the agent started although its old name was taken"


def comes_back(site, agent):
    """Starts an agent; true if it connects, false if it ends."""
    site.wait(lambda: not site.node(agent.name)["connected"])
    agent.start()
    site.wait(lambda: agent.process.poll() is not None or site.node(agent.name)["connected"])
    return agent.process.poll() is None


@attack("tenant", "a relative working directory shows a task where the agent was started")
def relative_directory(world):
    for directory in (".", "tests", "../", "./attack/.."):
        answer = world.site.enemy.post("/api/v1/jobs", {
            "name": "relative", "command": ["pwd"], "working_directory": directory})
        if answer.status != 201:
            continue
        job = answer.json()["job_id"]
        world.site.await_state(job, "completed", "failed", "pending")
        world.site.wait(lambda: world.site.job(job)["state"] in ("completed", "failed"))
        said = world.site.logs(job).strip()
        defeat(said.startswith(os.getcwd()), f"{directory} is {said}")
    return "refused, or not below the agent's own directory"


@attack("tenant", "a checkpoint path tells a tenant when files change that it cannot see", quick=False)
def checkpoint_oracle(world):
    site = world.site
    hidden = site.directory / "private"
    hidden.mkdir(exist_ok=True)
    hidden.chmod(0o700)
    file = hidden / "file"
    file.write_text("1")
    mark = unique("looker")
    answer = site.enemy.post("/api/v1/jobs", {
        "name": "looker", "script": f"sh -c 'sleep 1000; : {mark}'", "checkpoint_enabled": True,
        "checkpoint_path": str(file)})
    if answer.status != 201:
        return f"refused: {answer}"
    job = answer.json()["job_id"]
    site.wait(lambda: alive(mark))
    before = checkpoints(site, job)
    for _ in range(15):
        time.sleep(0.2)
        file.write_text(str(time.monotonic()))
        if checkpoints(site, job) != before:
            break
    seen = checkpoints(site, job)
    site.enemy.delete(f"/api/v1/jobs/{job}")
    defeat(seen != before, f"the tenant learned of the change: {seen}")
    return "changes of root's file were not told"


def checkpoints(site, job):
    shown = site.enemy.get(f"/api/v1/jobs/{job}").json()
    events = site.enemy.get(f"/api/v1/jobs/{job}/events").body
    return shown.get("checkpoint_at"), shown.get("last_checkpoint_at"), events.count(b"checkpoint")


@attack("tenant", "a task pretends to be another job or to have other GPUs than it was given")
def overridden_variables(world):
    agent_names = [agent.name for agent in world.site.agents]
    forged = {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "NVIDIA_VISIBLE_DEVICES": "all",
              "GPU_SCHEDULER_JOB_ID": "job-1", "GPU_SCHEDULER_TENANT": "victim",
              "GPU_SCHEDULER_GPU_MEMORY_MIB": "999999", "GPU_SCHEDULER_RESERVATION": "1"}
    _, said = world.site.enemy.run("env", gpu_memory_mb=100, environment=forged)
    shown = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    kept = [name for name, value in forged.items() if shown.get(name) == value]
    defeat(kept, f"the job chose {kept} itself")
    assert any(name in shown["CUDA_VISIBLE_DEVICES"] for name in agent_names), shown
    return f"{len(forged)} variables were replaced by the agent's"


@attack("local user", "a process on the node speaks to the scheduler without a token")
def no_token_on_loopback(world):
    site = world.site
    url = site.scheduler.url
    script = (f"for m in GET POST; do curl -s -o /dev/null -w '%{{http_code}} ' -X $m "
              f"-H 'Content-Type: application/json' -d '{{}}' {url}/api/v1/jobs; done; "
              f"curl -s -o /dev/null -w '%{{http_code}}' {url}/api/v1/tenants")
    _, said = site.enemy.run(script)
    defeat("200" in said or "201" in said, f"answers: {said}")
    return f"answers: {said}"
