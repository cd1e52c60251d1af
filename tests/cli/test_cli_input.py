"""Standard input of gpu-cli run, through the scheduler and the agent to the task."""

import hashlib
import os
import signal
import subprocess
import threading

import pytest
from cli import program

MIB = 1 << 20


def run(cli, *arguments, data=None, **options):
    """The finished call; standard input and output are bytes."""
    return subprocess.run([program(), "run", *arguments], input=data, capture_output=True,
                          timeout=300, env=cli.environment(), **options)


def digest_of(data):
    return hashlib.sha256(data).hexdigest().encode()


@pytest.fixture(scope="module")
def ten_mib():
    return os.urandom(10 * MIB)


def test_ten_megabytes_from_a_pipe_arrive_as_they_were(cli, ten_mib):
    result = run(cli, "sha256sum", data=ten_mib)
    assert result.returncode == 0, result
    assert result.stdout.split()[0] == digest_of(ten_mib)


def test_a_file_arrives_from_where_it_was_read_to(cli, ten_mib, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(ten_mib)
    with path.open("rb") as file:
        os.lseek(file.fileno(), 1000, os.SEEK_SET)
        result = run(cli, "sha256sum", stdin=file)
    assert result.stdout.split()[0] == digest_of(ten_mib[1000:])


def test_the_end_of_input_reaches_the_task(cli):
    assert run(cli, "cat", data=b"").stdout == b""
    assert run(cli, "sh", "-c", "cat; echo end", data=b"no newline").stdout == b"no newlineend\n"


def test_input_that_comes_late_is_passed_on_as_it_comes(cli):
    process = subprocess.Popen([program(), "run", "--", "cat"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, env=cli.environment())
    for line in (b"first\n", b"second\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line
    process.stdin.close()
    assert process.stdout.read() == b""
    assert process.wait(60) == 0


def test_a_task_can_open_its_standard_input_again(cli):
    assert run(cli, "cat", "/dev/stdin", data=b"again\n").stdout == b"again\n"


def test_a_task_that_reads_no_more_ends_the_job_all_the_same(cli, ten_mib):
    result = run(cli, "head", "-c", "5", data=ten_mib)
    assert (result.returncode, result.stdout) == (0, ten_mib[:5])


def test_a_task_that_does_not_read_holds_the_writer_back(cli):
    """What is on its way is bounded: pipes, and a part in each of the programs."""
    process = subprocess.Popen(
        [program(), "run", "--", "sh", "-c", "read line; echo $line; sleep 1000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=cli.environment())
    written = [0]

    def write():
        try:
            process.stdin.write(b"begun\n")
            process.stdin.flush()
            while True:
                written[0] += os.write(process.stdin.fileno(), b"x" * 65536)
        except OSError:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert process.stdout.readline() == b"begun\n"
        before = -1
        while before != written[0]:
            before = written[0]
            writer.join(2)
        assert writer.is_alive()
        assert written[0] < 2 * MIB
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        writer.join(60)


def test_of_a_gang_the_first_task_has_the_input(cli):
    script = 'echo "$GPU_SCHEDULER_TASK $(cat | wc -c)"'
    result = run(cli, "--tasks", "3", "--", "sh", "-c", script, data=b"12345")
    assert sorted(result.stdout.splitlines()) == [b"[0] 0 5", b"[1] 1 0", b"[2] 2 0"]


def test_of_a_gang_all_tasks_have_it_where_that_is_asked_for(cli, ten_mib):
    result = run(cli, "--tasks", "3", "--stdin", "all", "--", "sha256sum", data=ten_mib[:MIB])
    digests = [line.split()[1] for line in result.stdout.splitlines()]
    assert digests == [digest_of(ten_mib[:MIB])] * 3


def test_a_job_without_input_reads_nothing(cli, cluster):
    result = run(cli, "--stdin", "none", "--", "cat", data=b"ignored")
    assert (result.returncode, result.stdout) == (0, b"")
    job = cluster.submit("sleep 1000")
    cluster.await_state(job, "running")
    answer = cluster.scheduler.post(f"/api/v1/jobs/{job}/input?task=0&offset=0", {})
    assert answer.status == 409
    assert "has no standard input" in answer.json()["error"]
    cli("cancel", job)


def test_input_goes_on_where_it_was_after_a_restart_of_the_agent(cli, cluster, ten_mib):
    node = cluster.agent(f"restarts-{os.getpid()}", gpus="1x80G", arguments=["--labels", "input=restarts"])
    process = subprocess.Popen(
        [program(), "run", "--node-label", "input=restarts", "--", "sh", "-c",
         "head -c 6; sha256sum"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment())
    process.stdin.write(b"begun\n")
    process.stdin.flush()
    assert process.stdout.read(6) == b"begun\n"
    writer = threading.Thread(target=lambda: (process.stdin.write(ten_mib), process.stdin.close()))
    writer.start()
    node.kill()
    node.start()
    output = process.stdout.read()
    assert output.split()[0] == digest_of(ten_mib), process.stderr.read()
    assert process.wait(60) == 0
    writer.join(60)


def test_a_file_is_read_again_for_a_task_that_starts_again(cli, cluster, tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"all of it\n")
    mark = tmp_path / "second"
    os.chmod(tmp_path, 0o777)
    with path.open("rb") as file:
        process = subprocess.Popen(
            [program(), "run", "--name", "again", "--", "sh", "-c",
             f"cat; [ -e {mark} ] && exit 0; touch {mark}; sleep 1000"],
            stdin=file, stdout=subprocess.PIPE, env=cli.environment())
    assert process.stdout.readline() == b"all of it\n"
    cluster.wait(mark.exists)
    job = cli("list", "--name", "again", "--state", "running", "-o", "name").strip()
    cli("requeue", job)
    assert process.stdout.readline() == b"all of it\n"
    assert process.wait(120) == 0


def test_a_pipe_cannot_be_read_again_and_the_job_is_cancelled(cli, cluster):
    process = subprocess.Popen([program(), "run", "--name", "once", "--", "sh", "-c", "cat; sleep 1000"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=cli.environment())
    process.stdin.write(b"line\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"line\n"
    job = cli("list", "--name", "once", "--state", "running", "-o", "name").strip()
    cli("requeue", job)
    _, errors = process.communicate(timeout=120)
    assert b"cannot be read again" in errors
    assert cluster.job(job)["state"] == "cancelled"
