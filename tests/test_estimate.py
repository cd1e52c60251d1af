"""gpu-cli estimate: model files in, a table or JSON out."""

import json

import pytest

from model_files import (
    LLAMA_CONFIG,
    LLAMA_VALUES,
    llama,
    write_directory,
    write_gguf,
    write_llama,
    write_safetensors,
)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.gguf"
    write_llama(path)
    return path


def estimate_json(gpu_cli, *arguments):
    result = gpu_cli("estimate", *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_the_table_has_a_row_for_each_gpu_of_each_split(gpu_cli, model):
    result = gpu_cli(
        "estimate", model, "--context", "4k", "--parallel", 2, "--kv", "q8_0", "--gpus", "1,2"
    )
    assert result.returncode == 0
    # 4 layers x 2 MiB and 16 MiB of output; 4 x 2 x 4096 tokens x 8 blocks x 34 bytes = 8.5 MiB;
    # 512 x 4 x (32768 + 256) = 64.5 MiB, and 8192 x 256 x 2 = 4 MiB of cache as f16. On two GPUs
    # 4 copies of 512 x 4 x (8192 + 256) = 16.5 MiB, 5 + 8 MiB for layers or 64.5 for the output.
    assert result.stdout.splitlines() == [
        "Small: llama, 4 layers, 20971520 parameters, 40 MiB of weights",
        "llama.cpp: 2 requests of 4096 tokens, cache of keys q8_0 and values q8_0",
        "",
        "GPUS  GPU  LAYERS        WEIGHTS  CACHE    GRAPH  OVERHEAD     TOTAL",
        "1     0    0-3 + output   24 MiB  9 MiB   69 MiB   768 MiB   870 MiB",
        "2     0    0-2             6 MiB  7 MiB   83 MiB   768 MiB   864 MiB",
        "      1    3-3 + output   18 MiB  3 MiB  135 MiB   768 MiB   924 MiB",
        "      sum                                                   1788 MiB",
        "",
        "The embedding of tokens stays in the host's memory: 16 MiB.",
    ]


def test_defaults_are_the_files_context_one_request_f16_and_one_gpu(gpu_cli, model):
    plain = estimate_json(gpu_cli, model)
    assert plain["context_tokens"] == 4096
    assert plain["parallel"] == 1
    assert plain["key_type"] == plain["value_type"] == "f16"
    assert plain["runtime"] == "llama.cpp"
    assert [split["gpus"] for split in plain["splits"]] == [1]


def test_numbers_are_taken_as_people_write_them(gpu_cli, model):
    for text, tokens in (("8k", 8192), ("8K", 8192), ("32768", 32768), ("1m", 1 << 20)):
        assert estimate_json(gpu_cli, model, "--context", text)["context_tokens"] == tokens


def test_json_adds_up(gpu_cli, model):
    answer = estimate_json(gpu_cli, model, "--gpus", "1,2,4", "--explain")
    for split in answer["splits"]:
        assert split["possible"]
        assert len(split["per_gpu"]) == split["gpus"]
        for gpu in split["per_gpu"]:
            parts = ("weights_mib", "cache_mib", "graph_mib", "overhead_mib")
            assert gpu["total_mib"] == sum(gpu[part] for part in parts)
            assert set(gpu["arithmetic"]) == {"weights", "cache", "graph", "overhead"}
        assert split["total_mib"] == sum(gpu["total_mib"] for gpu in split["per_gpu"])
        assert split["largest_mib"] == max(gpu["total_mib"] for gpu in split["per_gpu"])


def test_explain_shows_the_arithmetic_of_every_part(gpu_cli, model):
    result = gpu_cli("estimate", model, "--explain")
    assert "4 layers x 4096 tokens x 2 heads x (64 keys f16 + 64 values f16)" in result.stdout
    assert "768 MiB for the CUDA context" in result.stdout


def test_keys_and_values_can_have_types_of_their_own(gpu_cli, model):
    answer = estimate_json(gpu_cli, model, "--kv-k", "q8_0", "--kv-v", "q4_0")
    assert (answer["key_type"], answer["value_type"]) == ("q8_0", "q4_0")
    # 4 x 4096 x 4 blocks x (34 + 18) bytes = 3.25 MiB
    assert answer["splits"][0]["per_gpu"][0]["cache_mib"] == 4


def test_shares_split_unevenly(gpu_cli, model):
    answer = estimate_json(gpu_cli, model, "--shares", "4,1")
    assert [gpu["layers"] for gpu in answer["splits"][0]["per_gpu"]] == [4, 0]


def test_a_split_that_is_not_possible_says_why_beside_those_that_are(gpu_cli, model):
    result = gpu_cli("estimate", model, "--gpus", "1,8")
    assert result.returncode == 0
    assert "8 GPUs: 4 layers cannot be dealt out to 8 GPUs" in result.stdout
    answer = estimate_json(gpu_cli, model, "--gpus", "1,8")
    assert [split["possible"] for split in answer["splits"]] == [True, False]
    alone = gpu_cli("estimate", model, "--gpus", "8")
    assert alone.returncode == 1
    assert "4 layers cannot be dealt out to 8 GPUs" in alone.stderr


def test_any_piece_of_a_split_file_stands_for_the_model(gpu_cli, tmp_path):
    first = tmp_path / "big-00001-of-00002.gguf"
    second = tmp_path / "big-00002-of-00002.gguf"
    write_gguf(first, {**LLAMA_VALUES, "split.count": 2}, llama(layers=2))
    write_gguf(second, {"split.count": 2}, llama(layers=2, first_layer=2, with_ends=False))
    for path in (first, second, tmp_path):
        answer = estimate_json(gpu_cli, path)
        assert answer["splits"][0]["per_gpu"][0]["weights_mib"] == 24
    second.unlink()
    result = gpu_cli("estimate", first)
    assert result.returncode == 1
    assert "big-00002-of-00002.gguf: it cannot be opened" in result.stderr


def test_a_piece_of_another_model_is_refused(gpu_cli, tmp_path):
    first = tmp_path / "big-00001-of-00002.gguf"
    write_gguf(first, {**LLAMA_VALUES, "split.count": 3}, llama())
    result = gpu_cli("estimate", first)
    assert result.returncode == 1
    assert "its name says it is one of 2 files, its header 3" in result.stderr


def matrices(*names):
    return {name: [1024, 1024] for name in names}


def test_a_directory_of_safetensors_is_divided_by_vllm(gpu_cli, tmp_path):
    path = tmp_path / "model"
    write_directory(
        path,
        {
            "model-00001-of-00002.safetensors": matrices(
                "model.embed_tokens.weight", "model.layers.0.self_attn.k_proj.weight"
            ),
            "model-00002-of-00002.safetensors": matrices("model.layers.0.mlp.gate.weight"),
        },
    )
    # Not in the index, so not part of the model.
    write_safetensors(path / "consolidated.safetensors", matrices("model.embed_tokens.weight"))
    result = gpu_cli("estimate", path, "--gpus", "1,2,3,4")
    assert result.returncode == 0
    # 2 MiB each: divided, divided by 2 heads, copied. 2 layers x 4096 x 2 heads x 512 bytes = 8
    # MiB. 8192 tokens x (4 x 1024 + 3 x 4096 / GPUs) x 2 bytes = 256, 160, 112 MiB.
    assert result.stdout.splitlines()[1:] == [
        "vllm: 1 request of 4096 tokens, cache of keys f16 and values f16",
        "",
        "GPUS  GPU   LAYERS        WEIGHTS  CACHE    GRAPH  OVERHEAD      TOTAL",
        "1     0     all             6 MiB  8 MiB  256 MiB  1856 MiB   2126 MiB",
        "2     each  all             4 MiB  4 MiB  160 MiB  3712 MiB   3880 MiB",
        "      sum                                                     7760 MiB",
        "3     -     not possible",
        "4     each  all             4 MiB  4 MiB  112 MiB  3712 MiB   3832 MiB",
        "      sum                                                    15328 MiB",
        "",
        "3 GPUs: 8 attention heads cannot be divided among 3 GPUs",
    ]


def test_one_safetensors_file_is_read_with_the_config_beside_it(gpu_cli, tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_directory(path, {"model.safetensors": matrices("lm_head.weight")})
    by_file = estimate_json(gpu_cli, path / "model.safetensors")
    by_directory = estimate_json(gpu_cli, path)
    monkeypatch.chdir(path)
    by_name = estimate_json(gpu_cli, "model.safetensors")
    assert by_file == by_directory == by_name
    assert by_file["model"]["weight_bytes"] == 2 << 20


def test_models_that_are_not_all_there_are_refused(gpu_cli, tmp_path):
    (tmp_path / "empty").mkdir()
    whole = tmp_path / "whole"
    write_directory(whole, {"a.safetensors": matrices("a"), "b.safetensors": matrices("b")})
    (whole / "b.safetensors").unlink()
    bare = tmp_path / "bare"
    write_directory(bare, {"model.safetensors": matrices("a")})
    (bare / "config.json").unlink()
    cut = tmp_path / "cut.gguf"
    write_llama(cut)
    with open(cut, "r+b") as file:
        file.truncate(1 << 20)
    several = tmp_path / "several"
    several.mkdir()
    write_llama(several / "one.gguf")
    write_llama(several / "two.gguf")
    for path, reason in (
        (tmp_path / "missing.gguf", "No such file"),
        (tmp_path / "empty", "neither safetensors nor GGUF"),
        (whole, "b.safetensors: it cannot be opened"),
        (bare, "config.json: it cannot be opened"),
        (cut, "cut.gguf: it has 1048576 bytes"),
        (several, "2 GGUF files: name the one that is meant, such as one.gguf"),
        ("/dev/null", "not a regular file"),
    ):
        result = gpu_cli("estimate", path)
        assert result.returncode == 1, path
        assert reason in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""


def test_a_model_of_100_gb_takes_no_longer_than_its_header(gpu_cli, tmp_path):
    path = tmp_path / "large.gguf"
    tensors = {f"blk.{layer}.attn_k.weight": (1, (1 << 20, 12500)) for layer in range(4)}
    write_gguf(path, LLAMA_VALUES, tensors)
    assert path.stat().st_size > 100_000_000_000
    assert estimate_json(gpu_cli, path)["model"]["weight_bytes"] == 4 * (1 << 20) * 12500 * 2


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ([], "which model?"),
        (["m", "n"], "unexpected argument 'n'"),
        (["m", "--contxt", "1"], "unknown option '--contxt'"),
        (["m", "--context"], "--context needs a value"),
        (["m", "--explain=yes"], "--explain takes no value"),
        (["m", "-c", "1", "--context", "2"], "--context is given twice"),
        (["m", "--context", "8x"], "invalid --context \'8x'"),
        (["m", "--context", "0"], "invalid --context \'0'"),
        (["m", "--context", "99999999999999999999"], "invalid --context \'999"),
        (["m", "--parallel=-1"], "invalid --parallel \'-1'"),
        (["m", "--kv", "q7"], "invalid --kv 'q7': expected one of f32, f16"),
        (["m", "--kv-v", "q7"], "invalid --kv-v \'q7'"),
        (["m", "--gpus", "1,,2"], "invalid --gpus \'1,,2'"),
        (["m", "--gpus", "17"], "invalid --gpus \'17'"),
        (["m", "--gpus", "1,2,"], "invalid --gpus \'1,2,'"),
        (["m", "--gpus", "2", "--shares", "1,1"], "cannot be given together"),
        (["m", "--runtime", "sglang"], "invalid --runtime 'sglang': expected llama.cpp"),
        (["m", "-o", "xml"], "invalid -o 'xml': expected table or json"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_way_to_the_help(gpu_cli, arguments, reason):
    result = gpu_cli("estimate", *arguments)
    assert result.returncode == 2
    assert reason in result.stderr
    assert result.stderr.endswith("See: gpu-cli help estimate\n")
    assert result.stdout == ""


def test_what_the_runtime_cannot_do_is_refused(gpu_cli, model):
    for arguments, reason in (
        (["--runtime", "vllm"], "vllm is estimated for safetensors"),
        (["--runtime", "ollama", "--kv", "q5_0"], "ollama has no cache of q5_0; it has: f16"),
        (["--kv", "q8_0", "--no-flash-attention"], "need flash attention"),
    ):
        result = gpu_cli("estimate", model, *arguments)
        assert result.returncode == 1
        assert reason in result.stderr


def test_a_context_beyond_what_the_model_was_made_for_is_noted(gpu_cli, model):
    result = gpu_cli("estimate", model, "--context", "8k")
    assert "note: the model was made for 4096 tokens" in result.stdout


def test_a_file_whose_name_begins_with_a_dash_can_be_given(gpu_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_llama("-odd.gguf")
    assert gpu_cli("estimate", "-o", "json", "--", "-odd.gguf").returncode == 0


def test_config_without_what_is_needed_is_refused_by_name(gpu_cli, tmp_path):
    path = tmp_path / "model"
    write_directory(path, {"model.safetensors": matrices("a")})
    config = {key: value for key, value in LLAMA_CONFIG.items() if key != "vocab_size"}
    (path / "config.json").write_text(json.dumps(config))
    result = gpu_cli("estimate", path)
    assert result.returncode == 1
    assert "config.json: it does not say vocab_size: declare the model's memory" in result.stderr
