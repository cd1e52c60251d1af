"""Contexts, signing in, tokens, models and reports."""

import csv
import io
import json
import os
import re
import stat
import urllib.error
import urllib.request

import pytest

from cli import Cli
from cluster import Cluster
from scheduler import Scheduler


def test_a_context_says_where_and_whose(cluster, tmp_path):
    cli = Cli(tmp_path)
    assert cli.run("list").returncode in (0, 4)  # whatever is at the usual place
    cli("config", "set-context", "lab", "--server", cluster.scheduler.url, "--tenant-id", "physics")
    assert cli("config", "current-context") == "lab\n"
    assert cli("submit", "-o", "name", "--", "true").startswith("job-")
    cli("config", "set-context", "away", "--server", "http://127.0.0.1:1")
    assert cli("config", "current-context") == "lab\n"
    assert cli.run("list", "--context", "away").returncode == 4
    assert cli.run("list", GPU_SCHEDULER_CONTEXT="away").returncode == 4
    assert cli("list", "--context", "away", "--server", cluster.scheduler.url)
    cli("config", "use-context", "away")
    assert cli.run("list").returncode == 4
    listed = cli("config").splitlines()
    assert listed[0].split() == ["CONTEXT", "SERVER", "TENANT", "TOKEN"]
    assert [line for line in listed if line.startswith("*")][0].split()[1] == "away"
    cli("config", "delete-context", "away")
    assert cli.run("config", "current-context").returncode == 1
    assert cli.run("config", "use-context", "away").returncode == 3
    assert cli.run("list", "--context", "away").returncode == 2


def test_setting_a_context_again_changes_what_is_given_alone(tmp_path):
    cli = Cli(tmp_path)
    for _ in range(2):
        cli("config", "set-context", "lab", "--server", "http://127.0.0.1:1", "-t", "physics")
    cli("config", "set-context", "lab", "--server", "http://127.0.0.1:2")
    text = (tmp_path / ".config" / "gpu-scheduler" / "config.yaml").read_text()
    assert text.count("lab") == 2 and "127.0.0.1:2" in text and "physics" in text
    assert cli("config", "path").strip().endswith("/.config/gpu-scheduler/config.yaml")


def test_a_configuration_that_is_wrong_is_told_with_its_place(cluster, tmp_path):
    cli = Cli(tmp_path, cluster.scheduler.url)
    path = tmp_path / "config.yaml"
    path.write_text("contexts:\n  lab:\n    sever: x\n")
    result = cli.run("list", GPU_SCHEDULER_CONFIG=str(path))
    assert result.returncode == 2
    assert f"{path}:3:5:" in result.stderr


def test_login_tries_the_token_and_keeps_it_private(cluster, tmp_path):
    cli = Cli(tmp_path)
    said = cli.run("login", "lab", "--server", cluster.scheduler.url, input="gst_given\n")
    assert said.returncode == 0, said
    assert "gst_given" not in said.stdout + said.stderr
    kept = tmp_path / ".config" / "gpu-scheduler" / "lab.token"
    assert kept.read_text() == "gst_given\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert cli("list", "-o", "json")
    assert "gst_given" not in cli("config")
    assert cli.run("login", "x", "--server", "http://127.0.0.1:1", input="gst_x\n").returncode == 4
    assert cli.run("login", "lab", input="").returncode == 2


def test_tokens_are_made_once_and_revoked(cli, tmp_path):
    token = cli("token", "create", "-t", "physics", "--expires-in", "12h", "--note", "ci").strip()
    assert token.startswith("gst_")
    listed = json.loads(cli("token", "list", "-o", "json"))
    mine = next(entry for entry in listed if entry["note"] == "ci")
    assert token not in cli("token", "list") and token not in json.dumps(listed)
    saved = cli("token", "create", "-r", "viewer", "--save", tmp_path / "kept")
    assert "gst_" not in saved
    assert (tmp_path / "kept").read_text().startswith("gst_")
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    assert cli("token", "revoke", mine["id"]) == f"{mine['id']} revoked\n"
    assert mine["id"] not in cli("token", "list", "-o", "name").split()
    assert cli.run("token", "revoke", mine["id"]).returncode == 3
    assert cli.run("token", "make").returncode == 2


