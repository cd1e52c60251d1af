"""docs/cli.md has every command, and no option that is not there. (tests/docs runs them all.)"""

import re

from cli import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text()


def test_every_command_is_on_the_page(cli):
    names = re.findall(r"^  ([a-z][a-z-]+)  ", cli("help"), re.M)
    for name in names:
        if name not in ("help", "version", "estimate"):
            assert re.search(rf"(gpu-cli |`|, `){name}\b", PAGE), name


def test_every_option_of_the_page_is_one(cli):
    names = re.findall(r"^  ([a-z][a-z-]+)  ", cli("help"), re.M)
    known = set(re.findall(r"--[a-z][a-z-]+", "".join(cli("help", n) for n in names if n != "help")))
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.split("## Coming from")[0]))
    assert told - known - {"--epochs"} == set()
