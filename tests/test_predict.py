"""gpu-sim predict as a whole: a history goes in, how well it was predicted comes out."""

import os
import gzip
import json
import pathlib
import random

import pytest

COLUMNS = "submit_s,started_s,duration_s,gpus,user,name,limit_s,status\n"
TRACES = pathlib.Path(os.environ.get("TRACES", pathlib.Path(__file__).parents[2] / "shared/traces")) / "predict"
# in2x at least, pin50 at most
WANTED = {
    "helios": (59, 0.90),
    "philly-users": (60, 1.03),
    "sdsc-sp2": (64, 0.63),
    "genai": (95, 0.19),
}


def history(seed, jobs=400):
    """Jobs whose user and name decide how long they take, nearly."""
    chance = random.Random(seed)
    rows, second = [], 0
    for _ in range(jobs):
        second += chance.randrange(600)
        user, kind = chance.randrange(4), chance.randrange(3)
        duration = round(30 * 4 ** (user + kind) * chance.uniform(0.8, 1.25))
        rows.append(f"{second},{second},{duration},1,u{user},kind-{kind},0,Pass\n")
    return COLUMNS + "".join(rows)


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(history(1))
    return path


def scores(result):
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def test_regular_jobs_are_predicted_well(gpu_sim, trace):
    of = scores(gpu_sim("predict", "--trace", trace, "--json"))
    assert of["jobs"] == 360
    assert of["in2x"] > 85
    assert of["pin50"] < 0.3
    assert of["cov90"] > 80
    assert [rest["age_s"] for rest in of["rest"]] == [60, 600, 3600, 14400]
    for rest in of["rest"]:
        assert set(rest) == {"age_s", "jobs", "in2x", "soon_said", "soon_seen", "soon_auc"}
    assert of["rest"][0]["soon_auc"] > 0.8


def test_what_was_learned_before_helps(gpu_sim, trace, tmp_path):
    warm = tmp_path / "warm.csv"
    warm.write_text(history(2, 2000))
    cold = scores(gpu_sim("predict", "--trace", trace, "--json"))
    known = scores(gpu_sim("predict", "--warm", warm, "--trace", trace, "--json"))
    assert known["jobs"] == cold["jobs"]
    assert known["pin50"] < cold["pin50"]


def test_compressed_traces_give_the_same_scores(gpu_sim, trace, tmp_path):
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    once, again = (gpu_sim("predict", "--trace", at, "--json") for at in (trace, packed))
    assert once.returncode == 0 and once.stdout == again.stdout


def test_a_table_is_for_people(gpu_sim, trace):
    result = gpu_sim("predict", "--trace", trace)
    assert result.returncode == 0
    assert "360 jobs scored" in result.stdout and "soon AUC" in result.stdout


def test_few_experts_are_enough_to_run(gpu_sim, trace):
    of = scores(gpu_sim("predict", "--trace", trace, "--experts", 13, "--json"))
    assert of["experts"] <= 13


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "is empty"),
        (COLUMNS, "has no jobs"),
        ("submit_s,user\n1,u0\n", "there is no column 'started_s'"),
        (COLUMNS + "1,1,x,1,u0,,0,Pass\n", "duration_s is 'x'"),
    ],
)
def test_a_bad_trace_is_refused(gpu_sim, tmp_path, text, reason):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    result = gpu_sim("predict", "--trace", path)
    assert result.returncode == 2
    assert reason in result.stderr


def test_a_truncated_trace_is_refused(gpu_sim, trace):
    cut = trace.with_suffix(".gz")
    cut.write_bytes(gzip.compress(trace.read_bytes())[:-100])
    result = gpu_sim("predict", "--trace", cut)
    assert result.returncode == 2
    assert "cannot be read" in result.stderr


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces are not beside the checkout")
@pytest.mark.parametrize("name", WANTED)
def test_real_histories_are_predicted_as_well_as_by_the_study(gpu_sim, name):
    in2x, pin50 = WANTED[name]
    of = scores(gpu_sim("predict", "--trace", TRACES / f"{name}.csv.gz", "--json"))
    assert of["in2x"] >= in2x
    assert of["pin50"] <= pin50
    assert 87 <= of["cov90"] <= 96
