"""The process: starts, stops, settings, and the commands beside serving."""

import http.client
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from scheduler import ROOT, Scheduler, run


def test_it_serves_and_stops_when_told(scheduler):
    assert scheduler.get("/health").json()["status"] == "healthy"
    scheduler.stop()
    levels = {line["level"] for line in scheduler.log()}
    assert levels == {"info"}
    assert scheduler.log()[-1]["message"] == "gpu-scheduler has ended"


def test_an_interrupt_stops_it_too(scheduler):
    scheduler.signal(signal.SIGINT)
    scheduler.process.wait(timeout=60)
    assert scheduler.process.returncode == 0


def test_every_start_has_the_next_term(scheduler):
    terms = []
    for _ in range(3):
        terms.append(scheduler.await_log("this scheduler leads, and serves")["term"])
        scheduler.stop()
        scheduler.start()
    assert terms == [terms[0], terms[0] + 1, terms[0] + 2]


def test_a_second_one_on_the_same_data_waits_and_takes_over(start, tmp_path):
    first = start(directory=tmp_path / "one")
    second = Scheduler(tmp_path / "two", starts=False)
    second.data = first.data
    second.start(waits=False)
    time.sleep(1)
    assert "serves at" not in second.output.read_text()
    first.stop()
    second.wait_ready()
    assert second.get("/health").status == 200
    second.stop()


