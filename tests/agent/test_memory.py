"""Memory of simulated GPUs: whose it is, and what is done about it."""

import time


def beats(driver, agent, since):
    return [
        {gpu["uuid"]: gpu for gpu in m["gpus"]}
        for m in driver.seen[since:]
        if m["kind"] == "beat" and m["node"] == agent.name and m["gpus"]
    ]


def test_the_gpus_are_those_that_were_asked_for(driver, make_agent):
    agent = make_agent(gpus="1x80G:H100,2x24G:A10")
    gpus = driver.snapshot(agent.name)["gpus"]
    assert [(gpu["model"], gpu["capacity_mib"]) for gpu in gpus] == [
        ("H100", 81920),
        ("A10", 24576),
        ("A10", 24576),
    ]


def test_foreign_memory_is_told_within_two_beats(driver, agent):
    driver.wait(lambda m: m["kind"] == "beat")
    agent.control("0 foreign 5000\n")
    since = len(driver.seen)
    driver.wait(
        lambda m: m["kind"] == "beat"
        and any(gpu["uuid"] == agent.uuid(0) and gpu["foreign_mib"] == 5000 for gpu in m["gpus"]),
        since,
    )
    late = [b for b in beats(driver, agent, since) if b[agent.uuid(0)]["foreign_mib"] != 5000]
    assert len(late) <= 2


def test_memory_of_a_task_is_its_own(driver, agent):
    driver.start(agent.name, 1, ["sleep", "1000"], gpus=[[agent.uuid(), 4096]])
    beat = driver.wait(lambda m: m["kind"] == "beat" and m["uses"])
    assert beat["uses"] == [{"reservation": 1, "memory_mib": 4096}]
    assert all(gpu["foreign_mib"] == 0 for gpu in beat["gpus"])


def test_an_order_that_does_not_fit_what_is_measured_is_refused(driver, agent):
    agent.control("0 foreign 80000\n")
    driver.wait(lambda m: m["kind"] == "beat" and any(gpu["foreign_mib"] == 80000 for gpu in m["gpus"]))
    driver.start(agent.name, 1, ["true"], gpus=[[agent.uuid(), 4096]])
    assert "80000" in driver.change("refused", 1)["message"]


def test_a_release_waits_for_memory_that_lingers(driver, agent, tmp_path):
    go = tmp_path / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done"
    driver.start(agent.name, 1, [], gpus=[[agent.uuid(), 4096]], payload={"script": script})
    driver.change("started", 1)
    agent.control("0 lingers 2000\n")
    go.touch()
    driver.change("exited", 1)
    time.sleep(1)
    assert not any(m.get("change") == "released" for m in driver.seen)
    agent.control("")
    driver.change("released", 1)


def test_a_task_that_uses_more_than_it_reserved_is_warned_and_stopped(driver, make_agent):
    agent = make_agent(arguments=["--overuse", "stop"])
    driver.snapshot(agent.name)
    payload = {"command": ["sleep", "1000"], "environment": {"FAKE_GPU_MEMORY_MIB": "6000"}}
    driver.start(agent.name, 1, [], gpus=[[agent.uuid(), 4096]], payload=payload)
    driver.start(agent.name, 2, ["sleep", "4"], gpus=[[agent.uuid(), 4096]])
    assert "6000" in driver.change("over", 1)["message"]
    ended = driver.change("exited", 1)
    assert ended["reason"] == "overuse" and ended["exit_code"] == 137
    assert "6000 MiB" in driver.output(agent.name, 1)
    assert driver.change("exited", 2)["exit_code"] == 0


def test_a_gpu_gets_warm_where_something_runs(driver, agent):
    driver.start(agent.name, 1, ["sleep", "1000"], gpus=[[agent.uuid(), 4096]])
    driver.wait(
        lambda m: m["kind"] == "beat"
        and any(g["uuid"] == agent.uuid(0) and g["temperature_c"] >= 34 for g in m["gpus"])
    )


def test_a_model_is_served_until_it_is_unloaded(driver, agent, tmp_path):
    command = f"cd {tmp_path}; touch health; exec python3 -m http.server {{port}}"
    driver.tell(
        do="load",
        node=agent.name,
        reservation=7,
        model="llama",
        command=command,
        gpus=[[agent.uuid(), 8192]],
        timeout_ms=20000,
    )
    address = driver.change("ready", 7)["address"]
    assert address.startswith("http://127.0.0.1:")
    driver.tell(do="stop", node=agent.name, reservation=7, grace_ms=500)
    driver.change("released", 7)
