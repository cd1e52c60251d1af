"""gRPC: deadlines, cancels, malformed calls and bombs."""

import gzip
import threading
import time

import grpc
import h2.exceptions
from test_hostile import Http2

from attack import attack, defeat
from calls import scheduler_pb2
from conftest import read_all

def requests(site):
    """A request for each unary method, about a job of the enemy's that has ended."""
    ended, _ = site.enemy.run("true")
    job = ended["id"]
    return {"SubmitJob": scheduler_pb2.SubmitJobRequest(command=["true"], name="deadline"),
            "CancelJob": scheduler_pb2.CancelJobRequest(job_id=job),
            "GetJobStatus": scheduler_pb2.GetJobStatusRequest(job_id=job),
            "ListJobs": scheduler_pb2.ListJobsRequest(),
            "UpdateTenantQuota": scheduler_pb2.UpdateTenantQuotaRequest(tenant_id="x", max_gpus=1),
            "GetMetrics": scheduler_pb2.GetMetricsRequest(),
            "GetClusterStatus": scheduler_pb2.GetClusterStatusRequest()}


def message(data, flag=0):
    """A message of gRPC: a flag, its length, and it."""
    return bytes([flag]) + len(data).to_bytes(4, "big") + data


class Caller:
    """Calls on one connection of raw HTTP/2, sent without waiting for answers."""

    def __init__(self, site, token=None):
        self.client = Http2(site.rpc)
        self.client.connection.increment_flow_control_window(1 << 30)
        self.extra = [("content-type", "application/grpc"), ("te", "trailers")]
        if token:
            self.extra.append(("authorization", f"Bearer {token}"))
        self.stream = -1
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        """Answers are read and dropped, or the service would stop to read."""
        try:
            while self.client.socket.recv(1 << 16):
                pass
        except OSError:
            pass

    def call(self, path, body, *headers, end=True):
        """Begins a call; its stream."""
        self.stream += 2
        if self.stream == 1:
            self.client.connection.remote_settings.update({3: 1 << 20})
        self.client.request(self.stream, path, end=False, method="POST",
                            extra=[*self.extra, *headers])
        self.client.connection.send_data(self.stream, body, end_stream=end)
        return self.stream

    def flush(self):
        """False where the connection is gone."""
        try:
            self.client.flush()
            return True
        except OSError:
            return False

    def close(self):
        self.client.socket.close()


def passed_deadlines(site, person, method, request, count, pause_s):
    """Calls whose deadline passes before their answer is there, all at once or one by one."""
    caller = Caller(site, person.token)
    path = f"/scheduler.SchedulerService/{method}"
    for number in range(count):
        caller.call(path, message(request.SerializeToString()),
                    ("grpc-timeout", ("1m", "1n", "500u", "2m")[number % 4]))
        if not caller.flush():
            break
        if site.scheduler.process.poll() is not None:
            return
        time.sleep(pause_s)
    caller.close()


def by_deadlines(world, person, methods):
    site = world.site
    count = 30 if world.quick else 400
    for method, request in methods.items():
        for pause_s in (0, 0.002):
            passed_deadlines(site, person, method, request, count, pause_s)
            defeat(site.scheduler.process.poll() is not None,
                   f"{method} with a deadline of 1 ms: {site.last_words()}")
    return f"{2 * count} calls of each of {len(methods)} methods with deadlines of 1 ns to 2 ms"


@attack("tenant", "a tenant ends the scheduler with a deadline that passes")
def tenants_deadline(world):
    return by_deadlines(world, world.site.enemy, requests(world.site))


@attack("viewer", "a viewer ends the scheduler with a deadline that passes")
def viewers_deadline(world):
    """What has left memory is read from the store, which takes longer than the deadline."""
    site = world.site
    methods = requests(site)
    with site.settings_changed("scheduler", keep_finished_ms=0):
        return by_deadlines(world, site.person(site.enemy.tenant, role="viewer"), methods)


@attack("tenant", "a call is cancelled, its stream reset or its connection closed before the answer")
def cancelled_calls(world):
    """Each method is left in each way while its commit is under way."""
    site, count = world.site, 0
    for method, request in requests(site).items():
        path, body = f"/scheduler.SchedulerService/{method}", message(request.SerializeToString())
        for way in ("reset", "reset before the end", "close", "deadline and reset"):
            caller = Caller(site, site.enemy.token)
            for _ in range(20):
                headers = [("grpc-timeout", "1m")] if "deadline" in way else []
                stream = caller.call(path, body, *headers, end="before" not in way)
                if "reset" in way:
                    try:
                        caller.client.connection.reset_stream(stream)
                    except h2.exceptions.ProtocolError:
                        pass
                count += 1
                if not caller.flush():
                    break
            caller.close()
        defeat(site.scheduler.process.poll() is not None, f"{method}: {site.last_words()}")
    return f"{count} calls left in 4 ways"