def await_answer(one, seconds=60):
    """What it says about its health, once its port is open."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return one.get("/health")
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_one_that_waits_says_so_and_ends_when_told(start, tmp_path):
    first = start(directory=tmp_path / "one")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    second = start(directory=tmp_path / "two", starts=False, http=port)
    second.data = first.data
    second.start(waits=False)
    second.await_log(f"another scheduler has {first.data}/scheduler.db open")
    second.url = f"http://127.0.0.1:{port}"
    assert await_answer(second).status == 503
    refused = second.post("/api/v1/tenants", {"name": "lab"})
    assert refused.status == 503 and "is not the active one" in refused.json()["error"]
    second.stop()


def test_a_store_that_is_not_there_yet_is_waited_for(start, tmp_path):
    folder = tmp_path / "not-mounted"
    one = start(starts=False)
    one.sections = {"database": {"path": str(folder / "x.db")}}
    one.start(waits=False)
    one.await_log(f"{folder}/x.db.lock: No such file or directory")
    folder.mkdir()
    one.wait_ready()
    assert one.get("/health").status == 200


def test_a_port_in_use_is_said(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        one = start(starts=False, http=port)
        one.start(waits=False)
        assert one.process.wait(timeout=60) == 1
        assert f"cannot listen on 127.0.0.1 port {port}" in one.errors.read_text()


@pytest.mark.parametrize(
    "text, reason",
    [
        ("api:\n  http_prot: 1\n", "config.yaml:2:3: api has no key 'http_prot': is http_port meant?"),
        ("api:\n  http_port: x\n", "config.yaml:2:14: api.http_port is 'x'"),
        ("api:\n  listen: 0.0.0.0\n", "config.yaml:2:3: api.listen is 0.0.0.0, which others can reach"),
        ("api:\n\thttp_port: 1\n", "config.yaml:2:1: this is not YAML"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(tmp_path, text, reason):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    for arguments in (["--check-config"], []):
        ended = run("--config", path, *arguments)
        assert ended.returncode == 2
        assert reason in ended.stderr


def test_the_example_configuration_can_be_used_and_names_every_key():
    example = ROOT / "config" / "scheduler-config.yaml"
    ended = run("--config", example, "--check-config")
    assert ended.returncode == 0, ended.stderr
    named = set(re.findall(r"^ +#? ?([a-z_]+):", example.read_text(), re.M))
    described = set(re.findall(r"^\| `([a-z_]+)`", run("--describe-config").stdout, re.M))
    assert described - named == set()


def test_the_documentation_lists_the_settings_as_they_are():
    text = (ROOT / "docs" / "configuration.md").read_text()
    assert run("--describe-config").stdout in text


def test_the_environment_goes_before_the_file_and_options_before_both(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("api:\n  listen: 0.0.0.0\n")
    environment = {"GPU_SCHEDULER_API_LISTEN": "127.0.0.1"}
    assert run("--config", path, "--check-config").returncode == 2
    assert run("--config", path, "--check-config", environment=environment).returncode == 0
    ended = run("--config", path, "--check-config", "--listen", "0.0.0.0", environment=environment)
    assert ended.returncode == 2
    assert "--listen: api.listen" in ended.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--confg", "x"], "unknown option '--confg'; did you mean --config?"),
        (["--config"], "--config needs a value"),
        (["backup"], "write 'gpu-scheduler backup FILE'"),
        (["frobnicate"], "'frobnicate' is not a command"),
        (["--listen", "a", "--listen", "b"], "given twice"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, words):
    ended = run(*arguments)
    assert ended.returncode == 2
    assert words in ended.stderr


def test_sighup_changes_what_can_change_and_names_the_rest(scheduler):
    scheduler.sections = {"logging": {"verbosity": 3}, "redis": {"host": "127.0.0.1"}}
    scheduler.reload()
    line = scheduler.await_log("the settings were read again")
    assert line["next_start"] == "redis.host"
    scheduler.sections = {"logging": {"verbositi": 3}}
    scheduler.reload()
    line = scheduler.await_log("the settings stay as they were")
    assert "is verbosity meant?" in line["reason"]
    assert scheduler.get("/health").status == 200


def test_settings_of_the_scheduler_reach_the_store(scheduler):
    def stored():
        with sqlite3.connect(f"file:{scheduler.data}/scheduler.db?mode=ro", uri=True) as database:
            return database.execute("SELECT queue_max, thermal_threshold_c FROM config").fetchone()

    assert stored() == (2000000, 0)
    scheduler.sections = {"scheduler": {"max_queue_size": 5, "thermal_threshold": 80.0}}
    scheduler.reload()
    deadline = time.monotonic() + 60
    while stored() != (5, 80):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    scheduler.sections = {}
    scheduler.stop()
    scheduler.start()
    assert stored() == (2000000, 0)


def test_systemd_is_told(tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(20)
        one = Scheduler(tmp_path / "one", environment={"NOTIFY_SOCKET": address,
                                                       "WATCHDOG_USEC": "200000"})
        said = ""
        while "WATCHDOG=1" not in said or "STATUS=serving" not in said:
            said += listener.recv(1000).decode()
        assert "READY=1" in said
        one.stop()
        while "STOPPING=1" not in said:
            said += listener.recv(1000).decode()


def test_a_backup_is_made_while_it_runs_and_restored(scheduler, tmp_path):
    copy = tmp_path / "copy.db"
    made = scheduler.run("backup", copy)
    assert made.returncode == 0, made.stderr
    assert scheduler.run("backup", copy).returncode == 1
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    refused = scheduler.run("restore", copy, "--yes")
    assert refused.returncode == 1 and "another scheduler" in refused.stderr
    scheduler.stop()
    refused = scheduler.run("restore", copy)
    assert refused.returncode == 1 and "--yes" in refused.stderr
    assert scheduler.run("restore", copy, "--yes").returncode == 0
    term = scheduler.await_log("this scheduler leads, and serves")["term"]
    scheduler.start()
    assert scheduler.await_log("this scheduler leads, and serves")["term"] >= term + 1000000


def test_a_damaged_file_is_found_although_its_records_read_well(scheduler):
    scheduler.post("/api/v1/tenants", {"name": "lab"})
    scheduler.stop()
    path = scheduler.data / "scheduler.db"
    with sqlite3.connect(path) as database:
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name='tenants'").fetchone()[0]
        size = database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    with open(path, "r+b") as file:
        file.seek((root - 1) * size + 7)  # how much of the page's free space is in fragments
        count = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([count + 9]))
    found = scheduler.run("check")
    assert found.returncode == 1 and "the file is damaged" in found.stdout, found
    assert scheduler.run("repair", "--yes").returncode == 1


def test_what_is_damaged_is_found_and_taken_out(scheduler):
    assert scheduler.run("check").returncode == 0
    scheduler.stop()
    with sqlite3.connect(scheduler.data / "scheduler.db") as database:
        database.execute("INSERT INTO tasks (job_id, place) VALUES (77, 0)")
    found = scheduler.run("check")
    assert found.returncode == 1
    assert "task 77/0" in found.stdout
    scheduler.start(waits=False)
    assert scheduler.process.wait(timeout=60) == 1
    assert "77" in scheduler.errors.read_text()
    told = scheduler.run("repair")
    assert told.returncode == 1 and "would be taken out" in told.stdout
    assert scheduler.run("check").returncode == 1
    assert scheduler.run("repair", "--yes").returncode == 0
    assert scheduler.run("check").returncode == 0
    scheduler.start()


def test_the_first_token_is_made_while_the_service_does_not_run(scheduler):
    running = scheduler.run("token", "create")
    assert running.returncode == 1
    assert "While the service runs" in running.stderr
    scheduler.stop()
    made = scheduler.run("token", "create", "--role", "admin", "--days", "30")
    assert made.returncode == 0
    token = made.stdout.strip()
    assert len(token) > 40
    with sqlite3.connect(scheduler.data / "scheduler.db") as database:
        (value,) = database.execute("SELECT value FROM kept WHERE kind = 'token'").fetchone()
    assert token not in value
    for arguments in (["--role", "nobody"], ["--role", "tenant"], ["--days", "x"]):
        assert scheduler.run("token", "create", *arguments).returncode == 1


def be_at_rest(one):
    """Until it writes nothing by itself: the next thing that needs the store is the test's."""
    assert one.post("/api/v1/tenants", {"name": "early"}).status == 201
    time.sleep(2)  # the passing of time is noted a second after someone asked


