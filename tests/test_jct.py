"""gpu-sim jct as a whole: a trace goes in, completion times come out."""

import json
import os
import pathlib
import random

import pytest

TRACES = (
    pathlib.Path(os.environ.get("TRACES", pathlib.Path(__file__).parents[2] / "shared/traces"))
    / "predict"
)
COLUMNS = "timestamp,duration,num_gpus,gpu_time,cluster\n"


def time_of_day(second):
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


@pytest.fixture
def trace(tmp_path):
    """Two hundred jobs in two days, most of them small and short, on a busy cluster."""
    path = tmp_path / "trace.csv"
    chance = random.Random(1)
    rows = []
    for _ in range(200):
        second = chance.randrange(2 * 86400)
        gpus = chance.choices([1, 2, 4, 8], [80, 8, 6, 6])[0]
        duration = round(min(chance.lognormvariate(7.2, 1.8), 200000))
        time = f"2017-10-{9 + second // 86400:02} {time_of_day(second % 86400)}"
        cluster = chance.choice(["11cb48", "6214e9", "7f04ca"])
        rows.append(f"{time},{duration}.0,{gpus},{duration * gpus}.0,{cluster}\n")
    path.write_text(COLUMNS + "".join(rows))
    return ["--trace", path, "--nodes", 2, "--gpus", 8]


def figures(result):
    assert result.returncode == 0, result.stderr
    return {line["policy"]: line for line in map(json.loads, result.stdout.splitlines())}


def test_time_sharing_beats_order_of_arrival(gpu_sim, trace):
    of = figures(gpu_sim("jct", *trace, "--json"))
    assert list(of) == [
        "fifo",
        "skip",
        "backfill",
        "shortest",
        "urgent",
        "levels",
        "attained",
        "estimate",
        "gittins",
        "predicted",
        "moves",
        "suspend",
        "parallel",
    ]
    for line in of.values():
        assert set(line) == {
            "policy",
            "jct_mean_s",
            "jct_p50_s",
            "jct_p99_s",
            "wait_mean_s",
            "preemptions",
            "pointless",
            "promises",
            "promises_kept",
            "promises_likely",
        }
    assert of["attained"]["jct_mean_s"] < of["skip"]["jct_mean_s"] < of["fifo"]["jct_mean_s"]
    assert of["fifo"]["preemptions"] == of["skip"]["preemptions"] == 0
    assert 0 < of["attained"]["preemptions"] < 200


def test_suspending_takes_the_place_of_stopping(gpu_sim, trace):
    result = gpu_sim("jct", *trace, "--policy", "attained,suspend,parallel")
    assert result.returncode == 0, result.stderr
    head, *rows = (line.split() for line in result.stdout.splitlines()[2:6])
    suspends, lost = head.index("susp.") - 1, head.index("lost") - 1
    of = {row[0]: row for row in rows}
    assert float(of["attained"][suspends]) == 0
    assert float(of["suspend"][suspends]) > 0
    assert float(of["suspend"][lost]) > float(of["parallel"][lost]) > 0


def test_the_same_trace_gives_the_same_figures(gpu_sim, trace):
    once, again = (gpu_sim("jct", *trace, "--policy", "estimate", "--json") for _ in range(2))
    assert once.returncode == 0 and once.stdout == again.stdout


def test_a_table_and_a_plot(gpu_sim, trace, tmp_path):
    plot = tmp_path / "out.svg"
    result = gpu_sim("jct", *trace, "--policy", "skip,attained", "--plot", plot)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert "200 jobs, 2 nodes of 8 GPUs" in lines[0]
    assert len(lines[2]) == len(lines[3]) == len(lines[4])
    text = plot.read_text()
    assert text.count("<polyline") == 2
    assert "GPUs over time by virtual cluster, under attained" in text
    assert text.count("<polygon") == 3


def test_virtual_clusters_can_be_tenants(gpu_sim, trace):
    of = figures(gpu_sim("jct", *trace, "--policy", "ours", "--tenants", "--json"))
    together = figures(gpu_sim("jct", *trace, "--policy", "ours", "--json"))
    assert list(of) == list(together) == ["attained"]
    assert of["attained"]["jct_mean_s"] != together["attained"]["jct_mean_s"]


def test_a_history_with_owners_is_a_trace_too(gpu_sim, tmp_path):
    path = tmp_path / "history.csv"
    rows = ["submit_s,started_s,duration_s,gpus,user,name,limit_s,status"]
    chance = random.Random(1)
    for i in range(400):
        user = chance.randrange(4)
        duration = round(20 * 4**user * chance.uniform(0.8, 1.2))
        rows.append(f"{i * 60},{i * 60},{duration},{chance.choice([0, 1, 1, 2])},u{user},,0,Pass")
    path.write_text("\n".join(rows) + "\n")
    of = figures(
        gpu_sim("jct", "--trace", path, "--load", 150, "--policy", "skip,predicted", "--json")
    )
    assert of["predicted"]["jct_mean_s"] < 0.8 * of["skip"]["jct_mean_s"]


# The two largest take half a minute each.
@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces are not beside the checkout")
@pytest.mark.parametrize("name", ["helios", "genai"])
def test_real_histories_take_no_longer_than_by_attained_service_or_index(gpu_sim, name):
    path = TRACES / f"{name}.csv.gz"
    policies = "attained,gittins,predicted"
    of = figures(gpu_sim("jct", "--trace", path, "--load", 90, "--policy", policies, "--json"))
    best = min(of[policy]["jct_mean_s"] for policy in ("attained", "gittins"))
    assert of["predicted"]["jct_mean_s"] <= 1.02 * best


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "jct needs --trace"),
        (["--trace", "none.csv"], "none.csv: cannot be opened"),
        (["--trace", "x", "--gpus", "0"], "--gpus is '0': it is a number from 1 to 16"),
        (["--trace", "x", "--policy", "best"], "there is no policy 'best'; there are fifo"),
    ],
)
def test_what_is_not_asked_properly_is_refused(gpu_sim, arguments, sentence):
    result = gpu_sim("jct", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
