"""Secrets on disks: a stolen disk, a backup, a local user who looks around."""

import pathlib
import random
import shutil
import sqlite3
import stat
import subprocess

from attack import attack, defeat
from target import SECRET, mode


def files(directory):
    return [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]


def files_with(directory, text):
    found = []
    for path in files(directory):
        try:
            if text.encode() in path.read_bytes():
                found.append(str(path.relative_to(directory)))
        except OSError:
            pass
    return found


def run_with_secret(site, secret):
    """A job that was told a secret, and has ended."""
    job = site.victim.submit(script="test -n \"$TOKEN\" && echo told", node_labels={"real": "1"},
                             secret_environment={"TOKEN": secret})
    site.await_state(job, "completed", "failed")
    assert "told" in site.logs(job)


@attack("local user", "the disk of a node has the secrets of jobs in the clear")
def journal_of_agent(world):
    """Looks while the job runs, when it has ended, and after the agents were told to end."""
    site = world.site
    secret = SECRET + "-of-the-node"
    job = site.victim.submit(script="echo told; sleep 100000", node_labels={"real": "1"},
                             secret_environment={"TOKEN": secret})
    site.await_state(job, "running")
    site.wait(lambda: "told" in site.logs(job))
    during = {agent.name: files_with(agent.state, secret) for agent in site.agents}
    site.victim.delete(f"/api/v1/jobs/{job}")
    site.await_state(job, "cancelled")
    after = {agent.name: files_with(agent.state, secret) for agent in site.agents}
    leaks = [f"{name}: {' '.join(found)}" for seen in (during, after)
             for name, found in seen.items() if found]
    defeat(leaks, f"in the clear: {leaks}")
    return "neither during the job nor after it is the secret in a file of the agents"


@attack("local user", "the database, the journal or a backup of the scheduler has secrets in the clear")
def scheduler_files(world):
    site = world.site
    secret = SECRET + "-of-the-store"
    run_with_secret(site, secret)
    backup = site.directory / "backup"
    backup.unlink(missing_ok=True)
    done = site.scheduler.run("backup", backup)
    assert done.returncode == 0, done.stderr
    found = files_with(site.scheduler.data, secret) + files_with(site.scheduler.data, site.victim.token)
    data = backup.read_bytes()
    for text in (secret, site.victim.token, site.admin.token):
        if text.encode() in data:
            found.append(f"backup has {text[:12]}")
    defeat(found, f"in the clear: {found}")
    defeat(mode(backup) & 0o077, f"the backup can be read by others: {mode(backup):o}")
    return "sealed in database, journal and backup; tokens only as hashes"


@attack("local user", "a local user reads or writes the files of the scheduler or an agent")
def file_modes(world):
    site = world.site
    loose = []
    for directory in (site.scheduler.data, *[agent.state for agent in site.agents]):
        top = mode(directory)
        if top & 0o077 == 0:
            continue  # nobody else gets in
        loose += [f"{path} {mode(path):o}" for path in files(directory)
                  if stat.S_IMODE(path.stat().st_mode) & 0o077]
    tokens = [path for path in site.directory.glob("*-token") if "admin" not in path.name]
    loose += [f"{path.name} {mode(path):o}" for path in tokens if mode(path) & 0o077]
    defeat(loose, f"open to others: {loose[:5]}")
    return f"directories and {len(tokens)} tokens of nodes are their owner's alone"


@attack("local user", "a secret is on a command line, where every local user can read it")
def command_lines(world):
    """A container program of our own notes what it was told on its command line."""
    site = world.site
    seen = site.directory_for_all() / "seen"
    runtime = site.directory / "podman-of-the-test"
    runtime.write_text(f"#!/bin/sh\nfor w in \"$@\"; do echo \"$w\"; done >> {seen}\nexit 1\n")
    runtime.chmod(0o755)
    agent = site.add_agent("contained", ["--container-runtime", str(runtime), "--labels", "box=1"])
    try:
        job = site.victim.submit(image="localhost/x", command=["true"], node_labels={"box": "1"},
                                 environment={"PLAIN": "visible"},
                                 secret_environment={"TOKEN": SECRET})
        site.await_state(job, "failed", "completed", seconds=60)
        words = seen.read_text()
    finally:
        site.agents.remove(agent)
        agent.terminate()
        site.forget_node("contained")
    assert "run" in words.split(), words
    defeat(SECRET in words, "the value of secret_environment is an argument of podman")
    return "podman is told the names; the values are in its environment"


@attack("local user", "damage to the database goes unnoticed by `gpu-scheduler check`", quick=False)
def unnoticed_damage(world):
    """Bytes of a copy are changed one place at a time; what SQLite notices, check must."""
    site, rng = world.site, random.Random(3)
    copy = site.directory / "damaged"
    backup = site.directory / "whole"
    backup.unlink(missing_ok=True)
    assert site.scheduler.run("backup", backup).returncode == 0
    missed, noticed = [], 0
    for number in range(16):
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        data = bytearray(backup.read_bytes())
        page = rng.randrange(1, len(data) // 4096)
        start = page * 4096 + (rng.randrange(0, 8) if number % 2 else rng.randrange(0, 4000))
        data[start:start + 8] = rng.randbytes(8)
        (copy / "scheduler.db").write_bytes(data)
        try:
            with sqlite3.connect(copy / "scheduler.db") as store:
                whole = store.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            whole = False
        checked = subprocess.run([str(site.scheduler.command()[0]), "--config", site.scheduler.config,
                                  "--data", copy, "check"], capture_output=True)
        if not whole:
            noticed += checked.returncode != 0
            if checked.returncode == 0:
                missed.append(start)
    defeat(missed, f"{len(missed)} damages that SQLite finds are not found, at {missed[:3]}")
    return f"{noticed} damages that SQLite finds were found"
