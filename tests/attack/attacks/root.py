"""A tenant wants its code to run as root on a node."""

import base64
import functools
import pathlib
import shutil
import subprocess
import tempfile

from attack import Skipped, attack, defeat

HERE = pathlib.Path(__file__).resolve().parent.parent


@functools.cache
def library():
    """The bytes of evil.c, compiled."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-s", "-o", file.name,
                               HERE / "evil.c"], capture_output=True, text=True)
        if made.returncode != 0:
            raise Skipped(f"no C compiler makes the library: {made.stderr[:100]}")
        return pathlib.Path(file.name).read_bytes()


def plant(site, name, data, mode="755"):
    """A job of the enemy's writes a file where programs of root could find it; its path."""
    path = site.directory_for_all() / name
    text = base64.b64encode(data).decode()
    ended, said = site.enemy.run(f"base64 -d > {path} <<'END'\n{text}\nEND\nchmod {mode} {path}\n")
    assert ended["state"] == "completed", said
    return path


def look(path, job):
    """Decides for the enemy where a file says that root ran its code."""
    trace = pathlib.Path(f"{path}.root")
    defeat(trace.exists(), f"{job['id']}: {trace.read_text() if trace.exists() else ''}")


LOADER = ("LD_PRELOAD", "LD_AUDIT")


@attack("tenant", "a tenant runs code as root through LD_AUDIT and an image that does not exist")
def missing_image(world):
    if not shutil.which("podman"):
        raise Skipped("podman is not installed, so nothing is cleaned up after a container")
    path = plant(world.site, "evil.so", library())
    for variable in LOADER:
        job = world.site.enemy.submit(image="localhost/does-not-exist", command=["true"],
                                      environment={variable: str(path)})
        ended = world.site.await_state(job, "failed", "completed", seconds=60)
        look(path, ended)
    return f"{', '.join(LOADER)}: clean-up ran, nothing of the tenant's in it"


@attack("tenant", "a tenant runs code as root through LD_PRELOAD and a prolog or epilog")
def preloaded_hook(world):
    path = plant(world.site, "evil.so", library())
    for variable in LOADER:
        ended, _ = world.site.enemy.run("true", environment={variable: str(path)})
        look(path, ended)
    return f"{', '.join(LOADER)}: prolog and epilog ran without the tenant's library"


@attack("tenant", "a tenant puts a library beside the ones that root's hooks load (LD_LIBRARY_PATH)")
def library_path(world):
    path = plant(world.site, "libtinfo.so.6", library())
    job = world.site.enemy.submit(command=["true"],
                                  environment={"LD_LIBRARY_PATH": str(path.parent)})
    world.site.wait(lambda: world.site.job(job)["state"] in ("completed", "failed")
                    or refused(world.site, job))
    now = world.site.job(job)
    world.site.admin.delete(f"/api/v1/jobs/{job}")
    look(path, now)
    defeat("prolog" in now["message"], f"the loader of a hook took the library: {now['message']}")
    return "bash of the hooks loaded libtinfo.so.6 of the system"


SHELL_TRACE = "#!/bin/sh\n[ $(/usr/bin/id -u) = 0 ] && /usr/bin/id > {path}.root\nexit 0\n"


@attack("tenant", "a tenant runs code as root through PATH and a program that a hook calls by name")
def path_of_hook(world):
    directory = world.site.directory_for_all()
    path = directory / "date"
    text = SHELL_TRACE.format(path=path)
    world.site.enemy.run(f"cat > {path} <<'END'\n{text}END\nchmod 755 {path}\n")
    ended, _ = world.site.enemy.run("true", environment={"PATH": f"{directory}:/usr/bin:/bin"})
    look(path, ended)
    return "the hook found date in its own PATH"


@attack("tenant", "a tenant runs code as root through BASH_ENV, ENV or a function in the environment")
def shell_start_files(world):
    directory = world.site.directory_for_all()
    path = directory / "start"
    text = SHELL_TRACE.format(path=path)
    world.site.enemy.run(f"cat > {path} <<'END'\n{text}END\nchmod 755 {path}\n")
    variables = {"BASH_ENV": str(path), "ENV": str(path), "PROMPT_COMMAND": f". {path}",
                 "BASH_FUNC_date%%": f"() {{ . {path}; }}", "SHELLOPTS": "xtrace",
                 "PS4": f"$(. {path})", "BASH_XTRACEFD": "2"}
    for name, value in variables.items():
        job = world.site.enemy.post("/api/v1/jobs", {
            "name": "start", "command": ["true"], "environment": {name: value}})
        if job.status != 201:
            continue
        ended = world.site.await_state(job.json()["job_id"], "completed", "failed")
        look(path, ended)
    return f"{len(variables)} variables of shells: none was heard in a hook"


