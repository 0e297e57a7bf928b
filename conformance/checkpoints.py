"""Writes models to files, and packs matrices as GGUF blocks do: what `load` is given to read. NumPy alone.

Sources: the safetensors format (huggingface/safetensors, README); docs/gguf.md and ggml-quants.c of ggml; `permute` in
llama.cpp's convert_hf_to_gguf.py.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.spec.numerics import f64, numpy_dtype

Weights = Mapping[str, np.ndarray]

ALIGNMENT, GROUP = 32, 32
FEW = 2
"""Bytes that a tensor lacks whose entry gives it too few: those of a number, or of half a one."""

NAME = "Größe/模型 — 0.6B 🤗"

USUAL_BASE = 10000.0
"""The base of RoPE of a GGUF file that does not say one."""

_SAFETENSORS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "uint32": "U32"}
_GGML = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
_BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8}

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


def write(
    folder: Path,
    config: Mapping[str, Any],
    weights: Weights,
    form: str,
    damage: str = "",
    lost: int = 1,
    written: Collection[str] = (),
) -> Path:
    """Write a model in one of the contract's forms, with one of its damages and any of its habits; return the path to load.

    lost: how many bytes a file that is cut short lacks; of those with as many or fewer nothing is left.
    """
    how = (config, weights, form, damage, lost, written)
    if "links" not in written:
        folder.mkdir(parents=True)
        return _written(folder, *how)
    # As the hub's cache has them: a revision's files are links to what is kept by its content.
    snapshot, blobs = folder / "snapshots" / "main", folder / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    path = _written(snapshot, *how)
    for file in list(snapshot.iterdir()):
        blob = blobs / hashlib.sha256(file.name.encode() + file.read_bytes()).hexdigest()
        file.rename(blob)
        file.symlink_to(blob)
    return path


def _written(
    folder: Path,
    config: Mapping[str, Any],
    weights: Weights,
    form: str,
    damage: str,
    lost: int,
    written: Collection[str],
) -> Path:
    if form == "gguf":
        path = folder / "model.gguf"
        alignment = 128 if "aligned to 128" in written else ALIGNMENT
        data = gguf(config, weights, alignment, written, past_the_end=damage == "beyond")
        path.write_bytes(
            # The last tensor may be padded, and is whole without that.
            _cut(data, lost + alignment - 1)
            if damage == "cut short"
            else b"GGML" + data[4:]
            if damage == "header"
            else data
        )
        return path
    if damage != "no config":
        named = {**config, "_name_or_path": NAME} if "not in ASCII" in written else config
        (folder / "config.json").write_text(json.dumps(named, ensure_ascii=False), encoding="utf-8")
    names = list(weights)
    if form == "folder":
        files = {"model.safetensors": names}
    else:
        # Round and round, so that the parts of one layer lie in different files.
        count = (2, 3, 11)[len(names) % 3]
        pattern, first = "model-{:05}-of-{:05}.safetensors", 1
        if "shards of any names" in written:
            pattern, first = "model.part-{:c}.safetensors", ord("a")
        if "names not of models" in written:
            pattern = "weights-{:05}.safetensors"
        files = {pattern.format(first + i, count): names[i::count] for i in range(count)}
        places = {name: file for file, held in files.items() for name in held}
        index = {"metadata": {"total_size": sum(x.nbytes for x in weights.values())}, "weight_map": places}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    copies = copies_elsewhere(files, weights) if "copies elsewhere" in written else {}
    for number, (file, held) in enumerate(files.items()):
        last = number == len(files) - 1
        few = FEW if last and damage == "few data" else 0
        data = safetensors({**{name: weights[name] for name in held}, **copies.get(file, {})}, written, few)
        if last and damage in ("no shard", "no weights"):
            continue
        if last and damage == "cut short":
            data = _cut(data, lost)
        if last and damage == "header":
            data = struct.pack("<Q", 2**40) + data[8:]
        (folder / file).write_bytes(data)
    if "another file" in written and not damage:
        # As in repositories of Mistral: the model once more, under names of its own.
        again = safetensors({"tok_embeddings.weight": weights["model.embed_tokens.weight"]})
        (folder / "consolidated.safetensors").write_bytes(again)
    if "a model beside" in written:
        # As a fine-tuned one's, or what an older download left.
        others = {name: -x for name, x in weights.items() if x.dtype != np.uint32}
        (folder / "model-99999-of-99999.safetensors").write_bytes(safetensors(others))
    return folder


def copies_elsewhere(files: Mapping[str, list[str]], weights: Weights) -> dict[str, Weights]:
    """What the first file and the last one have of each other's tensors, and no longer as it is: file -> tensors."""
    first, *_, last = files

    def one_of(file: str) -> Weights:
        name = next((name for name in files[file] if "proj.weight" in name), files[file][0])
        return {name: np.flip(weights[name]).copy()}

    return {first: one_of(last), last: one_of(first)}


