"""A gateway with a real scheduler: cold starts, streams over restarts, who may ask."""

import sys
import threading

from cluster import Cluster
from gateway_parts import MOCK, Gateway, await_true


def make_model(cluster, name="m", **more):
    fields = {"name": name, "tenant_id": cluster.tenant, "runtime": "custom", "gpu_memory_mb": 20000,
              "command": f"exec {sys.executable} {MOCK} {{port}}", "max_concurrency": 4, **more}
    answer = cluster.scheduler.post("/api/v1/models", fields)
    assert answer.status == 201, answer
    return answer.json()["id"]


def slots(cluster):
    return cluster.scheduler.get("/api/v1/scheduler/slots").json()


def test_the_first_request_is_held_while_its_model_is_loaded(cluster, make_gateway):
    cluster.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    make_model(cluster)
    await_true(lambda: b'"m"' in gateway.request("GET", "/v1/models").body)
    assert gateway.chat().status == 200
    assert len(slots(cluster)) == 1
    # Places are given back, so that the slot may be evicted when it is idle.
    await_true(lambda: gateway.metric("spool_rows") == 0)


def test_streams_live_through_sigkills_of_the_scheduler(cluster, make_gateway):
    cluster.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    make_model(cluster, idle_ttl="1s")
    await_true(lambda: b'"m"' in gateway.request("GET", "/v1/models").body)
    assert gateway.chat().status == 200
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        gateway.chat(stream=True, mock={"tokens": 100, "gap": 0.1}))) for _ in range(3)]
    for thread in threads:
        thread.start()
    await_true(lambda: gateway.metric("in_flight") == 3)
    for _ in range(2):
        cluster.scheduler.kill()
        cluster.scheduler.start()
        cluster.wait(lambda: any(slot["status"] == "ready" for slot in slots(cluster)))
    for thread in threads:
        thread.join(120)
    assert [answer.body.count(b"data: ") for answer in answers] == [102] * 3
    assert len(slots(cluster)) == 1


def test_a_stream_on_a_drained_node_lives_through_a_sigkill_of_the_scheduler(cluster, make_gateway, tmp_path):
    cluster.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    make_model(cluster, idle_ttl="1s")
    await_true(lambda: b'"m"' in gateway.request("GET", "/v1/models").body)
    assert gateway.chat().status == 200
    answers, done = [], tmp_path / "done"
    stream = threading.Thread(target=lambda: answers.append(
        gateway.chat(stream=True, mock={"until": str(done), "gap": 0.1})))
    stream.start()
    await_true(lambda: gateway.metric("in_flight") == 1)
    node = cluster.scheduler.get("/api/v1/nodes").json()["nodes"][0]["name"]
    assert cluster.scheduler.post(f"/api/v1/nodes/{node}/drain").status == 200
    cluster.scheduler.kill()
    cluster.scheduler.start()
    # Its slot takes no more requests: once the gateway has heard so, another one waits.
    await_true(lambda: b'"loaded"' not in gateway.request("GET", "/v1/models").body)
    waiting = threading.Thread(target=lambda: answers.append(gateway.chat()))
    waiting.start()
    await_true(lambda: gateway.metric("waiting") == 1)
    assert answers == []
    done.touch()
    stream.join(120)
    assert answers[0].status == 200 and answers[0].body.rstrip().endswith(b"data: [DONE]")
    cluster.wait(lambda: slots(cluster) == [])
    assert cluster.scheduler.post(f"/api/v1/nodes/{node}/resume").status == 200
    waiting.join(120)
    assert answers[1].status == 200


def test_only_who_signs_in_may_ask(signed_in, tmp_path):
    made = signed_in.run("token", "create", "--role", "gateway", "--node", "g1")
    if made.returncode != 0:  # it runs: over REST then
        answer = signed_in.post("/api/v1/tokens", {"role": "gateway", "node": "g1"})
        assert answer.status == 201, answer
        token = answer.json()["token"]
    else:
        token = made.stdout.strip()
    file = tmp_path / "gateway.token"
    file.write_text(token)
    gateway = Gateway(tmp_path / "gateway", "--scheduler", signed_in.grpc.split("//")[-1],
                      "--token-file", file, "--name", "g1")
    try:
        await_true(lambda: gateway.request("GET", "/health").status == 200)
        assert gateway.request("GET", "/v1/models").status == 401
        headers = {"authorization": f"Bearer {signed_in.token}"}
        await_true(lambda: gateway.request("GET", "/v1/models", headers=headers).status == 200)
        tenant = signed_in.post("/api/v1/tenants", {"name": "team"}).json()["id"]
        made = signed_in.post("/api/v1/tokens", {"role": "inference", "tenant_id": tenant}).json()
        asks = {"x-api-key": made["token"]}
        await_true(lambda: gateway.request("GET", "/v1/models", headers=asks).status == 200)
        assert signed_in.request("GET", "/api/v1/models", token=made["token"]).status == 403
        assert signed_in.request("DELETE", f"/api/v1/tokens/{made['id']}").status == 200
        await_true(lambda: gateway.request("GET", "/v1/models", headers=asks).status == 401)
    finally:
        gateway.kill()


def test_a_connected_gateway_does_not_delay_the_end_of_the_scheduler(tmp_path, make_gateway):
    """Requests in flight may take ten minutes here, and the stream of a gateway is none."""
    cluster = Cluster(tmp_path / "cluster", sections={"api": {"stop_grace_ms": 600000}})
    try:
        gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
        await_true(lambda: gateway.request("GET", "/health").status == 200)
        cluster.agent()
        cluster.scheduler.stop(seconds=60)
    finally:
        cluster.stop()
