"""Interactive sessions: gpu-cli run --pty, exec and attach, on real pseudo-terminals."""

import hashlib
import os
import re
import shutil
import subprocess
import threading

import pytest
from cli import program
from pty_client import PtyClient

MIB = 1 << 20
SHELL = ["env", "PS1=ready> ", "bash", "--norc", "--noprofile", "-i"]


@pytest.fixture
def client(cli):
    """Starts gpu-cli in terminals that are closed at the end."""
    clients = []

    def start(*arguments, **options):
        clients.append(PtyClient([program(), *arguments], cli.environment(), **options))
        return clients[-1]

    yield start
    for one in clients:
        one.close()


@pytest.fixture(scope="module")
def sleeper(cluster):
    """A job that runs for as long as the tests do."""
    job = cluster.submit("sleep 3000", environment={"OF_JOB": "from the job"})
    cluster.await_state(job, "running")
    return job


def run(cli, *arguments, data=None):
    """The finished call; standard input and output are bytes."""
    return subprocess.run([program(), *arguments], input=data, capture_output=True, timeout=120,
                          env=cli.environment())


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def memory_of(pid):
    """Resident, in bytes."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def job_of(client):
    """The job that a client told of."""
    client.shows("job-")
    return re.search(rb"job-\d+", client.output).group().decode()


def test_a_job_has_the_callers_terminal(client, cluster):
    shell = client("run", "--pty", "--gpus", "1", "--", *SHELL, columns=100, rows=30)
    shell.shows("ready> ")
    shell.press("stty size; test -t 0 && test -t 1 && echo on a $((1 + 1)) terminal; echo $TERM\r")
    shell.shows("30 100\r\n")
    shell.shows("on a 2 terminal")
    shell.shows("xterm\r\n")
    shell.press("echo $CUDA_VISIBLE_DEVICES | wc -w; exit 7\r")
    shell.shows("1\r\n")
    assert shell.wait() == 7
    job = cluster.job(job_of(shell))
    assert (job["state"], job["exit_code"]) == ("failed", 7)
    assert "on a 2 terminal" in cluster.logs(job["id"])


WATCHES_SIZE = """
import os, signal
def tell(*_):
    os.write(1, b"size %d %d\\n" % tuple(os.get_terminal_size()))
signal.signal(signal.SIGWINCH, tell)
tell()
while True:
    signal.pause()
