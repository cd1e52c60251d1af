"""llama_server.py PORT - the real server of llama.cpp on the CPU, with a tiny model of random weights
that is made here. Prints "ready" when it answers. Run by the Python of build/python."""

import pathlib
import sys
import tempfile
import time
import urllib.request

import gguf
import numpy
import xllamacpp

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 512


def write_model(path):
    """Tokens are bytes, and words after them are nonsense: what counts is that they are the server's."""
    random = numpy.random.default_rng(20)
    writer = gguf.GGUFWriter(path, "llama")
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{i:02X}>".encode() for i in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    # Plain letters, so that answers are text.
    tokens += [chr(i).encode() for i in range(97, 123)] + ["\u2581".encode()]
    kinds += [gguf.TokenType.NORMAL] * 27
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")

    def tensor(name, *shape):
        writer.add_tensor(name, (random.standard_normal(shape) / 8).astype(numpy.float32))

    tensor("token_embd.weight", len(tokens), WIDTH)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
    # Letters are likelier than the rest, and the end is not.
    output = (random.standard_normal((len(tokens), WIDTH)) / 8).astype(numpy.float32)
    output[:259] *= 0.01
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        tensor(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        tensor(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        tensor(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "tiny.gguf"
        write_model(path)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.port = int(sys.argv[1])
        params.n_ctx = 4 * CONTEXT
        params.n_parallel = 4
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.warmup = False
        server = xllamacpp.Server(params)
        address = f"http://127.0.0.1:{params.port}"
        while True:
            try:
                urllib.request.urlopen(address + "/health", timeout=5).read()
                break
            except OSError:
                time.sleep(0.1)
        print("ready", flush=True)
        while server:
            time.sleep(3600)


if __name__ == "__main__":
    main()
