"""gpu-sim chaos and gpu-sim whatif as whole programs."""

import json

import pytest


def test_chaos_counts_seeds_and_what_happened(gpu_sim):
    result = gpu_sim("chaos", "--seed", 3, "--seeds", 4, "--steps", 3000, "--json")
    assert result.returncode == 0
    answer = json.loads(result.stdout)
    assert answer["seeds"] == 4
    assert answer["failed"] == 0
    assert answer["failures"] == []
    assert answer["steps"] >= 4 * 3000
    assert answer["starts"] > 0


def test_the_same_seed_does_the_same_again_event_for_event(gpu_sim):
    first = gpu_sim("chaos", "--seed", 5, "--steps", 1500, "-v")
    again = gpu_sim("chaos", "--seed", 5, "--steps", 1500, "-v")
    assert first.stderr == again.stderr
    assert first.stderr.count("\n") > 100


def test_a_class_can_be_left_out(gpu_sim):
    answer = json.loads(
        gpu_sim(
            "chaos", "--seeds", 5, "--steps", 1500, "--without", "loss,second", "--json"
        ).stdout
    )
    assert answer["messages_lost"] == 0
    assert answer["takeovers"] == 0


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--seeds", "none"], "--seeds is 'none'"),
        (["--without", "luck"], "no class of faults 'luck'"),
        (["--colour"], "usage: gpu-sim chaos"),
    ],
)
def test_chaos_says_what_it_was_asked_wrongly(gpu_sim, arguments, says):
    result = gpu_sim("chaos", *arguments)
    assert result.returncode == 2
    assert says in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments, says",
    [
        ([], "--state says which scheduler"),
        (["--state", "x", "--add-nodes", "many"], "such as 2x8xH100:80G"),
        (["--state", "x", "--submit", "colour=red"], "colour is not known"),
        (["--state"], "--state needs a value"),
    ],
)
def test_whatif_says_what_it_was_asked_wrongly(gpu_sim, arguments, says):
    result = gpu_sim("whatif", *arguments)
    assert result.returncode == 2
    assert says in result.stderr


def test_whatif_of_a_state_that_is_not_there(gpu_sim, tmp_path):
    result = gpu_sim("whatif", "--state", tmp_path / "none.db")
    assert result.returncode == 1
    assert "none.db" in result.stderr
    assert not (tmp_path / "none.db").exists()