@attack("tenant", "a tenant's variables reach a program that runs as root")
def hooks_see_variables(world):
    """Every name that the loader, the C library, shells, interpreters or container programs heed."""
    site = world.site
    seen = site.directory_for_all() / "seen"
    hook = site.directory / "hook"
    before = hook.read_text()
    hook.write_text(f"#!/bin/bash\n/usr/bin/env >> {seen}\n")
    names = ["LD_DEBUG_OUTPUT", "LD_ORIGIN_PATH", "LD_BIND_NOT", "LD_PROFILE_OUTPUT",
             "GCONV_PATH", "LOCPATH", "NLSPATH", "TMPDIR", "MALLOC_TRACE", "GLIBC_TUNABLES",
             "HOSTALIASES", "PYTHONPATH", "PERL5LIB", "IFS", "CONTAINERS_CONF",
             "CONTAINERS_STORAGE_CONF", "REGISTRY_AUTH_FILE", "DOCKER_HOST", "XDG_RUNTIME_DIR",
             "GIT_SSH_COMMAND", "HTTPS_PROXY", "EDITOR", "OF_THE_ENEMY"]
    try:
        ended, _ = site.enemy.run("true", environment={name: "of-the-enemy" for name in names},
                                  secret_environment={"SECRET_OF_JOB": "of-the-enemy"})
        site.wait(lambda: seen.exists())
    finally:
        hook.write_text(before)
    reached = sorted({line.partition("=")[0] for line in seen.read_text().splitlines()
                      if "of-the-enemy" in line})
    defeat(reached, f"root's hook saw {' '.join(reached)}")
    return f"{len(names) + 1} variables of a job, none of them in the hook's environment"


@attack("tenant", "a tenant asks for its tasks to run as root or as somebody else")
def other_users(world):
    site, tenant = world.site, world.site.enemy.tenant
    for fields in ({"unix_user": "root"}, {"user": "root"}, {"uid": 0}, {"run_as": "games"}):
        answer = site.enemy.post("/api/v1/jobs", {"command": ["id"], **fields})
        if answer.status == 201:
            job = answer.json()["job_id"]
            site.await_state(job, "completed", "failed")
            defeat("nobody" not in site.logs(job), f"{fields}: {site.logs(job)}")
    answer = site.enemy.ask("PUT", f"/api/v1/tenants/{tenant}", {"unix_user": "games"})
    defeat(answer.status < 400, f"a tenant set its own unix_user: {answer}")
    ended, said = site.enemy.run("id -un")
    defeat(said.strip() != "nobody", f"the job ran as {said}")
    return "refused or ignored; the task is nobody"


@attack("tenant", "an administrator's slip, a tenant with the Unix user root, gives root's rights")
def tenant_named_root(world):
    site = world.site
    for user in ("root", "0", "toor", "../root", "root\n", "nobody:root"):
        made = site.admin.post("/api/v1/tenants", {"name": f"slip-{user!r}", "unix_user": user})
        if made.status != 201:
            continue
        person = site.person(made.json()["id"], role="tenant")
        job = person.submit(script="id -u")
        site.wait(lambda: site.job(job)["state"] in ("completed", "failed") or refused(site, job))
        said = site.logs(job) if site.job(job)["state"] == "completed" else ""
        person.delete(f"/api/v1/jobs/{job}")
        defeat(said.strip() == "0", f"unix_user {user!r} ran as uid {said}")
    return "refused by the service or by the agent"


def refused(site, job):
    """True if an agent refused the job. It then waits."""
    return b"refused" in site.admin.get(f"/api/v1/jobs/{job}/why").body


@attack("tenant", "a task gains privileges by a set-uid program, a file capability or a mount")
def gain_privileges(world):
    _, said = world.site.enemy.run("cat /proc/self/status")
    status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    defeat(status["NoNewPrivs"] != "1", f"NoNewPrivs is {status['NoNewPrivs']}, CapBnd {status['CapBnd']}")
    defeat(int(status["CapEff"], 16) != 0, f"CapEff is {status['CapEff']}")
    dangerous = {"CAP_SYS_ADMIN": 21, "CAP_SYS_PTRACE": 19, "CAP_SYS_MODULE": 16,
                 "CAP_DAC_READ_SEARCH": 2, "CAP_NET_ADMIN": 12, "CAP_SYS_RAWIO": 17}
    bound = int(status["CapBnd"], 16)
    kept = [name for name, bit in dangerous.items() if bound >> bit & 1]
    defeat(kept, f"the bounding set has {' '.join(kept)}")
    return f"NoNewPrivs 1, CapBnd {status['CapBnd']}"


@attack("tenant", "an image's name, a job's name or an argument becomes an option of podman or a command",
        quick=False)
def names_as_options(world):
    site = world.site
    marker = site.directory_for_all() / "marker"
    for text in (f"$(touch {marker})", f"`touch {marker}`", f";touch {marker};", f"|touch {marker}",
                 f"x\ntouch {marker}"):
        for fields in ({"name": text, "command": ["true"]}, {"image": text, "command": ["true"]},
                       {"command": ["true"], "labels": {"a": text}},
                       {"command": ["true"], "checkpoint_path": text}):
            answer = site.enemy.post("/api/v1/jobs", {"name": "names", **fields})
            if answer.status == 201:
                site.await_state(answer.json()["job_id"], "completed", "failed", seconds=60)
            defeat(marker.exists(), f"a shell took {fields}")
    for image in ("--privileged", "--volume=/:/host", "--version", "-v"):
        answer = site.enemy.post("/api/v1/jobs", {"name": "options", "image": image,
                                                  "command": ["--version"]})
        if answer.status == 201:
            job = answer.json()["job_id"]
            ended = site.await_state(job, "completed", "failed", seconds=60)
            said = site.logs(job)
            defeat(ended["state"] == "completed", f"the image {image} is an option: {said[:100]}")
    return "no shell saw them; images that look like options do not run"
