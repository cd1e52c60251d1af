"""What a task chooses never reaches what runs as root: environments, paths, files, descriptors."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("cc"), reason="needs root and a compiler"
)

NOBODY = "65534"

# Writes down as whom, and in which program, it was loaded.
LIBRARY = r"""
#include <stdio.h>
#include <unistd.h>
unsigned la_version(unsigned version) { return version; }
__attribute__((constructor)) static void loaded(void)
{
    char program[256] = "";
    FILE *trace = fopen(TRACE, "a");
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0 || !trace)
        return;
    fprintf(trace, "%d %s\n", (int)geteuid(), program);
    fclose(trace);
}
"""


class Trap:
    """A directory that everyone can use, with code of a tenant in it for every interpreter."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="trap-"))
        self.directory.chmod(0o777)
        self.trace = self.directory / "trace"
        self.trace.touch()
        self.trace.chmod(0o666)
        self.library = self.directory / "trap.so"
        source = self.directory / "trap.c"
        source.write_text(LIBRARY)
        subprocess.run(
            ["cc", "-shared", "-fPIC", f'-DTRACE="{self.trace}"', "-o", self.library, source],
            check=True,
        )
        note = f'echo "$(/usr/bin/id -u) $0" >> {self.trace}'
        self.script = self.write("trap.sh", f"{note}\n")
        for name in ("sh", "bash", "id", "podman", "docker", "python3", "conmon", "crun", "runc"):
            self.write(name, f"#!/bin/dash\n{note}\n")
        record = f"import os; open({str(self.trace)!r}, 'a').write(f'{{os.geteuid()}} python\\n')\n"
        self.write("sitecustomize.py", record)
        engine = f'[engine]\nhelper_binaries_dir = ["{self.directory}"]\nruntime = "trap"\n'
        engine += f'[engine.runtimes]\ntrap = ["{self.directory}/crun"]\n'
        self.configuration = self.write("containers.conf", engine)
        self.note = note

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def environment(self):
        """All that makes a loader, a shell or an interpreter run code of the tenant's."""
        library, directory = str(self.library), str(self.directory)
        return {
            "LD_PRELOAD": library,
            "LD_AUDIT": library,
            "LD_LIBRARY_PATH": directory,
            "LD_DEBUG": "all",
            "LD_DEBUG_OUTPUT": f"{directory}/debug",
            "LD_PROFILE": "libc.so.6",
            "LD_PROFILE_OUTPUT": directory,
            "LD_BIND_NOW": "1",
            "GCONV_PATH": directory,
            "PATH": directory,
            "BASH_ENV": str(self.script),
            "ENV": str(self.script),
            "SHELLOPTS": "xtrace",
            "PS4": f"$({self.note})",
            "IFS": "/",
            "BASH_FUNC_id%%": f"() {{ {self.note}; }}",
            "PYTHONPATH": directory,
            "PYTHONSTARTUP": f"{directory}/sitecustomize.py",
            "PERL5LIB": directory,
            "CONTAINERS_CONF": str(self.configuration),
            "CONTAINERS_CONF_OVERRIDE": str(self.configuration),
            "XDG_CONFIG_HOME": directory,
            "DOCKER_HOST": f"unix://{directory}/socket",
            "TMPDIR": directory,
            "HOME": directory,
        }

    def caught(self):
        """By user: the programs that ran code of the tenant's."""
        users = {}
        for line in self.trace.read_text().splitlines():
            user, _, program = line.partition(" ")
            users.setdefault(user, set()).add(program)
        return users


@pytest.fixture
def trap():
    trap = Trap()
    yield trap
    shutil.rmtree(trap.directory)


@pytest.fixture
def hooks(tmp_path):
    """Prolog and epilog that start what administrators start; the epilog's end is a file."""

    def make(done):
        options = []
        for name in ("prolog", "epilog"):
            program = tmp_path / name
            program.write_text(
                f"#!/bin/bash\nid >/dev/null; python3 -c pass\nenv -0 > {tmp_path}/{name}.environ\n"
                f"touch {done}-{name}\n"
            )
            program.chmod(0o755)
            options += [f"--{name}", str(program)]
        return options

    return make


AS_NOBODY = ["--allow-root=0", "--user", "nobody"]


def test_no_code_of_a_task_runs_as_root_whatever_its_environment_says(
    driver, make_agent, trap, hooks, tmp_path
):
    agent = make_agent(arguments=[*AS_NOBODY, *hooks(tmp_path / "done")])
    driver.snapshot(agent.name)
    kinds = [
        {"command": ["/usr/bin/env", "true"]},
        {"script": "id"},
        {"image": "localhost/does-not-exist", "command": ["true"]},
    ]
    for reservation, kind in enumerate(kinds, 1):
        payload = {**kind, "environment": trap.environment(), "working_directory": "/"}
        driver.start(agent.name, reservation, [], payload=payload)
        driver.change("released", reservation, seconds=60)
    assert (tmp_path / "done-epilog").exists()
    caught = trap.caught()
    assert "/usr/bin/env" in caught[NOBODY]  # the trap works, for the task itself
    assert set(caught) == {NOBODY}, caught


