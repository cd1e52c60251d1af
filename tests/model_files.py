"""Writes model files of any size that take no room: a header, and a hole behind it."""

import json
import struct

F32, F16, Q4_K, Q6_K = 0, 1, 12, 14
BLOCKS = {F32: (1, 4), F16: (1, 2), Q4_K: (256, 144), Q6_K: (256, 210)}


def _text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        return struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)
    return struct.pack("<II", 4, value)


def write_gguf(path, values, tensors):
    """values: {key: text, number or list}; tensors: {name: (type, lengths)}."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    header += b"".join(_text(key) + _value(value) for key, value in values.items())
    offset = 0
    for name, (kind, lengths) in tensors.items():
        header += _text(name) + struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
        header += struct.pack("<IQ", kind, offset)
        block_values, block_bytes = BLOCKS[kind]
        size = block_bytes
        for length in lengths:
            size *= length
        offset += -(-(size // block_values) // 32) * 32
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(-(-len(header) // 32) * 32 + offset)


def llama(layers=4, first_layer=0, with_ends=True):
    """The tensors of some layers of a small model: 2 MiB each, 16 MiB for each end."""
    tensors = {}
    if with_ends:
        tensors["token_embd.weight"] = (F16, (256, 32768))
        tensors["output.weight"] = (F16, (256, 32768))
    for layer in range(first_layer, first_layer + layers):
        tensors[f"blk.{layer}.attn_k.weight"] = (F16, (256, 4096))
    return tensors


LLAMA_VALUES = {
    "general.architecture": "llama",
    "general.name": "Small",
    "llama.block_count": 4,
    "llama.context_length": 4096,
    "llama.embedding_length": 256,
    "llama.feed_forward_length": 1024,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}


def write_llama(path):
    write_gguf(path, LLAMA_VALUES, llama())


def write_safetensors(path, tensors, dtype="BF16"):
    """tensors: {name: shape}, all of one type."""
    header, offset = {}, 0
    for name, shape in tensors.items():
        size = {"BF16": 2, "F8_E4M3": 1}[dtype]
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)


LLAMA_CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 4096,
    "vocab_size": 32768,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def write_directory(path, files):
    """A model in several files ({file name: tensors}) with an index and a config.json."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(LLAMA_CONFIG))
    weight_map = {}
    for name, tensors in files.items():
        write_safetensors(path / name, tensors)
        weight_map.update(dict.fromkeys(tensors, name))
    if len(files) > 1:
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
