"""Tables and top in a real terminal, at 80 and 200 columns."""

import os
import re
import signal
import subprocess

import pytest

from cli import program
from terminal import Terminal, needs_tmux

pytestmark = needs_tmux


@pytest.fixture
def terminal(cli, tmp_path):
    """Opens a terminal in which gpu-cli runs."""
    opened = []

    def open_one(*arguments, columns=80, rows=24, **environment):
        directory = tmp_path / f"terminal-{len(opened)}"
        directory.mkdir()
        opened.append(Terminal(directory, [program(), *arguments], cli.environment(**environment),
                               columns, rows))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def busy(cli, cluster):
    """Jobs that share a GPU, one that has two, and one that waits."""
    jobs = [
        cli.submit("--name", "first-half", "--gpus", "0.5", "--", "sleep", "300"),
        cli.submit("--name", "quarter", "--gpu-memory", "20G", "--", "sleep", "300"),
        cli.submit("--name", "pair-with-a-rather-long-name-that-needs-room", "--gpus", "2", "--",
                   "sleep", "300"),
    ]
    for job in jobs:
        cluster.await_state(job, "running")
    jobs.append(cli.submit("--name", "waits", "--hold", "--", "true"))
    yield jobs
    cli.run("cancel", *jobs)
    cluster.wait(lambda: cluster.scheduler.get("/api/v1/cluster/status").json()["available_gpus"] == 8)


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", [["list"], ["gpus"], ["nodes"], ["queue"], ["tenants"], ["status"],
                                     ["decisions", "--short"], ["report"], ["get"]])
def test_no_line_is_broken(terminal, busy, cli, command, columns):
    if command == ["get"]:
        command = ["get", busy[2]]
    one = terminal(*command, columns=columns, rows=80)
    lines = one.shows("ended with 0").splitlines()
    table = lines[:next(i for i, line in enumerate(lines) if line.startswith("ended"))]
    assert table
    if command[0] in ("list", "gpus", "nodes", "queue", "tenants"):
        # A row that did not fit would go on in the next line, and there would be more of them.
        rows = table[1:]
        assert len(rows) == len(cli(*command, "-o", "name").splitlines())
        first = table[0].split()[0]
        assert first in ("JOB", "NODE", "#", "TENANT")
        assert all(row.strip() for row in rows)
        assert all(len(row) <= columns for row in rows)


def test_a_wide_terminal_shows_more_and_a_narrow_one_cuts(terminal, busy):
    wide = terminal("list", "--state", "running", columns=200, rows=60).shows("ended with 0")
    assert "pair-with-a-rather-long-name-that-needs-room" in wide
    assert "COMMAND" in wide and "PRIORITY" in wide
    narrow = terminal("list", "--state", "running", columns=80, rows=60).shows("ended with 0")
    assert "pair-with-a-rather-long-name-that-needs-room" not in narrow
    assert re.search(r"pair-\S*…", narrow)
    assert "COMMAND" not in narrow


def test_states_have_colours_unless_nobody_wants_them(terminal, busy):
    coloured = terminal("list", "--state", "running")
    coloured.shows("ended with 0")
    assert "\033[32mrunning" in coloured.screen(colours=True)
    plain = terminal("list", "--state", "running", NO_COLOR="1")
    plain.shows("ended with 0")
    assert "\033[3" not in plain.screen(colours=True)


@pytest.mark.parametrize("columns", [80, 200])
def test_top_shows_every_gpu_and_who_holds_what(terminal, busy, columns):
    one = terminal("top", columns=columns, rows=24)
    screen = one.until(lambda screen: "first-half" in screen and "q quit" in screen
                       and "waits" in screen and re.search(r"\d+%", screen))
    assert "GPUS 8" in screen and "live" in screen
    assert len(re.findall(r"^\S+ +\d \[", screen, re.M)) == 8
    shared = next(line for line in screen.splitlines() if busy[0] in line and "[" in line)
    assert re.search(r"\d+G/80G", shared)
    assert re.search(r"\d+%", shared) and re.search(r"\d+C", shared)
    assert screen.count(busy[2]) >= 3  # on two GPUs, and among the jobs
    assert re.search(rf"^{busy[3]} +held +waits", screen, re.M)
    assert all(len(line) <= columns for line in screen.splitlines())
    assert len(screen.splitlines()) <= 24
    one.press("q")
    end = one.shows("ended with 0")
    assert "GPUS" not in end
    assert "-echo" not in end


def test_top_follows_what_happens(terminal, cli, cluster, busy):
    one = terminal("top", "--delay", "1h")
    one.shows("first-half")
    job = cli.submit("--name", "newcomer", "--gpu-memory", "5G", "--", "sleep", "300")
    one.shows("newcomer")
    cli("cancel", job)
    one.until(lambda screen: "newcomer" not in screen)


def test_top_takes_its_new_size(terminal, busy):
    one = terminal("top", columns=80, rows=24)
    one.shows("first-half")
    one.resize(200, 40)
    screen = one.until(lambda screen: max(map(len, screen.splitlines())) > 100)
    assert "pair-with-a-rather-long-name-that-needs-room" in screen
    one.resize(80, 12)
    screen = one.until(lambda screen: len(screen.splitlines()) <= 12 and "GPUS 1-" in screen)
    assert all(len(line) <= 80 for line in screen.splitlines())
    one.press("End")
    one.shows("-8 of 8")


