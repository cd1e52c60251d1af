#!/usr/bin/env python3
"""parity.py - every field of a job in every interface, against a real service

Prints a table, field by interface, also to build/parity.txt. A cell is 'ok', '-' where the field
has no place there, a letter for the reason that its row gives, or 'MISSING'. What is settable is
set to a value that is not its default by REST, gRPC and gpu-cli, read back by REST and gRPC, and
compared. The last line is 'N passed, M failed'.
"""

import json
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
for directory in ("agent", "service", "cli"):
    sys.path.insert(0, str(HERE.parent / directory))

import grpc
from google.protobuf import descriptor_pb2

from calls import reflection_v1_pb2, reflection_v1_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc
from cli import Cli
from cluster import Cluster
from values import (
    COMPANIONS, REPLACES, canonical, from_message, lies_between, to_message, to_options, value_of,
)

COLUMNS = ["REST in", "REST out", "gRPC in", "gRPC out", "gpu-cli", "form", "openapi", "docs"]
BASE = {"name": "base", "command": ["true"]}
KEY = "k:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
# What differs between two jobs that were submitted alike.
OF_EACH = {"id", "job_id", "submitted_at", "queue_position", "tenant_queue_position", "reason",
           "estimated_wait", "estimated_start"}


class Refused(Exception):
    """What an interface said instead of taking a job."""


class Rest:
    name = "rest"

    def __init__(self, world):
        self.world = world

    def submit(self, values):
        answer = self.world.service.post("/api/v1/jobs", values)
        if answer.status != 201:
            raise Refused(answer.json()["error"])
        return answer.json()["job_id"]


class Grpc:
    name = "grpc"

    def __init__(self, world):
        self.world = world

    def submit(self, values):
        request = scheduler_pb2.SubmitJobRequest()
        for name, value in values.items():
            to_message(request, self.world.rows[name], value)
        try:
            return self.world.stub.SubmitJob(request, timeout=60).job_id
        except grpc.RpcError as error:
            raise Refused(error.details()) from None


class CommandLine:
    name = "cli"

    def __init__(self, world):
        self.world = world
        self.cli = Cli(world.directory, world.service.url)

    def submit(self, values):
        words = []
        operands = [*values.get("command", []), *values.get("args", [])]
        for name, value in values.items():
            if name == "tenant_id":
                words += ["--tenant-id", value]
            elif name not in ("command", "args"):
                words += to_options(self.world.rows[name], value, self.world.directory)
        done = self.cli.run("submit", "-o", "name", *words, "--", *operands)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout.split()[0]


class World:
    """A service with one node, and the table of jobs."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        tables = json.loads((ROOT / "build/release/src/resource/resources.json").read_text())
        self.table = next(one for one in tables if one["name"] == "job")
        self.fields = self.table["fields"]
        self.rows = {field["name"]: field for field in self.fields}
        self.cluster = Cluster(self.directory, sections={"store": {"secret_keys": KEY}})
        self.service = self.cluster.scheduler
        self.node = self.cluster.agent(f"parity-{os.getpid()}", gpus="4x80G").name
        self.channel = grpc.insecure_channel(self.service.grpc.partition("//")[2] or self.service.grpc)
        self.stub = scheduler_pb2_grpc.SchedulerServiceStub(self.channel)
        self.context = {"other_tenant": self.cluster.make_tenant("parity")}
        self.shown = {}  # by name, every value that REST has shown

    def drain(self, how):
        assert self.service.post(f"/api/v1/nodes/{self.node}/{how}").status == 200

    def get(self, job):
        shown = self.cluster.job(job)
        for name, value in shown.items():
            self.shown.setdefault(name, value)
        return shown

    def status(self, job):
        return self.stub.GetJobStatus(scheduler_pb2.GetJobStatusRequest(job_id=job), timeout=60)


def plain(text, interface, job):
    """Without what differs between interfaces and jobs: the job's own id, its idempotency key."""
    return text.replace(job, "SELF").replace(f"-{interface.name}\"", "\"")