def _cut(data: bytes, lost: int) -> bytes:
    return data[: max(len(data) - lost, 0)]


def safetensors(weights: Weights, written: Collection[str] = (), few: int = 0) -> bytes:
    """The bytes of a safetensors file. The data are in the order of the weights.

    few: so many bytes fewer than its shape takes belong to the last tensor, and are there.
    """
    about = {} if "empty metadata" in written else {"format": "mlx" if "format of MLX" in written else "pt"}
    if "not in ASCII" in written:
        about["name"] = NAME
    header: dict[str, Any] = {} if "no metadata" in written else {"__metadata__": about}
    at = 0
    for name, x in weights.items():
        header[name] = {
            "dtype": _SAFETENSORS[x.dtype.name],
            "shape": list(x.shape),
            "data_offsets": [at, at + x.nbytes],
        }
        at += x.nbytes
    if few:
        header[name]["data_offsets"][1] -= few
    if "out of order" in written:
        header = dict(sorted(header.items(), reverse=True))
    text = json.dumps(header, ensure_ascii=False).encode()
    # Padding is left to the writer: without it no tensor begins at a multiple of its width.
    text += b" " * (-len(text) % 8 if "unpadded header" not in written else len(text) % 8 == 0)
    return struct.pack("<Q", len(text)) + text + _cut(b"".join(x.tobytes() for x in weights.values()), few)


def gguf(
    config: Mapping[str, Any],
    weights: Weights,
    alignment: int = ALIGNMENT,
    written: Collection[str] = (),
    past_the_end: bool = False,
) -> bytes:
    """The bytes of a GGUF file. Packed matrices are written as the blocks whose scales and minima they have.

    past_the_end: the tensor whose data are last is said to begin where the file ends.
    """
    names = {name: _tensor(name) for name in weights if name.endswith((".weight", ".bias"))}
    tensors = {tensor: _block_type(name, weights) for name, tensor in names.items()}
    arranged = {name: _arranged(name, x, config) for name, x in weights.items()}
    blocks = {tensor: _blocks(name, arranged) for name, tensor in names.items()}
    shapes = {tensor: _shape(name, weights) for name, tensor in names.items()}
    metadata = _metadata(config)
    if "not in ASCII" in written:
        metadata["general.name"] = NAME
    if "numbers of 64 bits" in written:
        metadata = {key: np.uint64(value) if type(value) is int else value for key, value in metadata.items()}
    if alignment != ALIGNMENT:
        metadata["general.alignment"] = alignment
    if "few keys" in written:
        metadata = _without_what_is_known(metadata)
    if "keys of other types" in written:
        # Before those that count: who takes a value for longer or shorter than it is finds none of them.
        metadata = {**_OTHER_KEYS, **metadata}
    if "keys out of order" in written:
        metadata = dict(reversed(metadata.items()))
    stored = list(reversed(tensors) if "data out of order" in written else tensors)
    data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    data += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    sizes = [math.ceil(len(blocks[name]) / alignment) * alignment for name in stored]
    places = dict(zip(stored, itertools.accumulate(sizes, initial=0), strict=False))
    if past_the_end:
        places[stored[-1]] = sum(sizes)
    for name, kind in tensors.items():
        shape = shapes[name][::-1]
        data += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, _GGML[kind], places[name])
    data += b"\0" * (-len(data) % alignment)
    return data + b"".join(blocks[name] + b"\0" * (-len(blocks[name]) % alignment) for name in stored)


