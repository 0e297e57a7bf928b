"""Reads a GGUF file: a configuration and weights under their Hugging Face names.

The header says what the file holds and is checked against the file's size; MLX unpacks the tensors, quantised ones
into its own packed format. llama.cpp stores the query and key rows of a llama in the order of traditional RoPE
(neighbouring features are a pair); they leave here in Hugging Face's order (a feature and the one half a head away). The
scaling of a Llama 3.1 is stored there as a tensor, what each frequency of RoPE is divided by: `rope_divisors` of the config.

Source: the GGUF specification (docs/gguf.md of ggml-org/ggml); `permute` in llama.cpp's convert_hf_to_gguf.py.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import mlx.core as mx
import numpy as np

GROUP = 32
"""Values that share a scale in Q4_0, Q4_1 and Q8_0."""

_ALIGNMENT = 32
_BLOCKS = {0: (1, 4), 1: (1, 2), 2: (GROUP, 18), 3: (GROUP, 20), 8: (GROUP, 34)}
"""Tensor type -> values and bytes of a block: F32, F16, Q4_0, Q4_1, Q8_0."""
_BITS = {2: 4, 3: 4, 8: 8}
_TAKEN = "F32, F16, Q4_0, Q4_1 and Q8_0"

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

_MODULES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_DIVISORS = "rope_freqs.weight"
_OUTSIDE_LAYERS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says of itself. metadata: without its arrays; types: tensor name -> ggml type; rows of each tensor."""

    metadata: Mapping[str, Any]
    types: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]


def read(path: Path) -> tuple[dict[str, Any], dict[str, mx.array]]:
    """Return (config, weights) of a llama or qwen3 file, floating-point values in float32.

    llama.cpp keeps norms in float32 whatever the type of the matrices, and scales in float16 that it computes with in
    float32: so does a model with these weights. Quantised modules keep their codes, `config["quantization"]` tells
    their bits. Raises ValueError for a file that is cut short, of another architecture, of a type other than F32,
    F16, Q4_0, Q4_1 or Q8_0, or with a tensor or a setting that the two models do not have.
    """
    head = header(path)
    architecture = head.metadata.get("general.architecture")
    if architecture not in ("llama", "qwen3"):
        raise ValueError(f"{path}: its architecture is {architecture!r}; it takes llama or qwen3")
    scaled = {_DIVISORS} if architecture == "llama" else set()
    names = {tensor: _renamed(tensor, path) for tensor in head.types if tensor not in scaled}
    config = _config(head, str(architecture), names, path)
    loaded = mx.load(str(path))
    assert isinstance(loaded, dict)
    if _DIVISORS in loaded:
        config["rope_divisors"] = _divisors(loaded.pop(_DIVISORS), config["head_dim"], path)
    weights = {}
    for tensor, x in loaded.items():
        stem, _, part = tensor.rpartition(".")
        if x.dtype != mx.uint32:
            x = x.astype(mx.float32)
        if architecture == "llama" and stem.endswith((".attn_q", ".attn_k")):
            heads = config["num_attention_heads" if stem.endswith("q") else "num_key_value_heads"]
            x = _split_half(x, heads)
        name = names[tensor] if tensor in names else names[f"{stem}.weight"].removesuffix("weight") + part
        weights[name] = x
    return config, weights


def header(path: Path) -> Header:
    """Read and check the header; ValueError when this is no GGUF file or one that is cut short."""
    with path.open("rb") as file:
        try:
            return _header(file, os.fstat(file.fileno()).st_size, path)
        except (struct.error, UnicodeDecodeError, MemoryError, OverflowError) as error:
            raise ValueError(f"{path} is cut short or damaged: its header cannot be read ({error})") from error


