"""Slurm's commands against the real scheduler."""

import os
import pathlib
import re
import subprocess
import time

import pytest

from cli import KIND, ROOT


class Slurm:
    """The commands, called by their names."""

    def __init__(self, folder, cluster):
        self.folder = folder
        program = ROOT / "bin" / "gpu-slurm"
        if KIND != "release":
            program = ROOT / "build" / KIND / "src" / "cli" / "gpu-slurm"
        for name in ("sbatch", "srun", "salloc", "squeue", "scancel", "sinfo", "sacct", "scontrol",
                     "sreport"):
            (folder / name).symlink_to(program)
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8",
                            "GPU_SCHEDULER_URL": cluster.scheduler.url, "TZ": "UTC"}

    def run(self, name, *words, input="", **environment):
        return subprocess.run([self.folder / name, *map(str, words)], input=input, text=True,
                              capture_output=True, timeout=120, cwd="/tmp",
                              env=self.environment | environment)

    def __call__(self, name, *words, **options):
        done = self.run(name, *words, **options)
        assert done.returncode == 0, done
        return done.stdout

    def refused(self, name, *words, **options):
        done = self.run(name, *words, **options)
        assert done.returncode != 0, done
        return done.stderr

    def submit(self, script, *words, **options):
        file = self.folder / "job.sh"
        file.write_text(script)
        said = self("sbatch", *words, file, **options)
        return re.fullmatch(r"Submitted batch job (\d+)\n", said).group(1)


@pytest.fixture
def slurm(cluster, tmp_path):
    return Slurm(tmp_path, cluster)


def finish(cluster, number):
    return cluster.await_state(f"job-{number}", "completed", "failed", "cancelled")


def test_a_script_with_directives_runs(slurm, cluster):
    out = f"/tmp/gpu-slurm-{os.getpid()}"
    number = slurm.submit(
        "#!/bin/bash\n#SBATCH --job-name=train --gres=gpu:2\n#SBATCH --mem=100M -t 10\n"
        f"#SBATCH -o {out}-%x-%j.out\n\n"
        'echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_GPUS_ON_NODE line $LINENO $1"\n',
        "--time=5")
    job = cluster.job(f"job-{number}")
    assert job["name"] == "train" and job["gpu_count"] == 2 and job["memory_mb"] == 100
    assert job["max_runtime_minutes"] == 5, "the command line goes before the script"
    finish(cluster, number)
    file = pathlib.Path(f"{out}-train-{number}.out")
    try:
        assert file.read_text().split() == [number, "train", "1", "2", "line", "6"]
    finally:
        file.unlink(missing_ok=True)


def test_arguments_and_standard_input_reach_the_script(slurm, cluster, cli):
    number = slurm("sbatch", "--parsable", "-", "one", "two",
                   input="#!/bin/sh\necho \"$# $1 $2\"\n").strip()
    finish(cluster, number)
    assert cli("logs", number) == "2 one two\n"
    wrapped = slurm("sbatch", "--parsable", "--wrap", "echo wrapped").strip()
    finish(cluster, wrapped)
    assert cli("logs", wrapped) == "wrapped\n"


def test_sbatch_waits_and_ends_with_the_code(slurm):
    assert slurm.run("sbatch", "--wait", "--wrap", "exit 3").returncode == 3
    assert slurm.run("sbatch", "-W", "-Q", "--wrap", "true").stdout == ""


def test_an_array_tells_its_elements_their_index(slurm, cluster, cli):
    first = int(slurm.submit("#!/bin/sh\n#SBATCH --array=2-4\necho $SLURM_ARRAY_TASK_ID of "
                             "$SLURM_ARRAY_TASK_COUNT\n"))
    for place, index in enumerate((2, 3, 4)):
        finish(cluster, first + place)
        assert cli("logs", first + place) == f"{index} of 3\n"
    rows = slurm("sacct", "-j", first, "-n", "-P", "--format=JobID,ArrayTaskID,State").split()
    assert rows == [f"{first + place}|{place + 2}|COMPLETED" for place in range(3)]


