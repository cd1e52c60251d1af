"""What REST, metrics and events tell of nodes and of the jobs on them."""

import asyncio
import datetime
import json

import websockets


def get(cluster, path):
    answer = cluster.scheduler.get(path)
    assert answer.status == 200, answer
    return answer.json()


def test_a_job_that_is_over_tells_where_and_when_it_ran(cluster):
    agent = cluster.agent()
    job = cluster.submit("true", gpu_count=2)
    running = cluster.await_state(job, "completed")
    assert running["exit_code"] == 0
    assert running["node_name"] == agent.name
    assert len(set(running["allocated_gpus"])) == 2
    times = [datetime.datetime.fromisoformat(running[name]) for name in
             ("submitted_at", "scheduled_at", "started_at", "completed_at")]
    assert times == sorted(times)
    types = [(event["type"], event.get("state")) for event in
             get(cluster, f"/api/v1/jobs/{job}/events")["events"]]
    assert types == [("job_scheduled", "scheduled"), ("task_started", None),
                     ("job_started", "running"), ("task_ended", None), ("job_ended", "completed")]
    failed = cluster.await_state(cluster.submit("exit 7", gpu_fraction=0.5), "failed")
    assert failed["exit_code"] == 7


def test_decisions_show_their_arithmetic(cluster):
    agent = cluster.agent()
    job = cluster.submit("sleep 60", gpu_memory_mb=1000)
    cluster.await_state(job, "running")
    for query in (f"job={job}", f"node={agent.name}", "type=start", ""):
        [decision] = get(cluster, f"/api/v1/scheduler/decisions?{query}")
        assert (decision["type"], decision["job_id"]) == ("start", job)
        assert decision["runner_id"] == agent.name
        [gpu] = decision["gpus"]
        assert gpu["used_after_mb"] == gpu["used_before_mb"] + gpu["asked_mb"]
        assert any("1000 asked" in line for line in decision["explanation"])
    assert get(cluster, "/api/v1/scheduler/decisions?type=preempt") == []
    assert cluster.scheduler.get("/api/v1/scheduler/decisions?type=x").status == 400


def test_nodes_gpus_and_the_cluster_add_up(cluster):
    agent = cluster.agent()
    before = get(cluster, "/api/v1/cluster/status")
    job = cluster.submit("sleep 60", gpu_count=1)
    cluster.await_state(job, "running")
    node = get(cluster, f"/api/v1/nodes/{agent.name}")
    assert node["available_gpus"] == node["total_gpus"] - 1
    after = get(cluster, "/api/v1/cluster/status")
    assert after["available_gpus"] == before["available_gpus"] - 1
    assert (after["running_jobs"], after["online_nodes"]) == (1, 1)
    runner = get(cluster, f"/api/v1/runners/{agent.name}/status")
    gpus = get(cluster, "/api/v1/gpus")["gpus"]
    assert [gpu["uuid"] for gpu in runner["gpus"]] == [gpu["uuid"] for gpu in gpus]
    for gpu in gpus:
        assert gpu["allocated_memory"] in (0, gpu["total_memory"])
        assert gpu["used_memory"] + gpu["free_memory"] == gpu["total_memory"]
    assert (runner["slots"], runner["models"]) == ([], [])
    tenant = get(cluster, f"/api/v1/tenants/{cluster.tenant}")
    assert (tenant["current_gpus"], tenant["current_jobs"]) == (1, 1)
    text = cluster.scheduler.get("/metrics").body.decode()
    assert f'gpu_scheduler_gpu_utilization{{node="{agent.name}",gpu="' in text
    assert 'gpu_scheduler_tenant_gpus{tenant="physics"} 1.000\n' in text
    assert "gpu_scheduler_scheduling_latency_count 1\n" in text


def test_a_node_is_drained_resumed_and_given_up(cluster):
    agent = cluster.agent()
    path = f"/api/v1/nodes/{agent.name}"
    assert cluster.scheduler.post(path + "/drain").status == 200
    assert get(cluster, path)["draining"]
    job = cluster.submit("sleep 60", gpu_count=1)
    assert cluster.job(job)["state"] == "pending"
    assert cluster.scheduler.post(path + "/resume").status == 200
    cluster.await_state(job, "running")
    agent.kill()
    assert cluster.scheduler.post(path + "/dead").status == 200
    cluster.await_state(job, "pending")
    assert cluster.scheduler.post("/api/v1/nodes/none/drain").status == 404


def test_listeners_hear_of_nodes_and_decisions(cluster):
    async def listen():
        url = cluster.scheduler.url.replace("http", "ws")
        async with websockets.connect(url + "/api/v1/stream?topics=nodes,decisions,metrics") as socket:
            await socket.recv()
            await asyncio.to_thread(cluster.agent)
            heard = {}
            while not {"nodes", "metrics"} <= set(heard):
                event = json.loads(await asyncio.wait_for(socket.recv(), 20))
                heard[event["topic"]] = event
            assert heard["nodes"]["node_state"] == "online"
            await asyncio.sleep(2)
            job = cluster.submit("true", gpu_count=1)
            while "decisions" not in heard:
                event = json.loads(await asyncio.wait_for(socket.recv(), 20))
                heard[event["topic"]] = event
            assert heard["decisions"]["decisions"][0]["job_id"] == job
            assert heard["metrics"]["total_nodes"] >= 0

    asyncio.run(asyncio.wait_for(listen(), 60))
