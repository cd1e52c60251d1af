"""What tenants learn of each other's models, and whose model a name stands for."""

import json

import grpc
import pytest

from calls import agent_pb2_grpc, wait_for
from node import LOAD, READY, STARTED, Node
from scheduler import make_tenant

CANARY = "canary-7f3a"


class World:
    """Tenants 'red' with 'pink' below it, and 'blue'; each has a token."""

    def __init__(self, service):
        self.service = service
        self.ids, self.tokens = {}, {"admin": service.token}
        for name, parent in (("red", None), ("pink", "red"), ("blue", None)):
            self.ids[name] = make_tenant(service, name, **({"parent_id": parent} if parent else {}))
            made = service.post("/api/v1/tokens", {"role": "tenant", "tenant_id": name})
            self.tokens[name] = made.json()["token"]

    def get(self, who, path):
        return self.service.get(path, token=self.tokens[who])

    def post(self, who, path, body=None):
        return self.service.post(path, body, token=self.tokens[who])

    def put(self, who, path, body):
        return self.service.put(path, body, token=self.tokens[who])

    def model(self, who, name, **more):
        made = self.post(who, "/api/v1/models", {"name": name, "runtime": "vllm",
                                                 "gpu_memory_mb": 1000, **more})
        assert made.status == 201, made
        return made.json()["id"]


@pytest.fixture
def world(signed_in):
    return World(signed_in)


def test_who_uses_a_model_does_not_see_how_it_is_run(world):
    model = world.model("admin", "common", tenant_id="red", shared=True, image=f"{CANARY}/image",
                        args=["--key", CANARY], environment={"HF_TOKEN": CANARY},
                        path=f"/{CANARY}", labels={"a": CANARY}, users=["pink"],
                        runtime="custom", command=f"serve --key {CANARY}")
    channel = grpc.insecure_channel(world.service.grpc.split("//")[-1])
    world.agent = agent_pb2_grpc.AgentServiceStub(channel)
    token = world.post("admin", "/api/v1/tokens", {"role": "agent"}).json()["token"]
    node = Node(world, metadata=[("authorization", f"Bearer {token}")]).begin()
    world.post("blue", f"/api/v1/models/{model}/leases")
    order = node.order()
    assert order["kind"] == LOAD and CANARY in order["payload"]
    node.change(STARTED, order)
    node.change(READY, order, address="http://127.0.0.1:8000")
    wait_for(lambda: world.get("red", f"/api/v1/models/{model}").json()["ready_slots"] == 1)

    def seen_by(who):
        paths = ["/api/v1/models", f"/api/v1/models/{model}", "/api/v1/models/common",
                 f"/api/v1/models/{model}/why", "/api/v1/scheduler/slots", "/api/v1/nodes",
                 "/api/v1/gpus?holders=1", "/api/v1/scheduler/decisions",
                 f"/api/v1/scheduler/decisions?model={model}", "/metrics", "/api/v1/cluster/status"]
        answers = {path: world.get(who, path) for path in paths}
        assert {one.status for one in answers.values()} == {200}
        return {path: one.body.decode() for path, one in answers.items()}

    seen = seen_by("blue")
    for path, text in seen.items():
        assert CANARY not in text, (path, text)
        assert f'"{world.ids["red"]}"' not in text and '"red"' not in text, (path, text)
        assert f'"{world.ids["pink"]}"' not in text, (path, text)
    shown = json.loads(seen["/api/v1/models/common"])
    assert (shown["name"], shown["gpu_memory_mb"], shown["ready_slots"]) == ("common", 1000, 1)
    assert not {"environment", "command", "args", "image", "path", "labels", "users", "tenant_id",
                "message", "secret_environment"} & set(shown)
    for who in ("red", "admin"):
        shown = json.loads(seen_by(who)["/api/v1/models/common"])
        assert shown["environment"] == {"HF_TOKEN": CANARY} and CANARY in shown["command"]
        assert shown["tenant_id"] == world.ids["red"]
    node.close()
    channel.close()


def test_sharing_beyond_ones_own_tenants_takes_an_administrator(world):
    shared = world.post("red", "/api/v1/models", {"name": "m", "runtime": "vllm", "shared": True,
                                                  "gpu_memory_mb": 1})
    assert shared.status == 400 and "administrator" in shared.json()["error"]
    model = world.model("red", "m", users=["pink"])
    assert world.put("red", f"/api/v1/models/{model}", {"shared": True}).status == 400
    known = world.put("red", f"/api/v1/models/{model}", {"users": ["blue"]})
    unknown = world.put("red", f"/api/v1/models/{model}", {"users": ["nobody"]})
    assert known.status == unknown.status == 400
    assert known.body == unknown.body, "a name of another tenant is as good as unknown"
    assert world.get("blue", f"/api/v1/models/{model}").status == 404
    # What an administrator shared, its owner may keep.
    assert world.put("admin", f"/api/v1/models/{model}",
                     {"shared": True, "users": ["pink", "blue"]}).status == 200
    assert world.put("red", f"/api/v1/models/{model}",
                     {"shared": True, "users": ["pink", "blue"], "priority": 1}).status == 200
    assert world.put("red", f"/api/v1/models/{model}", {"users": ["pink"]}).status == 200
    assert world.put("red", f"/api/v1/models/{model}", {"users": ["blue"]}).status == 400


def test_a_name_that_another_tenant_has_is_free(world):
    mine, theirs = world.model("red", "chat"), world.model("blue", "chat")
    assert mine != theirs
    assert world.get("red", "/api/v1/models/chat").json()["id"] == mine
    assert world.get("blue", "/api/v1/models/chat").json()["id"] == theirs
    again = world.post("red", "/api/v1/models", {"name": "chat", "runtime": "vllm",
                                                 "gpu_memory_mb": 1})
    assert again.status == 409
    both = world.get("admin", "/api/v1/models/chat")
    assert both.status == 409 and "use an id" in both.json()["error"]
    assert world.get("admin", f"/api/v1/models/{theirs}").json()["name"] == "chat"
    for path in ("/api/v1/models/{}", "/api/v1/scheduler/decisions?model={}"):
        hidden = world.model("blue", f"hidden-{len(path)}")
        name = world.get("blue", f"/api/v1/models/{hidden}").json()["name"]
        theirs, none = world.get("red", path.format(name)), world.get("red", path.format("x" * len(name)))
        assert theirs.status == none.status == 404
        assert theirs.body.replace(name.encode(), b"") == none.body.replace(b"x" * len(name), b"")


def test_a_name_stands_for_ones_own_model_before_a_shared_one(world):
    shared = world.model("admin", "chat", tenant_id="blue", shared=True)
    assert world.get("red", "/api/v1/models/chat").json()["id"] == shared
    own = world.model("red", "chat")
    assert world.get("red", "/api/v1/models/chat").json()["id"] == own
    assert world.get("pink", "/api/v1/models/chat").json()["id"] == shared


def test_models_of_the_same_name_are_there_after_a_restart(world):
    models = {who: world.model(who, "chat") for who in ("red", "blue")}
    world.service.stop()
    world.service.start()
    for who, model in models.items():
        assert world.get(who, "/api/v1/models/chat").json()["id"] == model
