"""`Qwen3ModelWeek1`, without a cache, and that of week 2 or 3, with one: built of a model as mlx-lm loads it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from inferspec.conformance.layouts import Offer
from inferspec.conformance.layouts.course.kv_cache import full_cache
from inferspec.conformance.layouts.packages import Broken, NotOffered, Package, takes, written

ASKED: dict[str, Any] = {
    "dtypes": ("bfloat16",),
    "packing": ("4-bit throughout",),
    "group_sizes": (128,),
    "head_dims": ("multiple",),
}
MODELS = {"Qwen3ModelWeek2": "qwen3_week2", "Qwen3ModelWeek3": "qwen3_week3"}


def loaded(config: Mapping[str, Any], weights: Mapping[str, Any]) -> SimpleNamespace:
    """The model as the course gets it: `args`, and tensors in the places that they have in mlx-lm."""
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    args = SimpleNamespace(**{**config, "rope_theta": theta, "rope_scaling": None})
    packing = config["quantization"]

    def layer(name: str) -> SimpleNamespace:
        own = packing.get(name, packing)
        tensors = {part: weights[f"{name}.{part}"] for part in ("weight", "scales", "biases")}
        return SimpleNamespace(**tensors, group_size=own["group_size"], bits=own["bits"])

    def norm(name: str) -> SimpleNamespace:
        return SimpleNamespace(weight=weights[f"{name}.weight"], eps=config["rms_norm_eps"])

    def block(name: str) -> SimpleNamespace:
        attention = {part: layer(f"{name}.self_attn.{part}") for part in ("q_proj", "k_proj", "v_proj", "o_proj")}
        attention |= {part: norm(f"{name}.self_attn.{part}") for part in ("q_norm", "k_norm")}
        return SimpleNamespace(
            self_attn=SimpleNamespace(**attention),
            mlp=SimpleNamespace(
                **{part: layer(f"{name}.mlp.{part}") for part in ("gate_proj", "up_proj", "down_proj")}
            ),
            input_layernorm=norm(f"{name}.input_layernorm"),
            post_attention_layernorm=norm(f"{name}.post_attention_layernorm"),
        )

    blocks = [block(f"model.layers.{number}") for number in range(config["num_hidden_layers"])]
    inner = SimpleNamespace(embed_tokens=layer("model.embed_tokens"), layers=blocks, norm=norm("model.norm"))
    head = {} if config["tie_word_embeddings"] else {"lm_head": layer("lm_head")}
    return SimpleNamespace(args=args, model=inner, layers=blocks, **head)


def _qwen3(package: Package) -> Offer:
    own = package.find("Qwen3ModelWeek1", home="qwen3_week1", needs=("__init__", "__call__"))

    class Qwen3:
        def __init__(self, config: Any, weights: Any) -> None:
            self.own = own(loaded(config, weights))

        def __call__(self, tokens: Any) -> Any:
            # The oldest edition of week 1 is told where it begins.
            return self.own(tokens, 0) if takes(self.own.__call__, "offset") else self.own(tokens)

    return Offer(Qwen3, ASKED)


def _incremental(package: Package) -> Offer:
    own = package.find(*MODELS, home=tuple(MODELS.values()), needs=("__init__", "__call__"))
    try:
        cache = None if written(own, "create_kv_cache") else full_cache(package)
    except Broken as error:
        raise NotOffered(f"there is no cache to give {own.__name__}: {error}") from error

    class Qwen3:
        def __init__(self, config: Any, weights: Any) -> None:
            self.own, self.layers = own(loaded(config, weights)), config["num_hidden_layers"]

        def make_cache(self) -> SimpleNamespace:
            made = self.own.create_kv_cache() if cache is None else [cache() for _ in range(self.layers)]
            return SimpleNamespace(layers=made, offset=0)

        def __call__(self, tokens: Any, cache: Any = None) -> Any:
            cache = cache or self.make_cache()
            rows, length = tokens.shape
            # A batch is told the place of each of its rows.
            logits = self.own(tokens, cache.offset if rows == 1 else [cache.offset] * rows, cache.layers)
            cache.offset += length
            return logits

    return Offer(Qwen3, ASKED)


OFFERS = {"Qwen3": _qwen3, "Qwen3.incremental": _incremental}
