"""What tests of the driver share: an API server with claims and slices, and a kubelet's calls over
the driver's sockets."""

import json
import socket
import uuid

import h2.config
import h2.connection
import h2.events

from fake_api import FakeApi, Refused

DRIVER = "gpu.gpu-scheduler.io"
RESOURCES = "/apis/resource.k8s.io/v1/"
V1 = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
V1BETA1 = "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"


def device_name(uuid_of_gpu):
    return "".join(c if c.isalnum() else "-" for c in uuid_of_gpu.lower())


def claim(name, node, gpu, memory, uid=None, pod=None):
    """A ResourceClaim that a scheduler has allocated and reserved."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default", "uid": uid or str(uuid.uuid4())},
            "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}},
            "status": {
                "allocation": {"devices": {"results": [
                    {"request": "gpu", "driver": DRIVER, "pool": node, "device": gpu,
                     "shareID": str(uuid.uuid4()), "consumedCapacity": {"memory": memory}}]}},
                "reservedFor": [{"resource": "pods", "name": name,
                                 "uid": pod or str(uuid.uuid4())}]}}


class DraApi(FakeApi):
    """An API server with ResourceClaims and ResourceSlices."""

    def __init__(self):
        self.claims, self.slices, self.written = {}, {}, 0
        super().__init__()

    def answer(self, method, path, body):
        if path.startswith("/api/v1/nodes/") and method == "GET":
            found = self.objects["nodes"].get(("", path.rpartition("/")[2]))
            if not found:
                raise Refused(404, "nodes not found")
            return 200, found
        if not path.startswith(RESOURCES):
            return super().answer(method, path, body)
        parts = path.removeprefix(RESOURCES).split("/")
        if parts[0] == "namespaces" and parts[2] == "resourceclaims" and method == "GET":
            found = self.claims.get((parts[1], parts[3]))
            if not found:
                raise Refused(404, "resourceclaims not found")
            return 200, found
        if parts[0] != "resourceslices":
            raise Refused(404, "the server could not find the requested resource")
        return self.slice(method, parts[1:], body)

    def slice(self, method, parts, body):
        name = parts[0] if parts else body["metadata"]["name"]
        there = self.slices.get(name)
        if method == "GET" or method == "PUT":
            if not there:
                raise Refused(404, "resourceslices not found")
            if method == "GET":
                return 200, there
        version = body["metadata"].get("resourceVersion")
        if method == "POST" and there:
            raise Refused(409, "it exists")
        if method == "PUT" and version != there["metadata"]["resourceVersion"]:
            raise Refused(409, "the object has been modified")
        self.written += 1
        body["metadata"]["resourceVersion"] = str(self.written)
        self.slices[name] = body
        return 201 if method == "POST" else 200, body

    def add(self, item):
        with self.lock:
            self.claims[("default", item["metadata"]["name"])] = item
        return item


# Protobuf, as far as these messages need it.

def varint(number):
    out = b""
    while True:
        out += bytes([number & 0x7f | (0x80 if number > 0x7f else 0)])
        number >>= 7
        if not number:
            return out


def field(number, value):
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """{number: [values]} of a message."""
    found, at = {}, 0

    def take():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return number
    while at < len(data):
        key = take()
        value = take()
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found.setdefault(key >> 3, []).append(value)
    return found


def text(message, number):
    return message.get(number, [b""])[0].decode()


class Call:
    """A call that was made, and may be answered later."""

    def __init__(self, path, service, method, message):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(path))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        self.h2.send_headers(1, [
            (":method", "POST"), (":scheme", "http"), (":authority", "localhost"),
            (":path", f"/{service}/{method}"), ("content-type", "application/grpc"),
            ("te", "trailers")])
        self.h2.send_data(1, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
        self.sock.sendall(self.h2.data_to_send())
        self.body, self.head = b"", {}

    def take(self):
        """The next events; none if the other side has closed."""
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        events = self.h2.receive_data(data) if data else []
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                self.body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, 1)
            elif isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                self.head.update({k.decode() if isinstance(k, bytes) else k:
                                  v.decode() if isinstance(v, bytes) else v
                                  for k, v in event.headers})
        if data:
            self.sock.sendall(self.h2.data_to_send())
        return bool(data), events

    def answer(self):
        """(gRPC's status, its text, the message)"""
        over = False
        while not over:
            alive, events = self.take()
            assert alive, "the driver closed the connection"
            over = any(isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset))
                       for event in events)
        self.sock.close()
        return int(self.head.get("grpc-status", -1)), self.head.get("grpc-message", ""), \
            self.body[5:]

    def part(self):
        """The first message of a stream."""
        while len(self.body) < 5 or len(self.body) < 5 + int.from_bytes(self.body[1:5], "big"):
            alive, _ = self.take()
            assert alive, "the driver closed the connection"
        return self.body[5:]

    def ended(self):
        """Waits until the other side has closed. What it says before is not looked at: h2 takes
        nothing after GOAWAY."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        return True


class Kubelet:
    """Calls as a kubelet makes them."""

    def __init__(self, directory):
        self.registration = directory / "plugins_registry" / f"{DRIVER}-reg.sock"
        self.endpoint = directory / "plugins" / DRIVER / "dra.sock"

    def info(self):
        status, _, message = Call(self.registration, "pluginregistration.Registration",
                                  "GetInfo", b"").answer()
        assert status == 0
        return fields(message)

    def registered(self):
        return Call(self.registration, "pluginregistration.Registration",
                    "NotifyRegistrationStatus", b"\x08\x01").answer()

    def begin(self, method, items, service=V1):
        message = b"".join(field(1, field(1, item["metadata"]["namespace"]) +
                                 field(2, item["metadata"]["uid"]) +
                                 field(3, item["metadata"]["name"])) for item in items)
        return Call(self.endpoint, service, method, message)

    @staticmethod
    def results(answer):
        """{uid: its result}"""
        status, reason, message = answer
        assert status == 0, reason
        found = {}
        for entry in fields(message).get(1, []):
            entry = fields(entry)
            found[text(entry, 1)] = fields(entry.get(2, [b""])[0])
        return found

    def prepare(self, item, service=V1):
        """(error, devices)"""
        result = self.results(
            self.begin("NodePrepareResources", [item], service).answer())[item["metadata"]["uid"]]
        return text(result, 2), [fields(device) for device in result.get(1, [])]

    def unprepare(self, item, service=V1):
        """The error."""
        return self.end_unprepare(item, self.begin("NodeUnprepareResources", [item], service))

    def end_unprepare(self, item, call):
        return text(self.results(call.answer())[item["metadata"]["uid"]], 1)


def environment(path):
    """What the containers of a claim get."""
    spec = json.loads(path.read_text())
    edits = spec["devices"][0]["containerEdits"]
    return dict(variable.split("=", 1) for variable in edits["env"])
