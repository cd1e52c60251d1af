"""Job files, jobs submitted again, many jobs at once, and records of what happened."""

import json
import os

import pytest


@pytest.fixture
def name(request):
    """One that no other test uses."""
    return f"{request.node.name[:40]}-{os.getpid()}"


def test_a_file_may_have_several_jobs(cli, cluster, tmp_path, name):
    file = tmp_path / "jobs.yaml"
    file.write_text(f"""
name: {name}
command: [sh, -c, 'echo $KIND; exit 3']
environment: {{KIND: yaml}}
---
- name: {name}
  script: |
    echo script
  hold: true
- {{"name": "{name}", "command": ["true"], "hold": true}}
""")
    jobs = cli("submit", "-f", file, "--label", f"file={name}", "-o", "name").split()
    assert len(jobs) == 3
    cluster.await_state(jobs[0], "failed")
    assert cli("logs", jobs[0]).splitlines()[-1] == "yaml"
    assert cluster.job(jobs[1])["script"] == "echo script\n"
    assert set(cli("list", "--label", f"file={name}", "-o", "name").split()) == set(jobs)
    assert cli("cancel", "--name", name).split() == [jobs[2], "cancelled", jobs[1], "cancelled"]
    piped = cli("submit", "-f", "-", "--hold", "-o", "name", input=json.dumps({"command": ["true"]}))
    cli("cancel", piped.strip())


@pytest.mark.parametrize("text, reason", [
    ("name: a\nname: b\n", "jobs.yaml:2: a key comes twice"),
    ("just words\n", "a job must be fields"),
    ("", "there is no job in"),
    ("comand: [true]\n", "comand"),
    ("command: [sleep, 1\n", "not YAML"),
])
def test_a_file_that_makes_no_sense_is_refused(cli, tmp_path, text, reason):
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    refused = cli.run("submit", "-f", file)
    assert refused.returncode == 2 and reason in refused.stderr, refused


def test_a_job_can_be_submitted_again_with_changes(cli, cluster, tmp_path, name):
    first = cli.submit("--hold", "--name", name, "--gpu-memory", "2G", "--env", "A=1", "--label", "kind=again",
                       "--max-runtime", "90m", "--array", "3-4", "--", "sh", "-c", "exit $A")
    again = cli("resubmit", first, "--priority", "700", "--env", "A=5", "-o", "name").strip()
    made = cluster.job(again)
    kept = cluster.job(first)
    for field in ("name", "command", "gpu_sharing", "gpu_memory_mb", "labels", "max_runtime_minutes", "array_index"):
        assert made[field] == kept[field], field
    assert (made["priority"], made["environment"], made["held"]) == (700, {"A": "5"}, False)
    cluster.await_state(again, "failed")
    file = tmp_path / "again.yaml"
    file.write_text(cli("clone", first))
    third = cli("submit", "-f", file, "--hold", "-o", "name").strip()
    assert cluster.job(third)["command"] == kept["command"]
    assert cluster.job(third)["gpu_memory_mb"] == 2048
    cli("cancel", "--name", name)


def test_many_jobs_are_chosen_by_what_they_have_in_common(cli, cluster, name):
    array = cli.submit("--hold", "--name", name, "--array", "1,5,9", "--", "true")
    other = cli.submit("--hold", "--name", f"{name}-other", "--label", f"of={name}", "--", "true")
    ids = [f"job-{int(array[4:]) + place}" for place in range(3)]
    assert cli("list", "--array", ids[1], "-o", "name").split() == ids[::-1]
    assert cli("list", "--name", name, "--state", "running,pending", "-o", "name").split() == [other, *ids[::-1]]
    assert cli("list", "--name", name, "--since", "1h", "-o", "name").split() == [other, *ids[::-1]]
    assert cli("list", "--name", name, "--since", "2035-01-01T00:00:00Z", "-o", "name") == ""
    assert cli.run("list", "--array", other).returncode == 2
    cli("cancel", "--array", ids[2])
    assert {cluster.job(job)["state"] for job in ids} == {"cancelled"}
    assert cluster.job(other)["state"] == "pending"
    assert cli("cancel", "--label", f"of={name}") == f"{other} cancelled\n"
    assert cli.run("cancel", "--name", name).stderr == "no such jobs\n"
    assert cli.run("cancel", "job-1", "--name", name).returncode == 2


def test_a_list_can_be_watched(cli):
    process = cli.start("list", "--watch", "-o", "json")
    try:
        for line in process.stdout:
            if line.rstrip() in ("]", "[]"):
                break
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_job_that_could_never_run_is_warned_about(cli, cluster):
    said = cli.run("submit", "--gpus", "13", "--", "true")
    assert said.returncode == 0
    assert "warning: job-" in said.stderr and "can never run on this cluster" in said.stderr
    job = said.stdout.split()[0]
    assert "can never run on this cluster" in cli("why", job).splitlines()[0]
    cli("cancel", job)