def test_top_sorts_filters_explains_and_asks(terminal, cli, cluster, busy):
    one = terminal("top")
    one.shows("sort: node")
    one.press("s")
    screen = one.shows("sort: memory")
    first = next(line for line in screen.splitlines() if "[" in line)
    assert "80G/80G" in first
    one.press("/")
    one.press(*"first-half")
    one.press("Enter")
    screen = one.shows("filter: first-half")
    assert "GPUS 1" in screen and "JOBS 1" in screen
    one.press("Escape")
    one.shows("GPUS 8")
    one.press("?")
    one.shows("cancel the chosen job")
    one.press("x", "Tab")
    for key in ("w", "Enter"):
        one.press(key)
        one.shows(f"{busy[3]} waits")
        one.press("x")
        one.shows("JOBS 4")
    one.press("c")
    one.shows(f"cancel {busy[3]} (waits)? y or n")
    one.press("n")
    assert cluster.job(busy[3])["state"] == "pending"
    one.press("c")
    one.shows(f"cancel {busy[3]}")
    one.press("y")
    cluster.await_state(busy[3], "cancelled")
    one.shows("JOBS 3")


def test_top_has_views_of_queue_tenants_models_and_nodes(terminal, cli, cluster, busy):
    answer = cluster.scheduler.post("/api/v1/models", {"name": "small", "tenant_id": cluster.tenant,
                                                       "gpu_memory_mb": 100})
    assert answer.status == 201, answer
    one = terminal("top", "--delay", "1s", columns=120)
    one.shows("GPUS 8")
    one.press("2")
    screen = one.shows("QUEUE 1")
    assert re.search(rf"{busy[3]} +waits", screen) and "REASON" in screen
    one.press("3")
    assert "physics" in one.shows("TENANTS")
    one.press("4")
    assert "small" in one.shows("MODELS 1")
    one.press("5")
    screen = one.shows("NODES 2")
    assert f"alpha-{os.getpid()}" in screen and "online" in screen
    one.press("/")
    one.press(*"beta")
    one.press("Enter")
    one.shows("NODES 1")
    one.press("Escape")
    one.shows("NODES 2")
    one.press("2")
    one.shows("QUEUE 1")
    one.press("w")
    one.shows(f"{busy[3]} ")
    one.press("x")
    one.press("c")
    one.shows(f"cancel {busy[3]} (waits)? y or n")
    one.press("y")
    cluster.await_state(busy[3], "cancelled")
    one.shows("QUEUE 0")
    one.press("1")
    one.shows("GPUS 8")
    assert cluster.scheduler.request("DELETE", f"/api/v1/models/{answer.json()['id']}").status == 200


def test_top_shows_the_output_of_a_job_and_follows_it(terminal, cli, cluster):
    script = "seq 1 100; printf 'red \\033[31m\\n'; touch begun; while [ ! -e go ]; do sleep 0.1; done; echo more; sleep 300"
    job = cli.submit("--name", "writer", "--workdir", cli.home, "--", "sh", "-c", script)
    cluster.await_state(job, "running")
    cluster.wait((cli.home / "begun").exists)
    one = terminal("top", "--delay", "500ms")
    one.shows("writer")
    one.press("l")
    screen = one.shows("OUTPUT of " + job)
    assert "following" in screen and "100" in screen and "red ?[31m" in screen
    one.press("g")
    assert re.search(r"^1$", one.shows("scrolled up"), re.M)
    one.press("G")
    one.shows("following")
    (cli.home / "go").touch()
    one.shows("more")
    one.press("x")
    one.shows("JOBS")
    cli("cancel", job)


def test_top_drains_and_resumes_a_node(terminal, cli, cluster):
    alpha = f"alpha-{os.getpid()}"
    one = terminal("top")
    one.shows(alpha)
    for asked, draining in (("drain", True), ("resume", False)):
        one.press("d")
        one.shows(f"{asked} node {alpha}? y or n")
        one.press("y")
        cluster.wait(lambda: cluster.node(alpha)["draining"] == draining)
        one.until(lambda screen: ("draining" in screen) == draining)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_top_leaves_the_terminal_as_it_was(terminal, busy, number):
    one = terminal("top")
    one.shows("first-half")
    shell = int(one.tmux("display-message", "-p", "#{pane_pid}"))
    child = int(subprocess.run(["pgrep", "-P", str(shell)], capture_output=True, text=True).stdout)
    os.kill(child, number)
    end = one.shows("ended with")
    assert "GPUS" not in end
    assert "-echo" not in end


def test_top_goes_on_when_the_service_comes_back(terminal, cluster, busy):
    one = terminal("top", "--delay", "1s")
    one.shows("live")
    port = cluster.scheduler.port
    cluster.scheduler.kill()
    one.shows("cannot reach the service")
    cluster.scheduler.ports["http"] = port
    cluster.scheduler.start()
    one.shows("live", seconds=30)
    one.shows("first-half", seconds=30)


def test_without_a_terminal_top_is_printed_once(cli, busy):
    said = cli("top")
    assert "GPUS 8" in said and "first-half" in said
    assert "\033" not in said
