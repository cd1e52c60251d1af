"""gpu-sim pack as a whole: a trace goes in, figures come out, and mistakes are named."""

import json
import os
import pathlib
import random
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = pathlib.Path(os.environ.get("TRACES", ROOT.parent / "shared/traces")) / "openb"
NODES = TRACES / "openb_node_list_gpu_node.csv"

# (CPU thousandths, GPUs, thousandths of each, times): a cluster's usual mix of
# whole GPUs, parts that do not fill one, and work without any.
PODS = [
    (11300, 1, 1000, 40),
    (9800, 1, 810, 13),
    (3200, 1, 470, 9),
    (4000, 1, 320, 4),
    (6000, 1, 650, 3),
    (4000, 1, 230, 3),
    (88000, 8, 1000, 1),
    (12500, 0, 0, 12),
]


@pytest.fixture
def small(tmp_path):
    """120 nodes of three kinds, and 900 pods."""
    nodes = tmp_path / "nodes.csv"
    pods = tmp_path / "pods.csv"
    kinds = [(96000, 393216, 8, "G2")] * 3 + [(104000, 524288, 2, "T4"), (16000, 122880, 2, "P100")]
    with nodes.open("w") as out:
        out.write("sn,cpu_milli,memory_mib,gpu,model\n")
        for i in range(120):
            out.write("node-%03d,%d,%d,%d,%s\n" % (i, *kinds[i % 5]))
    chance = random.Random(1)
    weights = [times for *_, times in PODS]
    with pods.open("w") as out:
        out.write("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
        for i in range(900):
            cpu, gpus, milli, _ = chance.choices(PODS, weights)[0]
            out.write("pod-%d,%d,%d,%d,%d\n" % (i, cpu, 1024, gpus, milli))
    return ["--nodes", nodes, "--pods", pods]


@pytest.fixture
def picky(small, tmp_path):
    """The same, where a third of the pods with up to two GPUs insists on a model of which there
    are few."""
    _, nodes, _, pods = small
    chance = random.Random(2)
    header, *lines = pods.read_text().splitlines()
    with (tmp_path / "picky.csv").open("w") as out:
        out.write(header + ",gpu_spec\n")
        for line in lines:
            insists = line.split(",")[3] == "1" and chance.random() < 0.33
            out.write(line + "," + (chance.choice(["T4", "P100"]) if insists else "") + "\n")
    return ["--nodes", nodes, "--pods", tmp_path / "picky.csv"]


def figures(result):
    assert result.returncode == 0, result.stderr
    return {line["policy"]: line for line in map(json.loads, result.stdout.splitlines())}


def test_worth_keeps_models_for_the_pods_that_insist_on_them(gpu_sim, picky):
    of = figures(
        gpu_sim("pack", *picky, "--policy", "gradient,fragment,worth", "--seeds", 4, "--json")
    )
    assert of["worth"]["allocated_at_100"] > of["fragment"]["allocated_at_100"] + 2
    assert of["worth"]["allocated_at_100"] > of["gradient"]["allocated_at_100"]
    assert of["worth"]["allocated_at_130"] > of["gradient"]["allocated_at_130"]


def test_worth_allocates_more_than_simple_policies_on_a_small_cluster(gpu_sim, small):
    of = figures(gpu_sim("pack", *small, "--seeds", 3, "--json"))
    assert list(of) == ["random", "gradient", "fragment", "pack", "spread", "worth"]
    for line in of.values():
        assert set(line) == {
            "policy",
            "allocated_at_100",
            "allocated_at_130",
            "sd_at_130",
            "seconds",
        }
    worth = of["worth"]["allocated_at_130"]
    assert 93 < worth < 97
    assert worth > max(of[name]["allocated_at_130"] for name in ("random", "spread", "pack"))


def test_the_default_policy_is_that_of_the_documentation(gpu_sim, small):
    table = (ROOT / "docs" / "configuration.md").read_text()
    named = re.search(r"^\| `policy` \|[^|]*\| `(\w+)` \|", table, re.M).group(1)
    of = figures(gpu_sim("pack", *small, "--policy", "default", "--seeds", 1, "--json"))
    assert list(of) == [named]


def test_an_alias_runs_under_the_name_of_its_policy(gpu_sim, small):
    of = figures(gpu_sim("pack", *small, "--policy", "binpack", "--seeds", 1, "--json"))
    assert list(of) == ["pack"]


def test_a_run_gives_the_same_figures_again(gpu_sim, small):
    once, again = (
        figures(gpu_sim("pack", *small, "--policy", "random,worth", "--seeds", 1, "--json"))
        for _ in range(2)
    )
    for policy, line in once.items():
        line.pop("seconds")
        again[policy].pop("seconds")
    assert once == again


@pytest.mark.skipif(not NODES.exists(), reason="there are no traces beside this checkout")
@pytest.mark.parametrize("mix, at_100, at_130", [("default", 95.4, 95.7), ("multigpu50", 97.0, 97.2)])
def test_one_seed_of_openb_reaches_what_is_published(gpu_sim, mix, at_100, at_130):
    pods = TRACES / f"openb_pod_list_{mix}.csv"
    result = gpu_sim(
        "pack", "--nodes", NODES, "--pods", pods, "--policy", "worth", "--seeds", 1, "--json"
    )
    worth = figures(result)["worth"]
    assert at_100 <= worth["allocated_at_100"] <= 97.5
    assert at_130 <= worth["allocated_at_130"] <= 98.0


def test_the_table_lines_up_and_counts_what_was_rejected(gpu_sim, small):
    result = gpu_sim("pack", *small, "--policy", "pack", "--seeds", 1)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert "120 nodes" in lines[0]
    assert len(lines[2]) == len(lines[3])
    counted = [line.split() for line in lines if line.startswith("  ") and "GPUs" not in line]
    assert [row[0] for row in counted] == [
        "0.00",
        "0.23",
        "0.32",
        "0.47",
        "0.65",
        "0.81",
        "1.00",
        "8.00",
    ]
    assert result.stderr == ""


def test_a_plot_is_written(gpu_sim, small, tmp_path):
    plot = tmp_path / "out.svg"
    result = gpu_sim("pack", *small, "--policy", "pack,worth", "--seeds", 1, "--plot", plot)
    assert result.returncode == 0
    text = plot.read_text()
    assert text.startswith("<svg") and text.endswith("</svg>\n")
    assert text.count("<polyline") == 2


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "pack needs --nodes and --pods"),
        (["--nodes"], "--nodes needs a value"),
        (["--seets", "1"], "unknown option '--seets'; did you mean --seeds?"),
    ],
)
def test_what_is_not_asked_properly_is_refused(gpu_sim, arguments, sentence):
    result = gpu_sim("pack", *arguments)
    assert result.returncode == 2
    assert sentence in result.stderr


def test_numbers_policies_and_files_that_are_wrong_are_named(gpu_sim, small, tmp_path):
    for arguments, sentence in [
        (["--seeds", "0"], "--seeds is '0': it is a number from 1 to 1000"),
        (["--seeds", "ten"], "--seeds is 'ten'"),
        (["--policy", "best"], "there is no policy 'best'; there are random"),
        (["--pods", tmp_path / "none.csv"], "none.csv: cannot be opened"),
        (["--plot", tmp_path / "no/out.svg", "--policy", "pack", "--seeds", 1], "cannot be written"),
    ]:
        traces = small[:2] if "--pods" in arguments else small
        result = gpu_sim("pack", *traces, *arguments)
        assert result.returncode == 2
        assert sentence in result.stderr
