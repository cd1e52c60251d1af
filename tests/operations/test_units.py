"""The units of systemd: as systemd itself judges them."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNITS = ROOT / "deploy" / "systemd"

pytestmark = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def analyze(*words):
    environment = dict(os.environ, SYSTEMD_PAGER="", SYSTEMD_COLORS="0", LC_ALL="C.UTF-8")
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True,
                          timeout=60, env=environment)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root directory with the units where packages put them, and the programs that they name."""
    root = tmp_path_factory.mktemp("root")
    units = root / "usr" / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    for unit in UNITS.glob("*.service"):
        (units / unit.name).write_text(unit.read_text())
        for program in re.findall(r"^Exec\w+=(/\S+)", unit.read_text(), re.M):
            (root / program.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / program.lstrip("/")).write_text("")
            (root / program.lstrip("/")).chmod(0o755)
    for target in ("sysinit", "basic", "network-online", "multi-user", "shutdown"):
        (units / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    return root


def units_of(root):
    return sorted((root / "usr" / "lib" / "systemd" / "system").glob("gpu-*.service"))


def test_systemd_finds_no_fault_in_them(root):
    assert [unit.name for unit in units_of(root)] == [
        "gpu-agent.service", "gpu-gateway.service", "gpu-scheduler.service"]
    for unit in units_of(root):
        judged = analyze("verify", "--man=no", f"--root={root}", unit.name)
        assert judged.returncode == 0 and unit.name not in judged.stderr, judged


def test_a_fault_would_be_found(root):
    units = root / "usr" / "lib" / "systemd" / "system"
    unit = units / "faulty.service"
    unit.write_text((units / "gpu-agent.service").read_text().replace("Restart=always", "Restart=maybe"))
    judged = analyze("verify", "--man=no", f"--root={root}", unit.name)
    unit.unlink()
    assert "faulty.service" in judged.stderr, judged


@pytest.mark.parametrize("name, most", [("gpu-scheduler", 1.3), ("gpu-agent", 7.9)])
def test_they_expose_no_more_than_they_do_now(root, name, most):
    """The agent runs what users send and what it takes away is taken from them too, so it
    exposes much by this measure; neither may come to expose more without that being meant."""
    judged = analyze("security", "--offline=true", f"--root={root}", "--json=short",
                     f"--threshold={int(most * 10)}", f"{name}.service")
    assert judged.returncode == 0, judged.stderr
    rows = {row["json_field"]: row["set"] for row in json.loads(judged.stdout)}
    assert rows["ProtectKernelModules"] and rows["RestrictRealtime"]
    if name == "gpu-scheduler":
        for wanted in ("NoNewPrivileges", "ProtectSystem", "PrivateDevices", "PrivateUsers",
                       "ProtectProc", "ProcSubset", "RestrictSUIDSGID", "MemoryDenyWriteExecute",
                       "CapabilityBoundingSet_CAP_SYS_ADMIN", "SystemCallFilter_privileged",
                       "SystemCallFilter_resources", "ProtectHome", "ProtectHostname"):
            assert rows[wanted], wanted
