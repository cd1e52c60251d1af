"""Debian packages: made, looked at, and installed into a copy of this system that is thrown away."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.skipif(
    not shutil.which("dpkg-shlibdeps"), reason="dpkg-dev is not installed")


@pytest.fixture(scope="module")
def packages():
    """The packages by name, made as 'make deb' makes them."""
    made = subprocess.run(["make", "-s", "deb"], cwd=ROOT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    files = [ROOT / line for line in made.stdout.split() if line.endswith(".deb")]
    return {file.name.split("_")[0]: file for file in files}


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for file in packages.values():
        subprocess.run(["dpkg", "-x", file, root], check=True)
    return root


def field(package, name):
    shown = subprocess.run(["dpkg-deb", "-f", package, name], check=True, capture_output=True, text=True)
    return shown.stdout.strip()


def test_the_packages_need_what_they_are_linked_with(packages):
    assert set(packages) == {"gpu-scheduler", "gpu-agent", "gpu-gateway", "gpu-cli",
                             "gpu-scheduler-slurm"}
    version = re.search(r"^ *version: '(.*)'", (ROOT / "meson.build").read_text(), re.M).group(1)
    for package in packages.values():
        assert field(package, "Version") == version
    assert "libsqlite3-0" in field(packages["gpu-scheduler"], "Depends")
    assert "libnghttp2-14" in field(packages["gpu-agent"], "Depends")


def test_every_program_is_in_a_package_and_runs_from_there(unpacked):
    for program in (ROOT / "bin").iterdir():
        installed = unpacked / "usr" / "bin" / program.name
        assert installed.exists(), f"{program.name} is in no package"
        if program.name not in ("gpu-keeper", "gpu-slot-proxy"):
            said = subprocess.run([installed, "--help"], capture_output=True, text=True, timeout=30)
            assert said.returncode == 0 and program.name in said.stdout, said
    assert (unpacked / "usr" / "lib" / "libgpuguard.so").exists()


@pytest.mark.parametrize("page, program", [
    ("man8/gpu-scheduler.8.gz", "gpu-scheduler"), ("man8/gpu-agent.8.gz", "gpu-agent"),
    ("man1/gpu-sim.1.gz", "gpu-sim")])
def test_manual_pages_have_every_option(unpacked, page, program):
    manual = subprocess.run(["gzip", "-dc", unpacked / "usr/share/man" / page], check=True,
                            capture_output=True, text=True).stdout.replace("\\-", "-")
    said = subprocess.run([unpacked / "usr/bin" / program, "--help"], capture_output=True, text=True).stdout
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", said))
    assert not [option for option in options if option not in manual]


def test_units_are_accepted_by_systemd(unpacked):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    for unit in sorted((unpacked / "usr/lib/systemd/system").iterdir()):
        # The programs are not where the unit says, but below here.
        copy = unpacked / unit.name
        copy.write_text(unit.read_text().replace("ExecStart=/usr", f"ExecStart={unpacked}/usr"))
        checked = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
        complaints = [line for line in checked.stderr.splitlines() if unit.name in line]
        assert checked.returncode == 0 and not complaints, checked.stderr


def test_lintian_has_nothing_to_say(packages):
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    said = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *packages.values()],
                          capture_output=True, text=True)
    assert said.returncode == 0, said.stdout


def test_they_are_installed_upgraded_removed_and_purged(packages, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can install packages")
    # A copy of this system above which everything is thrown away, with processes of its own.
    script = """
        set -e
        mount -t tmpfs tmpfs "$0"
        mkdir "$0"/upper "$0"/work "$0"/root
        mount -t overlay overlay -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0"/root || exit 77
        for folder in dev sys; do mount --rbind /$folder "$0"/root/$folder; done
        mount -t proc proc "$0"/root/proc
        mount -t tmpfs tmpfs "$0"/root/tmp
        # The index of manual pages is not what is tested, and takes long.
        rm -f "$0"/root/var/lib/man-db/auto-update
        mkdir "$0"/root/tmp/packages
        cp "$2"/build/deb/*.deb "$2"/tests/operations/install-packages "$0"/root/tmp/packages
        chmod 755 "$0"/root/tmp
        exec chroot "$0"/root /tmp/packages/install-packages /tmp/packages
    """
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script, tmp_path, "-", ROOT],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    if done.returncode == 77:
        pytest.skip(f"no copy of this system can be made: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
