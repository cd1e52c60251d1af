"""The programs are built with the hardening that compiler and linker offer."""

import os
import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["gpu-scheduler", "gpu-agent", "gpu-keeper", "gpu-slot-proxy", "gpu-guard-run", "gpu-cli", "gpu-sim",
            "gpu-slurm", "gpu-gateway"]
FILES = [f"bin/{name}" for name in PROGRAMS] + ["lib/libgpuguard.so"]

pytestmark = [
    pytest.mark.skipif(not shutil.which("readelf"), reason="binutils is not installed"),
    pytest.mark.skipif(os.environ.get("BUILD_KIND", "release") != "release",
                       reason="only the programs of a release build are installed"),
]


def readelf(file, *options):
    shown = subprocess.run(["readelf", "--wide", *options, ROOT / file], check=True,
                           capture_output=True, text=True)
    return shown.stdout


def symbols(file):
    """Names in the symbol table, without versions."""
    rows = (line.split() for line in readelf(file, "--symbols").splitlines())
    return {row[7].partition("@")[0] for row in rows if len(row) > 7}


@pytest.mark.parametrize("file", FILES)
def test_code_is_position_independent(file):
    kind = readelf(file, "--file-header").partition("Type:")[2].split()[0]
    assert kind == "DYN"


@pytest.mark.parametrize("file", FILES)
def test_relocations_are_read_only_before_the_program_starts(file):
    assert "GNU_RELRO" in readelf(file, "--program-headers")
    assert "BIND_NOW" in readelf(file, "--dynamic")


@pytest.mark.parametrize("file", FILES)
def test_neither_stack_nor_data_can_be_executed(file):
    for line in readelf(file, "--program-headers").splitlines():
        row = line.split()
        if not row or row[0] not in ("LOAD", "GNU_STACK"):
            continue
        flags = line[line.index(row[5]) + len(row[5]):]
        assert not ("W" in flags and "E" in flags), line


@pytest.mark.parametrize("file", FILES)
def test_stack_overflows_are_detected(file):
    assert "__stack_chk_fail" in symbols(file)


@pytest.mark.parametrize("file", FILES)
def test_calls_of_the_c_library_are_checked_for_overflows(file):
    assert {name for name in symbols(file) if name.endswith("_chk")} - {"__stack_chk_fail"}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 marks targets of branches")
def test_functions_are_valid_targets_of_indirect_branches(file):
    begins = "main" if file.startswith("bin/") else "cuMemAlloc_v2"
    code = subprocess.run(["objdump", f"--disassemble={begins}", ROOT / file], check=True,
                          capture_output=True, text=True).stdout
    first = code.partition(f"<{begins}>:")[2].strip().splitlines()[0]
    assert "endbr64" in first


def test_the_keeper_needs_no_libraries():
    assert "NEEDED" not in readelf("bin/gpu-keeper", "--dynamic")