def packed(values: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """A matrix rounded to a GGUF type, as MLX packs it: ``weight`` and, where quantised, ``scales`` and ``biases``."""
    if kind not in _BITS:
        return {"weight": values.astype({"F32": np.float32, "F16": np.float16}[kind])}
    bits = _BITS[kind]
    groups = f64(values).reshape(len(values), -1, GROUP)
    low, high = groups.min(axis=-1), groups.max(axis=-1)
    if kind == "Q4_1":
        scales = ((high - low) / 15).astype(np.float16)
        biases = low.astype(np.float16)
    else:
        # Of either sign, as llama.cpp's are: the number furthest from 0 has the code at the end of the range.
        furthest = np.where(np.abs(low) > np.abs(high), low, high)
        zero = 2.0 ** (bits - 1)
        scales = (furthest / -zero).astype(np.float16)
        biases = (-zero * f64(scales)).astype(np.float16)
    steps = np.where(scales == 0, 1.0, f64(scales))[..., None]
    codes = np.clip(np.round((groups - f64(biases)[..., None]) / steps), 0, 2**bits - 1).astype(np.uint32)
    return {"weight": _words(codes.reshape(len(values), -1), bits), "scales": scales, "biases": biases}


def dequantised(weight: np.ndarray, scales: np.ndarray, biases: np.ndarray, bits: int) -> np.ndarray:
    """The values of a packed matrix in float64."""
    codes = f64(_codes(weight, bits))
    group = codes.shape[-1] // scales.shape[-1]
    return codes * np.repeat(f64(scales), group, axis=-1) + np.repeat(f64(biases), group, axis=-1)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, bfloat16 too."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    dtypes: dict[str, np.dtype[Any]] = {
        "F32": np.dtype(np.float32),
        "F16": np.dtype(np.float16),
        "U32": np.dtype(np.uint32),
        "BF16": numpy_dtype("bfloat16"),
    }
    found = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(data[start:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    return found


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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


def _block_type(name: str, weights: Weights) -> str:
    module, x = name.removesuffix(".weight"), weights[name]
    if f"{module}.scales" not in weights:
        return {"float32": "F32", "float16": "F16"}[x.dtype.name]
    scales, biases = f64(weights[f"{module}.scales"]), f64(weights[f"{module}.biases"])
    if 32 * x.shape[-1] // (GROUP * scales.shape[-1]) == 8:
        return "Q8_0"
    return "Q4_0" if np.array_equal(biases, -8 * scales) else "Q4_1"


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


def _blocks(name: str, weights: Weights) -> bytes:
    kind, x = _block_type(name, weights), weights[name]
    if kind not in _BITS:
        return x.tobytes()
    module = name.removesuffix(".weight")
    scales, biases = (weights[f"{module}.{part}"].astype(np.float16)[..., None] for part in ("scales", "biases"))
    codes = _codes(x, _BITS[kind]).reshape(len(x), -1, GROUP)
    if kind == "Q8_0":
        signed = (codes.astype(np.int16) - 128).astype(np.int8)
        return np.concatenate([scales.view(np.uint8), signed.view(np.uint8)], axis=-1).tobytes()
    # The first sixteen codes of a block are the low nibbles.
    nibbles = (codes[..., :16] | codes[..., 16:] << 4).astype(np.uint8)
    head = [scales.view(np.uint8)] if kind == "Q4_0" else [scales.view(np.uint8), biases.view(np.uint8)]
    return np.concatenate([*head, nibbles], axis=-1).tobytes()


def _codes(words: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return (words[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(len(words), -1)


def _words(codes: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return np.bitwise_or.reduce(codes.reshape(len(codes), -1, 32 // bits) << shifts, axis=-1).astype(np.uint32)


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
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": [-float(i) for i in range(len(words))],
        "tokenizer.ggml.token_type": [1] * len(words),
    }


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