def test_a_token_is_described_by_the_same_words_in_both_programs(cli, cluster, tmp_path):
    """--note, --expires-in and --tenant-id; --name and --days are understood as well."""
    service = Scheduler(tmp_path / "stopped", starts=False)
    service.write_config()
    for number, words in enumerate((["--note", "wall", "--expires-in", "30d"], ["--name", "wall", "--days", "30"])):
        role = ["--role", "viewer", *words]
        made = service.run("token", "create", *role, "--tenant-id", "tenant-1")
        assert made.returncode == 0 and made.stdout.startswith("gst_"), made
        cli("token", "create", *role, "-t", "physics")
        listed = [one for one in json.loads(cli("token", "list", "-o", "json")) if one["note"] == "wall"]
        assert len(listed) == number + 1 and all(one["expires_at"] for one in listed)
    for words in (["--note", "a", "--name", "b"], ["--expires-in", "1h", "--days", "1"], ["--days", "none"]):
        assert cli.run("token", "create", *words).returncode == 2, words
    for words in (["--expires-in", "1h", "--days", "1"], ["--expires-in", "soon"]):
        assert service.run("token", "create", *words).returncode != 0, words


def test_models_are_put_shown_and_removed(cli, cluster):
    assert "created" in cli("models", "create", "small", "--runtime", "vllm", "--gpu-memory", "10G",
                            "--splits", "1,2", "--max", "2", "--idle-ttl", "5m")
    model = json.loads(cli("models", "get", "small", "-o", "json"))
    assert (model["gpu_memory_mb"], model["max_replicas"], model["idle_ttl"]) == (10240, 2, "5m0s")
    assert [split["gpus"] if isinstance(split, dict) else split for split in model["splits"]] == [1, 2]
    assert "small" in cli("models")
    assert cli("why", model["id"]).startswith("model small has 0 slots ready")
    assert cli.run("models", "lease", "small", "--wait", "10ms").returncode in (1, 6)
    assert cli.run("models", "lease", "small", "--wait", "0s").returncode in (1, 6)
    assert cli.run("models", "create", "none").returncode == 2
    assert "removed" in cli("models", "delete", "small")
    cluster.wait(lambda: cli.run("models", "get", "small").returncode == 3)


def test_a_model_with_a_command_of_its_own_is_loaded_and_leased(cli, cluster):
    serve = "touch health && exec python3 -m http.server {port} --bind 127.0.0.1"
    assert "created" in cli("models", "create", "own", "--gpu-memory", "1G", "--command", serve)
    assert json.loads(cli("models", "get", "own", "-o", "json"))["runtime"] == "custom"
    lease = json.loads(cli("models", "lease", "own", "--wait", "30s", "-o", "json"))
    address = f"http://{lease['address'].rpartition('//')[2]}/health"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(address)
    key = {"Authorization": f"Bearer {lease['key']}"}
    with urllib.request.urlopen(urllib.request.Request(address, headers=key)) as answer:
        assert answer.status == 200
    assert "own" in cli("slots")
    cli("models", "release", lease["lease_id"])
    cli("models", "delete", "own")


def test_a_model_is_loaded_by_hand(cli, cluster):
    serve = "touch health && exec python3 -m http.server {port} --bind 127.0.0.1"
    cli("models", "create", "by-hand", "--gpu-memory", "1G", "--command", serve)
    refused = cli.run("models", "lease", "by-hand", "--wait", "0s")
    assert refused.returncode == 6 and "free place" in refused.stderr
    assert "?" not in refused.stderr  # that is for those who use REST
    slot = re.fullmatch(r"by-hand is loaded: (slot-\d+) at \S+\n", cli("models", "load", "by-hand"))[1]
    assert slot in cli("slots", "-o", "name").split()
    assert json.loads(cli("models", "get", "by-hand", "-o", "json"))["ready_slots"] == 1
    cluster.wait(lambda: json.loads(cli("models", "get", "by-hand", "-o", "json"))["active_requests"] == 0)
    assert slot in cli("models", "load", "by-hand")  # it is there already
    assert cli.run("models", "load", "nothing").returncode == 3
    cli("models", "delete", "by-hand")


def test_the_billing_export_is_csv(cli, cluster):
    job = cli.submit("--gpus", "1", "--", "true")
    cluster.await_state(job, "completed")
    rows = list(csv.DictReader(io.StringIO(cli("report", "--since", "1h", "--csv"))))
    ours = next(row for row in rows if row["tenant"] == "physics")
    assert ours["tenant_id"].startswith("tenant-") and int(ours["completed_jobs"]) >= 1
    one = list(csv.DictReader(io.StringIO(cli("report", "--since", "1h", "--csv", "-t", "physics"))))
    assert [row["tenant"] for row in one] == ["physics"]
    assert cli.run("report", "--csv", "--by", "job").returncode == 2


