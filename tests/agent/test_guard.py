"""The guard, which the agent puts tasks under that share a GPU: against stand-ins for NVIDIA's
libraries, of which the one for measuring says what a file of the test says."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest
from stub import KIND, ROOT

sys.path.insert(0, str(ROOT / "tests" / "cli"))

from cli import Cli

PROGRAMS = ROOT / "build" / KIND / "src" / "guard" / "test"
LIBRARY = ROOT / "build" / KIND / "src" / "guard" / "libgpuguard.so"
UUIDS = [f"GPU-57000000-0000-0000-0000-00000000000{i}" for i in range(2)]
OUT_OF_MEMORY = 2

HOLD = f"env CUDA_VISIBLE_DEVICES=0 {PROGRAMS}/guard_hold"  # the stand-in knows only numbers


class Measured:
    """What the stand-in for NVML says."""

    def __init__(self, path):
        self.path = path
        self.processes = {}
        self.write()

    def write(self):
        lines = [f"gpu {uuid} 16384 100000 50" for uuid in UUIDS]
        lines += [f"process {UUIDS[0]} {pid} {mib}" for pid, mib in self.processes.items()]
        text = "\n".join(lines) + "\n"
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.rename(self.path)

    def process(self, pid, mib):
        self.processes[pid] = mib
        self.write()

    def forget(self):
        self.processes.clear()
        self.write()


@pytest.fixture
def measured(tmp_path):
    return Measured(tmp_path / "nvml")


def start(cluster, measured, *arguments):
    words = ["--guard-library", str(LIBRARY), *arguments]
    return cluster.agent(gpus=None, nvml=measured.path, arguments=words)


def pids_of(agent, end):
    """The processes of the agent's tasks whose command lines end so, by their numbers here."""
    found = []
    for directory in pathlib.Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            command = (directory / "cmdline").read_bytes().strip(b"\0").decode()
            groups = (directory / "cgroup").read_text()
        except OSError:
            continue
        ours = f"/{agent.label()}/" in groups and "podman" not in command and "conmon" not in command
        if ours and command.endswith(end):
            found.append(int(directory.name))
    return found


def events(cluster, job):
    told = cluster.scheduler.get(f"/api/v1/jobs/{job}/events").json()["events"]
    return [event["type"] for event in told]


def test_a_task_that_shares_a_gpu_is_under_the_guard_by_default(cluster, measured):
    start(cluster, measured)
    job = cluster.submit(f"{HOLD} 800 300 100 < /dev/null", gpu_memory_mb=1000)
    ended = cluster.await_state(job, "completed")
    assert cluster.logs(job).split("\n")[:5] == [
        "context 0",
        "total 1000",
        "800 0",
        f"300 {OUT_OF_MEMORY}",
        "100 0",
    ]
    guard = ended["guard"]
    assert guard["limit_mb"] == 1000 and guard["peak_mb"] == 900
    assert guard["refusals"] == 1 and guard["last_refused_mb"] == 300
    assert guard["unguarded"] is False
    assert ended["peak_gpu_memory_mb"] == 900


def test_what_the_guard_says_is_shown_while_the_task_runs(cluster, measured):
    start(cluster, measured)
    job = cluster.submit(f"sleep 1000 | {HOLD} 800 300", gpu_memory_mb=1000)
    guard = cluster.wait(lambda: cluster.job(job)["guard"])
    cluster.wait(lambda: cluster.job(job)["guard"]["refusals"] == 1)
    assert guard["limit_mb"] == 1000


