"""Many small jobs at once: the node stays, and other tenants get their turn."""

import asyncio
import json

import websockets

ORDERS = 300
FLOOD = 600


def test_an_agent_reports_while_it_starts_works(driver, make_agent):
    agent = make_agent(gpus="1x80G", beat_ms=50)
    driver.snapshot(agent.name)
    since = len(driver.seen)
    for number in range(1, ORDERS + 1):
        driver.start(agent.name, number, ["true"])
    for number in range(1, ORDERS + 1):
        driver.change("started", number, seconds=120)
    seen = driver.seen[since:]
    run = longest = 0
    for message in seen:
        if message["kind"] == "beat":
            run = 0
        elif message.get("change") == "started":
            run += 1
            longest = max(longest, run)
    assert longest < ORDERS / 2, f"{longest} of {ORDERS} works started without a beat between them"
    assert not [m for m in seen if m["kind"] == "hello"], "the agent gave up its connection"


def test_works_that_are_stopped_while_they_wait_to_be_started_are_released(driver, agent):
    numbers = range(1, 101)
    for number in numbers:
        driver.start(agent.name, number, ["sleep", "1000"], grace_ms=0)
    for number in numbers:
        driver.tell(do="stop", node=agent.name, reservation=number, grace_ms=0)
    over = ("refused", "released")
    for number in numbers:
        driver.wait(lambda m: m.get("change") in over and m.get("reservation") == number, seconds=60)
    refused = [m for m in driver.seen if m.get("change") == "refused"]
    assert refused, "all of them had started before the first was stopped"
    assert {m["message"] for m in refused} == {"it was told to stop before it began"}


def first_state_that_is_not_online(scheduler):
    """Of all nodes, ever."""

    async def listen():
        url = scheduler.url.replace("http", "ws") + "/api/v1/stream?topics=nodes&since=0"
        async with websockets.connect(url) as socket:
            while True:
                event = json.loads(await asyncio.wait_for(socket.recv(), 60))
                if event.get("node_state") not in (None, "online"):
                    return event["node_state"]

    return asyncio.run(listen())


def test_a_flood_of_one_tenant_takes_neither_the_node_nor_the_turn_of_another(cluster):
    agent = cluster.agent(gpus="1x80G")
    other = cluster.make_tenant("chemistry")
    small = {"tenant_id": cluster.tenant, "command": ["true"], "gpu_memory_mb": 10}
    answer = cluster.scheduler.post("/api/v1/jobs", [{**small, "name": "small"}] * FLOOD)
    assert answer.status == 201, answer
    job = cluster.submit("true", tenant_id=other, gpu_memory_mb=10)
    started = cluster.await_state(job, "running", "completed", seconds=120)["started_at"]

    def all_ended():
        found = cluster.scheduler.get("/api/v1/jobs?state=completed&limit=1").json()
        return found["total"] == FLOOD + 1

    cluster.wait(all_ended, seconds=120)
    jobs = cluster.scheduler.get(f"/api/v1/jobs?tenant_id={cluster.tenant}&limit={FLOOD}").json()["jobs"]
    before = sum(1 for each in jobs if each["started_at"] < started)
    assert len(jobs) == FLOOD and before < FLOOD / 2, f"{before} of {len(jobs)} started first"
    # Nothing happened to the node before this.
    assert cluster.scheduler.post(f"/api/v1/nodes/{agent.name}/dead", {}).status < 300
    assert first_state_that_is_not_online(cluster.scheduler) == "lost"
