"""A node that loads every model it is told to, at once, until it is ended: for benchmarks.
warm_node.py GRPC_PORT"""

import queue
import sys
import time
import types

import grpc

from calls import agent_pb2_grpc
from node import LOAD, READY, STARTED, Node

BEAT_S = 1


def main():
    channel = grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}")
    node = Node(types.SimpleNamespace(agent=agent_pb2_grpc.AgentServiceStub(channel))).begin()
    while node.ended.empty():
        node.say("beat", sent_ms=int(time.monotonic() * 1000))
        try:
            message = node.got.get(timeout=BEAT_S)
        except queue.Empty:
            continue
        if message["name"] != "order":
            continue
        node.acknowledged = message["number"]
        node.say("ack")
        order = message["body"]
        if order["kind"] == LOAD:
            node.change(STARTED, order)
            node.change(READY, order, address="http://n1:8000")


if __name__ == "__main__":
    main()