def test_a_job_starts_in_the_directory_that_it_was_submitted_from(cli, cluster, tmp_path):
    process = cli.start("run", "--", "pwd", cwd=tmp_path)
    assert process.communicate(timeout=120)[0] == f"{tmp_path}\n"
    gone = tmp_path / "gone"
    gone.mkdir()
    held = json.loads(cli("submit", "--hold", "--dry-run", "--", "pwd"))
    held["submit_directory"] = str(gone)
    held["tenant_id"] = cluster.tenant
    gone.rmdir()
    job = cluster.scheduler.post("/api/v1/jobs", {**held, "hold": False}).json()["job_id"]
    cluster.await_state(job, "completed")
    assert cli("logs", job).startswith(f"gpu-keeper: cannot start in {gone} (No such file or directory): starting in /")
    process = cli.start("run", "--workdir", "/usr", "--", "pwd", cwd=tmp_path)
    assert process.communicate(timeout=120)[0] == "/usr\n"


def test_who_asks_and_what_was_done_can_be_read(cli, cluster, name):
    assert json.loads(cli("whoami", "-o", "json"))["role"] == "admin"
    assert "Role     admin" in cli("whoami")
    assert cli.run("create-tenant", name).returncode == 0
    assert cli("tenants", "rename", name, f"{name}-2") == f"{name} is now called {name}-2\n"
    assert cli("tenants", "delete", f"{name}-2") == f"{name}-2 deleted\n"
    assert cli.run("tenants", name).returncode == 3
    actions = [entry["action"] for entry in json.loads(cli("audit", "--limit", "3", "-o", "json"))]
    assert "delete_tenant" in actions and len(actions) == 3
    job = cli.submit("--", "true")
    cluster.await_state(job, "completed")
    types = [event["type"] for event in json.loads(cli("events", job, "-o", "json"))]
    assert types[0] == "job_scheduled" and len(types) >= 3
    assert cli.run("nodes", "dead", "no-such-node").returncode == 3
    assert cli.run("nodes", "remove").returncode == 2


def test_errors_speak_of_options_and_name_what_is_missing(cli, cluster):
    for words, said in ((["submit", "--after", "x y", "--", "true"], "--after must name jobs"),
                        (["submit", "--close", "foo", "--", "true"], "--close must be"),
                        (["submit", "--", ""], "the command is empty")):
        refused = cli.run(*words, "-t", "physics")
        assert refused.returncode == 2 and said in refused.stderr, refused
        assert "several tenants" not in refused.stderr
    assert cli.run("gpus", "no-such-node").returncode == 3
    assert "TEMP" in cli("gpus")
    cli("models", "create", "by-name", "-t", "physics", "--runtime", "vllm", "--gpu-memory", "1G")
    assert cli("why", "by-name").startswith("model by-name has")
    cli("models", "delete", "by-name")
    assert cli.run("why", "by-no-name").returncode == 3


def test_amounts_that_contradict_each_other_are_refused(cli, name):
    cli("create-tenant", name, "--gpus", "1", "--max-gpus", "2")
    refused = cli.run("quota", name, "--gpus", "5", "--max-gpus", "2")
    assert refused.returncode == 2 and "a quota is at most the limit" in refused.stderr
    assert cli.run("quota", name, "--max-gpus", "0.5").returncode == 2
    assert "must be more than 0" in cli.run("create-tenant", f"{name}-w", "--weight", "0").stderr
    refused = cli.run("submit", "-t", name, "--gpus", "3", "--gpu-memory", "20G,30G", "--", "true")
    assert refused.returncode == 2 and "2" in refused.stderr
    cli("tenants", "delete", name)


def test_times_are_those_of_this_machine(cli, cluster):
    job = cli.submit("--gpus", "1", "--wait", "--", "true")
    cluster.await_state(job, "completed")
    said = cli("why", job, TZ="America/New_York")
    assert f"{job} completed" in said and "Z:" not in said


def test_a_drained_node_can_be_waited_for_and_emptied(cli, cluster):
    node = cluster.agents[0].name
    holders = [cli.submit("--gpus", "4", "--preemptible", "--", "sleep", "300") for _ in range(2)]
    for job in holders:
        cluster.await_state(job, "running")
    there = next(one for one in holders if cluster.job(one)["allocations"][0]["node"] == node)
    process = cli.start("drain", node, "--wait")
    assert process.stdout.readline() == f"{node} is draining\n"
    assert process.poll() is None
    assert f"{there} is stopped and queued again" in cli("drain", node, "--evict")
    assert process.communicate(timeout=120)[0] == "nothing runs there any more\n"
    assert process.returncode == 0
    assert cluster.node(node)["reservations"] == 0
    assert cluster.job(there)["state"] == "pending"
    cli("resume", node)
    cluster.await_state(there, "running")
    said = cli("drain", node, "--deadline", "1s")
    assert said.endswith("nothing runs there any more\n") and "stopped and queued again" in said
    cli("resume", node)
    cli("cancel", *holders)
    assert cli.run("drain", "no-such-node", "--wait").returncode == 3
    assert cli.run("drain", node, "--evict", "--deadline", "1h").returncode == 2


