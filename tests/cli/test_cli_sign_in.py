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
