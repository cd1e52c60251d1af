"""What outlives what: tasks their agent, results their scheduler, leases everybody."""

import os
import pathlib
import signal
import time

from cluster import Cluster
from stub import Driver


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_tasks_go_on_under_the_next_agent(driver, agent, tmp_path):
    go = tmp_path / "go"
    script = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two; exit 5"
    driver.start(agent.name, 1, [], gpus=[[agent.uuid(), 1024]], payload={"script": script})
    driver.change("started", 1)
    agent.kill()
    since = len(driver.seen)
    agent.start()
    snapshot = driver.snapshot(agent.name, since)
    assert snapshot["running"] == [1]
    go.touch()
    assert driver.change("exited", 1, since=since)["exit_code"] == 5
    driver.change("released", 1, since=since)
    assert driver.output(agent.name, 1) == "one\ntwo\n"


def test_a_task_that_ends_while_no_agent_is_there_has_its_result(driver, agent, tmp_path):
    done = tmp_path / "done"
    script = f"sleep 0.5; touch {done}; exit 9"
    driver.start(agent.name, 1, [], payload={"script": script})
    driver.change("started", 1)
    agent.kill()
    wait_for(done.exists)
    time.sleep(0.3)
    agent.start()
    assert driver.change("exited", 1)["exit_code"] == 9


def test_a_task_that_was_about_to_start_when_its_agent_died_runs_once(driver, make_agent, tmp_path):
    go, begun, ran = tmp_path / "go", tmp_path / "begun", tmp_path / "ran"
    prolog = tmp_path / "prolog"
    prolog.write_text(f"#!/bin/sh\ntouch {begun}; while [ ! -e {go} ]; do sleep 0.05; done\n")
    prolog.chmod(0o755)
    agent = make_agent(arguments=["--prolog", str(prolog)])
    driver.snapshot(agent.name)
    driver.start(agent.name, 1, [], payload={"script": f"echo ran >> {ran}; exit 7"})
    wait_for(begun.exists)
    agent.kill()
    since = len(driver.seen)
    agent.start()
    assert driver.snapshot(agent.name, since)["running"] == [1]
    go.touch()
    assert driver.change("exited", 1, since=since)["exit_code"] == 7
    driver.change("released", 1, since=since)
    assert ran.read_text() == "ran\n"


def test_many_tasks_survive_many_agents(driver, agent, tmp_path):
    for reservation in range(1, 9):
        script = f"sleep 3; exit {reservation}"
        driver.start(agent.name, reservation, [], payload={"script": script})
    for reservation in range(1, 9):
        driver.change("started", reservation)
    for _ in range(5):
        time.sleep(0.3)
        agent.kill()
        agent.start()
    for reservation in range(1, 9):
        assert driver.change("exited", reservation)["exit_code"] == reservation


def test_results_wait_for_a_scheduler_that_is_gone(driver, agent):
    driver.start(agent.name, 1, ["sh", "-c", "sleep 1; exit 4"])
    driver.change("started", 1)
    port = driver.port
    driver.stop()
    time.sleep(1.5)
    other = Driver(port)
    try:
        assert other.change("exited", 1)["exit_code"] == 4
    finally:
        other.stop()


def lease_task(driver, agent):
    driver.start(
        agent.name, 1, [], lease_stop=True, grace_ms=200, payload={"script": "sleep 1000"}
    )
    driver.change("started", 1)


def pid_of_first(agent):
    status = pathlib.Path(agent.state, "works", "1").read_text()
    return int(status.split("started ")[1].split()[0])


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_task_stops_with_its_lease_although_the_agent_is_dead(make_agent):
    driver = Driver(lease_ms=4000)
    try:
        agent = make_agent(port=driver.port)
        driver.snapshot(agent.name)
        lease_task(driver, agent)
        pid = pid_of_first(agent)
        agent.kill()
        assert is_alive(pid)
        wait_for(lambda: not is_alive(pid))
        since = len(driver.seen)
        agent.start()
        driver.wait(lambda m: m["kind"] == "snapshot" and m["running"] == [], since)
        assert not any(m.get("change") == "exited" for m in driver.seen)
    finally:
        driver.stop()


def test_a_task_stops_with_its_lease_when_the_scheduler_is_silent(make_agent):
    driver = Driver(lease_ms=4000)
    try:
        agent = make_agent(port=driver.port)
        driver.snapshot(agent.name)
        lease_task(driver, agent)
        pid = pid_of_first(agent)
        time.sleep(5)
        assert is_alive(pid)
        driver.tell(do="renew", on=False)
        wait_for(lambda: not is_alive(pid))
    finally:
        driver.stop()


def test_a_task_whose_keeper_was_killed_is_still_ended(driver, agent):
    driver.start(agent.name, 1, ["sleep", "1000"])
    driver.change("started", 1)
    pid = pid_of_first(agent)
    keeper = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(keeper, signal.SIGKILL)
    driver.tell(do="stop", node=agent.name, reservation=1, grace_ms=100)
    driver.change("released", 1)
    assert not is_alive(pid)


def test_an_agent_that_is_told_to_stop_leaves_tasks_running(driver, agent):
    driver.start(agent.name, 1, ["sh", "-c", "sleep 2; exit 3"])
    driver.change("started", 1)
    agent.terminate()
    agent.start()
    assert driver.change("exited", 1)["exit_code"] == 3


def test_a_connected_agent_does_not_delay_the_end_of_the_scheduler(tmp_path):
    """Requests in flight may take ten minutes here, and the stream of an agent is none."""
    cluster = Cluster(tmp_path, sections={"api": {"stop_grace_ms": 600000}})
    try:
        agent = cluster.agent()
        cluster.scheduler.stop(seconds=60)
        cluster.scheduler.start()
        cluster.wait(lambda: cluster.node(agent.name)["connected"])
    finally:
        cluster.stop()