def test_nothing_stays_behind_of_a_task_that_ends_without_the_agent(cluster, measured, tmp_path):
    agent = start(cluster, measured)
    free = tmp_path / "free"
    free.mkdir(mode=0o777)
    wait = f"while ! test -e {free}/now; do sleep 0.05; done"
    job = cluster.submit(f"({wait}) | {HOLD} 800 300; exit 0", gpu_memory_mb=1000)
    cluster.wait(lambda: (cluster.job(job)["guard"] or {}).get("refusals") == 1)

    def segments():
        return list(pathlib.Path("/dev/shm").glob(f"gpu-guard-{agent.label()}*"))

    assert segments()
    agent.kill()
    (free / "now").touch()
    cluster.wait(lambda: not segments())
    agent.start()
    guard = cluster.await_state(job, "completed")["guard"]
    assert (guard["limit_mb"], guard["peak_mb"], guard["refusals"]) == (1000, 800, 1)
    cluster.wait(lambda: not list(pathlib.Path(agent.state, "works").iterdir()))


def test_a_limit_that_somebody_else_changed_is_put_right_and_told(cluster, measured):
    agent = start(cluster, measured)
    job = cluster.submit(f"sleep 1000 | {HOLD} 100", gpu_memory_mb=1000)
    cluster.wait(lambda: (cluster.job(job)["guard"] or {}).get("peak_mb") == 100)
    (books,) = pathlib.Path("/dev/shm").glob(f"gpu-guard-{agent.label()}-*[0-9]")
    limit = (1000 << 20).to_bytes(8, sys.byteorder)
    place = books.read_bytes().index(limit)
    with books.open("r+b") as file:
        file.seek(place)
        file.write(bytes(8))
    cluster.wait(lambda: books.read_bytes()[place : place + 8] == limit)
    said = cluster.wait(lambda: cluster.job(job)["message"])
    assert said.startswith("task 0: the limit of GPU memory in its guard was changed")
    cluster.wait(lambda: "gpu-agent: warning: the limit of GPU memory" in cluster.logs(job))
    assert "task_unguarded" in events(cluster, job)
    guard = cluster.wait(lambda: cluster.job(job)["guard"])
    assert guard["limit_mb"] == 1000 and guard["unguarded"] is False


def test_a_task_that_has_a_gpu_alone_is_not_unless_it_is_asked_for(cluster, measured):
    start(cluster, measured)
    show = "echo guarded=${LD_PRELOAD##*/}"
    alone = cluster.submit(show, gpu_count=1)
    asked = cluster.submit(show, gpu_count=1, labels={"guard": "always"})
    none = cluster.submit(show)
    said = {job: cluster.await_state(job, "completed") and cluster.logs(job)
            for job in (alone, asked, none)}
    assert said[alone].strip() == "guarded="
    assert said[asked].strip() == "guarded=libgpuguard.so"
    assert said[none].strip() == "guarded="


@pytest.mark.parametrize("mode,shared,alone", [("always", True, True), ("never", False, False)])
def test_which_tasks_are_guarded_can_be_set(cluster, measured, mode, shared, alone):
    start(cluster, measured, "--guard", mode)
    for fields, guarded in (({"gpu_memory_mb": 1000}, shared), ({"gpu_count": 1}, alone)):
        job = cluster.submit("echo guarded=${LD_PRELOAD##*/}", **fields)
        cluster.await_state(job, "completed")
        assert ("libgpuguard" in cluster.logs(job)) == guarded


def test_a_task_that_got_rid_of_its_guard_is_noticed(cluster, measured):
    agent = start(cluster, measured)
    job = cluster.submit(
        f"sleep 1000 | {HOLD} bare 3000", gpu_memory_mb=1000
    )
    pid = cluster.wait(lambda: pids_of(agent, "\x003000"))[0]
    measured.process(pid, 900)
    told = cluster.wait(lambda: cluster.job(job)["message"])
    assert f"process {pid} of it uses GPU {UUIDS[0]} and is not under the guard" in told
    assert "task_unguarded" in events(cluster, job)
    cluster.wait(lambda: (cluster.job(job)["guard"] or {}).get("unguarded"))
    assert cluster.job(job)["state"] == "running"
    assert "is not under the guard" in cluster.logs(job)