def test_a_store_that_cannot_write_is_unhealthy_until_it_can(tmp_path):
    """The file may grow no further: what a full disk does."""
    one = Scheduler(tmp_path / "one", starts=False)
    one.start()
    be_at_rest(one)
    resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    answers = []

    def post():
        answers.append(one.post("/api/v1/tenants", {"name": "late"}, timeout=60).status)

    ask = threading.Thread(target=post)
    ask.start()
    deadline = time.monotonic() + 60
    while (answer := one.get("/health")).status != 503:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert answer.json()["status"] != "healthy"
    infinity = resource.RLIM_INFINITY
    resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (infinity, infinity))
    while one.get("/health").status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ask.join(timeout=60)
    names = [tenant["name"] for tenant in one.get("/api/v1/tenants").json()["tenants"]]
    assert (answers, sorted(names)) == ([201], ["early", "late"])
    one.stop()


def test_it_ends_while_the_store_cannot_write(start):
    """What waits for the store is not answered, and is not there afterwards by half."""
    one = start(sections={"api": {"stop_grace_ms": 200}})
    be_at_rest(one)
    resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    answers = []

    def ask():
        try:
            answers.append(one.post("/api/v1/tenants", {"name": "late"}, timeout=60).status)
        except (OSError, http.client.HTTPException):
            answers.append(None)

    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + 60
    while one.get("/health").status != 503:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    one.stop()
    asking.join(timeout=60)
    assert answers == [None]
    one.start()
    names = [tenant["name"] for tenant in one.get("/api/v1/tenants").json()["tenants"]]
    assert names == ["early"]


def test_the_journal_can_be_replayed(scheduler):
    for name in ("a", "b", "c"):
        assert scheduler.post("/api/v1/tenants", {"name": name}).status == 201
    scheduler.stop()
    replayed = subprocess.run(
        [ROOT / "bin" / "gpu-sim", "replay", scheduler.data / "journal"],
        capture_output=True, text=True, timeout=60,
    )
    assert replayed.returncode == 0, replayed.stderr


def test_postgresql_is_the_store_where_it_is_named(tmp_path, postgres_server):
    sections = {"database": {"host": str(postgres_server.folder), "user": "postgres",
                             "database": "postgres", "password": "unused"}}
    one = Scheduler(tmp_path / "one", sections=sections)
    assert one.log()[0]["store"] == "postgresql"
    assert one.post("/api/v1/tenants", {"name": "lab"}).status == 201
    other = Scheduler(tmp_path / "two", starts=False)
    other.sections = {"database": sections["database"] | {"name": "other"}}
    other.start(waits=False)
    one.kill()
    other.wait_ready()
    assert "unused" not in other.errors.read_text() + one.errors.read_text()
    tenants = other.get("/api/v1/tenants").json()["tenants"]
    assert [tenant["name"] for tenant in tenants] == ["lab"]
    other.stop()


def test_verbosity_can_be_raised_to_each_step_of_each_decision(scheduler):
    tenant = scheduler.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    job = {"tenant_id": tenant, "name": "train", "gpu_count": 1, "command": ["true"]}
    assert scheduler.post("/api/v1/jobs", job).status == 201
    scheduler.sections = {"logging": {"verbosity": 4}}
    scheduler.reload()
    scheduler.await_log("the settings were read again")
    assert not [line for line in scheduler.log() if line["level"] == "steps"]
    number = int(scheduler.post("/api/v1/jobs", job).json()["job_id"].removeprefix("job-"))

    def steps():
        return [line["message"] for line in scheduler.log() if line.get("job") == number]

    deadline = time.monotonic() + 60
    while not any(f"job-{number}: does not fit now" in step for step in steps()):
        assert time.monotonic() < deadline, scheduler.log()
        time.sleep(0.05)
    tags = {step.split()[0] for step in steps()}
    assert {"[GPU_FIT_CHECK]", "[IDLE_CHECK]", "[RESOURCE_CHECK]", "[GPU_SELECT]"} <= tags


class Silent:
    """Takes connections and what is sent, and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/hook"
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                self.taken.append(self.listener.accept()[0])
            except OSError:
                return


def test_a_webhook_that_never_answers_holds_up_the_end_for_a_second(tmp_path):
    silent = Silent()
    sections = {"notifications": {"allow_private_addresses": True}}
    one = Scheduler(tmp_path / "one", sections=sections)
    tenant = one.post("/api/v1/tenants", {"name": "loud", "notify_webhook": silent.url}).json()["id"]
    for number in range(3):
        job = one.post("/api/v1/jobs", {"tenant_id": tenant, "name": "j", "gpu_count": 1,
                                        "command": ["true"]}).json()["job_id"]
        assert one.request("DELETE", f"/api/v1/jobs/{job}").status == 200
    deadline = time.monotonic() + 60
    while not silent.taken and time.monotonic() < deadline:
        time.sleep(0.01)
    assert silent.taken
    began = time.monotonic()
    one.process.terminate()
    assert one.process.wait(60) == 0
    # A post may take 10 s; three of them wait.
    assert time.monotonic() - began < 9
    one.start()
    metrics = one.get("/metrics").body.decode()
    assert "gpu_scheduler_notifications_waiting 3\n" in metrics
    one.kill()
    silent.listener.close()
