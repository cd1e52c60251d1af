"""Models whose sizes are published, rebuilt from the shapes of their tensors: the numbers that
docs/estimates.md compares."""

import json

from model_files import write_safetensors


def estimate(gpu_cli, path, config, tensors, *arguments, dtype="BF16"):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    write_safetensors(path / "model.safetensors", tensors, dtype)
    result = gpu_cli("estimate", path, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def ends(vocabulary, hidden):
    return {
        "model.embed_tokens.weight": [vocabulary, hidden],
        "lm_head.weight": [vocabulary, hidden],
        "model.norm.weight": [hidden],
    }


def test_llama_3_8b_takes_what_vllm_measures(gpu_cli, tmp_path):
    """vLLM logs 14.96 GiB of weights on one GPU, 7.48 on each of two, and a peak of 1.26 GiB for
    256 requests (vllm-project/vllm, pull request 10511). The cache: 128 KiB per token."""
    config = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
    }
    tensors = ends(128256, 4096)
    for layer in range(32):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "self_attn.q_proj.weight": [4096, 4096],
            prefix + "self_attn.k_proj.weight": [1024, 4096],
            prefix + "self_attn.v_proj.weight": [1024, 4096],
            prefix + "self_attn.o_proj.weight": [4096, 4096],
            prefix + "mlp.gate_proj.weight": [14336, 4096],
            prefix + "mlp.up_proj.weight": [14336, 4096],
            prefix + "mlp.down_proj.weight": [4096, 14336],
            prefix + "input_layernorm.weight": [4096],
            prefix + "post_attention_layernorm.weight": [4096],
        }
    arguments = ["--gpus", "1,2", "--context", "8k", "--parallel", "256"]
    answer = estimate(gpu_cli, tmp_path / "m", config, tensors, *arguments)
    one, two = answer["splits"]
    assert answer["model"]["parameters"] == 8030261248
    assert 14.955 <= one["per_gpu"][0]["weights_mib"] / 1024 <= 14.965
    assert 7.475 <= two["per_gpu"][0]["weights_mib"] / 1024 <= 7.485
    assert 1.2 <= one["per_gpu"][0]["graph_mib"] / 1024 <= 1.3
    assert one["per_gpu"][0]["cache_mib"] == 256 * 1024


def test_qwen3_30b_a3b_has_its_parameters_and_cache(gpu_cli, tmp_path):
    """30.5 billion parameters; 48 layers x 4 heads x 256 x 2 bytes = 96 KiB per token, so 3 GiB
    for 32768. With 4 heads of keys and values, 8 GPUs keep twice as much as 4 do in all."""
    config = {
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
    }
    tensors = ends(151936, 2048)
    for layer in range(48):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "self_attn.q_proj.weight": [4096, 2048],
            prefix + "self_attn.k_proj.weight": [512, 2048],
            prefix + "self_attn.v_proj.weight": [512, 2048],
            prefix + "self_attn.o_proj.weight": [2048, 4096],
            prefix + "self_attn.q_norm.weight": [128],
            prefix + "self_attn.k_norm.weight": [128],
            prefix + "mlp.gate.weight": [128, 2048],
            prefix + "input_layernorm.weight": [2048],
            prefix + "post_attention_layernorm.weight": [2048],
        }
        for expert in range(128):
            at = f"{prefix}mlp.experts.{expert}."
            tensors |= {
                at + "gate_proj.weight": [768, 2048],
                at + "up_proj.weight": [768, 2048],
                at + "down_proj.weight": [2048, 768],
            }
    arguments = ["--gpus", "1,2,4,8", "--context", "32k"]
    answer = estimate(gpu_cli, tmp_path / "m", config, tensors, *arguments)
    assert answer["model"]["parameters"] == 30532122624
    caches = [split["per_gpu"][0]["cache_mib"] for split in answer["splits"]]
    assert caches == [3072, 1536, 768, 768]
    # 30532122624 x 2 bytes, all but 50 MB of which can be divided.
    assert [split["per_gpu"][0]["weights_mib"] for split in answer["splits"]][0] == 58236
    assert 7280 <= answer["splits"][3]["per_gpu"][0]["weights_mib"] <= 7380


def test_deepseek_v3_has_its_parameters_and_cache(gpu_cli, tmp_path):
    """671 billion parameters of fp8, and 70.272 KB of cache per token (both in its papers)."""
    config = {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
    }
    tensors = ends(129280, 7168)
    for layer in range(61):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "self_attn.q_a_proj.weight": [1536, 7168],
            prefix + "self_attn.q_b_proj.weight": [24576, 1536],
            prefix + "self_attn.kv_a_proj_with_mqa.weight": [576, 7168],
            prefix + "self_attn.kv_b_proj.weight": [32768, 512],
            prefix + "self_attn.o_proj.weight": [7168, 16384],
        }
        if layer < 3:
            parts = {"": 18432}
        else:
            tensors[prefix + "mlp.gate.weight"] = [256, 7168]
            parts = {f"experts.{expert}.": 2048 for expert in range(256)}
            parts["shared_experts."] = 2048
        for part, length in parts.items():
            tensors |= {
                f"{prefix}mlp.{part}gate_proj.weight": [length, 7168],
                f"{prefix}mlp.{part}up_proj.weight": [length, 7168],
                f"{prefix}mlp.{part}down_proj.weight": [7168, length],
            }
    arguments = ["--gpus", "8", "--context", "128k"]
    answer = estimate(gpu_cli, tmp_path / "m", config, tensors, *arguments, dtype="F8_E4M3")
    assert round(answer["model"]["parameters"] / 1e9) == 671
    gpu = answer["splits"][0]["per_gpu"][0]
    # 131072 tokens x 70272 bytes, on every GPU.
    assert gpu["cache_mib"] == 8784
    # An eighth of 671025404928 bytes is 79993 MiB; seven eighths of the compressed projections and
    # the routers, which every GPU has, are 859 more. Tests on H800 found 83 to 84 GB.
    assert gpu["weights_mib"] == 80852
