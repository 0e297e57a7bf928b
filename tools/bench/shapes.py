"""Sizes of models that are met in the wild, and the operations that a token of theirs goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inferspec.tools.bench.cases import OPS, Case, parsed
from inferspec.tools.generate import Unusable

ROWS = (1, 8, 128)
"""A token, a small batch, a piece of a prompt."""
PROMPT, CONTEXT, REQUESTS = 512, 2048, 8


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder. group: of its 4-bit weights; positions: the longest sequence."""

    family: str
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    layers: int
    group: int
    theta: float = 10000.0
    positions: int = 8192
    prompt: int = PROMPT
    context: int = CONTEXT

    def config(self, bits: int = 4) -> dict[str, object]:
        """As a `config.json` of MLX's has them, with quantised weights."""
        return {
            "model_type": self.family,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "intermediate_size": self.inner,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.positions,
            "rms_norm_eps": 1e-6,
            "rope_theta": self.theta,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
            "quantization": {"group_size": self.group, "bits": bits},
        }


SHAPES: Mapping[str, Shape] = {
    "tiny": Shape("qwen3", 128, 384, 4, 2, 64, 512, 4, 32, positions=16384, prompt=64, context=128),
    "smollm2-135m": Shape("llama", 576, 1536, 9, 3, 64, 49152, 30, 32, theta=100000.0),
    "qwen3-0.6b": Shape("qwen3", 1024, 3072, 16, 8, 128, 151936, 28, 128, theta=1e6, positions=40960),
}
"""Source: the config.json of Qwen/Qwen3-0.6B and HuggingFaceTB/SmolLM2-135M-Instruct on the hub; tiny is made up."""


def shape(name: str, option: str = "--shape") -> Shape:
    """The shape of that name; Unusable for another."""
    if name not in SHAPES:
        raise Unusable(f"{option} is {name!r}; it takes {', '.join(SHAPES)}")
    return SHAPES[name]


def cases(texts: Sequence[str], dtypes: Iterable[str], only: Sequence[str]) -> list[Case]:
    """The cases of presets and of shapes in full, for each dtype.

    only: operations; all when empty. Unusable for what is neither, and when nothing is left.
    """
    if unknown := [name for name in only if name not in OPS]:
        raise Unusable(f"--only names {unknown[0]!r}; it takes {', '.join(OPS)}")
    found: dict[Case, None] = {}
    for dtype in dtypes:
        for text in texts:
            if ":" not in text and text not in SHAPES:
                raise Unusable(f"--shapes is {text!r}; it takes {', '.join(SHAPES)}, or op:LETTER=SIZE,…")
            drawn = [parsed(text, dtype)] if ":" in text else _of_model(SHAPES[text], dtype)
            found |= dict.fromkeys(case for case in drawn if not only or case.op in only)
    if not found:
        raise Unusable(f"--only leaves nothing of --shapes: {', '.join(only)}")
    return sorted(found, key=lambda case: list(OPS).index(case.op))


def _of_model(s: Shape, dtype: str) -> list[Case]:
    """The operations of a model at the sizes that a token, a batch and a prompt have."""

    def case(op: str, **sizes: int) -> Case:
        return Case(op, tuple(sizes.items()), dtype)

    found = []
    for rows in ROWS:
        found += [
            case("linear", M=rows, K=s.hidden, N=s.inner),
            case("quantized_matmul", M=rows, K=s.hidden, N=s.inner, G=s.group),
            case("quantized_matmul", M=rows, K=s.inner, N=s.hidden, G=s.group),
            case("rms_norm", R=rows, D=s.hidden),
        ]
    return [
        *found,
        case("swiglu", M=1, E=s.hidden, F=s.inner),
        case("softmax", R=1, V=s.vocabulary),
        case("rope", L=1, H=s.heads, D=s.head_dim, S=s.prompt),
        case("rope", L=128, H=s.heads, D=s.head_dim, S=s.prompt),
        case("quantized_head", M=1, E=s.hidden, V=s.vocabulary, G=s.group),
        case("embedding", T=128, E=s.hidden, V=s.vocabulary),
        case("quantized_embedding", T=128, E=s.hidden, V=s.vocabulary, G=s.group),
        case("flash_attention", Q=s.heads, H=s.kv_heads, L=s.prompt, D=s.head_dim),
        case("decode_attention", Q=s.heads, H=s.kv_heads, S=s.context, D=s.head_dim),
        case("paged_attention", B=REQUESTS, Q=s.heads, H=s.kv_heads, S=s.prompt, D=s.head_dim),
    ]
