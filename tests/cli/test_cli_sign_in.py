"""Who asks: tokens, contexts, certificates."""

import os
import subprocess

import pytest

from cli import Cli
from scheduler import Scheduler


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A scheduler with TLS that wants to know who asks; `token` is an administrator's."""
    directory = tmp_path_factory.mktemp("closed")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, capture_output=True)
    scheduler = Scheduler(directory / "scheduler", starts=False, sections={
        "auth": {"enable": True},
        "api": {"enable_tls": True, "tls_cert_path": str(directory / "cert.pem"),
                "tls_key_path": str(directory / "key.pem")}})
    scheduler.write_config()
    made = scheduler.run("token", "create", "--role", "admin")
    assert made.returncode == 0, made
    scheduler.token = next(word for word in made.stdout.split() if word.startswith("gst_"))
    scheduler.certificate = directory / "cert.pem"
    scheduler.start()
    yield scheduler
    scheduler.kill()


@pytest.fixture
def cli(closed, tmp_path):
    return Cli(tmp_path, closed.url)


@pytest.fixture
def token_file(closed, tmp_path):
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text(closed.token + "\n")
    return path


def test_without_a_token_it_is_refused_with_the_next_step(closed, cli):
    result = cli.run("list", "--ca", closed.certificate)
    assert result.returncode == 5
    assert "GPU_SCHEDULER_TOKEN" in result.stderr


def test_with_a_token_from_a_file_or_the_environment_it_is_let_in(closed, cli, token_file):
    assert cli("tenants", "-o", "json", "--ca", closed.certificate, "--token-file", token_file)
    assert cli("tenants", "-o", "json", GPU_SCHEDULER_CA=str(closed.certificate),
               GPU_SCHEDULER_TOKEN=closed.token)


def test_a_wrong_token_is_refused_and_never_shown(closed, cli):
    result = cli.run("list", "--ca", closed.certificate, GPU_SCHEDULER_TOKEN="gst_secret")
    assert result.returncode == 5
    assert "gst_secret" not in result.stderr + result.stdout
    assert "token" in result.stderr


def test_a_token_that_others_can_read_is_not_used(closed, cli, token_file):
    token_file.chmod(0o644)
    result = cli.run("list", "--ca", closed.certificate, "--token-file", token_file)
    assert result.returncode == 5
    assert "chmod 600" in result.stderr


def test_a_certificate_that_nobody_vouches_for_is_refused(closed, cli):
    result = cli.run("list", GPU_SCHEDULER_TOKEN=closed.token)
    assert result.returncode == 4
    assert "self-signed certificate" in result.stderr


def test_a_certificate_of_another_name_is_refused(closed, cli):
    url = closed.url.replace("127.0.0.1", "127.0.0.2")
    result = cli.run("list", "--server", url, "--ca", closed.certificate)
    assert result.returncode == 4


def test_certificates_that_cannot_be_read_are_told(closed, cli):
    result = cli.run("list", "--ca", "/nonexistent")
    assert result.returncode != 0
    assert "/nonexistent" in result.stderr


@pytest.fixture
def people(closed, tmp_path):
    """Two users of one tenant, and a job of each that waits."""
    answer = closed.post("/api/v1/tenants", {"name": f"team-{tmp_path.name}"})
    assert answer.status == 201, answer
    tenant = answer.json()["id"]
    made = {}
    for name in ("alice", "bob"):
        token = closed.post("/api/v1/tokens", {"role": "tenant", "tenant_id": tenant, "note": name})
        assert token.status == 201, token
        home = tmp_path / name
        home.mkdir()
        person = Cli(home, closed.url)
        person.settings = {"GPU_SCHEDULER_CA": str(closed.certificate),
                           "GPU_SCHEDULER_TOKEN": token.json()["token"]}
        person.user = token.json()["id"]
        person.job = person("submit", "-o", "name", "--hold", "--", "true", **person.settings).strip()
        made[name] = person
    return made


def test_mine_selects_the_jobs_that_one_submitted(people):
    alice, bob = people["alice"], people["bob"]
    assert alice("whoami", "-o", "json", **alice.settings).count(alice.user) >= 1
    for command in ("list", "queue"):
        both = alice(command, "-o", "name", **alice.settings).split()
        assert {alice.job, bob.job} <= set(both)
        assert alice(command, "--mine", "-o", "name", **alice.settings).split() == [alice.job]
        assert alice(command, "--user", bob.user, "-o", "name", **alice.settings).split() == [bob.job]
    alice("cancel", "--mine", **alice.settings)
    assert "cancelled" in alice("get", alice.job, **alice.settings)
    assert "cancelled" not in alice("get", bob.job, **alice.settings)


def test_both_mine_and_user_are_refused(people):
    alice = people["alice"]
    result = alice.run("list", "--mine", "--user", "x", **alice.settings)
    assert result.returncode != 0
    assert "not both" in result.stderr
