"""Jobs in containers, by podman, of an image that is made here."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest
from processes import alive

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from cli import Cli, program

IMAGE = f"localhost/gpu-scheduler-test-{os.getpid()}:1"
BUSYBOX = shutil.which("busybox")

pytestmark = pytest.mark.skipif(
    not shutil.which("podman") or not BUSYBOX or os.geteuid() != 0,
    reason="needs podman, busybox and root",
)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image of busybox alone."""
    directory = tmp_path_factory.mktemp("image")
    path = directory / "image.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(BUSYBOX, "bin/busybox")
        for name in ("sh", "env", "sleep", "cat", "setsid", "echo", "ls"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    made = subprocess.run(["podman", "import", path, IMAGE], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"podman cannot make an image here: {made.stderr}")
    tried = subprocess.run(
        ["podman", "--cgroup-manager=cgroupfs", "run", "--rm", "--network=host"]
        + ["--ulimit=nofile=1000:1000", "--ulimit=nproc=1000:1000", IMAGE, "/bin/echo", "hi"],
        capture_output=True,
        text=True,
    )
    if tried.returncode != 0:
        pytest.skip(f"podman cannot run containers here: {tried.stderr}")
    yield IMAGE
    subprocess.run(["podman", "rmi", "--force", IMAGE], capture_output=True)


def test_a_job_runs_in_its_image(cluster, image):
    agent = cluster.agent()
    job = cluster.submit(
        None,
        command=["/bin/sh", "-c"],
        args=["ls /; echo $COLOUR $CUDA_VISIBLE_DEVICES; exit 0"],
        image=image,
        environment={"COLOUR": "blue"},
        gpu_count=1,
    )
    ended = cluster.await_state(job, "completed", "failed", seconds=60)
    said = cluster.logs(job)
    assert ended["state"] == "completed", said
    assert "usr" not in said.split()
    assert f"blue {agent.uuid(0)}" in said


def test_a_container_that_ignores_sigterm_is_gone_after_cancel(cluster, image, tmp_path):
    agent = cluster.agent()
    marker = f"stubborn-{os.getpid()}-{tmp_path.name}"
    # The name as a whole is in no command line but the one inside.
    script = f"trap '' TERM; m=stubborn; (setsid sh -c \"while :; do sleep 0.1; done #$m-{os.getpid()}-{tmp_path.name}\" &); sleep 1000"
    job = cluster.submit(script, image=image, gpu_count=1)
    cluster.wait(lambda: alive(marker), 60)
    cluster.scheduler.delete(f"/api/v1/jobs/{job}")
    cluster.await_state(job, "cancelled")
    cluster.wait(lambda: not alive(marker))
    cluster.wait(lambda: agent.name not in containers())


def test_a_session_runs_in_the_container_of_its_task(cluster, image):
    agent = cluster.agent()
    job = cluster.submit("sleep 1000", image=image, gpu_count=1, environment={"COLOUR": "blue"})
    cluster.await_state(job, "running")
    cluster.wait(lambda: agent.name in containers(), 60)
    environment = Cli(cluster.directory, cluster.scheduler.url).environment()
    script = "ls /; echo $COLOUR $CUDA_VISIBLE_DEVICES; exit 9"

    def inside():
        """The container may be there before it runs."""
        done = subprocess.run([program(), "exec", job, "--", "/bin/sh", "-c", script], text=True,
                              capture_output=True, env=environment, timeout=120)
        return done if done.returncode == 9 else None

    done = cluster.wait(inside)
    assert "usr" not in done.stdout.split(), done
    assert f"blue {agent.uuid(0)}" in done.stdout, done
    cluster.scheduler.delete(f"/api/v1/jobs/{job}")
    cluster.await_state(job, "cancelled")


def containers():
    listed = subprocess.run(
        ["podman", "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True
    )
    return listed.stdout


def test_an_image_that_is_not_there_fails_with_a_reason(cluster):
    cluster.agent()
    job = cluster.submit("true", image="localhost/no-such-image:1", gpu_count=1)
    assert cluster.await_state(job, "failed", seconds=60)["state"] == "failed"
    assert "no-such-image" in cluster.logs(job)
