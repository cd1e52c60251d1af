"""Windows: made, shown and deleted by gpu-cli, and what they keep off."""

import json
import os

import pytest


@pytest.fixture
def window(cli, request):
    """The name of a window, which is deleted after the test."""
    name = f"w-{os.getpid()}"
    yield name
    cli.run("reserve", "delete", name)


def nodes(cli):
    return [node["name"] for node in json.loads(cli("nodes", "-o", "json"))]


def test_a_job_does_not_run_into_a_window(cli, cluster, window):
    where = [option for node in nodes(cli) for option in ("--node", node)]
    made = json.loads(cli("reserve", "create", window, "--maintenance", "--start", "2h", "--length", "1h",
                          "--reason", "new driver", *where, "-o", "json"))
    assert made["maintenance"] and not made["open"] and made["length"] == "1h0m0s", made
    assert sorted(made["nodes"]) == sorted(nodes(cli)) and made["lead"] == "24h0m0s", made
    table = cli("reserve")
    assert window in table and "maintenance" in table and "new driver" in table
    check = cli.run("submit", "--check", "--gpus", "1", "--max-runtime", "3h", "--", "true")
    assert f"window {window} (maintenance) begins in" in check.stdout + check.stderr, check
    waits = cli.submit("--gpus", "1", "--max-runtime", "3h", "--", "true")
    short = cli.submit("--gpus", "1", "--max-runtime", "1h", "--", "true")
    cluster.await_state(short, "completed")
    assert "needs 3h" in cli("why", waits)
    assert cli("reserve", "delete", window) == f"{window} deleted\n"
    cluster.await_state(waits, "completed")


def test_a_window_is_for_the_jobs_that_name_it(cli, cluster, window):
    made = json.loads(cli("reserve", "create", window, "--gpus", "2", "--length", "1h", "-o", "json"))
    assert len(made["gpus"]) == 2 and made["nodes"] == []
    cluster.wait(lambda: json.loads(cli("reserve", "show", window, "-o", "json"))["open"])
    mine = cli.submit("--gpus", "1", "--window", window, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 300")
    cluster.await_state(mine, "running")
    got = [gpu["uuid"] for task in cluster.job(mine)["allocations"] for gpu in task["gpus"]]
    assert set(got) <= set(made["gpus"]), (got, made)
    assert cluster.job(mine)["window"] == window
    cli("cancel", mine)
    refused = cli.run("submit", "--gpus", "1", "--window", "no-such", "--", "true")
    assert refused.returncode != 0 and "there is no window no-such" in refused.stderr, refused


@pytest.mark.parametrize("options, reason", [
    (("create",), "missing the name"),
    (("create", "a", "b"), "unexpected argument 'b'"),
    (("crate", "a"), "unknown subcommand 'crate'"),
    (("create", "a", "--gpus", "1"), "length"),
    (("create", "a", "--length", "1h"), "no node"),
    (("create", "a b", "--gpus", "1", "--length", "1h"), "name must be"),
    (("create", "a", "--node", "nowhere", "--length", "1h"), "nowhere is not known"),
    (("create", "a", "--gpus", "1000", "--length", "1h"), "1000 wanted"),
    (("create", "a", "--gpus", "1", "--length", "25h", "--repeat", "daily"), "shorter than"),
    (("create", "a", "--gpus", "1", "--length", "1h", "--for", "nobody"), "names no tenant"),
    (("show", "nothing"), "nothing"),
    (("delete", "nothing"), "nothing"),
])
def test_a_window_that_makes_no_sense_is_refused(cli, options, reason):
    refused = cli.run("reserve", *options)
    assert refused.returncode != 0 and reason in refused.stderr, refused
    assert cli.run("reserve").stderr == "no windows\n"
