"""What is said of a job before it is submitted: 'submit --check' and '--dry-run'."""

import json

import pytest

from cli import Cli


def check(cli, *arguments):
    return json.loads(cli("submit", "--check", "-o", "json", *arguments))


def test_a_job_that_fits_is_told_where_it_would_start(cli, cluster):
    before = cluster.scheduler.get("/api/v1/jobs").json()["total"]
    said = cli("submit", "--check", "--gpus", "2", "--", "true")
    assert said.startswith("It would start now on node ") and ", GPUs " in said
    forecast = check(cli, "--gpus", "2", "--", "true")
    assert (forecast["forecast"], forecast["fits"], forecast["jobs"]) == ("now", True, 1)
    assert len(forecast["gpus"]) == 2 and forecast["estimated_start"]
    assert {gpu["node"] for gpu in forecast["gpus"]} == {forecast["node"]}
    assert cluster.scheduler.get("/api/v1/jobs").json()["total"] == before
    job = cli.submit("--gpus", "2", "--wait", "--", "true")
    assert cluster.job(job)["allocated_gpus"] == [gpu["uuid"] for gpu in forecast["gpus"]]


def test_a_job_that_would_wait_is_told_when_and_why(cli, cluster):
    holders = [cli.submit("--gpus", "4", "--max-runtime", "2h", "--no-preemptible", "--", "sleep", "300")
               for _ in range(2)]
    for job in holders:
        cluster.await_state(job, "running")
    forecast = check(cli, "--gpus", "3", "--no-preemptible", "--", "true")
    assert (forecast["forecast"], forecast["fits"], forecast["jobs_ahead"]) == ("later", False, 0)
    assert len(forecast["gpus"]) == 3
    assert any("no node has 3 free GPUs" in line for line in forecast["why"])
    said = cli("submit", "--check", "--gpus", "3", "--", "true")
    assert said.startswith("It could start at ") and "if running jobs end as expected" in said
    assert "Z on node" not in said, "the time is that of this machine"
    held = check(cli, "--gpus", "1", "--hold", "--", "true")
    assert held["forecast"] == "waits" and "it is held" in held["message"]
    cli.run("cancel", *holders)
    for job in holders:
        cluster.await_state(job, "cancelled")


def test_what_could_never_run_is_a_failure(cli):
    said = cli.run("submit", "--check", "--gpus", "13", "--", "true")
    assert said.returncode == 1
    assert said.stdout.startswith("It would never start: it can never run on this cluster: asks for 13 GPUs")
    refused = cli.run("submit", "--check", "--gpus", "0.0001", "--", "true")
    assert refused.returncode == 2
    assert cli.run("submit", "--check", "--after", "job-99999", "--", "true").returncode == 3


def test_a_dry_run_has_the_forecast_beside_the_request(cli, tmp_path):
    said = cli.run("submit", "--dry-run", "--gpus", "1", "--", "true")
    assert json.loads(said.stdout)["gpu_count"] == 1
    assert said.stderr.startswith("It would start now on node ")
    alone = Cli(tmp_path, "http://127.0.0.1:1").run("submit", "--dry-run", "--", "true")
    assert alone.returncode == 0 and json.loads(alone.stdout)["command"] == ["true"]
    assert alone.stderr.startswith("no forecast: ")


@pytest.mark.parametrize("body", [[{"command": ["true"]}], []])
def test_many_jobs_have_no_forecast(cluster, body):
    answer = cluster.scheduler.post("/api/v1/jobs?check=1", body)
    assert answer.status == 400 and "check takes one job" in answer.json()["error"]


def test_an_administrator_is_told_who_has_the_gpus(cluster):
    """Others are told 'another tenant': src/core/test/why/forecast_test.c."""
    other = cluster.make_tenant("someone-else")
    held = [cluster.submit("sleep 300", tenant_id=other, gpu_count=4, preemptible=False) for _ in range(2)]
    for job in held:
        cluster.await_state(job, "running")
    body = {"tenant_id": cluster.tenant, "command": ["true"], "gpu_count": 1}
    answer = cluster.scheduler.post("/api/v1/jobs?check=1", body).json()
    assert answer["forecast"] in ("waits", "later") and answer["gpus"] is not None
    assert any(f"{job} " in json.dumps(answer) for job in held)
    for job in held:
        cluster.scheduler.delete(f"/api/v1/jobs/{job}")
        cluster.await_state(job, "cancelled")
