"""Secrets of tasks on their node: sealed while a task runs, gone when it has ended."""

import os
import pathlib
import stat
import time

import pytest

SECRET = "the-password-of-physics-5e7f"


def holders(directory, text):
    """The files under the directory that have the text in them."""
    found = []
    for path in pathlib.Path(directory).rglob("*"):
        try:
            if path.is_file() and text.encode() in path.read_bytes():
                found.append(str(path))
        except FileNotFoundError:
            pass
    return found


def memory_has(pid, text):
    """Whether a process has the text in memory that it can write to."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            span, permissions = line.split()[:2]
            first, end = (int(number, 16) for number in span.split("-"))
            # More than that is the address sanitizer's own.
            if not permissions.startswith("rw") or end - first > 1 << 30:
                continue
            memory.seek(first)
            try:
                if text.encode() in memory.read(end - first):
                    return True
            except OSError:
                pass
    return False


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start(driver, agent, tmp_path):
    """A task that has the secret and waits for the file `go`."""
    seen, go = tmp_path / "seen", tmp_path / "go"
    script = (
        f'[ "$PASSWORD" = "$(printf %s-%s the-password of-physics-5e7f)" ] && touch {seen}\n'
        f"while [ ! -e {go} ]; do sleep 0.05; done\n"
    )
    payload = {"script": script, "secret_environment": {"PASSWORD": SECRET}}
    driver.start(agent.name, 1, [], payload=payload)
    driver.change("started", 1)
    wait_for(seen.exists)
    return go


def test_a_secret_is_never_on_disk_and_nothing_of_it_after_the_task(driver, agent, tmp_path):
    go = start(driver, agent, tmp_path)
    assert holders(agent.state, SECRET) == []
    assert holders(agent.state, "sealed:1:node:") == [str(agent.state / "journal")]
    agent.kill()
    assert holders(agent.state, SECRET) == []
    since = len(driver.seen)
    agent.start()
    assert driver.snapshot(agent.name, since)["running"] == [1]
    assert holders(agent.state, SECRET) == []
    go.touch()
    driver.change("released", 1, since=since)
    wait_for(lambda: holders(agent.state, "sealed:1:") == [])
    assert holders(agent.state, SECRET) == []


def test_what_a_killed_agent_left_of_a_secret_is_wiped_by_the_next(driver, agent, tmp_path):
    go = start(driver, agent, tmp_path)
    go.touch()
    driver.change("released", 1)
    agent.kill()
    since = len(driver.seen)
    agent.start()
    driver.snapshot(agent.name, since)
    wait_for(lambda: holders(agent.state, "sealed:1:") == [])
    agent.terminate()
    assert holders(agent.state, SECRET) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to read the memory of others")
def test_keepers_wipe_a_secret_when_the_task_has_it(driver, agent, tmp_path):
    go = start(driver, agent, tmp_path)
    words = (agent.state / "works" / "1").read_text().split()
    keeper, task = int(words[words.index("keeper") + 1]), int(words[words.index("started") + 1])
    assert memory_has(task, SECRET)
    assert not memory_has(keeper, SECRET)
    go.touch()


def test_the_key_of_a_node_is_its_own_and_stays(driver, agent):
    key = agent.state / "node.key"
    text = key.read_text()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(text.split(":")[1]) == 45
    agent.terminate()
    agent.start()
    driver.snapshot(agent.name, len(driver.seen))
    assert key.read_text() == text


def test_an_agent_whose_key_others_can_read_does_not_start(driver, agent):
    agent.terminate()
    (agent.state / "node.key").chmod(0o644)
    agent.start()
    assert agent.process.wait(60) == 1
    assert "node.key" in pathlib.Path(f"{agent.state}.log").read_text()
