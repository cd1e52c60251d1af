"""What is unsafe before anybody has done anything: builds, packages, and how it starts."""

import os
import pathlib
import re
import socket
import subprocess

from attack import Skipped, attack, defeat
from scheduler import KIND, ROOT, Scheduler
from scheduler import run as run_scheduler


def tool(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"{words[0]} cannot read the program: {done.stderr[:80]}")
    return done.stdout


@attack("anonymous", "a mistake in memory is easy to use: programs are built without hardening")
def hardening(world):
    if KIND != "release":
        raise Skipped("a sanitizer build is not what is shipped")
    lacks = []
    for name in ("gpu-scheduler", "gpu-agent", "gpu-cli", "gpu-keeper", "gpu-slot-proxy"):
        path = ROOT / "bin" / name
        head, parts = tool("readelf", "-hW", path), tool("readelf", "-ldW", path)
        if "DYN" not in re.search(r"Type:\s+(\w+)", head)[1]:
            lacks.append(f"{name}: PIE")
        if "GNU_RELRO" not in parts:
            lacks.append(f"{name}: RELRO")
        is_static = "INTERP" not in parts
        if not is_static and "NOW" not in parts:
            lacks.append(f"{name}: BIND_NOW")
        stack = re.search(r"GNU_STACK.*", parts)
        if not stack or " E" in stack[0].replace("RWE", " E"):
            lacks.append(f"{name}: NX")
        symbols = tool("nm", "-D", path) if not is_static else ""
        if not is_static and "__stack_chk_fail" not in symbols:
            lacks.append(f"{name}: stack protector")
        if not is_static and not re.search(r"_chk\b", symbols.replace("__stack_chk", "")):
            lacks.append(f"{name}: FORTIFY")
        # Debian's C library has no note of CET, so the programs have none; endbr64 tells.
        if os.uname().machine == "x86_64" and path.read_bytes().count(b"\xf3\x0f\x1e\xfa") < 40:
            lacks.append(f"{name}: CET")
    defeat(lacks, f"without: {', '.join(lacks)}")
    return "5 programs: PIE, full RELRO, NX, stack protector, FORTIFY, CET"


def starts(world, arguments, **sections):
    """Whether a scheduler with these settings starts, and what it says."""
    one = Scheduler(world.directory / f"starts-{len(list(world.directory.iterdir()))}",
                    *arguments, sections=sections, starts=False)
    one.write_config()
    if sections.get("auth", {}).get("enable"):
        made = one.run("token", "create")
        if made.returncode != 0:
            return False, made.stderr
    one.start(waits=False)
    try:
        one.wait_ready()
        return True, one.errors.read_text()
    except AssertionError as error:
        return False, str(error)
    finally:
        one.kill()


@attack("anonymous", "the service listens on the network without TLS, and tokens pass in the clear")
def plain_network(world):
    is_up, said = starts(world, ["--listen", "0.0.0.0"], auth={"enable": True})
    warned = "TLS" in said or "plain" in said.lower() or "clear" in said
    defeat(is_up and not warned, "it starts on 0.0.0.0 with sign-in and without TLS, and says nothing")
    return "refused" if not is_up else "it starts with a warning"


@attack("anonymous", "the service listens on the network without sign-in")
def open_network(world):
    for address in ("0.0.0.0", "::", socket.gethostbyname(socket.gethostname())):
        if address.startswith("127."):
            continue
        is_up, _ = starts(world, ["--listen", address])
        defeat(is_up, f"it starts open on {address}")
    return "refused on every address but loopback ones"


@attack("local user", "settings with a secret in them can be read by all, and nobody is told")
def readable_settings(world):
    one = Scheduler(world.directory / "readable", starts=False, sections={
        "auth": {"enable": True, "jwt_secret": "x" * 40}})
    one.write_config()
    one.config.chmod(0o644)
    made = one.run("token", "create")
    said = made.stderr
    if made.returncode == 0:
        one.start(waits=False)
        try:
            one.wait_ready()
            said += one.errors.read_text()
        except AssertionError as error:
            said += str(error)
        finally:
            one.kill()
    told = "read" in said and str(one.config.name) in said or "permission" in said.lower()
    defeat(not told, "0644 with jwt_secret in it: not a word")
    return f"told: {said.strip().splitlines()[-1][:120]}"


@attack("local user", "a job makes itself any user of the machine by an open service and an agent of root")
def open_service(world):
    """A job of nobody's posts a tenant with another Unix user and a job of it to the loopback
    address. A package that is installed with both programs must not allow that."""
    site = world.open
    url = site.scheduler.url
    script = ("set -e; h='Content-Type: application/json'\n"
              f"t=$(curl -s -X POST -H \"$h\" -d '{{\"name\":\"other\",\"unix_user\":\"games\"}}' {url}/api/v1/tenants"
              " | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n"
              f"curl -s -X POST -H \"$h\" -d \"{{\\\"tenant_id\\\":\\\"$t\\\",\\\"name\\\":\\\"stolen\\\",\\\"script\\\":"
              f"\\\"id -un\\\"}}\" {url}/api/v1/jobs\necho asked\n")
    job = site.submit(script)
    site.await_state(job, "completed", "failed")
    stolen = site.scheduler.get("/api/v1/jobs?name=stolen").json()["jobs"]
    for one in stolen:
        try:
            site.await_state(one["id"], "completed", "failed", seconds=3)
        except AssertionError:
            continue  # refused by the agent
        said = site.logs(one["id"])
        defeat("games" in said, f"a job of nobody's became {said.strip()}")
    return f"the tenant or its job was refused: {site.logs(job)[:120]}"


def turns_sign_in_on(path):
    """True if a file of settings, or of an environment, has sign-in enabled."""
    section = ""
    for line in path.read_text(errors="replace").splitlines():
        if line[:1].isalpha():
            section = line.partition(":")[0]
        words = line.split("#")[0].split()
        if section == "auth" and words == ["enable:", "true"] or "AUTH_ENABLE=true" in line:
            return True
        if "auth" in line and "enable: true" in line:  # as the packages' settings are made
            return True
    return False


@attack("local user", "the packages start a service that is open to every user of the machine")
def packaged_settings(world):
    secured = [str(path.relative_to(ROOT))
               for path in [ROOT / "scripts" / "deb", *ROOT.glob("deploy/**/*"), *ROOT.glob("config/*")]
               if path.is_file() and turns_sign_in_on(path)]
    defeat(not secured, "no packaged settings turn sign-in on")
    return f"sign-in is on in {' '.join(secured[:3])}"


@attack("local user", "an unknown or misspelled setting turns protection off in silence")
def misspelled_settings(world):
    for text in ("auth:\n  enabled: true\n", "auth:\n  enable: \"true\"\n", "Auth:\n  enable: true\n",
                 "auth: {enable: yes}\n", "auth:\n  enable: true\nauth:\n  enable: false\n"):
        path = pathlib.Path(world.directory) / "misspelled.yaml"
        path.write_text(text)
        checked = run_scheduler("--config", path, "--check-config")
        defeat(checked.returncode == 0, f"{text!r} is taken")
    return "5 files were refused, with the line"
