"""gpu-guard-run: a command under the guard, against the stand-in driver."""

import json
import os
import pathlib
import re
import runpy
import signal
import struct
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDIN = ROOT / "build/release/src/guard/test"
NO_CONTEXT = 102  # what the program ends with that allocates
UUID = "GPU-57000000-0000-0000-0000-00000000000%d"


@pytest.fixture
def guard_run():
    """Runs gpu-guard-run with programs that find the stand-in driver."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(STANDIN))

    def run(*arguments):
        return subprocess.run(
            [str(ROOT / "bin/gpu-guard-run"), *map(str, arguments)],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    run.environment = environment
    return run


def allocate(mib):
    return [STANDIN / "guard_lookup", "dlsym", mib]


def test_a_command_within_its_limit_ends_as_it_does_without(guard_run):
    result = guard_run("--limit", "64M", *allocate(64))
    assert result.returncode == 0
    assert result.stdout == ""


def test_a_command_over_its_limit_is_refused_and_that_is_said(guard_run):
    result = guard_run("--limit", "64M", *allocate(66))
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert re.fullmatch(r"GPU +LIMIT +USED +PEAK +REFUSALS", lines[0])
    assert re.fullmatch(UUID % 0 + r" +64 MiB +0 MiB +0 MiB +1", lines[1])


def test_only_the_gpus_that_are_named_give_memory(guard_run):
    assert guard_run("--limit", f"{UUID % 0}=64M", *allocate(64)).returncode == 0
    # On others there is not even a context.
    assert guard_run("--limit", f"{UUID % 1}=64M", *allocate(1)).returncode == NO_CONTEXT


def test_the_numbers_are_written_as_json(guard_run, tmp_path):
    out = tmp_path / "numbers.json"
    result = guard_run("--quiet", "--json", out, "--limit", "64M", *allocate(30))
    assert (result.returncode, result.stderr) == (0, "")
    numbers = json.loads(out.read_text())
    assert numbers == {"gpus": [{
        "uuid": UUID % 0, "limit_bytes": 64 << 20, "used_bytes": 0, "peak_bytes": 30 << 20,
        "refusals": 0, "last_refused_bytes": 0}], "processes": 0}


def test_the_exit_status_and_signals_are_those_of_the_command(guard_run):
    assert guard_run("--limit", "1G", "/bin/sh", "-c", "exit 7").returncode == 7
    assert guard_run("--limit", "1G", "/bin/sh", "-c", "kill -9 $$").returncode == 128 + 9
    assert guard_run("--limit", "1G", "/no/such/command").returncode == 127
    process = subprocess.Popen(
        [str(ROOT / "bin/gpu-guard-run"), "--quiet", "--limit", "1G", "sh", "-c",
         "echo ready; exec sleep 60"],
        env=guard_run.environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 128 + signal.SIGTERM


def test_a_command_that_runs_can_be_looked_at(guard_run, tmp_path):
    segment = tmp_path / "segment"
    process = subprocess.Popen(
        [str(ROOT / "bin/gpu-guard-run"), "--quiet", "--segment", str(segment), "--limit", "64M",
         "sh", "-c", "echo ready; exec sleep 60"],
        env=guard_run.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        result = guard_run("--show", segment)
        assert result.returncode == 0
        assert "processes under the guard: 0" in result.stdout
    finally:
        process.terminate()
        process.wait(timeout=30)
    deadline = time.monotonic() + 60
    while segment.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not segment.exists()


def test_what_makes_no_sense_is_refused_with_the_reason(guard_run):
    for arguments, reason in (
            (["true"], "there is no --limit"),
            (["--limit", "1G"], "there is no command"),
            (["--limit", "1.5G", "true"], "a size is a number with K, M, G or T"),
            (["--limit", "GPU-7=1G", "true"], "the UUID of a GPU"),
            (["--limit"], "--limit needs a value"),
            (["--context", "x", "--limit", "1G", "true"], "--context x is not a size"),
            (["--fast", "1", "true"], "unknown option '--fast'"),
            (["--library", "/no/such/file", "--limit", "1G", "true"], "No such file"),
            (["--segment", "/dev/null", "--limit", "1G", "true"], "cannot be made")):
        result = guard_run(*arguments)
        assert result.returncode == 125, arguments
        assert reason in result.stderr


def test_help_says_what_it_does(guard_run):
    result = guard_run("--help")
    assert result.returncode == 0
    assert "usage: gpu-guard-run --limit SIZE COMMAND" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_program_for_real_gpus_fills_its_budget_and_goes_on(guard_run, tmp_path):
    program = tmp_path / "driver"
    subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-o", program,
                    ROOT / "tests/gpu/guard_driver.c", "-ldl", "-lpthread"], check=True)
    result = guard_run("--quiet", "--limit", "512M", program, "fill", 0)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {
        "shown_mib": 512, "total_mib": 512, "free_mib": 510, "taken_mib": 510,
        "said": "CUDA_ERROR_OUT_OF_MEMORY", "goes_on": True}
    result = guard_run("--quiet", "--limit", "512M", program, "times", 100)
    assert (result.returncode, result.stderr) == (0, "")


def test_programs_that_use_no_gpu_run_as_ever(guard_run):
    result = guard_run("--quiet", "--limit", "1G", "bash", "-c", "echo $((40 + 2)) | cat; exit 3")
    assert (result.returncode, result.stdout, result.stderr) == (3, "42\n", "")
    program = ("import concurrent.futures, ctypes, multiprocessing, sqlite3, ssl, subprocess\n"
               "with concurrent.futures.ThreadPoolExecutor(4) as pool:\n"
               "    assert list(pool.map(abs, range(-9, 0))) == list(range(9, 0, -1))\n"
               "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
               "    assert pool.map(abs, [-1, -2]) == [1, 2]\n"
               "assert ctypes.CDLL(None).strlen(b'guard') == 5\n"
               "assert subprocess.run(['true']).returncode == 0\n")
    result = guard_run("--quiet", "--limit", "1G", "python3", "-c", program)
    assert (result.returncode, result.stderr) == (0, "")


HOLD = STANDIN / "guard_hold"
WAYS_OUT = {
    "env": ["env", "-i", HOLD, 66],
    "shell": ["sh", "-c", f"unset LD_PRELOAD GPU_GUARD_SEGMENT GPU_GUARD_LIMITS; {HOLD} 66 < /dev/null; exit 0"],
    "exec": ["python3", "-c", f"import os; os.execve('{HOLD}', ['hold', '66'], {{}})"],
    "segment": ["env", "GPU_GUARD_SEGMENT=/no/such/file", HOLD, 66],
    "spawn": ["python3", "-c", "import os; os.waitpid(os.posix_spawn("
              f"'{HOLD}', ['hold', '66'], {{'LD_PRELOAD': ''}}), 0)"],
    "subprocess": ["python3", "-c", f"import subprocess; subprocess.run(['{HOLD}', '66'], env={{}})"],
    "system": ["python3", "-c", "import os; os.environ.clear(); "
               f"print(end='', flush=True); os.system('{HOLD} 66')"],
    "popen": ["perl", "-e", f"%ENV = (); print `{HOLD} 66`"],
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_program_that_is_started_with_another_environment_keeps_the_guard(guard_run, way):
    result = guard_run("--limit", "64M", *WAYS_OUT[way])
    assert "total 64\n66 2\n" in result.stdout, (result.stdout, result.stderr)


def test_other_libraries_that_are_to_be_preloaded_stay(guard_run):
    show = ["env", "-i", "LD_PRELOAD=libm.so.6", "sh", "-c", "echo $LD_PRELOAD"]
    listed = guard_run("--limit", "64M", *show).stdout.strip().split(":")
    assert [os.path.basename(path) for path in listed] == ["libgpuguard.so", "libm.so.6"]


def test_without_a_budget_environments_are_left_alone(guard_run):
    library = ROOT / "lib/libgpuguard.so"
    environment = guard_run.environment | {"LD_PRELOAD": str(library)}
    shown = subprocess.run(["env", "-i", "sh", "-c", "echo [$LD_PRELOAD]"], env=environment,
                           capture_output=True, text=True, timeout=60).stdout
    assert shown == "[]\n"


ATTACKS = runpy.run_path(str(ROOT / "tests/gpu/attack_names.py"))["ATTACKS"]


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gets_hardly_more_than_its_limit(guard_run, name, tmp_path):
    """At most the GiB of one module, which is measured when it is there."""
    state = tmp_path / "state"
    guard_run.environment |= {"STANDIN_STATE": str(state), "STANDIN_MEMORY": str(140 << 30)}
    result = guard_run("--limit", "20G", sys.executable, ROOT / "tests/gpu/attack.py", name)
    assert "done" in result.stdout, (result.stdout, result.stderr)
    peak = struct.unpack("8q", state.read_bytes()[:64])[4]
    assert peak <= 21 << 30