def test_hooks_are_told_facts_and_nothing_that_the_task_chose(
    driver, make_agent, trap, hooks, tmp_path
):
    agent = make_agent(arguments=[*AS_NOBODY, *hooks(tmp_path / "done")])
    driver.snapshot(agent.name)
    payload = {
        "command": ["true"],
        "environment": {**trap.environment(), "GPU_SCHEDULER_NODE": "chosen", "COLOUR": "chosen"},
        "secret_environment": {"PASSWORD": "chosen"},
        "checkpoint_path": "/chosen",
        "tenant": "physics",
    }
    driver.start(agent.name, 1, [], gpus=[[agent.uuid(), 1024]], payload=payload)
    driver.change("released", 1)
    for name in ("prolog", "epilog"):
        text = (tmp_path / f"{name}.environ").read_text()
        variables = dict(line.split("=", 1) for line in text.split("\0") if line)
        assert "chosen" not in text and str(trap.directory) not in text
        own = {"PWD", "SHLVL", "_"}  # the shell's that runs the hook
        known = {"PATH", "HOME", "SHELL", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
        others = set(variables) - own - known
        assert all(other.startswith("GPU_SCHEDULER_") for other in others), others
        assert variables["GPU_SCHEDULER_NODE"] == agent.name
        assert variables["GPU_SCHEDULER_TENANT"] == "physics"
        assert variables["GPU_SCHEDULER_GPUS"] == agent.uuid()
        assert (variables["GPU_SCHEDULER_USER"], variables["GPU_SCHEDULER_UID"]) == ("nobody", NOBODY)


def test_a_container_is_run_and_removed_by_its_user_in_its_cgroup(driver, make_agent, trap):
    runtime = trap.write(
        "podman-that-records",
        "#!/bin/bash -p\n"
        f'for word; do case $word in run|rm) name=$word; break;; esac; done\n'
        f"id -u > {trap.directory}/$name.user; grep NoNewPrivs /proc/self/status > {trap.directory}/$name.status\n"
        f"cat /proc/self/cgroup > {trap.directory}/$name.cgroup\n"
        f"env -0 > {trap.directory}/$name.environ; echo \"$@\" > {trap.directory}/$name.words\n"
        # What it leaves behind would outlive the job anywhere but in its cgroup.
        f"setsid sleep 1000 & echo $! > {trap.directory}/$name.left\n",
    )
    agent = make_agent(arguments=[*AS_NOBODY, "--container-runtime", str(runtime)])
    driver.snapshot(agent.name)
    payload = {
        "image": "some/image",
        "command": ["true"],
        "environment": {**trap.environment(), "COLOUR": "blue"},
        "secret_environment": {"PASSWORD": "s3cret"},
    }
    driver.start(agent.name, 1, [], payload=payload)
    driver.change("released", 1)

    def seen(name):
        return (trap.directory / name).read_text()

    for name in ("run", "rm"):
        assert seen(f"{name}.user") == f"{NOBODY}\n"
        assert "work-1" in seen(f"{name}.cgroup")
        assert seen(f"{name}.status").split() == ["NoNewPrivs:", "0"]  # podman needs newuidmap
        assert not pathlib.Path(f"/proc/{seen(f'{name}.left').strip()}").exists()
        assert str(trap.directory) not in seen(f"{name}.environ").replace(str(runtime), "")
    assert "some/image" in seen("run.words") and "--env COLOUR " in seen("run.words")
    assert f"--env LD_PRELOAD={trap.library}" in seen("run.words")
    assert "s3cret" not in seen("run.words") and "PASSWORD=s3cret" in seen("run.environ")
    assert "--env PASSWORD " in seen("run.words") and "PASSWORD" not in seen("rm.environ")


def test_a_task_has_no_files_open_but_its_own(driver, make_agent, tmp_path):
    prolog = tmp_path / "prolog"
    prolog.write_text(f"#!/bin/sh\nls -l /proc/$$/fd > {tmp_path}/files\n")
    prolog.chmod(0o755)
    agent = make_agent(
        wrapper=["sh", "-c", 'exec 7</etc/shadow 9</etc/shadow; exec "$@"', "sh"],
        arguments=["--prolog", str(prolog)],
    )
    driver.snapshot(agent.name)
    show = "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in range(3, 99) if os.path.exists(f'/proc/self/fd/{n}')])"
    driver.start(agent.name, 1, ["python3", "-c", show])
    driver.start(agent.name, 2, [], payload={"script": f'python3 -c "{show}"'})
    for reservation in (1, 2):
        assert driver.change("exited", reservation)["exit_code"] == 0
        assert driver.output(agent.name, reservation) == "[]\n"
    assert "shadow" not in (tmp_path / "files").read_text()


def status_of(driver, agent, reservation, payload, show=("cat", "/proc/self/status")):
    driver.start(agent.name, reservation, [], payload={"command": list(show), **payload})
    assert driver.change("exited", reservation)["exit_code"] == 0
    lines = driver.output(agent.name, reservation).splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def test_a_task_can_gain_no_privileges(driver, make_agent):
    agent = make_agent(arguments=AS_NOBODY)
    driver.snapshot(agent.name)
    status = status_of(driver, agent, 1, {})
    assert status["NoNewPrivs"] == "1"
    sets = [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    assert sets == ["0" * 16] * 5


def test_a_task_of_root_has_what_root_has_in_a_container(driver, agent):
    status = status_of(driver, agent, 1, {})
    assert status["NoNewPrivs"] == "1"
    all_of_them = int(pathlib.Path("/proc/self/status").read_text().split("CapBnd:\t")[1].split()[0], 16)
    container = 0xA80425FB
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == container & all_of_them
    assert int(status["CapAmb"], 16) == 0


def test_privileges_are_kept_where_the_administrator_says_so(driver, make_agent):
    agent = make_agent(arguments=[*AS_NOBODY, "--task-privileges", "keep"])
    driver.snapshot(agent.name)
    status = status_of(driver, agent, 1, {})
    assert status["NoNewPrivs"] == "0"
    assert status["CapBnd"] == pathlib.Path("/proc/self/status").read_text().split("CapBnd:\t")[1].split()[0]
