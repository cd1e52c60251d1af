"""Agents that sign in: with a token of their own, over TLS."""

import os
import subprocess

import pytest
from cluster import Cluster, FixedScheduler
from stub import ROOT, Agent


class SecuredCluster(Cluster):
    """One that wants a sign-in; requests carry an administrator's token."""

    def __init__(self, directory, sections=None):
        self.directory = directory
        sections = {"auth": {"enable": True}, **(sections or {})}
        self.scheduler = FixedScheduler(directory / "scheduler", sections=sections, starts=False)
        self.scheduler.write_config()
        made = self.scheduler.run("token", "create")
        assert made.returncode == 0, made.stderr
        self.scheduler.token = made.stdout.strip()
        self.admin_token_file = directory / "admin-token"
        self.admin_token_file.write_text(self.scheduler.token + "\n")
        self.scheduler.start()
        self.port = self.scheduler.grpc.rpartition(":")[2]
        self.scheduler.grpc_port = self.port
        self.agents = []
        self.tenant = self.make_tenant("physics")

    def enroll(self, name, *arguments):
        path = self.directory / f"{name}-token"
        done = subprocess.run(
            [ROOT / "bin" / "gpu-agent", "enroll", "--url", self.scheduler.url]
            + ["--admin-token-file", self.admin_token_file, "--token-file", path]
            + ["--name", name, *arguments],
            capture_output=True,
            text=True,
        )
        return done, path


@pytest.fixture
def secured(tmp_path):
    cluster = SecuredCluster(tmp_path)
    yield cluster
    cluster.stop()


def test_an_enrolled_agent_signs_in_and_runs_jobs(secured):
    done, path = secured.enroll("node-signed-in", "--days", "30")
    assert done.returncode == 0, done.stderr
    assert path.stat().st_mode & 0o777 == 0o600
    secured.agent("node-signed-in", arguments=["--token-file", str(path)])
    job = secured.submit("echo signed in", gpu_count=1)
    assert secured.await_state(job, "completed", "failed")["state"] == "completed"
    assert secured.logs(job) == "signed in\n"
    assert "connected to a scheduler" in (secured.directory / "node-signed-in.log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_where_everyone_signs_in_a_task_runs_as_the_user_of_its_tenant(secured):
    _, path = secured.enroll("node-of-users")
    secured.agent(
        "node-of-users",
        arguments=["--token-file", str(path), "--trust-open-scheduler=0", "--allow-root=0", "--user", "nobody"],
    )
    tenant = secured.make_tenant("daemons", unix_user="daemon")
    job = secured.submit("id -un", tenant_id=tenant)
    secured.await_state(job, "completed")
    assert secured.logs(job) == "daemon\n"


def refused_by(secured, name, *arguments):
    """The log of an agent that is not let in."""
    agent = Agent(secured.port, secured.directory / name, name, arguments=arguments)
    secured.agents.append(agent)
    log = secured.directory / f"{name}.log"
    secured.wait(lambda: "the scheduler ended the call" in log.read_text())
    assert secured.node(name) is None
    return log.read_text()


def test_an_agent_without_a_token_is_not_let_in(secured):
    assert "connected to a scheduler" not in refused_by(secured, "node-without")


def test_an_agent_with_the_token_of_another_node_is_not_let_in(secured):
    _, path = secured.enroll("node-one")
    refused_by(secured, "node-two", "--token-file", str(path))


def test_enrolling_again_revokes_the_earlier_token(secured):
    _, path = secured.enroll("node-again")
    earlier = path.read_text().strip()
    secured.enroll("node-beside")
    done, _ = secured.enroll("node-again")
    assert done.returncode == 0, done.stderr
    assert path.read_text().strip() != earlier
    tokens = secured.scheduler.get("/api/v1/tokens").json()["tokens"]
    assert sorted(one["node"] for one in tokens if one["role"] == "agent") == ["node-again", "node-beside"]
    assert secured.scheduler.get("/api/v1/nodes", token=earlier).status == 401
    entry = secured.scheduler.get("/api/v1/audit").json()["entries"][0]
    assert entry["action"] == "create token" and "instead of" in entry["detail"]
    refused = secured.scheduler.post("/api/v1/tokens", {"role": "viewer", "replace": True})
    assert refused.status == 400 and "replace" in refused.json()["error"]


def test_enrolling_without_rights_says_why(secured):
    secured.admin_token_file.write_text("nonsense\n")
    done, path = secured.enroll("node-x")
    assert done.returncode == 1
    assert "no token" in done.stderr
    assert not path.exists()


@pytest.fixture
def certificate(tmp_path):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        + ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"]
        + ["subjectAltName=DNS:localhost,IP:127.0.0.1"]
        + ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"],
        check=True,
        capture_output=True,
    )
    return tmp_path


def tls_sections(certificate):
    return {
        "api": {
            "enable_tls": True,
            "tls_cert_path": str(certificate / "cert.pem"),
            "tls_key_path": str(certificate / "key.pem"),
        }
    }


def test_over_tls_a_trusted_scheduler_is_talked_to(tmp_path, certificate):
    cluster = SecuredCluster(tmp_path / "c", tls_sections(certificate))
    try:
        ca = str(certificate / "cert.pem")
        done, path = cluster.enroll("node-tls", "--ca-file", ca)
        assert done.returncode == 0, done.stderr
        cluster.agent("node-tls", arguments=["--tls", "--ca-file", ca, "--token-file", str(path)])
        job = cluster.submit("head -c 300000 /dev/zero | tr '\\0' x", gpu_count=1)
        assert cluster.await_state(job, "completed", "failed")["state"] == "completed"
        assert len(cluster.logs(job)) == 300000
    finally:
        cluster.stop()


def test_over_tls_a_scheduler_that_is_not_trusted_is_left_alone(tmp_path, certificate):
    cluster = SecuredCluster(tmp_path / "c", tls_sections(certificate))
    name = "node-distrustful"
    agent = Agent(cluster.port, cluster.directory / name, name, arguments=["--tls"])
    cluster.agents.append(agent)
    try:
        log = cluster.directory / f"{name}.log"
        cluster.wait(lambda: "certificate is not trusted" in log.read_text())
        done, path = cluster.enroll("node-distrustful")
        assert done.returncode == 1 and not path.exists()
    finally:
        cluster.stop()
