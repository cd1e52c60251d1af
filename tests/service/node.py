"""A node that speaks agent.AgentService/Connect by hand: the messages of src/node/message.h."""

import queue
import threading

import grpc

from calls import agent_pb2

TEXT, NUMBER = "text", "number"


def table(text, **lists):
    """The fields of a message in their order; 'name!' is a text."""
    fields = []
    for word in text.split():
        name = word.rstrip("!")
        fields.append((name, lists.get(name, TEXT if word.endswith("!") else NUMBER)))
    return fields


ROW = [("of", NUMBER)]
PART = table("uuid! memory_mib share whole")
SAMPLE = table("uuid! foreign_mib used_mib temperature_c power_mw utilisation healthy")
MEASUREMENT = table("reservation_id uuid! memory_mib")
DEVICE = table("uuid! model! mig_parent! place capacity_mib overhead_mib foreign_mib "
               "temperature_c nvlink_group healthy mig_mode")
HEAD = table("kind boot! connection term number acknowledged issued")
KINDS = {
    "hello": table("name! protocol sent_ms"),
    "snapshot": table(
        "name! boot! zone! rack! labels! cpu_milli host_bytes devices measurements running "
        "snapshot slots coming", devices=DEVICE, measurements=MEASUREMENT,
        running=[("reservation_id", NUMBER)], slots=table("reservation_id model! address! ready"),
        coming=[("reservation_id", NUMBER)]),
    "change": table("kind reservation_id slot exit_code reason message! address! took_ms pids "
                    "samples measurements", pids=ROW, samples=SAMPLE, measurements=MEASUREMENT),
    "beat": table("sent_ms samples uses slots", samples=SAMPLE,
                  uses=table("reservation_id uuid! memory_mib reserved_mib"),
                  slots=table("reservation_id active")),
    "welcome": table("sent_ms lease_ms"),
    "order": table("kind reservation_id parts grace_ms cpu_milli host_bytes payload! job_id task "
                   "tasks max_runtime_ms lease_loss model_id model! runtime utilisation "
                   "tensor_parallel context parallel kv_cache! command! load_timeout_ms",
                   parts=PART, utilisation=ROW),
    "renew": table("sent_ms lease_ms"),
    "refuse": table("connection message!"),
    "ack": [],
}
NAMES = list(KINDS)
START, LOAD, STOP = range(3)
STARTED, READY, REFUSED, EXITED, RELEASED = range(5)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(fields, values):
    out = b""
    for name, kind in fields:
        value = values.get(name, "" if kind is TEXT else [] if isinstance(kind, list) else 0)
        if kind is TEXT:
            out += varint(len(value.encode())) + value.encode()
        elif kind is NUMBER:
            out += varint(value * 2 if value >= 0 else -value * 2 - 1)
        else:
            out += varint(len(value)) + b"".join(encode(kind, one) for one in value)
    return out


def take_varint(data):
    value = shift = 0
    while True:
        byte = data.pop(0)
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value


def decode(fields, data):
    values = {}
    for name, kind in fields:
        value = take_varint(data)
        if kind is TEXT:
            values[name] = bytes(data[:value]).decode()
            del data[:value]
        elif kind is NUMBER:
            values[name] = -(value + 1) // 2 if value & 1 else value // 2
        else:
            values[name] = [decode(kind, data) for _ in range(value)]
    return values


class Node:
    """One connection. What comes is in `got`, envelopes that are no messages in `others`."""

    def __init__(self, calls, name="n1", connection=1, boot="b1", gpus=1, metadata=None):
        self.name, self.connection, self.boot, self.gpus = name, connection, boot, gpus
        self.out, self.got, self.others = queue.Queue(), queue.Queue(), queue.Queue()
        self.ended = queue.Queue()
        self.number = self.acknowledged = 0
        self.call = calls.agent.Connect(iter(self.out.get, None), metadata=metadata)
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        try:
            for envelope in self.call:
                if envelope.HasField("lease_keys"):
                    continue
                if not envelope.message:
                    self.others.put(envelope)
                    continue
                data = bytearray(envelope.message)
                message = decode(HEAD, data)
                message["name"] = NAMES[message["kind"]]
                message.update(body=decode(KINDS[message["name"]], data))
                self.got.put(message)
            self.ended.put((grpc.StatusCode.OK, ""))
        except grpc.RpcError as error:
            self.ended.put((error.code(), error.details()))

    def say(self, message, numbered=False, /, **body):
        if numbered:
            self.number += 1
        head = {"kind": NAMES.index(message), "boot": self.boot, "connection": self.connection,
                "number": self.number if numbered else 0, "acknowledged": self.acknowledged}
        self.out.put(agent_pb2.Envelope(message=encode(HEAD, head) + encode(KINDS[message], body)))

    def hello(self):
        self.say("hello", name=self.name, protocol=1, sent_ms=1)

    def snapshot(self, running=()):
        devices = [{"uuid": f"GPU-{self.name}-{i}", "model": "A100", "place": i,
                    "capacity_mib": 80000, "healthy": 1} for i in range(self.gpus)]
        self.say("snapshot", True, name=self.name, boot=self.boot, cpu_milli=32000,
                 host_bytes=1 << 38, devices=devices, snapshot=1,
                 running=[{"reservation_id": one} for one in running])

    def change(self, kind, order, **more):
        self.say("change", True, kind=kind, reservation_id=order["reservation_id"],
                 slot=int(order["kind"] == LOAD), **more)

    def expect(self, name, seconds=60):
        """The next message of that name."""
        while True:
            message = self.got.get(timeout=seconds)
            if message["name"] == name:
                return message

    def order(self):
        """The next order, acknowledged."""
        message = self.expect("order")
        self.acknowledged = message["number"]
        self.say("ack")
        return message["body"]

    def begin(self):
        """Says hello and what it has; until the scheduler has that for good."""
        self.hello()
        self.expect("welcome")
        self.snapshot()
        while self.expect("ack")["acknowledged"] < 1:
            pass
        return self

    def close(self):
        self.out.put(None)