class Parity:
    def __init__(self, world):
        self.world = world
        self.cells = {}  # (field, column): text
        self.notes = []
        self.problems = []
        self.bases = {}

    def put(self, field, column, wrong=None):
        """A cell that was tried: `wrong` says what is wrong with it."""
        self.cells.setdefault((field["name"], column), "ok")
        if wrong:
            self.cells[field["name"], column] = "MISSING"
            self.problems.append(f"{field['name']}, {column}: {wrong}")

    def excuse(self, field, column, reason):
        note = f"{field['name']}, {column}: {reason}"
        self.notes.append(note)
        self.cells[field["name"], column] = f"({len(self.notes)})"

    def base(self, interface, companions):
        """A job with nothing but what every job has, and the companions."""
        key = interface.name, json.dumps(companions)
        if key not in self.bases:
            job = interface.submit({"tenant_id": self.world.cluster.tenant, **BASE, **companions})
            self.bases[key] = self.world.get(job)
        return self.bases[key]

    def set(self, interface, field):
        """What setting the field changes, as REST shows it."""
        name = field["name"]
        companions = COMPANIONS.get(name, {})
        base = self.base(interface, companions)
        context = {**self.world.context, "interface": interface.name, "job": self.world.first}
        value = value_of(field, context)
        values = {"tenant_id": self.world.cluster.tenant, **BASE, **companions, name: value}
        values.pop(REPLACES.get(name), None)
        job = interface.submit(values)
        shown = self.world.get(job)
        changes = {}
        for one in shown.keys() | base.keys():
            if one not in OF_EACH and shown.get(one) != base.get(one):
                changes[one] = plain(json.dumps(shown.get(one)), interface, job)
        return job, value, changes

    def check_only(self, interface, field, column):
        """`check` is not stored: it refuses what could never run."""
        companions = {"tenant_id": self.world.cluster.tenant, **BASE, "gpu_count": 64}
        interface.submit(companions)
        try:
            interface.submit({**companions, field["name"]: True})
            self.put(field, column, "a job that can never run was accepted")
        except Refused:
            self.put(field, column)

    def set_by(self, interface, column, fields, expected):
        for field in fields:
            if field["name"] == "check":
                self.check_only(interface, field, column)
                continue
            try:
                job, value, changes = self.set(interface, field)
            except Refused as refused:
                self.put(field, column, f"refused: {refused}")
                continue
            wanted = expected.setdefault(field["name"], changes)
            is_shown = "hidden" not in field and "shown_as" not in field
            if not changes:
                self.put(field, column, f"{value!r} changed nothing")
            elif is_shown and changes.get(field["name"]) != plain(json.dumps(value), interface, job):
                self.put(field, column, f"{value!r} became {changes}")
            elif changes != wanted:
                self.put(field, column, f"{changes}, but by REST {wanted}")
            else:
                self.put(field, column)
            self.compare(job)

    def compare(self, job):
        """The job by gRPC must be the job by REST."""
        before = canonical(self.world.fields, self.world.get(job))
        status = self.world.status(job)
        after = canonical(self.world.fields, self.world.get(job))
        said = from_message(self.world.fields, status.job)
        for field in self.world.fields:
            name = field["name"]
            if name in said and name != "reason":
                fine = lies_between(said[name], before[name], after[name])
                self.put(field, "gRPC out",
                         None if fine else f"{said[name]!r}, by REST {after[name]!r} ({job})")


def settable(world):
    return [field for field in world.fields if field["setter"] != "service"]


def check_settable(parity):
    """Sets each field by each interface while no job can run."""
    world, expected = parity.world, {}
    world.first = Rest(world).submit({"tenant_id": world.cluster.tenant, **BASE, "hold": True})
    fields = settable(world)
    parity.set_by(Rest(world), "REST in", fields, expected)
    for interface, column, part in ((Grpc(world), "gRPC in", "proto"),
                                    (CommandLine(world), "gpu-cli", "option")):
        there = []
        for field in fields:
            if "absent" in field[part] and ("request" if part == "proto" else "name") not in field[part]:
                parity.excuse(field, column, field[part]["absent"])
            else:
                there.append(field)
        parity.set_by(interface, column, there, expected)


def check_shown(parity):
    """Lets jobs run, so that answers have all of their fields."""
    world, cluster = parity.world, parity.world.cluster
    waiting = next(job for job in world.service.get("/api/v1/scheduler/queue?reasons=1").json()
                   if job.get("reason"))
    world.shown["reason"] = waiting["reason"]
    said = world.status(waiting["id"]).job.reason
    parity.put(world.rows["reason"], "gRPC out",
               None if said == waiting["reason"] else f"{said}, by REST {waiting['reason']}")
    world.drain("resume")
    running = cluster.submit("sleep 60", gpu_count=1, priority=5000)
    cluster.await_state(running, "running")
    parity.compare(running)
    assert world.service.delete(f"/api/v1/jobs/{running}").status == 200
    cluster.await_state(running, "cancelled")
    done = cluster.submit("exit 3", gpu_memory_mb=100, priority=5000)
    cluster.await_state(done, "failed")
    parity.compare(done)
    for field in world.fields:
        if "hidden" in field:
            parity.excuse(field, "REST out", field["hidden"])
        else:
            parity.put(field, "REST out",
                       None if field["name"] in world.shown else "no answer has shown it")


