"""Tasks on a node: run, read back, ended, limited."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest
from processes import alive
from stub import Agent, Driver, remove_group


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_task_runs_and_its_output_is_read_back(driver, agent):
    driver.start(agent.name, 1, ["sh", "-c", "echo hello; echo oops >&2; exit 3"])
    driver.change("started", 1)
    assert driver.change("exited", 1)["exit_code"] == 3
    driver.change("released", 1)
    assert driver.output(agent.name, 1) == "hello\noops\n"


def test_a_script_runs_by_the_interpreter_that_it_names(driver, agent):
    script = "#!/usr/bin/env python3\nimport sys\nprint('args', sys.argv[1:])\n"
    driver.start(agent.name, 1, [], payload={"script": script, "args": ["a", "b c"]})
    assert driver.change("exited", 1)["exit_code"] == 0
    assert driver.output(agent.name, 1) == "args ['a', 'b c']\n"


def test_a_script_without_arguments_has_none(driver, agent):
    script = "#!/usr/bin/env python3\nimport os, sys\nprint(sys.argv[1:], os.path.isfile(sys.argv[0]))\n"
    driver.start(agent.name, 1, [], payload={"script": script})
    assert driver.change("exited", 1)["exit_code"] == 0
    assert driver.output(agent.name, 1) == "[] True\n"
    driver.start(agent.name, 2, [], payload={"script": 'echo "$# $(head -c 4 "$0")"', "args": ["a"]})
    assert driver.change("exited", 2)["exit_code"] == 0
    assert driver.output(agent.name, 2) == "1 echo\n"


SPAWNS = """#!/usr/bin/env python3
import multiprocessing

