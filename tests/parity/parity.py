#!/usr/bin/env python3
"""parity.py - every field of jobs and tenants in every interface, against a real service

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
# Columns that are shown, but do not count before they are complete.
NOT_YET = set()
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
        try:
            for name, value in values.items():
                to_message(request, self.world.rows[name], value)
            return self.world.stub.SubmitJob(request, timeout=60).job_id
        except grpc.RpcError as error:
            raise Refused(error.details()) from None
        except KeyError as number:
            raise Refused(f"there is no field {number}") from None


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
                options = to_options(self.world.rows[name], value, self.world.directory)
                if options is None:
                    raise Refused(f"{name} has no option")
                words += options
        done = self.cli.run("submit", "-o", "name", *words, "--", *operands)
        if done.returncode != 0:
            raise Refused(done.stderr.strip())
        return done.stdout.split()[0]


class World:
    """A service with one node, and the tables."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        tables = json.loads((ROOT / "build/release/src/resource/resources.json").read_text())
        self.tables = {table["name"]: table for table in tables}
        self.rows = {field["name"]: field for field in self.tables["job"]["fields"]}
        self.cluster = Cluster(self.directory, sections={
            "store": {"secret_keys": KEY}, "auth": {"allow_open_unix_user": True}})
        self.service = self.cluster.scheduler
        self.node = self.cluster.agent(f"parity-{os.getpid()}", gpus="4x80G").name
        self.channel = grpc.insecure_channel(self.service.grpc.partition("//")[2] or self.service.grpc)
        self.stub = scheduler_pb2_grpc.SchedulerServiceStub(self.channel)
        self.other_tenant = self.cluster.make_tenant("parity")
        made = self.service.post("/api/v1/windows", {"name": "parity", "start": "2090-01-31T12:00:00Z",
                                                     "length": "1h", "nodes": [self.node]})
        assert made.status == 201, made
        self.shown = {}  # fields that REST has shown of a job, by name

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
    """The table of one resource, field by interface."""

    def __init__(self, world, resource):
        self.world = world
        self.table = world.tables[resource]
        self.fields = self.table["fields"]
        self.cells = {}  # (field, column): text
        self.notes = []
        self.problems = []

    def settable(self):
        return [field for field in self.fields if field["setter"] != "service"]

    def context(self, interface):
        return {"resource": self.table["name"], "interface": interface,
                "other_tenant": self.world.other_tenant}

    def is_complete(self, column):
        return all(cell != "MISSING" for (_, one), cell in self.cells.items() if one == column)

    def there(self, column, part, key):
        """The settable fields that an interface has. Others give their reason."""
        fields = []
        for field in self.settable():
            if f"no_{part}" in self.table:
                self.excuse(field, column, self.table[f"no_{part}"])
            elif key in field[part]:
                fields.append(field)
            elif "absent" in field[part]:
                self.excuse(field, column, field[part]["absent"])
            else:
                self.put(field, column, "neither there nor said why not")
        return fields

    def put(self, field, column, wrong=None):
        """A cell that was tried: `wrong` says what is wrong with it."""
        self.cells.setdefault((field["name"], column), "ok")
        if wrong:
            self.cells[field["name"], column] = "MISSING"
        if wrong and (self.table["name"], column) not in NOT_YET:
            self.problems.append(f"{field['name']}, {column}: {wrong}")

    def excuse(self, field, column, reason):
        """A cell that is empty for a reason, which a note gives once."""
        note = f"{column}: {reason}"
        if note not in self.notes:
            self.notes.append(note)
        self.cells[field["name"], column] = f"({self.notes.index(note) + 1})"