def test_dependencies_and_holds_are_those_of_slurm(slurm, cluster):
    first = slurm("sbatch", "--parsable", "-H", "--wrap", "true").strip()
    second = slurm("sbatch", "--parsable", "-d", f"afterok:{first}", "--wrap", "true").strip()
    assert slurm("squeue", "-h", "-j", first, "-o", "%t %r") == "PD JobHeldUser\n"
    slurm("scontrol", "release", first)
    finish(cluster, first)
    assert finish(cluster, second)["state"] == "completed"


def test_srun_shows_the_output_and_ends_with_the_code(slurm):
    done = slurm.run("srun", "-G1", "sh", "-c", "echo out; exit 7")
    assert (done.stdout, done.returncode) == ("out\n", 7)
    assert sorted(slurm("srun", "-n2", "echo", "-n2").split("\n")) == ["", "[0] -n2", "[1] -n2"]


def test_srun_inside_of_a_job_runs_in_its_task(slurm):
    done = slurm.run("srun", "sh", "-c", "echo here; exit 4", GPU_SCHEDULER_JOB_ID="job-1")
    assert (done.stdout, done.returncode) == ("here\n", 4)
    assert slurm.run("srun", "no-such-program", GPU_SCHEDULER_JOB_ID="job-1").returncode == 127


def test_squeue_lists_what_waits_and_runs_in_any_format(slurm, cluster):
    number = slurm("sbatch", "--parsable", "-J", "a-long-name", "-t", "1-0", "-G1", "--mem=2G",
                   "--wrap", "sleep 600").strip()
    cluster.await_state(f"job-{number}", "running")
    rows = slurm("squeue").splitlines()
    assert rows[0] == ("             JOBID PARTITION     NAME     USER ST       TIME  NODES "
                       "NODELIST(REASON)")
    assert any(re.match(rf" +{number} +all a-long-n +\S+  R ", row) for row in rows)
    one = slurm("squeue", "-h", "-j", number, "-o", "%i|%j|%T|%l|%D|%m|%b")
    assert one == f"{number}|a-long-name|RUNNING|1-00:00:00|1|2G|gres/gpu:1\n"
    assert slurm("squeue", "-h", "-n", "a-long-name", "-O", "JobID%-8,State%-9") \
        == f"{number:<8} RUNNING  \n"
    assert slurm("squeue", "-h", "-t", "PD", "-j", number) == ""
    assert "did you mean JobID" in slurm.refused("squeue", "-O", "JobI")
    slurm("scancel", number)
    assert finish(cluster, number)["state"] == "cancelled"
    assert slurm("squeue", "-h", "-j", number) == ""
    assert slurm("sacct", "-j", number, "-n", "-P", "-o", "State") == "CANCELLED\n"


def test_sacct_looks_as_slurm_prints_it(slurm, cluster):
    number = slurm("sbatch", "--parsable", "--wrap", "sleep 600", "-t", "0:01").strip()
    failed = slurm("sbatch", "--parsable", "--wrap", "exit 2").strip()
    finish(cluster, failed)
    lines = slurm("sacct", "-j", failed).splitlines()
    assert lines[0].split() == ["JobID", "JobName", "Partition", "Account", "AllocCPUS", "State",
                                "ExitCode"]
    assert set(lines[1]) == {"-", " "}
    assert lines[2].split() == [failed, "wrap", "all", "physics", "1", "FAILED", "2:0"]
    finish(cluster, number)
    assert slurm("sacct", "-nPj", number, "-o", "State,Timelimit") == "TIMEOUT|0:01\n"


def test_scancel_takes_names_states_and_elements(slurm, cluster):
    name = f"doomed-{os.getpid()}"
    first = int(slurm("sbatch", "--parsable", "-a", "0-2", "-J", name, "--wrap", "sleep 600"))
    slurm("scancel", f"{first}_1")
    assert finish(cluster, first + 1)["state"] == "cancelled"
    slurm("scancel", "-n", name)
    assert {finish(cluster, first + i)["state"] for i in range(3)} == {"cancelled"}
    assert "No job identification" in slurm.refused("scancel")
    assert "not known" in slurm.refused("scancel", "999999")