def _header(file: BinaryIO, size: int, path: Path) -> Header:
    if file.read(4) != b"GGUF":
        raise ValueError(f"{path} is not a GGUF file")
    version, tensors, pairs = _unpack(file, "IQQ")
    if version not in (2, 3):
        raise ValueError(f"{path} is GGUF version {version}; it takes 2 and 3")
    metadata = {}
    for _ in range(pairs):
        key = _string(file, size)
        value = _value(file, _unpack(file, "I")[0], size)
        if value is not None:
            metadata[key] = value
    types, shapes, ends = {}, {}, [0]
    for _ in range(tensors):
        name = _string(file, size)
        shape = _unpack(file, "Q" * _unpack(file, "I")[0])
        kind, offset = _unpack(file, "IQ")
        if kind not in _BLOCKS:
            raise ValueError(f"{path}: {name} is of ggml type {kind}; it takes {_TAKEN}")
        values, length = _BLOCKS[kind]
        ends.append(offset + math.prod(shape) // values * length)
        types[name], shapes[name] = kind, tuple(reversed(shape))
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    start = -(-file.tell() // alignment) * alignment
    if start + max(ends) > size:
        raise ValueError(f"{path} is cut short: it has {size} bytes and should have {start + max(ends)}")
    return Header(metadata, types, shapes)


def _unpack(file: BinaryIO, kinds: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{kinds}", file.read(struct.calcsize(f"<{kinds}")))


def _string(file: BinaryIO, size: int) -> str:
    (length,) = _unpack(file, "Q")
    if length > size:
        raise struct.error(f"a text of {length} bytes")
    return file.read(length).decode()


def _value(file: BinaryIO, kind: int, size: int) -> Any:
    """A value of the metadata; None for an array, which is passed over."""
    if kind == _STRING:
        return _string(file, size)
    if kind != _ARRAY:
        if kind not in _SCALARS:
            raise struct.error(f"a value of type {kind}")
        (value,) = _unpack(file, _SCALARS[kind])
        # The shortest number of the same float32: 1e-05, and not 9.999999747378752e-06.
        return float(str(np.float32(value))) if kind == 6 else value
    of, length = _unpack(file, "IQ")
    if of in _SCALARS:
        file.seek(length * struct.calcsize(f"<{_SCALARS[of]}"), os.SEEK_CUR)
        return None
    for _ in range(length):
        _value(file, of, size)
    return None


def _renamed(tensor: str, path: Path) -> str:
    """The Hugging Face name of a tensor; ValueError for one that neither model has."""
    if found := re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", tensor):
        layer, module, part = found.groups()
        if module in _MODULES:
            return f"model.layers.{layer}.{_MODULES[module]}.{part}"
    elif found := re.fullmatch(r"(\w+)\.(weight|bias)", tensor):
        module, part = found.groups()
        if module in _OUTSIDE_LAYERS:
            return f"{_OUTSIDE_LAYERS[module]}.{part}"
    raise ValueError(f"{path} has a tensor {tensor}, which no llama or qwen3 has here")


def _divisors(x: mx.array, head_dim: int, path: Path) -> list[float]:
    """What the frequencies are divided by; ValueError where they are not one positive number for each pair."""
    if x.shape != (head_dim // 2,) or not mx.all(x > 0).item():
        raise ValueError(f"{path}: {_DIVISORS} is {list(x.shape)}; it takes {head_dim // 2} positive numbers")
    return [float(divisor) for divisor in np.array(x.astype(mx.float32))]


def _split_half(x: mx.array, heads: int) -> mx.array:
    """Rows in the order of traditional RoPE, put in split-half order: those of a head that are even, then the odd."""
    return x.reshape(heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a file's metadata says under the name of its architecture."""

    metadata: Mapping[str, Any]
    architecture: str
    path: Path

    def __call__(self, key: str, default: Any = None) -> Any:
        """What a key stands for; ValueError where it is not there and has no default."""
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise ValueError(f"{self.path} does not say {self.architecture}.{key}")
        return value


def _rope_scaling(setting: _Settings) -> dict[str, Any]:
    """`rope_scaling`, if any."""
    factor = setting("rope.scaling.factor", setting("rope.scale_linear", 1.0))
    # A factor alone scales linearly, as in llama.cpp; 0 stands there for none.
    kind = setting("rope.scaling.type", "none" if factor in (0, 1) else "linear")
    if kind == "none":
        return {}
    if kind not in ("linear", "yarn"):
        raise ValueError(f"{setting.path}: RoPE scaling is {kind!r}; it takes none, linear or yarn")
    known, prefix = ("type", "factor", "original_context_length", "finetuned"), f"{setting.architecture}.rope.scaling."
    said = {key.removeprefix(prefix) for key in setting.metadata if ".rope.scaling." in key}
    if other := sorted(said.difference(known)):
        raise ValueError(f"{setting.path} has rope.scaling.{other[0]}; it takes {', '.join(known)}")
    entry = {"rope_type": kind, "factor": factor}
    if kind == "yarn":
        length = setting("rope.scaling.original_context_length", setting("context_length"))
        entry["original_max_position_embeddings"] = length
    return {"rope_scaling": entry}


def _config(head: Header, architecture: str, names: Mapping[str, str], path: Path) -> dict[str, Any]:
    """The file's settings as a `config.json` has them."""
    setting = _Settings(head.metadata, architecture, path)
    heads, hidden = setting("attention.head_count"), setting("embedding_length")
    head_dim = setting("attention.key_length", setting("rope.dimension_count", hidden // heads))
    if (rotated := setting("rope.dimension_count", head_dim)) != head_dim:
        raise ValueError(f"{path}: {rotated} of {head_dim} features of a head are rotated; it takes all of them")
    if "token_embd.weight" not in head.shapes:
        raise ValueError(f"{path} has no token_embd.weight")
    return {
        "model_type": architecture,
        "hidden_size": hidden,
        "num_hidden_layers": setting("block_count"),
        "intermediate_size": setting("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": setting("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": head.shapes["token_embd.weight"][0],
        "max_position_embeddings": setting("context_length"),
        "rms_norm_eps": setting("attention.layer_norm_rms_epsilon"),
        "rope_theta": setting("rope.freq_base", 10000.0),
        **_rope_scaling(setting),
        "attention_bias": any(re.fullmatch(r"blk\.0\.attn_(q|k|v|output)\.bias", name) for name in names),
        "mlp_bias": any(re.fullmatch(r"blk\.0\.ffn_\w+\.bias", name) for name in names),
        "tie_word_embeddings": "output.weight" not in names,
        **_quantization(head, names),
    }


def _quantization(head: Header, names: Mapping[str, str]) -> dict[str, Any]:
    """The bits of the quantised modules: those of most of them, and each that differs by its name."""
    bits = {names[tensor].removesuffix(".weight"): _BITS[kind] for tensor, kind in head.types.items() if kind in _BITS}
    if not bits:
        return {}
    most = Counter(bits.values()).most_common(1)[0][0]
    others = {module: {"group_size": GROUP, "bits": n} for module, n in bits.items() if n != most}
    return {"quantization": {"group_size": GROUP, "bits": most, **others}}