def check_descriptors(parity):
    """The messages that the service describes by reflection have each row's numbers."""
    world = parity.world
    request = reflection_v1_pb2.ServerReflectionRequest(
        file_containing_symbol="scheduler.SchedulerService")
    stub = reflection_v1_pb2_grpc.ServerReflectionStub(world.channel)
    answer = next(stub.ServerReflectionInfo(iter([request]), timeout=60))
    file = descriptor_pb2.FileDescriptorProto.FromString(
        answer.file_descriptor_response.file_descriptor_proto[0])
    messages = {one.name: {field.number: field.name for field in one.field}
                for one in file.message_type}
    for field in world.fields:
        name, proto = field["name"], field["proto"]
        for key, message, column in (("request", "request_message", "gRPC in"),
                                     ("reply", "reply_message", "gRPC out")):
            if key in proto and messages[world.table[message]].get(proto[key]) != name:
                parity.put(field, column, f"{world.table[message]} has no field {proto[key]}")
    for line in (HERE / "published-fields.txt").read_text().splitlines():
        name, _, fields = line.partition(": ")
        for number, field in re.findall(r"(\d+) (\w+)", fields):
            if messages.get(name, {}).get(int(number)) != field:
                parity.problems.append(f"{name}.{field} = {number} was published, and is gone")


def check_descriptions(parity):
    """The option in --help, the form as it is served, openapi.json and the pages."""
    world = parity.world
    cli_help = CommandLine(world).cli("submit", "--help")
    page = world.service.get("/").body.decode()
    scripts = re.findall(r'src="([^"]+\.js)"', page)
    form = "".join(world.service.get(path if path[0] == "/" else f"/{path}").body.decode()
                   for path in scripts)
    schemas = world.service.get("/openapi.json").json()["components"]["schemas"]
    docs = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for field in world.fields:
        name = field["name"]
        parity.put(field, "docs", None if f"`{name}`" in docs else "no page has it")
        is_settable = field["setter"] != "service"
        wrong = []
        if is_settable and name not in schemas["JobRequest"]["properties"]:
            wrong.append("JobRequest has no such property")
        if "hidden" not in field and name not in schemas["Job"]["properties"]:
            wrong.append("Job has no such property")
        parity.put(field, "openapi", ", ".join(wrong) or None)
        if not is_settable:
            continue
        option = field["option"].get("name")
        if option and not re.search(rf"(^|\s){option}(\s|$)", cli_help):
            parity.put(field, "gpu-cli", f"'gpu-cli submit --help' has no {option}")
        if "absent" in field["form"]:
            parity.excuse(field, "form", field["form"]["absent"])
        else:
            served = re.search(rf'name:"{name}",label:', form)
            parity.put(field, "form", None if served else "the dashboard's form does not have it")


def table(parity):
    names = [field["name"] for field in parity.world.fields]
    width = max(map(len, names))
    lines = [f"{'field':{width}}  " + "  ".join(f"{column:8}" for column in COLUMNS)]
    for name in names:
        cells = (parity.cells.get((name, column), "-") for column in COLUMNS)
        lines.append(f"{name:{width}}  " + "  ".join(f"{cell:8}" for cell in cells))
    lines += ["", *(f"({i}) {note}" for i, note in enumerate(parity.notes, 1))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main():
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory)
        parity = Parity(world)
        try:
            world.drain("drain")
            check_settable(parity)
            check_shown(parity)
            check_descriptors(parity)
            check_descriptions(parity)
        finally:
            world.cluster.stop()
    text = table(parity)
    (ROOT / "build/parity.txt").write_text(text)
    print(text)
    for problem in parity.problems:
        print(f"FAILED {problem}")
    settable_by_grpc = sum("request" in field["proto"] for field in world.fields)
    print(f"{len(world.fields)} fields of a job; gRPC sets {settable_by_grpc} of "
          f"{len(settable(world))} that can be set")
    failed = len(parity.problems)
    passed = len(parity.cells) - sum(cell == "MISSING" for cell in parity.cells.values())
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