def test_the_output_of_a_models_server_can_be_read(cli, cluster):
    """While it runs, and after it has died."""
    serve = "echo weights read; echo ready >&2; touch health && exec python3 -m http.server {port} --bind 127.0.0.1"
    cli("models", "create", "talks", "--gpu-memory", "1G", "--min", "1", "--command", serve)
    cluster.wait(lambda: "weights read" in cli.run("models", "logs", "talks").stdout)
    assert cli("models", "logs", "talks", "--tail", "1") != ""
    cli("models", "create", "dies", "--gpu-memory", "1G", "--min", "1", "--command", "echo out of luck; exit 7")
    cluster.wait(lambda: "out of luck" in cli.run("models", "logs", "dies").stdout)
    assert cli.run("models", "logs", "dies", "--slot", "slot-99999").returncode == 1
    cli("models", "create", "idle", "--gpu-memory", "1G", "--command", serve)
    assert "no server of the model has been started" in cli.run("models", "logs", "idle").stderr
    other = cluster.scheduler.get("/api/v1/models/no-such/logs")
    assert other.status == 404
    for name in ("talks", "dies", "idle"):
        cli("models", "delete", name)


def test_decisions_have_their_arithmetic(cli, cluster):
    job = cli.submit("--name", "by-name", "--gpu-memory", "20G", "--", "true")
    cluster.await_state(job, "completed")
    said = cli("decisions", "--job", job)
    assert f"{job} starts" in said and "20480 asked" in said
    assert cli("decisions", "--short", "--limit", "1").count("\n") == 2
    assert re.search(rf"start +{job} +by-name ", cli("decisions", "--short", "--job", job))
    assert json.loads(cli("decisions", "--job", job[4:], "-o", "json"))[0]["job_id"] == job


def test_a_report_counts_hours_and_cost(cli, cluster):
    cli("quota", "physics", "--cost", "100")
    job = cli.submit("--gpus", "2", "--", "sleep", "0.4")
    cluster.await_state(job, "completed")
    rows = json.loads(cli("report", "--by", "job", "--since", "1h", "-o", "json"))
    mine = next(row for row in rows if row["id"] == job)
    assert 2 * 0.3 / 3600 <= mine["gpu_hours"] < 2 * 10 / 3600
    assert mine["cost"] == pytest.approx(mine["gpu_hours"] * 100, rel=0.01)
    cli("quota", "physics", "--cost", "200")
    rows = json.loads(cli("report", "--by", "job", "--since", "1h", "-o", "json"))
    assert next(row for row in rows if row["id"] == job)["cost"] == mine["cost"]
    tenants = json.loads(cli("report", "--since", "1h", "-o", "json"))
    assert tenants[0]["tenant"] == "physics" and tenants[0]["jobs"] >= 1
    assert "USEFUL" in cli("report") and "GPU-HOURS" in cli("report", "--by", "job")
    assert cli.run("report", "--since", "soon").returncode == 2
    assert cli.run("report", "--from", "yesterday").returncode == 2


def test_a_report_of_predictions_has_all_tenants_and_bases(cli, cluster):
    for _ in range(4):
        job = cli.submit("--name", "steady", "--max-runtime", "1h", "--", "sleep", "0.3")
        cluster.await_state(job, "completed")
    rows = json.loads(cli("report", "--predictions", "--since", "1h", "-o", "json"))
    whole = rows[0]
    assert whole["jobs"] >= 4 and 0 <= whole["within_p90"] <= 1 and whole["median_error"] >= 1
    bases = [row for row in rows if "basis" in row]
    assert sum(row["jobs"] for row in bases) == whole["jobs"]
    assert sum(row["jobs"] for row in rows if "tenant_id" in row) == whole["jobs"]
    table = cli("report", "--predictions", "-t", "physics")
    assert "WITHIN 90%" in table and "\nby " in table
    assert cli.run("report", "--predictions", "--by", "job").returncode == 2
    assert cli.run("report", "--predictions", "-t", "nobody").returncode != 0