@attack("tenant", "a deadline that is no number, too large or negative is taken")
def odd_deadlines(world):
    site = world.site
    for value in ("", "x", "-1S", "99999999999999999999H", "1", "H", "1e9S", "0n", "00000001m", " 1S",
                  "1S ", "9" * 300 + "H"):
        caller = Caller(site, site.enemy.token)
        caller.call("/scheduler.SchedulerService/GetClusterStatus", message(b""),
                    ("grpc-timeout", value))
        caller.flush()
        caller.close()
    status = site.calls.scheduler.GetClusterStatus(scheduler_pb2.GetClusterStatusRequest(),
                                                   metadata=site.enemy.metadata, timeout=20)
    return f"12 deadlines; the service answers after them: {status.total_nodes} nodes"


MALFORMED = {"an empty body": b"", "half a head": b"\0\0\0", "a bad flag": b"\x07" + message(b"")[1:],
             "two messages": message(b"") * 2, "a length without its bytes": b"\0\0\0\1\0x",
             "compressed without a coding": message(b"x", 1),
             "4 GiB announced": b"\0\xff\xff\xff\xff", "bytes that are no message": message(b"\xff" * 30)}


@attack("anonymous", "malformed unary calls leak memory, without a token")
def leaking_calls(world):
    """Rounds of malformed calls; what is kept for each would show in the later ones."""
    rounds, each = (2, 5000) if world.quick else (6, 20000)
    path = "/grpc.health.v1.Health/Check"
    for what in ("an empty body", "a bad flag", "two messages"):
        malformed_round(world, path, MALFORMED[what], 500)
    with world.flood(0, f"nothing is kept for {rounds * each} calls"):
        for _ in range(rounds):
            for what in ("an empty body", "a bad flag", "two messages"):
                malformed_round(world, path, MALFORMED[what], each // 3)
    return f"{rounds * each} malformed calls, {world.floods[-1]}"


def malformed_round(world, path, body, count):
    """Some hundred calls at a time, each group answered before the next."""
    for _ in range(max(1, count // 400)):
        client = Http2(world.site.rpc)
        client.connection.remote_settings.update({3: 1 << 20})
        for stream in range(1, 800, 2):
            client.request(stream, path, end=not body, method="POST", extra=[
                ("content-type", "application/grpc"), ("te", "trailers")])
            if body:
                client.connection.send_data(stream, body, end_stream=True)
        client.connection.ping(b"finished")
        client.flush()
        data = b""
        while b"finished" not in data:
            part = client.socket.recv(1 << 16)
            if not part:
                break
            data = data[-20:] + part
        client.socket.close()


@attack("tenant", "malformed calls with a token stop a method, or leak what was read")
def malformed_methods(world):
    site = world.site
    methods = requests(site)
    for method in methods:
        for what, body in MALFORMED.items():
            caller = Caller(site, site.enemy.token)
            caller.call(f"/scheduler.SchedulerService/{method}", body)
            caller.flush()
            caller.close()
    return f"{len(methods) * len(MALFORMED)} malformed calls; all methods answer after them: " \
           f"{answers(site, methods)}"


def answers(site, methods):
    """How each method answers a proper call."""
    codes = []
    for name, request in methods.items():
        try:
            getattr(site.calls.scheduler, name)(request, metadata=site.enemy.metadata, timeout=20)
            codes.append("OK")
        except grpc.RpcError as error:
            codes.append(error.code().name)
            defeat(error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL),
                   f"{name}: {error.details()}")
    return " ".join(codes)


@attack("tenant", "a few bytes unpack to gigabytes in a compressed message")
def gzip_bomb(world):
    site = world.site
    size_mib = 40 if world.quick else 200
    bomb = gzip.compress(bytes(size_mib << 20), 9)
    with world.flood(16, "message_bytes 4 MiB"):
        caller = Http2(site.rpc)
        caller.connection.remote_settings.update({3: 1 << 20})
        caller.request(1, "/scheduler.SchedulerService/SubmitJob", end=False, method="POST", extra=[
            ("content-type", "application/grpc"), ("te", "trailers"), ("grpc-encoding", "gzip"),
            ("authorization", f"Bearer {site.enemy.token}")])
        data = message(bomb, 1)
        try:
            for at in range(0, len(data), 16000):
                caller.connection.send_data(1, data[at:at + 16000])
                caller.flush()
            caller.connection.end_stream(1)
            caller.flush()
            caller.socket.settimeout(5)
            read_all(caller.socket)
        except (OSError, h2.exceptions.ProtocolError):
            pass
        caller.socket.close()
    return f"{len(bomb) >> 10} KiB that unpack to {size_mib} MiB: {world.floods[-1]}"


@attack("anonymous", "a stranger calls methods, or asks for what is secret by reflection")
def without_token(world):
    site, codes = world.site, set()
    for name, request in requests(site).items():
        try:
            getattr(site.calls.scheduler, name)(request, timeout=20)
            defeat(True, f"{name} was answered")
        except grpc.RpcError as error:
            codes.add(error.code().name)
    defeat(codes != {"UNAUTHENTICATED"}, codes)
    for path in ("/scheduler.SchedulerService/Nothing", "/../SubmitJob", "//", "/a/b/c",
                 "/scheduler.SchedulerService/SubmitJob/", "/SCHEDULER.SchedulerService/SubmitJob"):
        try:
            site.channel.unary_unary(path)(b"", timeout=20)
            defeat(True, f"{path} was answered")
        except grpc.RpcError:
            pass
    return "7 methods: UNAUTHENTICATED; 6 odd paths refused"