def square(x):
    return x * x

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
"""


def test_a_script_can_start_processes_that_read_it_again(driver, agent):
    driver.start(agent.name, 1, [], payload={"script": SPAWNS})
    assert driver.change("exited", 1)["exit_code"] == 0, driver.output(agent.name, 1)
    assert driver.output(agent.name, 1) == "[1, 4, 9]\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_script_is_for_its_user_alone_and_gone_with_its_task(driver, make_agent):
    agent = make_agent(arguments=["--user", "nobody"])
    driver.snapshot(agent.name)
    script = "id -un; dirname $0; ls -l $0; ls $(dirname $0)/.. 2>&1 | wc -l"
    driver.start(agent.name, 1, [], payload={"script": script})
    assert driver.change("exited", 1)["exit_code"] == 0, driver.output(agent.name, 1)
    user, folder, listed, _ = driver.output(agent.name, 1).splitlines()
    assert user == "nobody" and listed.startswith("-r-x------ 1 nobody ")
    driver.change("released", 1)
    deadline = time.monotonic() + 60
    while os.path.exists(folder):
        assert time.monotonic() < deadline, f"{folder} is left"
        time.sleep(0.02)


def test_a_task_sees_its_gpus_its_limits_and_its_place(driver, agent):
    driver.start(
        agent.name,
        1,
        ["env"],
        gpus=[[agent.uuid(1), 2048]],
        task=1,
        tasks=3,
        payload={
            "command": ["env"],
            "environment": {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "COLOUR": "blue"},
            "secret_environment": {"PASSWORD": "s3cret"},
            "gang": {"addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "port": 31000},
            "tenant": "physics",
        },
    )
    driver.change("exited", 1)
    variables = dict(
        line.split("=", 1) for line in driver.output(agent.name, 1).splitlines() if "=" in line
    )
    expected = {
        "CUDA_VISIBLE_DEVICES": agent.uuid(1),
        "NVIDIA_VISIBLE_DEVICES": agent.uuid(1),
        "GPU_SCHEDULER_GPU_MEMORY_MIB": "2048",
        "GPU_SCHEDULER_JOB_ID": "job-1",
        "GPU_SCHEDULER_TENANT": "physics",
        "COLOUR": "blue",
        "PASSWORD": "s3cret",
        "RANK": "1",
        "WORLD_SIZE": "3",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "31000",
    }
    assert {name: variables.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "payload, message",
    [
        ({"command": ["/no/such/program"]}, "cannot run /no/such/program"),
        ({"command": ["true"], "working_directory": "/no/such/place"}, "/no/such/place"),
        ({"command": ["pwd"], "working_directory": "tmp"}, "working_directory is 'tmp'"),
        ({"script": "pwd", "working_directory": "."}, "working_directory is '.'"),
        ({"command": ["true"], "image": "i", "working_directory": "../tmp"}, "not an absolute path"),
        ({"command": ["true"], "checkpoint_path": "c"}, "checkpoint_path is 'c'"),
        ({"command": ["true"], "image": "--privileged"}, "not the name of an image"),
        ({}, "no command"),
    ],
)
def test_a_command_that_cannot_run_fails_with_a_reason_in_its_output(
    driver, agent, payload, message
):
    driver.start(agent.name, 1, [], payload=payload)
    assert driver.change("exited", 1)["exit_code"] == 127
    assert message in driver.output(agent.name, 1)


def test_a_task_whose_user_does_not_exist_is_refused(driver, agent):
    driver.start(agent.name, 1, [], payload={"command": ["true"], "user": "no-such-user"})
    assert "no-such-user" in driver.change("refused", 1)["message"]


def test_a_task_runs_as_its_user(driver, agent):
    driver.start(agent.name, 1, [], payload={"command": ["id", "-un"], "user": "nobody"})
    assert driver.change("exited", 1)["exit_code"] == 0
    assert driver.output(agent.name, 1) == "nobody\n"


def test_root_is_refused_unless_it_is_allowed(driver, make_agent):
    agent = make_agent()
    agent.kill()
    agent.arguments.append("--allow-root=0")
    agent.start()
    driver.snapshot(agent.name)
    driver.start(agent.name, 1, ["true"])
    assert "root" in driver.change("refused", 1)["message"]


def test_what_daemonises_and_ignores_sigterm_is_gone_after_a_stop(driver, agent, tmp_path):
    marker = f"stubborn-{os.getpid()}-{tmp_path.name}"
    script = f"""
        trap '' TERM
        for i in 1 2 3; do (trap '' TERM; setsid sh -c "trap '' TERM; while :; do sleep 0.1; done #{marker}") & done
        echo ready
        while :; do sleep 0.1; done
    """
    driver.start(agent.name, 1, [], gpus=[[agent.uuid(), 1024]], payload={"script": script})
    driver.change("started", 1)
    deadline = time.monotonic() + 60
    while len(alive(marker)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=300)
    ended = driver.change("exited", 1)
    assert ended["exit_code"] == 137 and ended["reason"] == "ordered"
    driver.change("released", 1)
    assert alive(marker) == []


def test_what_a_task_leaves_behind_ends_with_it(driver, agent, tmp_path):
    marker = f"left-{os.getpid()}-{tmp_path.name}"
    driver.start(agent.name, 1, [], payload={"script": f"setsid sh -c 'sleep 1000 #{marker}; :' & sleep 0.2"})
    driver.change("released", 1)
    assert alive(marker) == []


def test_notice_gives_a_task_its_grace(driver, agent, tmp_path):
    ready = tmp_path / "ready"
    script = f"trap 'echo saved; exit 7' TERM; touch {ready}; while :; do sleep 0.05; done"
    driver.start(agent.name, 1, [], payload={"script": script})
    driver.change("started", 1)
    wait_for(ready.exists)
    driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=60000)
    assert driver.change("exited", 1)["exit_code"] == 7
    assert "saved" in driver.output(agent.name, 1)


def test_a_task_ends_when_its_time_is_over(driver, agent):
    driver.start(agent.name, 1, ["sleep", "1000"], runtime_ms=500, grace_ms=200)
    ended = driver.change("exited", 1)
    assert ended["exit_code"] == 124 and ended["reason"] == "runtime"


def test_output_is_followed_while_a_task_runs(driver, agent):
    script = "for i in 1 2 3; do echo $i; sleep 0.2; done"
    driver.start(agent.name, 1, [], payload={"script": script})
    driver.change("started", 1)
    assert driver.output(agent.name, 1, follow=True) == "1\n2\n3\n"


def test_output_is_rotated_and_keeps_its_offsets(driver, make_agent):
    agent = make_agent(arguments=["--output-file-mib", "1", "--output-files", "2"])
    driver.snapshot(agent.name)
    driver.start(agent.name, 1, [], payload={"script": "seq -w 1 1000000"})
    driver.change("released", 1)
    text = driver.output(agent.name, 1)
    assert text.endswith("1000000\n") and len(text) < 3 << 20
    first = next(m for m in driver.seen if m["kind"] == "output" and m["data"])
    assert first["offset"] + len(text) == 8 * 1000000
    assert driver.output(agent.name, 1, offset=-8) == "1000000\n"


def test_host_memory_is_limited(driver, agent):
    script = "#!/usr/bin/env python3\nx = bytearray(400 << 20)\nprint(len(x))\n"
    driver.start(agent.name, 1, [], host_bytes=100 << 20, payload={"script": script})
    ended = driver.change("exited", 1)
    assert ended["exit_code"] == 137
    assert "killed: it used more host memory than its limit of " in ended["message"]


def test_a_task_that_a_signal_ends_says_which(driver, agent):
    driver.start(agent.name, 1, ["sh", "-c", "kill -SEGV $$"], gpus=[[agent.uuid(), 1024]])
    ended = driver.change("exited", 1)
    assert ended["exit_code"] == 139
    assert ended["message"] == "it was killed by signal 11 (SIGSEGV)"


def test_the_number_of_processes_is_limited(driver, make_agent):
    agent = make_agent(arguments=["--pids", "20"])
    driver.snapshot(agent.name)
    script = "for i in $(seq 50); do sleep 5 & done; wait"
    driver.start(agent.name, 1, [], payload={"script": script})
    driver.change("exited", 1)
    assert "fork" in driver.output(agent.name, 1)


def pids_group(name):
    """The directory of a cgroup whose processes are counted, in either kind of tree."""
    for tree in ("pids", "unified", "."):
        path = pathlib.Path("/sys/fs/cgroup", tree, name)
        if (path / "pids.max").exists():
            return path
    pytest.skip("no cgroup here limits processes")


def test_no_task_may_take_every_process_of_the_machine(driver, agent):
    driver.start(agent.name, 1, ["sleep", "1000"])
    driver.change("started", 1)
    group = pids_group(f"gpu-scheduler/{agent.label()}/work-1")
    kernel = [int(pathlib.Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("pid_max", "threads-max")]
    assert int((group / "pids.max").read_text()) == min(min(kernel) // 8, 32768)
    total = int((group.parent.parent / "pids.max").read_text())
    assert total == min(kernel) // 4 * 3


def test_all_tasks_together_have_a_limit_of_processes(driver, make_agent):
    parent = f"gpu-test-{os.getpid()}"
    agent = make_agent(arguments=["--pids", "40", "--pids-total", "50", "--cgroup-parent", parent])
    driver.snapshot(agent.name)
    try:
        script = "for i in $(seq 35); do sleep 1000 & done 2>&1; echo all; wait"
        driver.start(agent.name, 1, [], payload={"script": script})
        driver.change("started", 1)
        deadline = time.monotonic() + 60
        while driver.output(agent.name, 1) != "all\n":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        driver.start(agent.name, 2, [], payload={"script": script})
        # The shell ends at the first that it cannot have.
        driver.change("exited", 2)
        assert "fork" in driver.output(agent.name, 2)
        driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=100)
        driver.change("released", 1)
    finally:
        agent.kill()
        for tree in pathlib.Path("/sys/fs/cgroup").glob(f"*/{parent}"):
            for group in sorted(tree.rglob("*/"), key=lambda path: -len(path.parts)):
                remove_group(group)
            remove_group(tree)


def test_prolog_and_epilog_run_around_a_task(driver, make_agent, tmp_path):
    trace = tmp_path / "trace"
    for name in ("prolog", "epilog"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} $GPU_SCHEDULER_JOB_ID >> {trace}\n")
        program.chmod(0o755)
    agent = make_agent(
        arguments=["--prolog", str(tmp_path / "prolog"), "--epilog", str(tmp_path / "epilog")]
    )
    driver.snapshot(agent.name)
    driver.start(agent.name, 1, ["sh", "-c", f"echo task >> {trace}"])
    driver.change("released", 1)
    assert trace.read_text() == "prolog job-1\ntask\nepilog job-1\n"


def test_a_prolog_that_fails_refuses_the_task(driver, make_agent, tmp_path):
    agent = make_agent(arguments=["--prolog", "/bin/false"])
    driver.snapshot(agent.name)
    driver.start(agent.name, 1, ["true"])
    assert "/bin/false" in driver.change("refused", 1)["message"]


def test_a_checkpoint_that_is_written_is_told(driver, agent, tmp_path):
    path = tmp_path / "checkpoint"
    script = f"sleep 0.5; echo 1 > {path}; sleep 1000"
    driver.start(
        agent.name, 1, [], payload={"script": script, "checkpoint_path": str(path)}
    )
    driver.change("checkpoint", 1)


def test_a_checkpoint_is_told_under_the_next_agent(driver, agent, tmp_path):
    path = tmp_path / "checkpoint"
    driver.start(agent.name, 1, ["sleep", "1000"], payload={"command": ["sleep", "1000"], "checkpoint_path": str(path)})
    driver.change("started", 1)
    agent.kill()
    since = len(driver.seen)
    agent.start()
    driver.snapshot(agent.name, since)
    path.write_text("1")
    driver.change("checkpoint", 1, since=since)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_nobody_learns_of_a_file_that_the_tasks_user_cannot_see(driver, make_agent, tmp_path):
    agent = make_agent(arguments=["--allow-root=0", "--user", "nobody"])
    driver.snapshot(agent.name)
    tmp_path.chmod(0o700)
    hidden = tmp_path / "hidden"
    seen = pathlib.Path(tempfile.mkdtemp())
    seen.chmod(0o755)
    try:
        for reservation, path in ((1, hidden), (2, seen / "file")):
            path.write_text("1")
            payload = {"command": ["sleep", "1000"], "checkpoint_path": str(path)}
            driver.start(agent.name, reservation, [], payload=payload)
            driver.change("started", reservation)
        driver.change("checkpoint", 2)
        for content in ("22", "333"):
            since = len(driver.seen)
            for path in (hidden, seen / "file"):
                path.write_text(content)
            driver.change("checkpoint", 2, since=since)
        assert not any(m.get("change") == "checkpoint" and m["reservation"] == 1 for m in driver.seen)
    finally:
        shutil.rmtree(seen)


def test_without_cgroups_nothing_escapes_either(driver, make_agent, tmp_path):
    marker = f"bare-{os.getpid()}-{tmp_path.name}"
    agent = make_agent(arguments=["--cgroup-parent", "none"])
    driver.snapshot(agent.name)
    script = f"(setsid sh -c \"trap '' TERM; sleep 1000 #{marker}; :\" &) ; echo up; sleep 1000"
    driver.start(agent.name, 1, [], payload={"script": script})
    driver.change("started", 1)
    wait_for(lambda: alive(marker))
    driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=200)
    driver.change("released", 1)
    assert alive(marker) == []


def test_a_second_agent_on_the_same_state_refuses(driver, agent):
    second = subprocess.run(
        [agent.process.args[0], *map(str, agent.process.args[1:])], capture_output=True, text=True
    )
    assert second.returncode == 1
    assert "another gpu-agent" in second.stderr


def test_agents_of_one_name_with_other_states_run_beside_each_other(driver, agent, make_agent):
    """Such as two ./run on other ports: both are named after the machine."""
    second_driver = Driver()
    try:
        second = make_agent(agent.name, port=second_driver.port, state=f"{agent.state}-2")
        for one, its_driver in ((agent, driver), (second, second_driver)):
            its_driver.snapshot(one.name)
            its_driver.start(one.name, 1, ["sleep", "1000"], gpus=[[one.uuid(), 1024]])
            its_driver.change("started", 1)
        since = len(second_driver.seen)
        second.kill()
        second.start()
        assert second_driver.snapshot(second.name, since)["running"] == [1]
        second_driver.tell(do="stop", node=second.name, reservation=1, grace_ms=100)
        second_driver.change("released", 1)
        assert not any(m.get("change") == "exited" for m in driver.seen)
        driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=100)
        driver.change("released", 1)
    finally:
        second_driver.stop()


def test_no_task_can_keep_its_agent_from_starting_again(driver, make_agent):
    agent = make_agent(arguments=["--allow-root=0", "--user", "nobody"])
    driver.snapshot(agent.name)
    hold = f"""#!/usr/bin/env python3
