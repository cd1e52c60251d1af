"""Who may work in a job: its user and administrators; what of that is audited, and when it ends."""

import os
import shutil
import subprocess

import pytest
from cli import Cli, program
from pty_client import PtyClient
from test_enrolment import SecuredCluster


class People:
    """Tokens of two users of one tenant, of another tenant, of a viewer and of an administrator."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.tokens = {"admin": cluster.scheduler.token}
        other = cluster.make_tenant("chemistry")
        for name, role, tenant in (("owner", "tenant", cluster.tenant),
                                   ("colleague", "tenant", cluster.tenant),
                                   ("stranger", "tenant", other),
                                   ("viewer", "viewer", cluster.tenant)):
            made = cluster.scheduler.post("/api/v1/tokens", {"role": role, "tenant_id": tenant})
            self.tokens[name] = made.json()["token"]
            setattr(self, name + "_id", made.json()["id"])

    def environment(self, who):
        home = self.directory / who
        home.mkdir(exist_ok=True)
        return Cli(home, self.cluster.scheduler.url).environment(
            GPU_SCHEDULER_TOKEN=self.tokens[who])

    def run(self, who, *arguments):
        return subprocess.run([program(), *map(str, arguments)], env=self.environment(who),
                              capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    directory = tmp_path_factory.mktemp("people")
    cluster = SecuredCluster(directory)
    _, path = cluster.enroll("node-of-sessions")
    cluster.agent("node-of-sessions", arguments=["--token-file", str(path)])
    yield People(cluster, directory)
    cluster.stop()


@pytest.fixture(scope="module")
def job(people):
    """The owner's, which runs."""
    result = people.run("owner", "submit", "-o", "name", "--", "sleep", "3000")
    assert result.returncode == 0, result
    job = result.stdout.strip()
    people.cluster.await_state(job, "running")
    return job


@pytest.mark.parametrize("who", ["owner", "admin"])
def test_the_user_of_the_job_and_administrators_may(people, job, who):
    result = people.run(who, "exec", job, "--", "echo", "inside")
    assert (result.returncode, result.stdout) == (0, "inside\n"), result


@pytest.mark.parametrize("who, status, sentence", [
    ("colleague", 5, "only the user who submitted"),
    ("stranger", 3, ""),
    ("viewer", 5, ""),
])
@pytest.mark.parametrize("words", [["exec", "--", "id"], ["attach"], ["forward-once"]])
def test_nobody_else_may(people, job, who, status, sentence, words):
    if words == ["forward-once"]:
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        answer = people.cluster.scheduler.get(f"/api/v1/jobs/{job}/forward?port=22",
                                              token=people.tokens[who], headers=headers)
        assert answer.status == (404 if who == "stranger" else 403), answer
        return
    result = people.run(who, words[0], job, *words[1:])
    assert result.returncode == status, result
    assert sentence in result.stderr, result
    assert "uid=" not in result.stdout


def test_a_colleague_who_knows_the_session_may_not_attach(people, job):
    scheduler = people.cluster.scheduler
    made = scheduler.post(f"/api/v1/jobs/{job}/sessions", {"command": ["cat"], "terminal": True},
                          token=people.tokens["owner"])
    assert made.status == 201, made
    result = people.run("colleague", "attach", job, "--session", made.json()["session_id"])
    assert result.returncode == 5, result


def test_sessions_are_in_the_audit_log(people, job):
    people.run("owner", "exec", job, "--", "true")
    entries = people.cluster.scheduler.get("/api/v1/audit").json()["entries"]
    actions = {(entry["action"], entry.get("detail")) for entry in entries
               if people.owner_id in str(entry)}
    assert ("session_open", "task 0: true") in actions, entries[:4]
    assert "session_attach" in {action for action, _ in actions}


def test_a_revoked_token_ends_the_session_at_once(people, job):
    made = people.cluster.scheduler.post("/api/v1/tokens", {"role": "admin"}).json()
    people.tokens["leaver"] = made["token"]
    shell = PtyClient([program(), "exec", "-it", job, "--", "sh", "-c", "echo in; cat"],
                      people.environment("leaver"))
    try:
        shell.shows("in\r\n")
        assert people.cluster.scheduler.delete(f"/api/v1/tokens/{made['id']}").status < 300
        assert shell.wait() != 0
    finally:
        shell.close()


@pytest.mark.parametrize("body, word", [
    ({}, "command"),
    ({"command": []}, "command"),
    ({"command": ["a", 1]}, "command"),
    ({"command": ["a"], "columns": 0}, "columns"),
    ({"command": ["a"], "environment": {"A=B": "c"}}, "environment"),
    ({"command": ["a"], "user": "root"}, "user"),
    ({"command": ["a"], "task": -1}, "task"),
])
def test_what_is_wrong_in_a_request_is_named(people, job, body, word):
    answer = people.cluster.scheduler.post(f"/api/v1/jobs/{job}/sessions", body)
    assert answer.status == 400, answer
    assert word in answer.json()["error"]


def test_a_session_without_a_websocket_is_told_of_one(people, job):
    answer = people.cluster.scheduler.get(f"/api/v1/jobs/{job}/sessions/main")
    assert answer.status == 426


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root")
def test_a_session_runs_as_the_user_of_its_tenant_without_privileges(people, tmp_path):
    cluster = people.cluster
    _, path = cluster.enroll("node-of-daemons")
    cluster.agent("node-of-daemons", arguments=[
        "--token-file", str(path), "--trust-open-scheduler=0", "--allow-root=0", "--user", "nobody",
        "--labels", "of=daemons"])
    tenant = cluster.make_tenant("daemons", unix_user="daemon")
    job = cluster.submit("sleep 3000", tenant_id=tenant, node_labels={"of": "daemons"})
    cluster.await_state(job, "running")
    script = "id -un; grep -E 'NoNewPrivs|CapBnd|CapEff' /proc/self/status"
    result = people.run("admin", "exec", job, "--", "sh", "-c", script)
    lines = result.stdout.splitlines()
    assert lines[0] == "daemon", result
    assert lines[1].split() == ["CapEff:", "0000000000000000"]
    assert lines[2].split() == ["CapBnd:", "0000000000000000"]
    assert lines[3].split() == ["NoNewPrivs:", "1"]