class JobParity(Parity):
    def __init__(self, world):
        super().__init__(world, "job")
        self.bases = {}

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
        value = value_of(field, {**self.context(interface.name), "job": self.first})
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
        before = canonical(self.fields, self.world.get(job))
        status = self.world.status(job)
        after = canonical(self.fields, self.world.get(job))
        said = from_message(self.fields, status.job)
        for field in self.fields:
            name = field["name"]
            if name in said and name != "reason":
                fine = lies_between(said[name], before[name], after[name])
                self.put(field, "gRPC out",
                         None if fine else f"{said[name]!r}, by REST {after[name]!r} ({job})")

    def check_settable(self):
        """Sets each field by each interface while no job can run."""
        world, expected = self.world, {}
        self.first = Rest(world).submit({"tenant_id": world.cluster.tenant, **BASE, "hold": True})
        self.set_by(Rest(world), "REST in", self.settable(), expected)
        self.set_by(Grpc(world), "gRPC in", self.there("gRPC in", "proto", "request"), expected)
        self.set_by(CommandLine(world), "gpu-cli", self.there("gpu-cli", "option", "name"),
                    expected)

    def check_shown(self):
        """Lets jobs run, so that answers have all of their fields."""
        world, cluster = self.world, self.world.cluster
        waiting = next(job for job in world.service.get("/api/v1/scheduler/queue?reasons=1").json()
                       if job.get("reason"))
        world.shown["reason"] = waiting["reason"]
        said = world.status(waiting["id"]).job.reason
        self.put(world.rows["reason"], "gRPC out",
                 None if said == waiting["reason"] else f"{said}, by REST {waiting['reason']}")
        world.drain("resume")
        running = cluster.submit("sleep 60", gpu_count=1, priority=5000)
        cluster.await_state(running, "running")
        self.compare(running)
        assert world.service.delete(f"/api/v1/jobs/{running}").status == 200
        cluster.await_state(running, "cancelled")
        done = cluster.submit("exit 3", gpu_memory_mb=100, priority=5000)
        cluster.await_state(done, "failed")
        self.compare(done)
        for field in self.fields:
            if "hidden" in field:
                self.excuse(field, "REST out", field["hidden"])
            else:
                self.put(field, "REST out",
                         None if field["name"] in world.shown else "no answer has shown it")


class TenantParity(Parity):
    def __init__(self, world):
        super().__init__(world, "tenant")
        self.cli = CommandLine(world).cli

    def by_rest(self, tenant, field, value):
        answer = self.world.service.put(f"/api/v1/tenants/{tenant}", {field["name"]: value})
        if answer.status != 200:
            raise Refused(answer.json()["error"])

    def by_grpc(self, tenant, field, value):
        request = scheduler_pb2.UpdateTenantQuotaRequest(tenant_id=tenant)
        to_message(request, field, value)
        try:
            changed = self.world.stub.UpdateTenantQuota(request, timeout=60).tenant
        except grpc.RpcError as error:
            raise Refused(error.details()) from None
        shown = canonical(self.fields, self.get(tenant))
        for name, said in from_message(self.fields, changed).items():
            row = next(one for one in self.fields if one["name"] == name)
            self.put(row, "gRPC out",
                     None if said == shown[name] else f"{said!r}, by REST {shown[name]!r}")

    def by_cli(self, tenant, field, value):
        done = self.cli.run("quota", tenant, *to_options(field, value, self.world.directory))
        if done.returncode != 0:
            raise Refused(done.stderr.strip())

    def get(self, tenant):
        return self.world.service.get(f"/api/v1/tenants/{tenant}").json()

    def change(self, change, interface, column, fields, expected):
        for field in fields:
            name = field["name"]
            tenant = self.world.cluster.make_tenant(f"{interface}-{name}")
            before = self.get(tenant)
            value = value_of(field, self.context(interface))
            try:
                change(tenant, field, value)
            except Refused as refused:
                self.put(field, column, f"refused: {refused}")
                continue
            after = self.get(tenant)
            changes = {one: json.dumps(after.get(one)).replace(f"-{interface}\"", "\"")
                       for one in after if after[one] != before.get(one)}
            wanted = expected.setdefault(name, changes)
            shown = json.dumps(field.get("shown_as", value)).replace(f"-{interface}\"", "\"")
            if changes.get(name) != shown:
                self.put(field, column, f"{value!r} became {changes}")
            else:
                self.put(field, column,
                         None if changes == wanted else f"{changes}, but by REST {wanted}")
            for one in after:
                self.shown.add(one)

    def check(self):
        self.shown, expected = set(), {}
        self.change(self.by_rest, "rest", "REST in", self.settable(), expected)
        self.change(self.by_grpc, "grpc", "gRPC in", self.there("gRPC in", "proto", "request"),
                    expected)
        self.change(self.by_cli, "cli", "gpu-cli", self.there("gpu-cli", "option", "name"),
                    expected)
        for field in self.fields:
            self.put(field, "REST out",
                     None if field["name"] in self.shown else "no answer has shown it")


def described(world):
    """The messages of the service by name, as reflection tells them: {number: name}."""
    request = reflection_v1_pb2.ServerReflectionRequest(
        file_containing_symbol="scheduler.SchedulerService")
    stub = reflection_v1_pb2_grpc.ServerReflectionStub(world.channel)
    answer = next(stub.ServerReflectionInfo(iter([request]), timeout=60))
    file = descriptor_pb2.FileDescriptorProto.FromString(
        answer.file_descriptor_response.file_descriptor_proto[0])
    return {one.name: {field.number: field.name for field in one.field}
            for one in file.message_type}