import fcntl, os, socket, time
held = socket.socket(socket.AF_UNIX)
held.bind("\\0gpu-agent/{agent.name}")
for name in ("lock", "journal", "instance", "works/1"):
    try:
        fcntl.flock(os.open(f"{agent.state}/{{name}}", os.O_RDONLY), fcntl.LOCK_EX)
        print("holds", name)
    except OSError:
        pass
print("ready", flush=True)
time.sleep(1000)
"""
    driver.start(agent.name, 1, [], payload={"script": hold})
    driver.change("started", 1)
    deadline = time.monotonic() + 60
    while "ready" not in (said := driver.output(agent.name, 1)):
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
    assert "holds" not in said
    since = len(driver.seen)
    agent.kill()
    agent.start()
    assert driver.snapshot(agent.name, since)["running"] == [1]


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv"
)
def test_an_agent_that_is_not_root_runs_tasks_as_itself(driver, tmp_path):
    state = pathlib.Path(tempfile.mkdtemp())
    name = f"node-user-{os.getpid()}"
    state.chmod(0o777)
    wrapper = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    agent = Agent(driver.port, state / name, name, wrapper=wrapper)
    try:
        driver.snapshot(agent.name)
        show = ["sh", "-c", "id -u; echo $CUDA_VISIBLE_DEVICES"]
        driver.start(agent.name, 1, show, gpus=[[agent.uuid(), 4096]])
        assert driver.change("exited", 1)["exit_code"] == 0
        driver.change("released", 1)
        assert driver.output(agent.name, 1).split() == ["65534", agent.uuid()]
        driver.start(agent.name, 2, [], payload={"command": ["true"], "user": "root"})
        assert "does not run as root" in driver.change("refused", 2)["message"]
    finally:
        agent.kill()
        shutil.rmtree(state, ignore_errors=True)