"""


def test_the_window_size_follows_the_terminal(client, sleeper):
    shell = client("exec", "-it", sleeper, "--", "python3", "-c", WATCHES_SIZE, columns=70, rows=20)
    shell.shows("size 70 20")
    shell.resize(123, 45)
    shell.shows("size 123 45")
    shell.press("\x03")
    assert shell.wait() != 0


def test_control_c_interrupts_the_command_and_not_the_session(client, sleeper):
    shell = client("exec", "-it", sleeper, "--", *SHELL)
    at = shell.shows("ready> ")
    shell.press("sh -c 'echo it runs $((1 + 1)); exec sleep 1000'\r")
    at = shell.shows("it runs 2\r\n", at)
    shell.press("\x03")
    at = shell.shows("ready> ", at)
    shell.press("echo still $((40 + 2)) here; exit 3\r")
    shell.shows("still 42 here", at)
    assert shell.wait() == 3


def test_a_command_has_the_jobs_environment_directory_and_user(cli, cluster, sleeper):
    result = run(cli, "exec", sleeper, "--", "sh", "-c",
                 'echo "$OF_JOB,$GPU_SCHEDULER_JOB_ID,$(id -u)"; pwd')
    assert result.returncode == 0, result
    first = cluster.submit('echo "$GPU_SCHEDULER_JOB_ID,$(id -u)"; pwd')
    cluster.await_state(first, "completed")
    user = cluster.logs(first).splitlines()[0].split(",")[1]
    line, directory = result.stdout.decode().splitlines()
    assert line == f"from the job,{sleeper},{user}"
    assert directory


def test_streams_stay_apart_and_the_code_is_the_commands(cli, sleeper):
    result = run(cli, "exec", sleeper, "--", "sh", "-c", "echo out; echo error >&2; exit 42")
    assert (result.returncode, result.stdout, result.stderr) == (42, b"out\n", b"error\n")
    result = run(cli, "exec", sleeper, "--", "sh", "-c", "kill -9 $$")
    assert result.returncode == 128 + 9


def test_standard_input_and_its_end_arrive(cli, sleeper):
    data = os.urandom(3 * MIB)
    result = run(cli, "exec", "-i", sleeper, "--", "sha256sum", data=data)
    assert result.stdout.split()[0].decode() == digest_of(data), result
    assert run(cli, "exec", sleeper, "--", "cat", data=b"not asked for").stdout == b""


def test_much_output_arrives_as_it_was(cli, sleeper):
    command = "import sys; sys.stdout.buffer.write(b''.join(b'%d\\n' % n for n in range(2000000)))"
    result = run(cli, "exec", sleeper, "--", "python3", "-c", command)
    assert digest_of(result.stdout) == digest_of(b"".join(b"%d\n" % n for n in range(2000000)))


def test_what_is_pasted_into_a_terminal_arrives(client, sleeper):
    text = b"".join(b"line %d of what was pasted\n" % n for n in range(40000))
    shell = client("exec", "-it", sleeper, "--", "sh", "-c",
                   "stty raw -echo; echo go; head -c %d | sha256sum" % len(text))
    shell.shows("go")
    shell.press(text)
    shell.shows(digest_of(text))


def test_a_command_that_cannot_run_is_refused(cli, sleeper):
    result = run(cli, "exec", sleeper, "--", "/no/such/program")
    assert result.returncode != 0
    assert b"cannot run /no/such/program" in result.stderr
    result = run(cli, "exec", "job-999999", "--", "true")
    assert result.returncode == 3, result


def test_python_in_a_terminal(client, sleeper):
    shell = client("exec", "-it", sleeper, "--", "python3", "-q")
    shell.shows(">>> ")
    shell.press("6 * 7000\r")
    # Before its next prompt Python has not told the terminal yet how it reads.
    shell.shows(">>> ", after=shell.shows("42000"))
    shell.press("\x04")
    assert shell.wait() == 0


@pytest.mark.skipif(not shutil.which("vim"), reason="there is no vim here")
def test_an_editor_draws_on_the_whole_screen(client, sleeper, tmp_path):
    os.chmod(tmp_path, 0o777)
    path = tmp_path / "edited"
    shell = client("exec", "-it", sleeper, "--", "vim", "-u", "NONE", "-N", path)
    shell.shows("~")
    shell.press("ihello from vim\x1b:wq\r")
    assert shell.wait() == 0
    assert path.read_text() == "hello from vim\n"


@pytest.mark.parametrize("keys", ["\x10\x11", "\r~."])
def test_a_session_is_left_and_returned_to(client, cli, sleeper, keys):
    shell = client("exec", "-it", sleeper, "--", *SHELL)
    shell.shows("ready> ")
    shell.press("kept=$((1000 + 234))\r")
    shell.shows("ready> ", shell.shows("234))\r\n"))
    shell.press(keys)
    shell.shows("detached: ")
    assert shell.wait() == 0
    words = re.search(rb"gpu-cli (attach [^']*)'", shell.output).group(1).decode().split()
    again = client(*words)
    again.press("echo was $kept; exit 5\r")
    again.shows("was 1234")
    assert again.wait() == 5


def test_a_job_is_left_running_and_attached_to(client, cli, cluster):
    shell = client("run", "--pty", "--", *SHELL)
    shell.shows("ready> ")
    job = job_of(shell)
    shell.press("\x10\x11")
    shell.shows("detached: ")
    assert shell.wait() == 0
    assert cluster.job(job)["state"] == "running"
    again = client("attach", job)
    again.press("echo back $((20 + 3)); exit 4\r")
    again.shows("back 23")
    assert again.wait() == 4
    cluster.await_state(job, "failed")


def test_another_client_takes_a_session_over(client, cluster):
    first = client("run", "--pty", "--", *SHELL)
    first.shows("ready> ")
    second = client("attach", job_of(first))
    first.shows("another client has attached")
    first.shows("detached: ")
    second.press("echo mine $((1 + 1)); exit\r")
    second.shows("mine 2")
    assert second.wait() == 0


def test_a_session_ends_with_its_job(client, cli, cluster):
    job = cluster.submit("sleep 3000")
    cluster.await_state(job, "running")
    shell = client("exec", "-it", job, "--", *SHELL)
    shell.shows("ready> ")
    cli("cancel", job)
    shell.shows("its job has ended")
    assert shell.wait() == 128 + 9


def test_a_task_of_a_gang_is_chosen(cli, cluster):
    job = cluster.submit("sleep 3000", tasks=2)
    cluster.await_state(job, "running")
    for task in ("0", "1"):
        result = run(cli, "exec", job, "--task", task, "--", "sh", "-c", "echo $GPU_SCHEDULER_TASK")
        assert result.stdout.decode() == f"{task}\n", result
    cli("cancel", job)


@pytest.mark.parametrize("words", [["srun", "--pty", "sh", "-i"], ["salloc"], ["salloc", "sh", "-i"]])
def test_slurms_commands_give_a_terminal(cli, cluster, words):
    environment = cli.environment(SHELL="/bin/sh", PS1="ready> ")
    shell = PtyClient([program().with_name("gpu-slurm"), *words], environment)
    try:
        shell.press("test -t 0 && echo job $GPU_SCHEDULER_JOB_ID on $((1 + 1)) ends\rexit 6\r")
        shell.shows("on 2 ends")
        assert shell.wait() == 6
    finally:
        shell.close()


def test_a_session_goes_on_after_a_restart_of_the_scheduler(client, cluster, sleeper):
    shell = client("exec", "-it", sleeper, "--", *SHELL)
    at = shell.shows("ready> ")
    shell.press("stty -echo; n=0; while read x; do n=$((n + 1)); echo got $n $x; done\r")
    shell.shows("done\r\n", at)
    shell.press("first\r")
    shell.shows("got 1 first")
    cluster.scheduler.ports["http"] = cluster.scheduler.port
    cluster.scheduler.kill()
    shell.shows("the connection was lost")
    shell.press("while away\r")
    cluster.scheduler.start()
    shell.shows("got 2 while away")
    shell.press("third\r")
    shell.shows("got 3 third")


def test_a_session_goes_on_after_a_restart_of_the_agent(client, cli, cluster):
    node = cluster.agent(f"sessions-{os.getpid()}", gpus="1x80G",
                         arguments=["--labels", "sessions=restart"])
    shell = client("run", "--pty", "--node-label", "sessions=restart", "--", "sh", "-c",
                   "stty -echo; echo go; while read x; do echo got $x; done")
    shell.shows("go")
    shell.press("first\r")
    shell.shows("got first")
    node.kill()
    shell.press("second\r")
    node.start()
    shell.shows("got second")
    shell.press("third\r")
    shell.shows("got third")
    cli("cancel", job_of(shell))


def test_output_that_nobody_reads_waits_in_bounded_memory(client, cli, cluster):
    """A client that has stopped reading holds the command back; all bytes come in the end."""
    job = cluster.submit("sleep 3000")
    cluster.await_state(job, "running")
    process = subprocess.Popen(
        [program(), "exec", job, "--", "sh", "-c", "yes | head -c 30000000; echo end >&2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment())
    assert process.stdout.read(2) == b"y\n"
    before = memory_of(cluster.scheduler.process.pid)
    count, error = [2], []
    reader = threading.Thread(
        target=lambda: count.__setitem__(0, 2 + sum(map(len, iter(lambda: process.stdout.read(MIB), b"")))))
    reader.start()
    reader.join(120)
    assert count[0] == 30000000
    assert process.stderr.read() == b"end\n"
    assert process.wait(60) == 0
    assert memory_of(cluster.scheduler.process.pid) - before < 64 * MIB
    cli("cancel", job)


def test_many_sessions_at_once(cli, sleeper):
    """Each gets its own bytes."""
    processes = [subprocess.Popen([program(), "exec", "-i", sleeper, "--", "cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=cli.environment()) for _ in range(40)]
    for number, process in enumerate(processes):
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
    for number, process in enumerate(processes):
        assert process.stdout.readline() == b"%d\n" % number, process.stderr.read()
    for number, process in enumerate(processes):
        assert process.communicate(b"end", timeout=60) == (b"end", b"")
        assert process.returncode == 0
