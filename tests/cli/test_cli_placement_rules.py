"""Counted resources and rules between tasks: --resource, --spread, --apart, --together."""

import json
import os

import pytest

from cluster import Cluster
from cli import Cli

# Two nodes of two GPUs in each zone; those in the east have two of the resource rdma.
NODES = {"east-1": "east", "east-2": "east", "west-1": "west", "west-2": "west"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("rules"))
    for name, zone in NODES.items():
        labels = ["--labels", "resource/rdma=2"] if zone == "east" else []
        cluster.agent(f"{name}-{os.getpid()}", gpus="2x80G", arguments=["--zone", zone, *labels])
    yield cluster
    cluster.stop()


@pytest.fixture
def cli(cluster, tmp_path):
    return Cli(tmp_path, cluster.scheduler.url)


@pytest.fixture
def submit(cli, cluster):
    """Submits jobs that sleep; they are cancelled after the test, and their memory is back."""
    jobs = []

    def submit(*arguments, tenant=cluster.tenant):
        jobs.append(cli.submit("--tenant-id", tenant, *arguments, "--", "sleep", "300"))
        return jobs[-1]

    yield submit
    cli.run("cancel", *jobs)
    for job in jobs:
        cluster.await_state(job, "cancelled")
    cluster.wait(lambda: not any(node["reservations"] for node in nodes(cluster)))


def nodes(cluster):
    return cluster.scheduler.get("/api/v1/nodes").json()["nodes"]


def places(cluster, job):
    """The nodes of its tasks, without the number of this process."""
    cluster.await_state(job, "running")
    return sorted(part["node"].rpartition("-")[0] for part in cluster.job(job)["allocations"])


def await_reason(cli, cluster, job, reason):
    """Waits until `why` gives this reason for the job, which waits."""
    cluster.wait(lambda: reason in cli("why", job))
    assert cluster.job(job)["state"] == "pending"


def zones(cluster, job):
    return sorted(NODES[name] for name in places(cluster, job))


def test_a_counted_resource_is_given_out_once(cli, cluster, submit):
    pairs = [submit("--resource", "rdma=2") for _ in range(2)]
    assert sorted(places(cluster, pairs[0]) + places(cluster, pairs[1])) == ["east-1", "east-2"]
    third = submit("--resource", "rdma=1")
    await_reason(cli, cluster, third, "the nearest is 1 short: node east")
    assert cluster.job(third)["resources"] == {"rdma": "1"}
    cli("cancel", pairs[0])
    assert zones(cluster, third) == ["east"]


def test_more_of_a_resource_than_any_node_has_is_refused(cli, cluster):
    result = cli.run("submit", "--tenant-id", cluster.tenant, "--refuse-impossible", "--resource", "rdma=3", "--", "true")
    assert result.returncode != 0
    assert "asks for 3 of the resource rdma, the best node has 2" in result.stderr
    result = cli.run("submit", "--tenant-id", cluster.tenant, "--resource", "rdma=many", "--", "true")
    assert result.returncode != 0 and "rdma" in result.stderr


def test_tasks_of_a_gang_that_are_apart_take_a_node_each(cli, cluster, submit):
    job = submit("--gpus", "1", "--tasks", "4", "--group", "web", "--apart", "node=web")
    assert places(cluster, job) == sorted(NODES)
    # Their rule keeps a later task of the group off too, which has no rule itself.
    later = submit("--gpus", "1", "--group", "web")
    await_reason(cli, cluster, later, "work in the same domain must be apart from it")
    other = submit("--gpus", "1", "--group", "batch")
    cluster.await_state(other, "running")


def test_the_group_of_another_tenant_is_another_group(cli, cluster, submit):
    chemistry = cluster.make_tenant("chemistry")
    job = submit("--gpus", "1", "--tasks", "4", "--group", "shared", "--apart", "node=shared")
    cluster.await_state(job, "running")
    theirs = submit("--gpus", "1", "--group", "shared", tenant=chemistry)
    cluster.await_state(theirs, "running")


def test_tasks_are_spread_over_zones(cluster, submit):
    job = submit("--gpus", "1", "--tasks", "4", "--group", "front", "--spread", "zone=1")
    assert zones(cluster, job) == ["east", "east", "west", "west"]


def test_tasks_go_where_those_of_another_group_are(cli, cluster, submit):
    store = submit("--gpus", "1", "--resource", "rdma=1", "--group", "db")
    assert zones(cluster, store) == ["east"]
    near = submit("--gpus", "1", "--tasks", "3", "--together", "zone=db")
    assert zones(cluster, near) == ["east"] * 3
    alone = submit("--gpus", "1", "--together", "zone=nobody")
    await_reason(cli, cluster, alone, "no work that it must be together with")
    seen = json.loads(cli("get", near, "-o", "json"))
    assert seen["together"] == {"zone": "db"}


def test_rules_that_make_no_sense_are_refused(cli, cluster):
    for words, sentence in (
        (("--spread", "zone=1"), "spread needs group"),
        (("--group", "g", "--spread", "zone=no"), "zone"),
        (("--apart", "node=a&b"), "apart must have names without blanks"),
        (("--group", "a b"), "group must be of letters"),
    ):
        result = cli.run("submit", "--tenant-id", cluster.tenant, *words, "--", "true")
        assert result.returncode != 0 and sentence in result.stderr, (words, result)
