"""bin/gpu-cli as a user calls it: with a home of its own, and only the settings of the test."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIND = os.environ.get("BUILD_KIND", "release")


def program():
    """The one under test: bin/'s, or that of the build that BUILD_KIND names, or CLI_PROGRAM."""
    if os.environ.get("CLI_PROGRAM"):
        return pathlib.Path(os.environ["CLI_PROGRAM"])
    if KIND == "release":
        return ROOT / "bin" / "gpu-cli"
    return ROOT / "build" / KIND / "src" / "cli" / "gpu-cli"


class Cli:
    def __init__(self, home, url=None):
        self.home = pathlib.Path(home)
        self.url = url

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("GPU_SCHEDULER_", "XDG_")) and k != "NO_COLOR"}
        kept |= {"HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        if self.url:
            kept["GPU_SCHEDULER_URL"] = self.url
        return kept | more

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [program(), *map(str, arguments)],
            env=self.environment(),
            text=True,
            **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
               | options),
        )

    def run(self, *arguments, input=None, timeout=60, **environment):
        """The finished call, whatever came of it."""
        return subprocess.run(
            [program(), *map(str, arguments)],
            input=input if input is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment(**environment),
        )

    def __call__(self, *arguments, **options):
        """What it says, if all went well."""
        result = self.run(*arguments, **options)
        assert result.returncode == 0, (arguments, result)
        return result.stdout

    def submit(self, *arguments):
        """The id of the job."""
        return self("submit", "-o", "name", *arguments).strip()
