"""docs/cli.md is true: every command on it is run, in the order of the page."""

import os
import re
import subprocess

from cli import ROOT, program

PAGE = (ROOT / "docs" / "cli.md").read_text()


def commands():
    """The lines of blocks without a language."""
    fence = None
    for line in PAGE.splitlines():
        if line.startswith("```"):
            fence = line if fence is None else None
        elif fence == "```":
            yield line


def test_every_command_of_the_page_works(cli, cluster):
    environment = cli.environment(PATH=f"{program().parent}:{os.environ['PATH']}")
    ran = 0
    for line in commands():
        result = subprocess.run(["bash", "-c", line], env=environment, cwd=cli.home, text=True,
                                capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        assert result.returncode == 0, (line, result)
        if line.startswith("gpu-cli create-tenant"):
            # From here on there are two tenants.
            environment["GPU_SCHEDULER_TENANT"] = "physics"
        ran += 1
    assert ran > 40


def test_every_command_is_on_the_page(cli):
    names = re.findall(r"^  ([a-z][a-z-]+)  ", cli("help"), re.M)
    for name in names:
        if name not in ("help", "version", "estimate"):
            assert re.search(rf"(gpu-cli |`|, `){name}\b", PAGE), name


def test_every_option_of_the_page_is_one(cli):
    names = re.findall(r"^  ([a-z][a-z-]+)  ", cli("help"), re.M)
    known = set(re.findall(r"--[a-z][a-z-]+", "".join(cli("help", n) for n in names if n != "help")))
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.split("## For those who come")[0]))
    assert told - known - {"--epochs"} == set()