def test_a_task_with_its_guard_is_not_complained_about(cluster, measured):
    agent = start(cluster, measured, "--unguarded", "stop")
    job = cluster.submit(f"sleep 1000 | {HOLD} 500", gpu_memory_mb=1000)
    cluster.wait(lambda: (cluster.job(job)["guard"] or {}).get("peak_mb") == 500)
    pid = pids_of(agent, "\x00500")[0]
    measured.process(pid, 600)
    cluster.wait(lambda: cluster.job(job)["peak_gpu_memory_mb"] == 600)
    assert cluster.job(job)["state"] == "running"
    assert cluster.job(job)["guard"]["unguarded"] is False


def test_by_policy_a_task_without_its_guard_is_stopped(cluster, measured):
    agent = start(cluster, measured, "--unguarded", "stop")
    job = cluster.submit(f"sleep 1000 | {HOLD} bare 500", gpu_memory_mb=1000)
    pid = cluster.wait(lambda: pids_of(agent, "\x00500"))[0]
    measured.process(pid, 600)
    failed = cluster.await_state(job, "failed")
    measured.forget()
    assert failed["exit_code"] == 137
    assert "not under the guard" in failed["message"]


IMAGE = f"localhost/gpu-scheduler-guard-test-{os.getpid()}:1"


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image of the program, the driver's stand-in, and what they are linked to."""
    if os.geteuid() != 0 or not any(
        os.access(f"{place}/podman", os.X_OK) for place in ("/usr/bin", "/usr/local/bin")
    ):
        pytest.skip("needs podman and root")
    root = tmp_path_factory.mktemp("image")
    listed = subprocess.run(
        ["ldd", PROGRAMS / "guard_hold"], capture_output=True, text=True, check=True
    ).stdout
    files = {"/bin/guard_hold": PROGRAMS / "guard_hold", "/lib/libcuda.so.1": PROGRAMS / "libcuda.so.1"}
    for word in listed.split():
        if word.startswith("/") and "libcuda" not in word:
            files[word] = word
    for inside, outside in files.items():
        place = root / inside.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(pathlib.Path(outside).read_bytes())
        place.chmod(0o755)
    archive = root.parent / "guard-image.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    made = subprocess.run(["podman", "import", archive, IMAGE], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"podman cannot make an image here: {made.stderr}")
    tried = subprocess.run(
        ["podman", "--cgroup-manager=cgroupfs", "run", "--rm", "--network=host", "--env"]
        + ["LD_LIBRARY_PATH=/lib", "--ulimit=nofile=1000:1000", "--ulimit=nproc=1000:1000"]
        + [IMAGE, "/bin/guard_hold"],
        capture_output=True,
        text=True,
    )
    if tried.returncode != 0:
        pytest.skip(f"podman cannot run containers here: {tried.stderr}")
    yield IMAGE
    subprocess.run(["podman", "rmi", "--force", IMAGE], capture_output=True)


INSIDE = {"LD_LIBRARY_PATH": "/lib"}


def test_a_container_that_shares_a_gpu_is_under_the_guard(cluster, measured, image):
    start(cluster, measured, "--container-runtime", str(podman_without_gpus(measured)))
    job = cluster.submit(
        None,
        command=["/bin/guard_hold", "800", "300"],
        image=image,
        gpu_memory_mb=1000,
        environment=INSIDE,
    )
    ended = cluster.await_state(job, "completed", "failed", seconds=60)
    said = cluster.logs(job)
    assert ended["state"] == "completed", said
    assert "total 1000" in said and f"300 {OUT_OF_MEMORY}" in said
    guard = ended["guard"]
    assert guard["limit_mb"] == 1000 and guard["refusals"] == 1 and 800 <= guard["peak_mb"] <= 1000


def podman_without_gpus(measured):
    """podman, but for the devices and the choice of GPUs, which are not here to be given."""
    path = measured.path.with_name("podman")
    path.write_text(
        "#!/bin/bash\n"
        "words=()\n"
        "while [ $# -gt 0 ]; do\n"
        '  case "$1 $2" in\n'
        '  "--device nvidia"*|"--env CUDA_VISIBLE_DEVICES"*) shift 2;;\n'
        '  *) words+=("$1"); shift;;\n'
        "  esac\n"
        "done\n"
        'exec podman "${words[@]}"\n'
    )
    path.chmod(0o755)
    return path


