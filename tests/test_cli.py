"""gpu-cli as a whole: what there is, and how it answers when it is not asked properly."""

import re
import subprocess


def test_help_names_the_commands_and_the_exit_codes(gpu_cli):
    for arguments in (["--help"], ["-h"], ["help"]):
        result = gpu_cli(*arguments)
        assert result.returncode == 0
        assert "estimate" in result.stdout
        assert "Exit codes: 0 success" in result.stdout
        assert result.stderr == ""


def test_version_is_one_line(gpu_cli):
    result = gpu_cli("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("gpu-cli 0.")
    assert result.stdout.count("\n") == 1


def test_help_of_a_command_is_the_same_by_both_ways(gpu_cli):
    by_help = gpu_cli("help", "estimate")
    by_option = gpu_cli("estimate", "--context", "8k", "--help")
    assert by_help.returncode == by_option.returncode == 0
    assert by_help.stdout == by_option.stdout
    assert by_help.stdout.startswith("usage: gpu-cli estimate FILE-or-DIRECTORY")


def test_every_line_of_help_fits_a_terminal(gpu_cli):
    overview = gpu_cli("--help").stdout
    names = re.findall(r"^  ([a-z][a-z-]+)  ", overview, re.M)
    assert len(names) > 20
    for said in (overview, *(gpu_cli("help", name).stdout for name in names if name != "help")):
        assert max(map(len, said.splitlines())) <= 80, said


def test_nothing_asked_shows_what_there_is(gpu_cli):
    result = gpu_cli()
    assert result.returncode == 2
    assert result.stdout == ""
    assert "usage: gpu-cli COMMAND" in result.stderr


def test_an_unknown_command_is_refused_with_those_there_are(gpu_cli):
    for arguments in (["guess"], ["help", "guess"]):
        result = gpu_cli(*arguments)
        assert result.returncode == 2
        assert "there is no command 'guess'; there are: submit, run," in result.stderr


def test_a_slip_or_a_word_of_slurm_is_answered_with_what_was_meant(gpu_cli):
    for word, meant in (("sumbit", "submit"), ("lst", "list"), ("log", "logs"), ("squeue", "queue"),
                        ("sbatch", "submit"), ("describe", "get"), ("node", "nodes")):
        result = gpu_cli(word)
        assert result.returncode == 2
        assert f"there is no command '{word}'; did you mean '{meant}'?" in result.stderr
    for option, meant in (("--gpu", "--gpus"), ("--gpsu", "--gpus"), ("--time", "--max-runtime"),
                          ("--mem=4G", "--memory"), ("--job-name=x", "--name"), ("-J", "--name"),
                          ("--priorty", "--priority"), ("--tenant", "--tenant-id")):
        result = gpu_cli("submit", option, "1", "--", "true")
        assert result.returncode == 2
        assert f"unknown option '{option.partition('=')[0]}'; did you mean {meant}?" in result.stderr


def test_every_command_has_an_example(gpu_cli):
    for line in gpu_cli("help").stdout.splitlines():
        name = line[2:].split(" ")[0] if line.startswith("  ") else ""
        if name and not name.startswith("-") and name not in ("help", "version"):
            assert f"gpu-cli {name}" in gpu_cli("help", name).stdout.partition("\n")[2], name


def test_output_that_cannot_be_written_is_a_failure(gpu_cli):
    result = gpu_cli("--version")
    assert result.returncode == 0
    with open("/dev/full", "w") as full:
        result = subprocess.run([gpu_cli.path, "--version"], stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1
    assert b"could not be written" in result.stderr
