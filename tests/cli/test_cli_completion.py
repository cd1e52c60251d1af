"""Completion in bash, zsh and fish, and the manual page."""

import os
import shutil
import subprocess

import pytest

from cli import program


def offered(cli, *words):
    return cli("__complete", "--", *words).split()


def test_commands_options_and_words_are_offered(cli):
    assert offered(cli, "sub") == ["submit"]
    assert "list" in offered(cli, "")
    assert offered(cli, "submit", "--gpu-me") == ["--gpu-memory"]
    assert offered(cli, "list", "--state", "r") == ["running"]
    assert offered(cli, "list", "--state=pre") == ["preempted"]
    assert offered(cli, "list", "-o", "") == ["json", "yaml", "wide", "name"]
    assert offered(cli, "completion", "z") == ["zsh"]
    assert offered(cli, "submit", "--script", "x") == ["@files"]
    assert offered(cli, "run", "--", "python", "tr") == ["@files"]
    assert offered(cli, "help", "dra") == ["drain"]


def test_names_are_asked_of_the_service(cli, cluster):
    job = cli.submit("--", "true")
    assert job in offered(cli, "get", "job-")
    assert offered(cli, "drain", "alp") == [f"alpha-{os.getpid()}"]
    assert offered(cli, "submit", "--tenant-id", "phy") == ["physics"]
    assert offered(cli, "list", "-t", "") == ["physics"]


def test_a_service_that_is_away_offers_nothing_and_keeps_nobody_waiting(cli):
    result = cli.run("__complete", "--", "get", "", GPU_SCHEDULER_URL="http://127.0.0.1:1", timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def in_bash(cli, line):
    """What bash would offer at the end of the line."""
    script = f"""
        PATH={program().parent}:$PATH
        source <(gpu-cli completion bash)
        COMP_LINE='{line}'
        COMP_POINT=${{#COMP_LINE}}
        read -r -a COMP_WORDS <<<"$COMP_LINE"
        [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _gpu_cli
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30,
                            env=cli.environment(), cwd=cli.home)
    assert result.returncode == 0 and not result.stderr, result
    return result.stdout.split()


def test_bash_completes(cli):
    (cli.home / "work.sh").touch()
    assert in_bash(cli, "gpu-cli sub") == ["submit"]
    assert in_bash(cli, "gpu-cli drain alp") == [f"alpha-{os.getpid()}"]
    assert in_bash(cli, "gpu-cli submit --pri") == ["--priority"]
    assert in_bash(cli, "gpu-cli submit --script wo") == ["work.sh"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh here")
def test_zsh_completes(cli):
    # zsh completes only where it edits a line: in a terminal, which zpty is.
    script = f"""
        zmodload zsh/zpty
        zpty shell 'zsh -f -i'
        say() {{ zpty -w shell "$1" }}
        hear() {{ local text; while zpty -r -m shell text "*$1*"; do print -r -- "$text"; return; done }}
        say 'PATH={program().parent}:$PATH; PS1=; autoload -Uz compinit; compinit -u -d {cli.home}/dump'
        say 'source <(gpu-cli completion zsh); echo read''y'
        hear ready >/dev/null
        for line in 'gpu-cli subm' 'gpu-cli drain alp' 'gpu-cli submit --prior'; do
            zpty -w -n shell "$line"$'\\t'
            sleep 1
            zpty -w -n shell $'\\025'
        done
        sleep 0.2
        say 'echo don''e'
        hear done
    """
    result = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=30,
                            env=cli.environment(TERM="dumb"), cwd=cli.home)
    assert "submit" in result.stdout, result
    assert f"alpha-{os.getpid()}" in result.stdout
    assert "--priority" in result.stdout


def in_fish(cli, line):
    """What fish would offer at the end of the line, without what it says about each."""
    script = f"""
        set -x PATH {program().parent} $PATH
        gpu-cli completion fish | source
        complete -C '{line}'
    """
    result = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True,
                            timeout=30, env=cli.environment(), cwd=cli.home)
    assert result.returncode == 0 and not result.stderr, result
    return [offer.split("\t")[0] for offer in result.stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish here")
def test_fish_completes(cli):
    (cli.home / "work.sh").touch()
    assert in_fish(cli, "gpu-cli sub") == ["submit"]
    assert in_fish(cli, "gpu-cli drain alp") == [f"alpha-{os.getpid()}"]
    assert in_fish(cli, "gpu-cli submit --pri") == ["--priority"]
    assert in_fish(cli, "gpu-cli submit --script wo") == ["work.sh"]
    assert in_fish(cli, "gpu-cli submit --script=wo") == ["--script=work.sh"]
    assert len(in_fish(cli, "gpu-cli drain ")) == 2
    assert in_fish(cli, "gpu-cli list --state=pre") == ["--state=preempted"]
    assert in_fish(cli, "gpu-cli no-such-command ") == []


def test_the_scripts_are_well_formed(cli):
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        script = cli("completion", shell)
        assert "gpu-cli" in script
        if shutil.which(check[0]):
            result = subprocess.run([*check, "/dev/stdin"], input=script, capture_output=True, text=True)
            assert result.returncode == 0 and not result.stderr, result


def test_the_manual_has_every_command_and_no_fault(cli):
    page = cli("help", "--man")
    overview = cli("help")
    for line in overview.splitlines():
        if line.startswith("  ") and line.split()[0].isalpha():
            assert f".SS {line.split()[0]}" in page or line.split()[0] == "help"
    if shutil.which("groff"):
        result = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=page, text=True,
                                capture_output=True)
        assert result.returncode == 0 and not result.stderr, result.stderr
