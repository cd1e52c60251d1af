"""The cluster and its tenants from the command line, and how it ends when that does not work."""

import json
import os
import re
import socket


def test_the_cluster_is_told_in_a_few_lines(cli):
    said = cli("status")
    assert re.search(r"^Nodes +2 of 2 online$", said, re.M)
    assert re.search(r"^GPUs +8, \d free", said, re.M)
    assert json.loads(cli("status", "-o", "json"))["total_gpus"] == 8


def test_nodes_and_gpus_are_listed(cli):
    nodes = cli("nodes").splitlines()
    assert nodes[0].split() == ["NODE", "STATE", "GPUS", "FREE", "TASKS", "CPUS", "MEMORY"]
    assert len(nodes) == 3
    assert len(cli("gpus").splitlines()) == 9
    alpha = f"alpha-{os.getpid()}"
    assert len(cli("gpus", alpha, "-o", "name").split()) == 4
    assert json.loads(cli("nodes", alpha, "-o", "json"))["name"] == alpha


def test_a_node_is_drained_and_resumed(cli):
    alpha = f"alpha-{os.getpid()}"
    assert cli("drain", alpha, "--reason", "fan & disk; 50%") == f"{alpha} is draining\n"
    assert re.search(rf"^{alpha} +draining", cli("nodes"), re.M)
    assert re.search(rf"^{alpha} +draining .*fan & disk; 50%", cli("nodes", "-o", "wide"), re.M)
    node = json.loads(cli("nodes", alpha, "-o", "json"))
    assert node["drain_reason"] == "fan & disk; 50%"
    refused = cli.run("drain", alpha, "--reason", "x" * 1025)
    assert refused.returncode == 2 and "reason has more than 1024 bytes" in refused.stderr
    assert cli.run("drain", alpha, "--reason", "two\nlines").returncode == 2
    assert json.loads(cli("nodes", alpha, "-o", "json"))["drain_reason"] == "fan & disk; 50%"
    assert "1 draining" in cli("status")
    cli("resume", alpha)
    assert re.search(rf"^{alpha} +online", cli("nodes"), re.M)
    actions = [one["action"] for one in json.loads(cli("audit", "-o", "json"))]
    assert actions[0] == "node_resume" and "node_drain" in actions
    assert json.loads(cli("nodes", alpha, "-o", "json"))["drain_reason"] == ""


def test_tenants_are_made_and_their_quota_changed(cli):
    assert re.fullmatch(r"tenant-\d+ created \(chemistry\)\n",
                        cli("create-tenant", "chemistry", "--max-gpus", "4", "--cost", "2.5"))
    cli("quota", "chemistry", "--gpus", "2", "--max-gpu-memory", "40G")
    tenant = json.loads(cli("quota", "chemistry", "-o", "json"))
    assert (tenant["quota_gpus"], tenant["max_gpus"], tenant["max_gpu_memory_mb"]) == (2, 4, 40960)
    assert tenant["cost_per_gpu_hour"] == 2.5
    cli("quota", "chemistry", "--max-gpu-memory", "none")
    assert json.loads(cli("tenants", "chemistry", "-o", "json"))["max_gpu_memory_mb"] is None
    refused = cli.run("submit", "--tenant-id", "chemistry", "--gpus", "5", "--", "true")
    assert refused.returncode == 5
    assert "quota exceeded for tenant chemistry: GPUs requested=5" in refused.stderr


def test_a_job_beyond_its_tenants_limit_waits_and_is_told_of_the_limit(cli, cluster):
    cli("create-tenant", "geology", "--gpus", "2", "--max-gpus", "3")
    jobs = [cli.submit("-t", "geology", "--gpus", "2", "--", "sleep", "300") for _ in range(2)]
    cluster.await_state(jobs[0], "running")
    cluster.wait(lambda: "at its limit" in cli("why", jobs[1]))
    for said in (cli("why", jobs[1]), cli("queue", "-o", "wide")):
        assert "tenant geology is at its limit of 3 GPUs (2 in use, 2 requested)" in said
        assert "exceeded" not in said and "quota" not in said
    cli("cancel", *jobs)


def test_with_several_tenants_one_must_be_named(cli):
    cli.run("create-tenant", "biology")
    result = cli.run("submit", "--", "true")
    assert result.returncode == 2
    assert "--tenant-id" in result.stderr
    assert cli("submit", "--", "true", GPU_SCHEDULER_TENANT="physics")


