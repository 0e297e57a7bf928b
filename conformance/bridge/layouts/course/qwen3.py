"""`Qwen3ModelWeek1`, without a cache, and that of week 2 or 3, with one: built of a model as mlx-lm loads it.

A model of week 2 that says at which checkpoint of the week it is built, by default the last, is built at the first where
the kernels of the later ones are not there. The text's theta is an int.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.kv_cache import full_cache
from inferspec.conformance.bridge.layouts.course.rope import takes_lists
from inferspec.conformance.bridge.layouts.packages import Broken, NotOffered, Package, takes, written

ASKED: dict[str, Any] = {
    "thetas": ("whole",),
    "dtypes": ("bfloat16",),
    "packing": ("4-bit throughout",),
    "group_sizes": (128,),
    "head_dims": ("multiple",),
}
MODELS = {"Qwen3ModelWeek2": "qwen3_week2", "Qwen3ModelWeek3": "qwen3_week3"}


def loaded(config: Mapping[str, Any], weights: Mapping[str, Any]) -> SimpleNamespace:
    """The model as the course gets it: `args`, and tensors in the places that they have in mlx-lm."""
    args = SimpleNamespace(**{**config, **_filled(config)})
    packing = config["quantization"]

    def layer(name: str) -> SimpleNamespace:
        own = packing.get(name, packing)
        tensors = {part: weights[f"{name}.{part}"] for part in ("weight", "scales", "biases")}
        tensors |= {"bias": weights[f"{name}.bias"]} if f"{name}.bias" in weights else {}
        return SimpleNamespace(**tensors, group_size=own["group_size"], bits=own["bits"])

    def norm(name: str) -> SimpleNamespace:
        return SimpleNamespace(weight=weights[f"{name}.weight"], eps=config["rms_norm_eps"])

    def block(name: str) -> SimpleNamespace:
        attention = {part: layer(f"{name}.self_attn.{part}") for part in ("q_proj", "k_proj", "v_proj", "o_proj")}
        if config["model_type"] == "qwen3":
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


def _filled(config: Mapping[str, Any]) -> dict[str, Any]:
    """What mlx-lm's args always have."""
    place = config if config.get("rope_theta") else config.get("rope_parameters") or {}
    return {
        "rope_theta": place.get("rope_theta") or 10000.0,
        "rope_scaling": None,
        "num_key_value_heads": config.get("num_key_value_heads") or config["num_attention_heads"],
    }


Load = Callable[[Mapping[str, Any], Mapping[str, Any]], SimpleNamespace]


def whole(own: Any, load: Load) -> type:
    """The model of week 1 as the contract's, which has no cache. load: makes of a config and weights what it is built of."""

    class Model:
        def __init__(self, config: Any, weights: Any) -> None:
            self.own = own(load(config, weights))

        def __call__(self, tokens: Any) -> Any:
            # The oldest edition of week 1 is told where it begins.
            return self.own(tokens, 0) if takes(self.own.__call__, "offset") else self.own(tokens)

    return Model


def incremental(package: Package, own: Any, load: Load) -> type:
    """The model of week 2 or 3 as the contract's, with a cache."""
    try:
        cache = None if written(own, "create_kv_cache") else full_cache(package)
    except Broken as error:
        raise NotOffered(f"there is no cache to give {own.__name__}: {error}") from error
    lists, first = _takes_lists(package), {"checkpoint": "kv-cache"} if takes(own, "checkpoint") else {}

    class Model:
        def __init__(self, config: Any, weights: Any) -> None:
            self.loaded, self.layers = load(config, weights), config["num_hidden_layers"]
            try:
                self.own, self.first = own(self.loaded), not first
            except NotImplementedError:
                self._begin_anew()

        def _begin_anew(self) -> None:
            """Without the kernels of later days."""
            self.own, self.first = own(self.loaded, **first), True

        def make_cache(self) -> SimpleNamespace:
            return SimpleNamespace(layers=self._caches(), offset=0, chunks=[])

        def _caches(self) -> Any:
            return self.own.create_kv_cache() if cache is None else [cache() for _ in range(self.layers)]

        def __call__(self, tokens: Any, cache: Any = None) -> Any:
            cache = cache or self.make_cache()
            try:
                logits = self._fed(tokens, cache)
            except NotImplementedError:
                if self.first:
                    raise
                self._begin_anew()
                cache.layers, cache.offset = self._caches(), 0
                for chunk in (*cache.chunks, tokens):
                    logits = self._fed(chunk, cache)
            cache.chunks.append(tokens)
            return logits

        def _fed(self, tokens: Any, cache: Any) -> Any:
            rows, length = tokens.shape
            # A batch is told the place of each of its rows, once RoPE takes them.
            logits = self.own(tokens, cache.offset if rows == 1 or not lists else [cache.offset] * rows, cache.layers)
            cache.offset += length
            return logits

    return Model


def _takes_lists(package: Package) -> bool:
    try:
        return takes_lists(package.find("RoPE", home="positional_encoding", needs=("__init__", "__call__")))
    except (NotOffered, Broken):
        return True


def _qwen3(package: Package) -> Offer:
    own = package.find("Qwen3ModelWeek1", home="qwen3_week1", needs=("__init__", "__call__"))
    return Offer(whole(own, loaded), ASKED)


def _incremental(package: Package) -> Offer:
    own = package.find(*MODELS, home=tuple(MODELS.values()), needs=("__init__", "__call__"))
    return Offer(incremental(package, own, loaded), ASKED)


OFFERS = {"Qwen3": _qwen3, "Qwen3.incremental": _incremental}
