"""Jobs from the command line: submit, run, list, get, logs, cancel, why, queue."""

import json
import os
import re
import signal
import subprocess
import time


def test_a_job_is_submitted_and_ends_well(cli, cluster):
    said = cli("submit", "--name", "hello", "--gpus", "1", "--", "sh", "-c", "echo on $CUDA_VISIBLE_DEVICES")
    job = re.fullmatch(r"(job-\d+) submitted\n", said)[1]
    cluster.await_state(job, "completed")
    assert cli("logs", job).startswith("on GPU-")
    page = cli("get", job)
    assert re.search(r"^State +completed$", page, re.M)
    assert re.search(r"^Job +job-\d+ hello$", page, re.M)
    assert "task 0 started on alpha" in page or "task 0 started on beta" in page


def test_run_shows_the_output_and_ends_with_the_jobs_code(cli):
    result = cli.run("run", "--gpu-memory", "4G", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert result.returncode == 7
    assert result.stdout == "out\nerr\n"
    assert "failed: task 0 ended with 7" in result.stderr


def test_a_job_that_was_killed_ends_as_a_shell_would_say(cli):
    assert cli.run("run", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_output_comes_as_it_is_written(cli):
    process = cli.start("run", "--", "sh", "-c", "echo first; sleep 1000")
    try:
        assert process.stdout.readline() == "first\n"
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_an_interruption_cancels_the_job(cli, cluster):
    process = cli.start("run", "--name", "interrupted", "--", "sh", "-c", "echo begun; sleep 100")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    job = re.search(r"cancelling (job-\d+)", errors)[1]
    assert cluster.job(job)["state"] == "cancelled"


def test_a_second_interruption_leaves_at_once(cli, cluster):
    process = cli.start("run", "--", "sh", "-c", "trap '' TERM; echo begun; while :; do sleep 1; done")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "cancelling" in line:
            break
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    # It said nothing of the job's end, because it did not wait for it.
    assert "was cancelled" not in process.stderr.read()


def test_tasks_are_told_apart_by_their_numbers(cli):
    result = cli.run("run", "--tasks", "3", "--gpu-memory", "1G", "--", "sh", "-c", "echo a; echo b")
    assert result.returncode == 0
    assert sorted(result.stdout.splitlines()) == [f"[{n}] {x}" for n in range(3) for x in "ab"]


def test_follow_shows_the_output_and_wait_does_not(cli):
    followed = cli.run("submit", "--follow", "--", "sh", "-c", "echo text; exit 3")
    assert followed.returncode == 3
    assert followed.stdout.splitlines()[1:] == ["text"]
    waited = cli.run("submit", "--wait", "-o", "name", "--", "sh", "-c", "echo text; exit 4")
    assert waited.returncode == 4
    assert re.fullmatch(r"job-\d+\n", waited.stdout)


def test_logs_of_a_job_that_waits_begin_when_it_runs(cli, cluster):
    job = cli.submit("--hold", "--", "sh", "-c", "echo late")
    process = cli.start("logs", "-f", job)
    time.sleep(0.3)
    assert process.poll() is None
    assert cli("release", job) == f"{job} released\n"
    output, _ = process.communicate(timeout=60)
    assert output == "late\n"
    assert process.returncode == 0


def test_the_last_lines_of_the_output_can_be_had(cli, cluster):
    job = cli.submit("--", "sh", "-c", "seq 100")
    cluster.await_state(job, "completed")
    assert cli("logs", job, "--tail", "2") == "99\n100\n"
    assert cli("logs", job).splitlines()[0] == "1"


def test_a_script_gets_its_arguments(cli, tmp_path):
    script = tmp_path / "work.sh"
    script.write_text('#!/bin/sh\necho "$1 and $2 and $WORD"\n')
    result = cli.run("run", "--script", script, "--env", "WORD=three", "one", "two")
    assert result.stdout == "one and two and three\n", result


def test_any_field_of_a_job_can_be_a_column(cli, cluster):
    cli("submit", "--name", "columns", "--label", "team=a", "--hold", "--max-runtime", "90m", "--", "true")
    lines = cli("list", "--name", "columns", "--columns", "name,held,labels,max_runtime_minutes").splitlines()
    assert lines[0].split() == ["NAME", "HELD", "LABELS", "MAX_RUNTIME_MINUTES"]
    assert lines[1].split() == ["columns", "yes", "team=a", "1h30m"]


def test_a_column_that_does_not_exist_is_refused_with_a_suggestion(cli):
    refused = cli.run("list", "--columns", "id,priorty")
    assert refused.returncode == 2
    assert "a job has no field 'priorty'; did you mean 'priority'?" in refused.stderr


def test_the_page_of_a_job_shows_every_field_that_was_set(cli):
    said = cli("submit", "--hold", "--workdir", "/tmp", "--label", "team=b", "--close", "node", "--close-required",
               "--deadline", "2030-01-31T12:00:00Z", "--estimated-runtime", "2h", "--", "true")
    page = cli("get", said.split()[0])
    for label, value in [("Working directory", "/tmp"), ("Labels", "team=b"), ("Closeness", "node"),
                         ("Closeness required", "yes"), ("Estimated runtime", "2h")]:
        assert re.search(rf"^{label} +{value}$", page, re.M), page
    assert re.search(r"^Deadline +2030-01-31", page, re.M), page


def test_an_array_is_many_jobs(cli, cluster):
    said = cli("submit", "--array", "1-4%2", "--gpu-memory", "1G", "--wait", "--", "true")
    first, last = re.match(r"(job-\d+) to (job-\d+) submitted \(4 jobs\)", said).groups()
    assert int(last[4:]) - int(first[4:]) == 3
    assert cluster.job(last)["state"] == "completed"
    assert "array [3]" in cli("list") or "true [3]" in cli("list")


def test_a_job_starts_after_another(cli, cluster):
    first = cli.submit("--hold", "--", "true")
    second = cli.submit("--after", first, "--", "true")
    assert cluster.job(second)["state"] == "pending"
    assert first in cli("why", second)
    cli("release", first)
    cluster.await_state(second, "completed")


def test_a_job_that_ran_twice_shows_its_runs(cli, cluster):
    job = cli.submit("--gpu-memory", "1G", "--", "sleep", "60")
    cluster.await_state(job, "running")
    assert "Runs" not in cli("get", job)
    cli("requeue", job)
    cluster.wait(lambda: "run 2 on" in cli("get", job))
    page = cli("get", job)
    assert re.search(r"^Runs +\S+.* task 0, run 1 on (alpha|beta)\S*?, \S+: requeued$", page, re.M)
    assert re.search(r"^ +\S+.* task 0, run 2 on (alpha|beta)\S*?: running$", page, re.M)
    cli("cancel", job)


def test_what_waits_says_why_and_when(cli, cluster, full):
    job = cli.submit("--name", "waiting", "--gpus", "2", "--", "true")
    cluster.await_state(job, "pending")
    assert job in cli("queue")
    row = next(line for line in cli("queue").splitlines() if job in line)
    assert "waiting" in row and "GPU" in row
    why = cli("why", job)
    assert why.startswith(f"{job} waits")
    page = cli("get", job)
    assert re.search(r"^Why +\S", page, re.M)
    assert re.search(r"^Position +\d+ in the queue", page, re.M)
    cli("cancel", job)


def test_a_gpu_of_some_size_and_a_part_of_that_size_are_told_apart_before_they_are_placed(cli, cluster, full):
    whole = cli.submit("--gpus", "1", "--gpu-memory", "20G", "--", "true")
    part = cli.submit("--gpu-memory", "20G", "--", "true")
    half = cli.submit("--gpus", "0.5", "--", "true")
    none = cli.submit("--hold", "--", "true")
    sharing = {job: cluster.job(job)["gpu_sharing"] for job in (whole, part, half, none)}
    assert sharing == {whole: "whole", part: "memory", half: "fraction", none: "none"}
    assert "Requested     1 GPU with at least 20G" in cli("get", whole)
    assert "Requested     20G of a GPU" in cli("get", part)
    assert "Requested     0.5 of a GPU" in cli("get", half)
    assert "no free GPU of at least 20480 MiB" in cli("why", whole)
    assert "20480 MiB free" in cli("why", part)
    gpus = {line.split()[0]: line.split() for line in cli("list", "--state", "pending").splitlines()}
    assert "20G" in gpus[part] and "20G" not in gpus[whole]
    cli("cancel", whole, part, half, none)


def test_the_reason_in_the_queue_does_not_say_again_that_it_waits(cli, cluster):
    first = cli.submit("--hold", "--", "true")
    second = cli.submit("--after", first, "--", "true")
    assert re.search(rf"^- +{second} .* for {first} to succeed", cli("queue"), re.M)
    assert f"{second} waits" not in cli("queue")
    cli("cancel", second, first)


def test_memory_in_which_nothing_could_run_is_not_meant(cli):
    for size, remedy in (("40", "which is 40 MiB: write 40G or 40M"), ("0.5", "expected a size such as 20G")):
        result = cli.run("submit", "--gpu-memory", size, "--", "true")
        assert result.returncode == 2
        assert remedy in result.stderr


def test_a_placement_is_shown_with_its_memory_and_its_arithmetic(cli, cluster):
    job = cli.submit("--gpu-memory", "20G", "--", "sleep", "60")
    cluster.await_state(job, "running")
    page = cli("get", job)
    assert re.search(r"GPU \d  20G reserved.*GPU-fake-", page)
    why = cli("why", job)
    assert "20480 asked" in why and "of 81920 MiB" in why
    (told,) = re.findall("^.*20480 asked.*$", why, re.M)
    assert told.strip() in json.loads(cli("why", job, "-o", "json"))["decision"]
    cli("cancel", job)


def test_why_asks_once(cli, cluster):
    job = cli.submit("--", "true")
    cluster.await_state(job, "completed")

    def requests():
        text = cluster.scheduler.get("/metrics").body.decode()
        counted = re.findall(r'^gpu_scheduler_http_requests_total{(.*)} (\d+)$', text, re.M)
        return sum(int(count) for labels, count in counted if "/metrics" not in labels)

    before = requests()
    cli("why", job)
    assert requests() - before == 1


def test_jobs_are_held_released_and_queued_again(cli, cluster):
    job = cli.submit("--hold", "--", "sleep", "60")
    assert "held" in cli("list")
    cli("release", job)
    cluster.await_state(job, "running")
    assert cli("requeue", job) == f"{job} queued again\n"
    cli("priority", job, "900")
    assert cluster.job(job)["priority"] == 900
    cli("cancel", job)
    cluster.await_state(job, "cancelled")


def test_every_form_of_output_says_the_same(cli, cluster):
    job = cli.submit("--name", "forms", "--label", "kind=form", "--", "true")
    cluster.await_state(job, "completed")
    assert cli("list", "--label", "kind=form", "-o", "name") == f"{job}\n"
    listed = json.loads(cli("list", "--label", "kind=form", "-o", "json"))
    assert [entry["id"] for entry in listed] == [job]
    assert json.loads(cli("get", job, "-o", "json"))["name"] == "forms"
    assert "name: forms\n" in cli("get", job, "-o", "yaml")
    assert "COMMAND" in cli("list", "-o", "wide")
    assert "COMMAND" not in cli("list")


def test_what_others_wrote_cannot_command_the_terminal(cli, cluster):
    job = cli.submit("--", "echo", "evil\033[2J\007")
    said = cli("list", "-o", "wide") + cli("get", job)
    assert "evil?[2J?" in said
    assert "\033" not in said and "\007" not in said


def test_dry_run_sends_nothing(cli, cluster):
    before = cluster.scheduler.get("/api/v1/jobs").json()["total"]
    body = json.loads(cli("submit", "--dry-run", "--gpus", "0.5", "--max-runtime", "2h30m", "--cpus",
                          "0.1", "--memory", "2G", "--", "true"))
    assert body.pop("submit_directory") == os.getcwd()
    assert body == {"name": "true", "command": ["true"], "gpu_fraction": 0.5,
                    "max_runtime": "9000s", "cpu_cores": 0.1, "memory_mb": 2048}
    assert cluster.scheduler.get("/api/v1/jobs").json()["total"] == before


def test_a_job_sent_twice_under_one_key_is_made_once(cli):
    first = cli("submit", "--idempotency-key", "k1", "--", "true")
    second = cli("submit", "--idempotency-key", "k1", "--", "true")
    assert second == first.replace("submitted", "was submitted before")


def test_output_that_nobody_reads_ends_quietly(cli):
    process = cli.start("run", "--", "sh", "-c", "while :; do echo y; done", stdout=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) != 0


def test_the_output_of_an_earlier_run_can_be_read(cli, cluster):
    job = cli.submit("--name", "again", "--", "sh", "-c", "echo $GPU_SCHEDULER_RESERVATION; sleep 300")
    cluster.await_state(job, "running")
    first = cluster.wait(lambda: cli.run("logs", job).stdout)
    cli("requeue", job)
    second = cluster.wait(lambda: (out := cli.run("logs", job).stdout) != first and out)
    assert cluster.wait(lambda: cli.run("logs", job, "--run", "1").stdout) == first
    assert cli("logs", job, "--run", "2") == second
    cli("cancel", job)
    missing = cli.run("logs", job, "--run", "9")
    assert missing.returncode == 3 and "has no run 9" in missing.stderr
    missing = cli.run("logs", job, "--task", "7")
    assert missing.returncode == 3 and "has no task 7: it has 1" in missing.stderr


def test_nothing_is_mine_where_nobody_signs_in(cli, cluster):
    """Nothing is cancelled: the jobs of all have no user."""
    job = cli.submit("--hold", "--", "true")
    for command in ("list", "queue", "cancel"):
        result = cli.run(command, "--mine")
        assert result.returncode != 0, command
        assert "not signed in" in result.stderr
    assert cluster.job(job)["state"] == "pending"
    cli("cancel", job)
