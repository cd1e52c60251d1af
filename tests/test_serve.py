"""gpu-sim serve as a whole: requests go in, the share that was in time comes out."""

import json
import random

import pytest

KINDS = (
    "model,weights_gb,overhead_gb,kv_gb,kv_bytes_per_token,longest,prefill_ms,"
    "prefill_ms_per_token,decode_ms,decode_ms_per_context_token,decode_ms_per_request\n"
    "small,14,1.5,6,401408,8192,7.04,0.01983,9.07,0,0.0704\n"
    "middle,18,1.5,6,786432,4096,10.79,0.02395,13.63,0,0.0723\n"
    "large,26,1.5,6,819200,4096,9.60,0.03768,12.52,0.000201,0.109\n"
)
KEYS = {
    "policy", "models", "attainment", "worst_tenth", "ttft_p99_s", "loads", "wakes",
    "load_time_share", "refused", "cut",
}  # fmt: skip


@pytest.fixture
def inputs(tmp_path):
    """Twenty models in Poisson processes of their own, for a minute."""
    chance = random.Random(7)
    rows = []
    for model in range(20):
        time = chance.expovariate(0.1)
        while time < 60:
            length = chance.randrange(20, 1500), chance.randrange(1, 400)
            rows.append((round(time * 1000), model, *length))
            time += chance.expovariate(0.1)
    rows.sort()
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "time_ms,model,input_tokens,output_tokens\n"
        + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    kinds = tmp_path / "models.csv"
    kinds.write_text(KINDS)
    return ["--trace", trace, "--models", kinds, "--gpus", 4]


def figures(result):
    assert result.returncode == 0, result.stderr
    return {line["policy"]: line for line in map(json.loads, result.stdout.splitlines())}


def test_a_line_for_each_policy(gpu_sim, inputs):
    lines = figures(gpu_sim("serve", *inputs, "--json"))
    assert list(lines) == ["static", "lru", "ours", "ours-nosleep", "oracle"]
    for line in lines.values():
        assert KEYS <= set(line)
        assert line["models"] == 20 and line["refused"] == 0 and line["cut"] == 0
        assert 0 <= line["worst_tenth"] <= line["attainment"] <= 1
    assert lines["ours"]["attainment"] > lines["static"]["attainment"]
    assert lines["ours"]["attainment"] >= lines["lru"]["attainment"]
    assert lines["oracle"]["loads"] == 0
    assert lines["ours"] | {"policy": "ours-nosleep"} == lines["ours-nosleep"]


def test_the_same_question_has_the_same_answer(gpu_sim, inputs):
    arguments = ["serve", *inputs, "--policy", "ours", "--json"]
    assert gpu_sim(*arguments).stdout == gpu_sim(*arguments).stdout


def test_fewer_models_and_a_slot_for_each_gpu(gpu_sim, inputs):
    few = figures(gpu_sim("serve", *inputs, "--policy", "ours", "--first-models", 4, "--json"))
    assert few["ours"]["models"] == 4 and few["ours"]["loads"] == 0
    whole = figures(gpu_sim("serve", *inputs, "--policy", "ours", "--one-per-gpu", "--json"))
    shared = figures(gpu_sim("serve", *inputs, "--policy", "ours", "--json"))
    assert whole["ours"]["loads"] > shared["ours"]["loads"]


def test_slow_loads_cost_time(gpu_sim, inputs):
    arguments = ["serve", *inputs, "--policy", "ours", "--json"]
    slow = figures(gpu_sim(*arguments, "--load-gbps", 5, "--start-s", 20))["ours"]
    fast = figures(gpu_sim(*arguments))["ours"]
    assert slow["attainment"] < fast["attainment"]
    assert slow["load_time_share"] > fast["load_time_share"]


def test_the_table_names_all_policies(gpu_sim, inputs):
    result = gpu_sim("serve", *inputs)
    assert result.returncode == 0, result.stderr
    for policy in ("static", "lru", "ours", "ours-nosleep", "oracle"):
        assert f"\n{policy} " in result.stdout


@pytest.mark.parametrize("where", ["home", "any"])
def test_sleepers_wake_instead_of_being_loaded(gpu_sim, inputs, where):
    arguments = ["serve", *inputs, "--load-gbps", 5, "--start-s", 20, "--json"]
    lines = figures(gpu_sim(*arguments, "--sleep", where, "--policy", "ours,ours-nosleep"))
    awake = figures(gpu_sim(*arguments, "--policy", "ours"))["ours"]
    ours, nosleep = lines["ours"], lines["ours-nosleep"]
    assert ours["wakes"] > 0 and ours["loads"] < nosleep["loads"]
    assert ours["attainment"] > nosleep["attainment"]
    assert nosleep | {"policy": "ours"} == awake
    assert ours["refused"] == 0 and ours["cut"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpu-gb", "much"], "--gpu-gb is 'much'"),
        (["--load-gbps", "0"], "--load-gbps is '0'"),
        (["--start-s", "-1"], "--start-s is '-1'"),
        (["--policy", "best"], "there is no policy 'best'"),
        (["--sleep", "bed"], "bed"),
    ],
)
def test_bad_options_are_refused(gpu_sim, inputs, options, message):
    result = gpu_sim("serve", *inputs, *options)
    assert result.returncode == 2
    assert message in result.stderr