def test_a_report_of_quotas_proposes_within_the_bounds(cli):
    def row():
        (only,) = json.loads(cli("report", "--quotas", "-t", "physics", "-o", "json"))
        return only

    assert row()["follows"] is False and row()["quota_gpus_most"] is None
    cli("quota", "physics", "--gpus-least", "3", "--gpus-most", "4")
    assert row()["follows"] is True and 3 <= row()["proposed_gpus"] <= 4
    assert "PROPOSED" in cli("report", "--quotas")
    assert json.loads(cli("quota", "physics", "-o", "json"))["quota_gpus_most"] == 4
    assert cli.run("report", "--quotas", "--predictions").returncode == 2
    cli("quota", "physics", "--gpus-least", "0", "--gpus-most", "none")
    assert row()["follows"] is False


def test_a_report_by_job_is_limited_to_jobs_that_ended(cli, cluster):
    ended = [cli.submit("--", "true"), cli.submit("--", "false")]
    for job in ended:
        cluster.await_state(job, "completed", "failed")
    waiting = [cli.submit("--hold", "--", "true") for _ in range(3)]
    rows = json.loads(cli("report", "--by", "job", "--limit", "2", "-o", "json"))
    assert sorted(row["id"] for row in rows) == sorted(ended)
    cli("cancel", *waiting)


@pytest.fixture
def tree(tmp_path):
    """A cluster of its own: a tenant, one below it, and one below that."""
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    cluster.agent(f"alpha-{os.getpid()}", gpus="4x80G")
    for name, parent in (("institute", None), ("department", "institute"), ("group", "department")):
        fields = {"name": name} | ({"parent_id": parent} if parent else {})
        assert cluster.scheduler.post("/api/v1/tenants", fields).status == 201
    yield Cli(tmp_path, cluster.scheduler.url), cluster
    cluster.stop()


def test_a_report_has_a_line_for_a_tenant_and_one_with_its_children(tree):
    cli, cluster = tree
    for tenant in ("institute", "group"):
        cluster.await_state(cli.submit("--tenant-id", tenant, "--", "true"), "completed")
    rows = [line.split() for line in cli("report").splitlines()]
    jobs = {" ".join(row[:-9]): row[-9] for row in rows[1:]}
    jobs.pop("physics", None)
    assert jobs == {"institute": "1", "institute with children": "2", "department": "0",
                    "department with children": "1", "group": "1"}
    tenants = json.loads(cli("report", "-o", "json"))
    assert {line["tenant"] for line in tenants} - {"physics"} == {"institute", "department", "group"}
    assert "institute with children" in cli("report", "--tenant-id", "institute")


def test_a_context_says_whose_new_jobs_are_and_hides_nobody_elses(cluster, tmp_path):
    cli = Cli(tmp_path)
    url, chemistry = cluster.scheduler.url, f"chemistry-{os.getpid()}"
    assert cluster.scheduler.post("/api/v1/tenants", {"name": chemistry}).status == 201
    cli("config", "set-context", "lab", "--server", url, "--tenant-id", "physics")
    own = cli.submit("--hold", "--", "true")
    other = cli.submit("-t", chemistry, "--hold", "--", "true")
    assert cluster.job(own)["tenant_id"] == cluster.tenant != cluster.job(other)["tenant_id"]
    for command in (["list", "-a"], ["queue", "--limit", "1000"]):
        assert {own, other} <= set(cli(*command, "-o", "name").split()), command
        only = set(cli(*command, "-o", "name", "-t", chemistry).split())
        assert other in only and own not in only, command
        by_environment = cli(*command, "-o", "name", GPU_SCHEDULER_TENANT=chemistry).split()
        assert own not in by_environment, command
        assert own in cli(*command, "-o", "name", "-A", GPU_SCHEDULER_TENANT=chemistry).split(), command
    assert cli.run("list", "-A", "-t", chemistry).returncode == 2
    cli("cancel", own, other)


def test_the_contexts_tenant_does_not_bind_a_viewers_token(cluster, tmp_path):
    cli = Cli(tmp_path)
    cli("config", "set-context", "lab", "--server", cluster.scheduler.url, "--tenant-id", "physics")
    for words, whom in ((["--role", "viewer"], "for all tenants"), ([], "for physics"),
                        (["--role", "viewer", "-t", "physics"], "for physics")):
        made = cli.run("token", "create", *words)
        assert made.returncode == 0 and whom in made.stderr, (words, made)


def test_login_takes_the_service_from_the_environment(cluster, tmp_path):
    cli = Cli(tmp_path, cluster.scheduler.url)
    assert cli.run("login", "lab", input="anything\n").returncode == 0
    assert cluster.scheduler.url in cli("config", "get-contexts")