def test_what_is_not_there_ends_with_three(cli):
    for arguments in (["get", "job-99999"], ["why", "99999"], ["logs", "99999"], ["logs", "-f", "99999"],
                      ["cancel", "99999"], ["nodes", "nowhere"], ["drain", "nowhere"],
                      ["tenants", "nobody"]):
        result = cli.run(*arguments)
        assert result.returncode == 3, (arguments, result)
        assert "known" in result.stderr or "no " in result.stderr


def test_a_state_that_does_not_permit_it_ends_with_one(cli, cluster):
    job = cli.submit("-t", "physics", "--", "true")
    cluster.await_state(job, "completed")
    result = cli.run("cancel", job)
    assert result.returncode == 1
    assert "has already finished" in result.stderr


def test_what_is_not_understood_ends_with_two(cli):
    for arguments in (["list", "--stat", "running"], ["submit", "--gpu-memory", "20Q", "--", "x"],
                      ["submit"], ["submit", "--gpus", "1.5", "--", "x"], ["get"], ["list", "-o", "xml"],
                      ["submit", "--max-runtime", "soon", "--", "x"], ["list", "--server", "nowhere"],
                      ["submit", "--array", "x", "-t", "physics", "--", "true"], ["list", "x"],
                      ["submit", "--follow", "--array", "1-2", "--", "x"], ["priority", "job-1"]):
        result = cli.run(*arguments)
        assert result.returncode == 2, (arguments, result)
        assert result.stdout == ""
        assert result.stderr.startswith(f"gpu-cli {arguments[0]}: ")


def test_a_service_that_does_not_answer_ends_with_four(cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = cli.run("list", "--server", f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert result.returncode == 4
    assert "Connection refused" in result.stderr
    assert "--server" in result.stderr
    for arguments in (["run", "--", "true"], ["submit", "--wait", "--", "true"]):
        assert cli.run(*arguments, "x", GPU_SCHEDULER_URL="http://127.0.0.1:1").returncode in (4, 125)


def test_what_speaks_something_else_is_told(cli, cluster):
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = cli.start("list", "--server", f"http://127.0.0.1:{server.getsockname()[1]}")
        client, _ = server.accept()
        client.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        _, errors = process.communicate(timeout=60)
        client.close()
    assert process.returncode == 4
    assert "does not speak HTTP" in errors
    result = cli.run("list", "--server", cluster.scheduler.metrics_url.rpartition("/")[0] + "/x")
    assert result.returncode in (3, 4)


def test_options_of_the_session_may_stand_before_the_command(cli, cluster):
    assert cli("--server", cluster.scheduler.url, "-t", "physics", "list", "-o", "name",
               GPU_SCHEDULER_URL="http://127.0.0.1:1")



def test_a_model_is_changed_field_by_field(cli):
    cli("models", "create", "changing", "--tenant-id", "physics", "--gpu-memory", "4G", "--runtime", "vllm", "--path", "a/b", "--max", "2")
    cli("models", "update", "changing", "--max", "3", "--idle-ttl", "90s", "--", "--max-model-len", "4096")
    model = json.loads(cli("models", "get", "changing", "-o", "json"))
    assert (model["max_replicas"], model["args"]) == (3, ["--max-model-len", "4096"])
    assert (model["gpu_memory_mb"], model["path"], model["runtime"]) == (4096, "a/b", "vllm")
    refused = cli.run("models", "update", "changing")
    assert refused.returncode == 2 and "nothing to change" in refused.stderr
    cli("models", "delete", "changing")


def test_every_field_of_a_tenant_can_be_set_and_taken_away(cli):
    cli("create-tenant", "alchemy", "--notify-webhook", "https://example.com/hook", "--notify-on", "failed,completed",
        "--email", "chem@example.com", "--priority", "700", "--gpus", "unlimited", "--max-gpus", "8")
    tenant = json.loads(cli("tenants", "alchemy", "-o", "json"))
    assert sorted(tenant["notify_on"]) == ["completed", "failed"]
    assert (tenant["email"], tenant["priority"], tenant["quota_gpus"]) == ("chem@example.com", 700, -1)
    cli("quota", "alchemy", "--max-gpus", "none", "--gpus", "2.5", "--may-preempt", "no")
    tenant = json.loads(cli("tenants", "alchemy", "-o", "json"))
    assert (tenant["max_gpus"], tenant["quota_gpus"], tenant["can_preempt_others"]) == (None, 2.5, False)
    refused = cli.run("quota", "alchemy", "--may-preempt", "maybe")
    assert refused.returncode == 2 and "expected yes or no" in refused.stderr
