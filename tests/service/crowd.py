"""Many simulated nodes over gRPC: they start what they are told, and measure each second."""

import math
import threading
import time

import grpc

from calls import agent_pb2_grpc
from node import (EXITED, LOAD, READY, RELEASED, START, STARTED, STOP, Node)

CONNECTIONS = 4  # that the nodes share
TOTAL_MIB = 81920
OVERHEAD_MIB = 600
RELEASE_SECONDS = 3  # between the order to stop and the memory being back


class SimulatedNode(Node):
    """Runs every task until it is told to stop, or for as long as its job's name says
    ('short-3': three seconds)."""

    def __init__(self, stub, name, gpus=8, rack="", metadata=None):
        self.rack = rack
        self.running = {}  # reservation id: (order, since)
        self.releasing = {}  # reservation id: (order, until)
        self.lock = threading.Lock()
        super().__init__(stub, name=name, gpus=gpus, metadata=metadata)
        threading.Thread(target=self.obey, daemon=True).start()

    def uuid(self, place):
        return f"GPU-{self.name}-{place}"

    def snapshot(self, running=()):
        devices = [{"uuid": self.uuid(i), "model": "NVIDIA H100 80GB", "place": i,
                    "capacity_mib": TOTAL_MIB, "overhead_mib": OVERHEAD_MIB, "healthy": 1,
                    "nvlink_group": 1} for i in range(self.gpus)]
        self.say("snapshot", True, name=self.name, boot=self.boot, rack=self.rack,
                 cpu_milli=128000, host_bytes=1 << 40, devices=devices, snapshot=1)

    def obey(self):
        self.hello()
        while True:
            message = self.got.get()
            if message["name"] == "welcome":
                self.snapshot()
            if message["name"] == "order":
                self.acknowledged = message["number"]
                self.say("ack")
                self.follow(message["body"])

    def follow(self, order):
        with self.lock:
            if order["kind"] == STOP:
                was = self.running.pop(order["reservation_id"], None)
                if was:
                    self.releasing[order["reservation_id"]] = (was[0], time.monotonic() + RELEASE_SECONDS)
                return
            self.running[order["reservation_id"]] = (order, time.monotonic())
        self.change(STARTED, order)
        if order["kind"] == LOAD:
            self.change(READY, order, address="http://127.0.0.1:1", took_ms=1200)

    def release(self, now):
        """What was told to stop has, and its memory is back a little later."""
        for reservation, (order, until) in list(self.releasing.items()):
            if now >= until:
                del self.releasing[reservation]
                self.change(EXITED, order, exit_code=0)
                self.change(RELEASED, order)

    def beat(self, now, foreign):
        """Measures: tasks use most of what they have, by a wave that is each node's own."""
        phase = hash(self.name) % 100 / 15
        with self.lock:
            self.release(now)
            held = list(self.running.items()) + list(self.releasing.items())
        used, busy, uses = {}, {}, []
        for reservation, (order, since) in held:
            for part in order["parts"]:
                wave = 0.62 + 0.3 * math.sin(now / 7 + phase + reservation)
                whole = part["memory_mib"] > 60000
                mib = int(part["memory_mib"] * (0.75 if whole else 0.9) * min(1, wave + 0.2))
                used[part["uuid"]] = used.get(part["uuid"], 0) + mib
                busy[part["uuid"]] = max(busy.get(part["uuid"], 0), wave)
                uses.append({"reservation_id": reservation, "uuid": part["uuid"],
                             "memory_mib": mib, "reserved_mib": part["memory_mib"]})
        samples = []
        for place in range(self.gpus):
            uuid = self.uuid(place)
            load = max(0, min(1, busy.get(uuid, 0.0)))
            other = foreign.get(uuid, 0)
            warm = 33 + place + 42 * load + 4 * math.sin(now / 11 + place + phase)
            samples.append({"uuid": uuid, "healthy": 1, "foreign_mib": other,
                            "used_mib": used.get(uuid, 0) + other + OVERHEAD_MIB,
                            "temperature_c": int(warm), "power_mw": int(80000 + 560000 * load),
                            "utilisation": int(load * 1000)})
        self.say("beat", sent_ms=int(time.time() * 1000), samples=samples, uses=uses)


class Crowd:
    """`count` nodes that begin at once, and measure once a second until close()."""

    def __init__(self, address, count, gpus=8, prefix="node", token=None):
        metadata = [("authorization", f"Bearer {token}")] if token else None
        self.channels = [grpc.insecure_channel(address) for _ in range(min(count, CONNECTIONS))]
        self.foreign = {}
        self.ended = threading.Event()
        self.nodes = []
        for i in range(count):
            stub = agent_pb2_grpc.AgentServiceStub(self.channels[i % len(self.channels)])
            # Node wants what has the stub as `agent`.
            holder = type("Calls", (), {"agent": stub})
            self.nodes.append(SimulatedNode(holder, f"{prefix}-{i + 1:02}", gpus,
                                            rack=f"rack-{i // 10 + 1}", metadata=metadata))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.ended.wait(1 - time.time() % 1):
            now = time.monotonic()
            for node in self.nodes:
                node.beat(now, self.foreign)

    def close(self):
        self.ended.set()
        for node in self.nodes:
            node.close()
        for channel in self.channels:
            channel.close()