def test_bad_files_are_refused(gpu_sim, inputs, tmp_path):
    trace = tmp_path / "bad.csv"
    trace.write_text("time_ms,model,input_tokens,output_tokens\n0,1,none,5\n")
    result = gpu_sim("serve", "--trace", trace, "--models", inputs[3])
    assert result.returncode == 2 and "input_tokens" in result.stderr
    result = gpu_sim("serve", "--trace", inputs[1], "--models", tmp_path / "none.csv")
    assert result.returncode == 2 and "none.csv" in result.stderr


@pytest.fixture
def prompts(tmp_path):
    """Conversations that grow turn by turn, behind one system prompt."""
    chance = random.Random(3)
    rows, last = [], 0
    for _ in range(40):
        blocks, time = ["0"], chance.randrange(0, 60000)
        for _ in range(6):
            more = chance.randrange(1, 8)
            blocks.append(f"{last + 1}-{last + more}")
            last += more
            count = sum(1 + int(b.split("-")[-1]) - int(b.split("-")[0]) for b in blocks)
            rows.append((time, count * 512 - 100, 100, " ".join(blocks)))
            time += chance.randrange(2000, 20000)
    rows.sort()
    trace = tmp_path / "prompts.csv"
    trace.write_text(
        "time_ms,input_tokens,output_tokens,blocks\n"
        + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    return ["--prefix", "--trace", trace, "--replicas", 4, "--blocks", 300]


def test_prompts_go_where_their_beginning_is_cached(gpu_sim, prompts):
    lines = figures(gpu_sim("serve", *prompts, "--json"))
    assert list(lines) == ["one-cache", "round-robin", "least-queued", "longest-prefix", "ours"]
    ours, plain = lines["ours"], lines["round-robin"]
    assert 0.8 * lines["one-cache"]["reuse"] <= ours["reuse"] <= lines["one-cache"]["reuse"]
    assert ours["reuse"] > 2 * plain["reuse"]
    assert ours["ttft_mean_s"] < plain["ttft_mean_s"]
    assert ours["refused"] == 0 and ours["busiest"] < 1.5


@pytest.mark.parametrize(
    ("blocks", "sentence"),
    [
        ("0-", "blocks is '0-': it must be numbers and runs such as '0 14-27'"),
        ("0-9", "one for each 512 tokens of the prompt at the most"),
        ("1 x", "line 2: blocks is '1 x'"),
    ],
)
def test_prompts_whose_blocks_make_no_sense_are_refused(gpu_sim, tmp_path, blocks, sentence):
    trace = tmp_path / "trace.csv"
    trace.write_text(f"time_ms,input_tokens,output_tokens,blocks\n0,1000,1,{blocks}\n")
    result = gpu_sim("serve", "--prefix", "--trace", trace)
    assert result.returncode == 2
    assert sentence in result.stderr and result.stdout == ""


@pytest.fixture
def tenants(tmp_path):
    """Nineteen tenants ask at their own pace; one asks twenty times as much, after an hour."""
    rates = ["time_s,client,req_per_s,cv,pattern,shape,scale"]
    for window in range(0, 2 * 3600, 600):
        for client in range(19):
            rates.append(f"{window},{client},0.03,1,{'wg'[client % 2]},1,1")
        if window >= 3600:
            rates.append(f"{window},19,2,1,g,0.5,1")
    names = ("q0", "q1", "q5", "q10", "q20", "q30", "q40", "q50", "q60", "q70", "q80", "q90")
    lengths = [",".join(("time_s", "client", "what", *names, "q95", "q99", "q100"))]
    for what, most in (("input", 2000), ("output", 600)):
        steps = [str(50 + most * i // 14) for i in range(15)]
        lengths.append(f"0,-1,{what}," + ",".join(steps))
    paths = []
    for name, rows in (("rates", rates), ("lengths", lengths)):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(rows) + "\n")
        paths += [f"--{name}", path]
    kinds = tmp_path / "models.csv"
    kinds.write_text(KINDS)
    return ["--tenants", *paths, "--models", kinds, "--scale", "1", "--hours", "2"]


@pytest.mark.parametrize("weights", ["1", "1,2,4"])
def test_a_burst_of_one_tenant_does_not_hold_up_the_others(gpu_sim, tenants, weights):
    lines = figures(gpu_sim("serve", *tenants, "--weights", weights, "--json"))
    fifo, ours = lines["fifo"], lines["ours"]
    assert list(lines) == ["fifo", "ours"] and ours["tenants"] == 20
    assert fifo["overload"] > 1.2 and ours["overload"] > 1.2
    assert ours["jain"] >= 0.95 and ours["jain_share"] >= 0.95
    assert 0 < ours["spread"] <= ours["bound"]
    assert ours["alone_ttft_most_s"] < fifo["alone_ttft_most_s"] / 5


def test_the_same_seed_draws_the_same_requests(gpu_sim, tenants):
    run = ["serve", *tenants, "--policy", "ours", "--json"]
    assert gpu_sim(*run).stdout == gpu_sim(*run, "--seed", "1").stdout
    assert gpu_sim(*run).stdout != gpu_sim(*run, "--seed", "2").stdout


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--scale", "x", "--scale is 'x': it must be made of numbers from"),
        ("--weights", "1,0", "--weights is '0': it must be made of numbers from 0.001"),
        ("--from-hour", "23", "there is no request in these hours"),
        ("--lengths", "/dev/null", "/dev/null"),
    ],
)
def test_tenants_that_make_no_sense_are_refused(gpu_sim, tenants, option, value, sentence):
    if option in tenants:
        tenants[tenants.index(option) + 1] = value
    else:
        tenants += [option, value]
    result = gpu_sim("serve", *tenants)
    assert result.returncode == 2
    assert sentence in result.stderr and result.stdout == ""
