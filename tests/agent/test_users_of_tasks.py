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


BY_RANGE = ["--trust-open-scheduler=0", "--allow-root=0", "--uid-range", "64100-64199"]


def user_of(cluster, tenant, first="touch mine"):
    """Who the tenant's tasks are, and where they begin: uid, gid, directory, home, name."""
    job = cluster.submit(f'{first}; printf "%s " $(id -u) $(id -g) $(pwd) $HOME $USER', tenant_id=tenant)
    cluster.await_state(job, "completed")
    return cluster.logs(job).split()


def test_each_tenant_is_a_user_of_its_own_with_a_home(open_cluster):
    cluster = open_cluster
    cluster.agent(arguments=BY_RANGE, user=None)
    red, blue = cluster.make_tenant("red"), cluster.make_tenant("blue")
    seen = {"red": user_of(cluster, red), "blue": user_of(cluster, blue)}
    assert seen["red"][0] != seen["blue"][0]
    for name, (uid, gid, directory, home, user) in seen.items():
        assert 64100 <= int(uid) <= 64199 and gid == uid
        assert (directory, user) == (home, name) and home.endswith(f"homes/{name}")
        assert os.stat(home).st_uid == os.stat(f"{home}/mine").st_uid == int(uid)
    # One does not get into the other's home, and finds its own again.
    job = cluster.submit(f"ls {seen['red'][3]}", tenant_id=blue)
    cluster.await_state(job, "failed")
    assert user_of(cluster, red) == seen["red"]


def test_the_administrator_of_a_node_names_users_of_tenants(open_cluster):
    cluster = open_cluster
    lab, other = cluster.make_tenant("lab"), cluster.make_tenant("other")
    cluster.agent(arguments=[*BY_RANGE, "--tenant-users", "lab=daemon"], user=None)
    assert user_of(cluster, lab, "true")[4] == "daemon"
    assert user_of(cluster, other)[4] == "other"
