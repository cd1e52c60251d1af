"""What the tests of whole programs share: they run what scripts/build put into bin/."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Program:
    """A program from bin/; calling it runs it with the arguments to its end."""

    def __init__(self, name):
        self.path = ROOT / "bin" / name

    def __call__(self, *arguments, **options):
        return subprocess.run(
            [self.path, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            **options,
        )


@pytest.fixture
def gpu_cli():
    return Program("gpu-cli")


@pytest.fixture
def gpu_sim():
    return Program("gpu-sim")
