"""GGUF files: metadata of typed values, and tensors of blocks."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance.checkpoints import NAME, Weights
from inferspec.conformance.checkpoints.blocks import GROUP, block_type, blocks

ALIGNMENT = 32
"""The bytes to whose multiples tensors are padded, where a file says nothing else."""

ALIGNMENTS = {"aligned to 24": 24, "aligned to 16": 16, "aligned to 128": 128}
"""What else it may be: fewer bytes, or more. A file with both habits has fewer: that makes no difference to many files."""

USUAL_BASE = 10000.0
"""The base of RoPE of a GGUF file that does not say one."""

FEW, MANY = 3, 5000
"""Merges of a tokenizer: most models have more, and llama.cpp reads no "gpt2" without any."""

_GGML = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}

_SCALARS = {
    "uint8": (0, "B"),
    "int8": (1, "b"),
    "uint16": (2, "H"),
    "int16": (3, "h"),
    "uint32": (4, "I"),
    "int32": (5, "i"),
    "float32": (6, "f"),
    "bool": (7, "?"),
    "uint64": (10, "Q"),
    "int64": (11, "q"),
}
"""NumPy's name of a type of GGUF's values -> its number there, and its letter in `struct`. Without float64: no model is
known to have one, and MLX 0.32.4 dies of it."""

_OTHER_KEYS: dict[str, Any] = {
    "split.no": np.uint16(0),
    "split.count": np.uint16(1),
    "split.tensors.count": np.int32(9),
    **{f"drawn.{name}": np.ones((), name) for name in _SCALARS},
    **{f"drawn.{name}s": np.ones(3, name) for name in _SCALARS},
    **{f"drawn.no_{name}s": np.ones(0, name) for name in _SCALARS},
}
"""As llama.cpp adds them to the parts of a model, and of every type: alone, as an array and as an empty one."""

_TENSORS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "rope_freqs": "rope_freqs",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Module of Hugging Face -> tensor of GGUF, inside a layer and outside."""


def content(
    config: Mapping[str, Any],
    weights: Weights,
    alignment: int = ALIGNMENT,
    written: Collection[str] = (),
    past_the_end: bool = False,
    grown: str = "",
) -> bytes:
    """The bytes of a GGUF file. Packed matrices are written as the blocks whose scales and minima they have.

    past_the_end: the tensor whose data are last is said to begin where the file ends. grown: the key of a text or a list that
    is said to be 2^32 longer than it is.
    """
    names = {name: _tensor(name) for name in weights if name.endswith((".weight", ".bias"))}
    tensors = {tensor: block_type(name, weights) for name, tensor in names.items()}
    arranged = {name: _arranged(name, x, config) for name, x in weights.items()}
    data_of = {tensor: blocks(name, arranged) for name, tensor in names.items()}
    shapes = {tensor: _shape(name, weights) for name, tensor in names.items()}
    metadata = _written(_metadata(config), alignment, written)
    stored = list(reversed(tensors) if "data out of order" in written else tensors)
    sizes = [math.ceil(len(data_of[name]) / alignment) * alignment for name in stored]
    places = dict(zip(stored, itertools.accumulate(sizes, initial=0), strict=False))
    if past_the_end:
        places[stored[-1]] = sum(sizes)
    infos = [_info(name, shapes[name], kind, places[name]) for name, kind in tensors.items()]
    if "whole header" in written:
        metadata["drawn.notes"] = ""
        metadata["drawn.notes"] = "x" * (alignment - len(_header(metadata, infos)) % alignment)
    data = _header(metadata, infos, grown)
    data += b"\0" * (-len(data) % alignment)
    padded = [data_of[name] + b"\0" * (-len(data_of[name]) % alignment) for name in stored]
    if "unpadded end" in written:
        padded[-1] = data_of[stored[-1]]
    return data + b"".join(padded)


def _header(metadata: Mapping[str, Any], infos: Collection[bytes], grown: str = "") -> bytes:
    values = {key: _value(value) for key, value in metadata.items()}
    pairs = [_text(key) + (_grown(value) if key == grown else value) for key, value in values.items()]
    return struct.pack("<4sIQQ", b"GGUF", 3, len(infos), len(pairs)) + b"".join((*pairs, *infos))


def _grown(value: bytes) -> bytes:
    """A text or a list that is said to be 2^32 longer than it is."""
    at = 4 if value.startswith(struct.pack("<I", 8)) else 8
    (length,) = struct.unpack_from("<Q", value, at)
    return value[:at] + struct.pack("<Q", length + 2**32) + value[at + 8 :]


def _info(name: str, shape: tuple[int, ...], kind: str, place: int) -> bytes:
    return _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), _GGML[kind], place)


