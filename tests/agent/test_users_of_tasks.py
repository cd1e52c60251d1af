"""Whom an agent that is root believes about the users of tasks."""

import os

import pytest
from cluster import Cluster

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

UNTRUSTING = ["--trust-open-scheduler=0", "--allow-root=0", "--user", "nobody"]


@pytest.fixture
def open_cluster(tmp_path):
    """A scheduler without sign-in that takes users of tasks from anyone."""
    cluster = Cluster(tmp_path, sections={"auth": {"allow_open_unix_user": True}})
    yield cluster
    cluster.stop()


def submit(cluster, user):
    tenant = cluster.make_tenant(f"as-{user}", unix_user=user)
    return cluster.submit("id -un", tenant_id=tenant)


def test_a_scheduler_without_sign_in_cannot_say_who_a_task_is(open_cluster):
    cluster = open_cluster
    cluster.agent(arguments=UNTRUSTING)
    refused, default, own = submit(cluster, "daemon"), submit(cluster, "nobody"), cluster.submit("id -un")
    cluster.wait(lambda: "without sign-in" in cluster.job(refused)["message"])
    assert "--trust-open-scheduler" in cluster.job(refused)["message"]
    for job in (default, own):
        cluster.await_state(job, "completed")
        assert cluster.logs(job) == "nobody\n"


def test_an_administrator_can_trust_it_all_the_same(open_cluster):
    cluster = open_cluster
    cluster.agent(arguments=[*UNTRUSTING, "--trust-open-scheduler"])
    job = submit(cluster, "daemon")
    cluster.await_state(job, "completed")
    assert cluster.logs(job) == "daemon\n"