def edited_by(cli, tmp_path, program):
    """An editor that runs a program of sed on the file, and gpu-cli edit with it."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nsed -i '{program}' \"$1\"\n")
    editor.chmod(0o755)
    return lambda *words: cli.run("edit", *words, VISUAL="", EDITOR=str(editor), TMPDIR=str(tmp_path))


def files_of(tmp_path):
    return list(tmp_path.glob("gpu-cli-edit-*.yaml"))


def test_a_job_is_changed_in_an_editor(cli, cluster, tmp_path):
    job = cli.submit("--name", "edited", "--hold", "--", "true")
    done = edited_by(cli, tmp_path, "s/^priority: .*/priority: 123/")(job)
    assert done.returncode == 0 and done.stdout == f"{job} changed\n", done
    assert cluster.job(job)["priority"] == 123 and cluster.job(job)["held"]
    same = edited_by(cli, tmp_path, "s/nothing/else/")(job)
    assert same.returncode == 0 and same.stderr == "nothing was changed\n", same
    emptied = edited_by(cli, tmp_path, "d")(job)
    assert emptied.returncode == 0 and emptied.stderr == "nothing was changed\n", emptied
    assert files_of(tmp_path) == []
    assert edited_by(cli, tmp_path, "s/^held: .*/held: false/")(job).returncode == 0
    cluster.await_state(job, "completed")


def test_an_edit_that_is_refused_is_kept_in_its_file(cli, cluster, tmp_path):
    job = cli.submit("--name", "kept", "--hold", "--", "true")
    before = cluster.job(job)
    for program, said in (("s/^priority: .*/priority: many/", "priority"), ("$a gpu_count: 4", "gpu_count is not a field"),
                          ("s/^held: .*/held: 7/", "held must be"), ("s/^held:.*/held: [/", ":")):
        refused = edited_by(cli, tmp_path, program)(job)
        assert refused.returncode != 0 and said in refused.stderr, (program, refused)
        kept = files_of(tmp_path)
        assert len(kept) == 1 and f"Your changes are in {kept[0]}" in refused.stderr
        kept[0].unlink()
    failed = cli.run("edit", job, VISUAL="false", TMPDIR=str(tmp_path))
    assert failed.returncode != 0 and "the editor 'false' failed" in failed.stderr
    assert cluster.job(job)["priority"] == before["priority"] and cluster.job(job)["held"]
    assert cli.run("edit").returncode == 2 and cli.run("edit", "node", "alpha").returncode == 2
    assert cli.run("edit", "job-99999").returncode == 3
    cli("cancel", job)


def test_a_tenant_and_a_model_are_changed_in_an_editor(cli, cluster, tmp_path):
    cli("create-tenant", "editors", "--max-gpus", "4", "--gpus", "1.5")
    done = edited_by(cli, tmp_path, "s/^max_gpus: .*/max_gpus: null/; s/^email: .*/email: e@example.org/")("tenant", "editors")
    assert done.returncode == 0, done
    tenant = json.loads(cli("tenants", "editors", "-o", "json"))
    assert (tenant["max_gpus"], tenant["email"], tenant["quota_gpus"]) == (None, "e@example.org", 1.5)
    cli("models", "create", "edited", "-t", "editors", "--runtime", "vllm", "--gpu-memory", "10G", "--max", "2")
    done = edited_by(cli, tmp_path, "s/^max_replicas: .*/max_replicas: 3/")("model", "edited")
    assert done.returncode == 0, done
    model = json.loads(cli("models", "get", "edited", "-o", "json"))
    assert (model["max_replicas"], model["gpu_memory_mb"]) == (3, 10240)
    cli("models", "delete", "edited")


def test_records_are_listed_since_a_time(cli, cluster):
    job = cli.submit("-t", "physics", "--hold", "--", "true")
    cli("cancel", job)
    assert json.loads(cli("audit", "--since", "1h", "-o", "json"))[0]["object"].endswith(job)
    assert json.loads(cli("audit", "--since", "2000-01-01T00:00", "-o", "json"))
    assert cli.run("audit", "--since", "2100-01-01T00:00").stderr == "no entries\n"
    everything = json.loads(cli("events", job, "-o", "json"))
    assert everything and json.loads(cli("events", job, "--since", "1d", "-o", "json")) == everything
    assert json.loads(cli("events", job, "--since", "2100-01-01T00:00", "-o", "json")) == []
    for command in (["audit"], ["events", job]):
        assert cli.run(*command, "--since", "yesterday").returncode == 2


def test_a_time_without_a_zone_is_local_and_said_so(cli, cluster):
    done = cli.run("submit", "-t", "physics", "-o", "name", "--begin", "2035-01-31T12:00", "--", "true", TZ="America/New_York")
    assert done.returncode == 0 and "--begin is local time: 2035-01-31T17:00:00" in done.stderr, done
    job = done.stdout.strip()
    assert cluster.job(job)["begin"].startswith("2035-01-31T17:00:00")
    cli("cancel", job)
    assert cli.run("submit", "-t", "physics", "--begin", "2035-02-30T12:00", "--", "true").returncode == 2