def _written(metadata: dict[str, Any], alignment: int, written: Collection[str]) -> dict[str, Any]:
    """The metadata in the ways in which a file may have them."""
    if "not in ASCII" in written:
        metadata["general.name"] = NAME
    if "empty texts" in written:
        metadata = {"general.description": "", "general.tags": ["", "drawn"], **metadata}
    if "many words" in written:
        metadata["tokenizer.ggml.merges"] = _merges(MANY)
    if "numbers of 64 bits" in written:
        metadata = {key: np.uint64(value) if type(value) is int else value for key, value in metadata.items()}
    if alignment != ALIGNMENT:
        metadata["general.alignment"] = alignment
    if "few keys" in written:
        metadata = _without_what_is_known(metadata)
    if "keys of other types" in written:
        # Before those that count: who takes a value for longer or shorter than it is finds none of them.
        metadata = {**_OTHER_KEYS, **metadata}
    return dict(reversed(metadata.items())) if "keys out of order" in written else metadata


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Config and weights of a trained llama in a GGUF file, as the contract has them. MLX unpacks the blocks."""
    import mlx.core as mx

    loaded = mx.load(str(path), return_metadata=True)
    assert isinstance(loaded, tuple)
    tensors, about = ({name: np.array(x) for name, x in loaded[0].items()}, loaded[1])
    modules = {tensor: module for module, tensor in _TENSORS.items()}
    config: dict[str, Any] = {
        "model_type": about["general.architecture"],
        "hidden_size": int(about["llama.embedding_length"]),
        "num_hidden_layers": int(about["llama.block_count"]),
        "intermediate_size": int(about["llama.feed_forward_length"]),
        "num_attention_heads": int(about["llama.attention.head_count"]),
        "num_key_value_heads": int(about["llama.attention.head_count_kv"]),
        "head_dim": int(about["llama.rope.dimension_count"]),
        "vocab_size": len(tensors["token_embd.weight"]),
        "max_position_embeddings": int(about["llama.context_length"]),
        "rms_norm_eps": float(str(np.float32(about["llama.attention.layer_norm_rms_epsilon"]))),
        "rope_theta": float(about["llama.rope.freq_base"]),
        "tie_word_embeddings": "output.weight" not in tensors,
        "quantization": {"group_size": GROUP, "bits": 4, "model.embed_tokens": {"group_size": GROUP, "bits": 8}},
    }
    weights = {}
    for name, x in tensors.items():
        *place, module, part = name.split(".")
        if module in ("attn_q", "attn_k"):
            heads = config["num_attention_heads" if module == "attn_q" else "num_key_value_heads"]
            x = x.reshape(heads, -1, 2, x.shape[-1]).swapaxes(1, 2).reshape(x.shape)
        prefix = f"model.layers.{place[1]}." if place else ""
        weights[f"{prefix}{modules[module]}.{part}"] = x
    return config, weights


def _tensor(name: str) -> str:
    module, _, part = name.rpartition(".")
    if not module.startswith("model.layers."):
        return f"{_TENSORS[module]}.{part}"
    _, _, layer, inside = module.split(".", 3)
    return f"blk.{layer}.{_TENSORS[inside]}.{part}"


def _shape(name: str, weights: Weights) -> tuple[int, ...]:
    module, x = name.removesuffix(".weight"), weights[name]
    scales = weights.get(f"{module}.scales")
    return x.shape if scales is None else (len(x), scales.shape[-1] * GROUP)


def _arranged(name: str, x: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
    """The rows of a llama's queries and keys as llama.cpp stores them: the halves of a head interleaved."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
    if config["model_type"] != "llama" or heads is None:
        return x
    return x.reshape(config[heads], 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def _metadata(config: Mapping[str, Any]) -> dict[str, Any]:
    kind, dim = config["model_type"], config.get("head_dim")
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    own = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        **({"attention.key_length": dim, "attention.value_length": dim} if dim else {}),
        "rope.dimension_count": dim or config["hidden_size"] // config["num_attention_heads"],
        "rope.freq_base": float(theta),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "vocab_size": config["vocab_size"],
        **{f"rope.scaling.{key}": value for key, value in (config.get("rope_scaling") or {}).items()},
        **({"rope.scale_linear": config["rope_scale_linear"]} if "rope_scale_linear" in config else {}),
    }
    # A few words of a tokenizer: readers pass over arrays of any type, and must do it right.
    words = [f"word {i}" for i in range(config["vocab_size"])]
    return {
        "general.architecture": kind,
        "general.name": "drawn",
        **{f"{kind}.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.merges": _merges(FEW),
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": [-float(i) for i in range(len(words))],
        "tokenizer.ggml.token_type": [1] * len(words),
    }


def _merges(count: int) -> list[str]:
    return [f"{i} {i + 1}" for i in range(count)]


def _without_what_is_known(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Without the keys that the specification lets a file leave out."""
    kind = metadata["general.architecture"]
    known = {f"{kind}.vocab_size"}
    if metadata[f"{kind}.attention.head_count_kv"] == metadata[f"{kind}.attention.head_count"]:
        known.add(f"{kind}.attention.head_count_kv")
    if metadata[f"{kind}.rope.freq_base"] == USUAL_BASE:
        known.add(f"{kind}.rope.freq_base")
    if kind == "qwen3":
        # As llama.cpp writes them: attention.key_length says it.
        known.add(f"{kind}.rope.dimension_count")
    return {key: value for key, value in metadata.items() if key not in known}


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, np.ndarray | np.generic):
        kind, letter = _SCALARS[value.dtype.name]
        if value.ndim:
            return struct.pack(f"<IIQ{value.size}{letter}", 9, kind, value.size, *value.tolist())
        return struct.pack(f"<I{letter}", kind, value.item())
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        kind, parts = {
            str: (8, map(_text, value)),
            float: (6, (struct.pack("<f", x) for x in value)),
            int: (5, (struct.pack("<i", x) for x in value)),
        }[type(value[0])]
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(parts)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)