def check_descriptors(parity, messages):
    """The messages have each row's numbers."""
    for field in parity.fields:
        name, proto = field["name"], field["proto"]
        for key, column in (("request", "gRPC in"), ("reply", "gRPC out")):
            message = parity.table[f"{key}_message"]
            if key in proto and messages[message].get(proto[key]) != name:
                parity.put(field, column, f"{message} has no field {proto[key]}")


def lost_fields(messages):
    """Published fields that are gone, or have another number."""
    for line in (HERE / "published-fields.txt").read_text().splitlines():
        name, _, fields = line.partition(": ")
        for number, field in re.findall(r"(\d+) (\w+)", fields):
            if messages.get(name, {}).get(int(number)) != field:
                yield f"{name}.{field} = {number} was published, and is gone"


def served_form(world):
    """The dashboard's scripts, as the service serves them."""
    page = world.service.get("/").body.decode()
    paths = re.findall(r'src="([^"]+\.js)"', page)
    return "".join(world.service.get("/" + path.lstrip("/")).body.decode() for path in paths)


def check_descriptions(parity, command, form):
    """The options in --help, the form as it is served, openapi.json and the pages."""
    world, resource = parity.world, parity.table["name"]
    cli_help = CommandLine(world).cli(command, "--help")
    schemas = world.service.get("/openapi.json").json()["components"]["schemas"]
    request, reply = f"{resource.capitalize()}Request", resource.capitalize()
    page = (ROOT / "docs/fields.md").read_text()
    section = page.partition(f"make-fields {resource} -->")[2].partition("<!-- end -->")[0]
    for field in parity.fields:
        name = field["name"]
        parity.put(field, "docs",
                   None if f"| `{name}` |" in section else "docs/fields.md does not have it")
        is_settable = field["setter"] != "service"
        wrong = []
        if is_settable and name not in schemas[request]["properties"]:
            wrong.append(f"{request} has no such property")
        if "hidden" not in field and name not in schemas[reply]["properties"]:
            wrong.append(f"{reply} has no such property")
        parity.put(field, "openapi", ", ".join(wrong) or None)
        if not is_settable:
            continue
        option = field["option"].get("name")
        if option and not re.search(rf"(^|\s){option}(\s|$)", cli_help):
            parity.put(field, "gpu-cli", f"'gpu-cli {command} --help' has no {option}")
    for field in parity.there("form", "form", "section"):
        served = re.search(rf'name:"{field["name"]}",label:', form)
        parity.put(field, "form", None if served else "the dashboard's form does not have it")


def table(parity):
    names = [field["name"] for field in parity.fields]
    width = max(map(len, names))
    lines = [f"{parity.table['name']:{width}}  " + "  ".join(f"{column:8}" for column in COLUMNS)]
    for name in names:
        cells = (parity.cells.get((name, column), "-") for column in COLUMNS)
        lines.append(f"{name:{width}}  " + "  ".join(f"{cell:8}" for cell in cells))
    lines += ["", *(f"({i}) {note}" for i, note in enumerate(parity.notes, 1)), ""]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main():
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory)
        jobs, tenants = JobParity(world), TenantParity(world)
        try:
            world.drain("drain")
            jobs.check_settable()
            jobs.check_shown()
            tenants.check()
            messages, form = described(world), served_form(world)
            for parity, command in ((jobs, "submit"), (tenants, "quota")):
                check_descriptors(parity, messages)
                check_descriptions(parity, command, form)
        finally:
            world.cluster.stop()
    text = table(jobs) + table(tenants)
    (ROOT / "build/parity.txt").write_text(text)
    print(text)
    problems = [*jobs.problems, *tenants.problems, *lost_fields(messages)]
    for parity in (jobs, tenants):
        problems += [f"{column} has all fields of a {resource}: take it out of NOT_YET"
                     for resource, column in NOT_YET
                     if resource == parity.table["name"] and parity.is_complete(column)]
    for problem in problems:
        print(f"FAILED {problem}")
    for parity in (jobs, tenants):
        by_grpc = sum("request" in field["proto"] for field in parity.fields)
        print(f"{parity.table['name']}: {len(parity.fields)} fields; gRPC sets {by_grpc} of "
              f"{len(parity.settable())} that can be set")
    cells = [*jobs.cells.values(), *tenants.cells.values()]
    print(f"{len(cells) - cells.count('MISSING')} passed, {len(problems)} failed")
    sys.exit(len(problems) > 0)


main()