def test_sinfo_groups_nodes_by_state(slurm, cluster):
    nodes = sorted(agent.name for agent in cluster.agents)
    deadline = time.monotonic() + 60
    while (rows := slurm("sinfo", "-h").splitlines()) and "idle" not in rows[0]:
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)
    assert rows[0].split()[:5] == ["all*", "up", "infinite", "2", "idle"]
    assert sorted(rows[0].split()[5].split(",")) == nodes
    each = slurm("sinfo", "-h", "-N", "-o", "%N %t %G").splitlines()
    assert sorted(each) == [f"{node} idle gpu:4" for node in nodes]
    slurm("scontrol", "update", f"NodeName={nodes[0]}", "State=DRAIN", "Reason=test")
    assert re.search("drain|drng", slurm("sinfo", "-h", "-n", nodes[0]))
    slurm("scontrol", "update", f"NodeName={nodes[0]}", "State=RESUME")
    assert f"NodeName={nodes[0]}" in slurm("scontrol", "show", "node", nodes[0])


def test_scontrol_shows_and_changes_jobs(slurm, cluster):
    number = slurm("sbatch", "--parsable", "-H", "--comment", "a note", "--wrap", "true").strip()
    slurm("scontrol", "update", f"JobId={number}", "Priority=700")
    shown = slurm("scontrol", "show", "job", number)
    for part in (f"JobId={number} ", "JobState=PENDING", "Reason=JobHeldUser", "Priority=700",
                 "Comment=a note"):
        assert part in shown
    assert slurm("scontrol", "-o", "show", "job", number).count("\n") == 1
    slurm("scancel", number)


def test_reports_and_ping(slurm):
    rows = slurm("sreport", "-n", "-P", "cluster", "AccountUtilizationByUser").splitlines()
    assert any(row.startswith("physics|") for row in rows)
    assert "UP" in slurm("scontrol", "ping")


@pytest.mark.parametrize("words, sentence", [
    (["sbatch", "-w", "n1", "--wrap", "true"], "--nodelist is not supported"),
    (["sbatch", "--wrap", "true", "-t", "soon"], "invalid --time 'soon'"),
    (["sbatch", "--wrap", "true", "--gres=shard:1"], "only GPUs are known"),
    (["sbatch", "--wrap", "true", "-d", "singleton"], "afterok:ID"),
    (["sbatch", "--wrap", "true", "--gress=gpu:1"], "did you mean --gres?"),
    (["sbatch", "/no/such/file"], "cannot open /no/such/file"),
    (["sreport", "user", "top"], "gpu-cli report"),
    (["scontrol", "reconfigure"], "is not supported"),
    (["squeue", "-t", "SLEEPING"], "invalid state 'SLEEPING'"),
])
def test_what_has_no_counterpart_is_refused_with_what_to_use(slurm, words, sentence):
    assert sentence in slurm.refused(*words)


def test_ignored_options_are_named(slurm):
    done = slurm.run("sbatch", "--mail-type=END", "-q", "high", "--wrap", "true")
    assert done.returncode == 0
    assert "--mail-type has no effect here" in done.stderr and "--qos" in done.stderr


def test_variables_of_the_environment_are_options(slurm, cluster):
    number = slurm("sbatch", "--parsable", "-H", "--wrap", "true", SBATCH_TIMELIMIT="7").strip()
    assert cluster.job(f"job-{number}")["max_runtime_minutes"] == 7
    slurm("scancel", number)


def test_me_is_nobody_where_nobody_signs_in(slurm, cluster, cli):
    """Jobs of all have no user then, so scancel --me must not end any."""
    job = cli.submit("--hold", "--", "true")
    for command in ("scancel", "squeue"):
        assert "not signed in" in slurm.refused(command, "--me")
    assert cluster.job(job)["state"] == "pending"
    cli("cancel", job)