def hold_in_container(cluster, measured, image, *words, arguments=()):
    """The agent, the job, and the number here of its process when it holds what it asked for."""
    runtime = str(podman_without_gpus(measured))
    agent = start(cluster, measured, "--container-runtime", runtime, *arguments)
    job = cluster.submit(
        None,
        command=["/bin/guard_hold", *words, "wait"],
        image=image,
        gpu_memory_mb=1000,
        environment=INSIDE,
    )
    pid = cluster.wait(lambda: pids_of(agent, words[-1] + "\0wait"), 60)[0]
    cluster.wait(lambda: f"{words[-1]} 0" in cluster.logs(job))
    return job, pid


def test_the_guard_of_a_container_is_seen_from_outside(cluster, measured, image):
    job, pid = hold_in_container(
        cluster, measured, image, "600", arguments=["--unguarded", "stop"]
    )
    # What its context takes it cannot see by itself: it is told, and that counts.
    measured.process(pid, 800)
    cluster.wait(lambda: (cluster.job(job)["guard"] or {}).get("peak_mb") == 800)
    assert cluster.job(job)["guard"]["unguarded"] is False
    assert cluster.job(job)["state"] == "running"
    measured.forget()


def test_a_container_without_its_guard_is_noticed(cluster, measured, image):
    job, pid = hold_in_container(cluster, measured, image, "bare", "600")
    measured.process(pid, 700)
    told = cluster.wait(lambda: cluster.job(job)["message"])
    assert f"process {pid} of it" in told and "not under the guard" in told
    measured.forget()


STATIC_IMAGE = "localhost/gpu-scheduler-static-test:1"


@pytest.fixture
def static_image(image, tmp_path):
    """An image of busybox alone, which is linked statically: it has no C library at all."""
    busybox = shutil.which("busybox")
    if not busybox or b"/ld-linux" in pathlib.Path(busybox).read_bytes()[:4096]:
        pytest.skip("needs a busybox that is linked statically")
    archive = tmp_path / "static.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(busybox, "bin/busybox")
    subprocess.run(["podman", "import", archive, STATIC_IMAGE], check=True, capture_output=True)
    yield STATIC_IMAGE
    subprocess.run(["podman", "rmi", "--force", STATIC_IMAGE], capture_output=True)


@pytest.mark.parametrize("policy, state", [("report", "running"), ("stop", "failed")])
def test_a_container_that_cannot_load_the_guard_is_told_of_and_by_policy_stopped(
    cluster, measured, static_image, policy, state
):
    runtime = str(podman_without_gpus(measured))
    agent = start(cluster, measured, "--container-runtime", runtime, "--unguarded", policy)
    job = cluster.submit(None, command=["/bin/busybox", "sleep", "1234"], image=static_image,
                         gpu_memory_mb=1000)
    pid = cluster.wait(lambda: pids_of(agent, "sleep\x001234"), 60)[0]
    measured.process(pid, 700)
    cluster.wait(lambda: "task_unguarded" in events(cluster, job))
    seen = cluster.await_state(job, state)
    measured.forget()
    assert f"process {pid} of it" in seen["message"] and "image without glibc" in seen["message"]
    assert "image without glibc" in Cli(cluster.directory, cluster.scheduler.url)("get", job)


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="there is no musl here")
def test_a_program_of_another_c_library_says_why_it_is_not_started(cluster, measured, tmp_path):
    source, program = tmp_path / "hello.c", tmp_path / "hello"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    subprocess.run(["musl-gcc", "-o", program, source], check=True)
    start(cluster, measured)
    job = cluster.submit(None, command=[str(program)], gpu_memory_mb=1000)
    ended = cluster.await_state(job, "failed", "completed")
    assert (ended["state"], ended["exit_code"]) == ("failed", 127)
    assert "not linked with glibc cannot load the guard" in ended["message"]
    assert "libgpuguard.so" in cluster.logs(job)
