"""Live events over WebSocket."""

import asyncio
import json

import websockets


def url_of(scheduler, query=""):
    return scheduler.url.replace("http", "ws") + "/api/v1/stream" + query


async def receive(socket, count, seconds=60):
    return [json.loads(await asyncio.wait_for(socket.recv(), seconds)) for _ in range(count)]


def tenant_of(scheduler, name):
    return scheduler.post("/api/v1/tenants", {"name": name}).json()["id"]


def submit(scheduler, tenant, **job):
    return scheduler.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["true"]} | job).json()["job_id"]


def test_events_are_told_as_they_happen(scheduler):
    tenant = tenant_of(scheduler, "lab")

    async def listen():
        async with websockets.connect(url_of(scheduler, "?topics=jobs")) as socket:
            assert (await receive(socket, 1))[0]["type"] == "hello"
            job = submit(scheduler, tenant, name="one")
            scheduler.delete(f"/api/v1/jobs/{job}")
            events = await receive(socket, 2)
            assert [event["type"] for event in events] == ["job_submitted", "job_ended"]
            assert {event["job_id"] for event in events} == {job}
            assert events[1]["seq"] > events[0]["seq"]

    asyncio.run(listen())


def test_topics_and_tenants_choose(scheduler):
    mine, other = tenant_of(scheduler, "mine"), tenant_of(scheduler, "other")

    async def listen():
        query = f"?topics=jobs,tenants&tenant_id={mine}"
        async with websockets.connect(url_of(scheduler, query)) as socket:
            await receive(socket, 1)
            submit(scheduler, other)
            job = submit(scheduler, mine)
            scheduler.put(f"/api/v1/tenants/{mine}", {"max_gpus": 1})
            events = await receive(socket, 2)
            assert [event.get("job_id") for event in events] == [job, None]
            assert events[1]["type"] == "tenant_changed"

    asyncio.run(listen())


def test_a_listener_goes_on_where_it_was(scheduler):
    tenant = tenant_of(scheduler, "lab")

    async def listen():
        async with websockets.connect(url_of(scheduler, "?topics=jobs")) as socket:
            await receive(socket, 1)
            submit(scheduler, tenant)
            last = (await receive(socket, 1))[0]["seq"]
        jobs = [submit(scheduler, tenant) for _ in range(3)]
        async with websockets.connect(url_of(scheduler, f"?topics=jobs&since={last}")) as socket:
            events = (await receive(socket, 4))[1:]
            assert [event["job_id"] for event in events] == jobs

    asyncio.run(listen())


def test_what_happened_before_a_restart_is_read_from_the_store(scheduler):
    tenant = tenant_of(scheduler, "lab")
    job = submit(scheduler, tenant)
    scheduler.delete(f"/api/v1/jobs/{job}")
    scheduler.stop()
    scheduler.start()

    async def listen():
        async with websockets.connect(url_of(scheduler, "?topics=jobs&since=0")) as socket:
            hello, ended = await receive(socket, 2)
            assert (ended["type"], ended["job_id"]) == ("job_ended", job)
            assert hello["seq"] >= ended["seq"]
            later = await asyncio.to_thread(submit, scheduler, tenant)
            told = (await receive(socket, 1))[0]
            assert (told["type"], told["job_id"]) == ("job_submitted", later)
        query = f"?topics=jobs&since={ended['seq']}"
        async with websockets.connect(url_of(scheduler, query)) as socket:
            assert (await receive(socket, 2))[1]["job_id"] == later

    asyncio.run(listen())


def test_a_slow_reader_is_told_what_it_missed_and_slows_nobody(scheduler):
    tenant = tenant_of(scheduler, "lab")
    jobs = "\n".join(json.dumps({"tenant_id": tenant, "name": "x" * 200, "command": ["true"]})
                     for _ in range(20000))

    async def listen():
        slow = await websockets.connect(url_of(scheduler, "?topics=jobs"), max_queue=1, ping_interval=None)
        await receive(slow, 1)
        for _ in range(3):
            done = await asyncio.to_thread(
                scheduler.post, "/api/v1/jobs", jobs,
                headers={"Content-Type": "application/x-ndjson"}, timeout=120)
            assert done.json()["submitted"] == 20000
        seen, missed = 0, 0
        last = 0
        while seen + missed < 60000:
            event = (await receive(slow, 1))[0]
            if event["type"] == "missed":
                assert event["from"] == last + 1
                missed += event["count"]
                last = event["to"]
            else:
                assert event["seq"] > last
                last = event["seq"]
                seen += 1
        assert missed > 0 and seen > 0
        await slow.close()

    asyncio.run(listen())


def test_it_is_a_websocket(scheduler):
    answer = scheduler.get("/api/v1/stream")
    assert answer.status == 426
    assert "WebSocket" in answer.json()["error"]
