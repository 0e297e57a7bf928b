"""What should be refused: see `spec/faults/loading*.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inferspec.spec.changes.loading import last_shard_lost, of_floats, with_weights
from inferspec.spec.contract import Arguments
from inferspec.spec.loading import Load


def filled(value: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]) -> Callable[..., Arguments]:
    def completed(self: Load, a: Arguments) -> Arguments:
        missing = set(shapes := self.decoder(a.config).shapes(a)) - set(a.weights)
        return with_weights(a, {**a.weights, **{name: value(shapes[name], of_floats(a.weights)) for name in missing}})

    return completed


def may_lack(ending: str) -> Callable[..., None]:
    def guard_missing(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        Load.guard_missing(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(ending)})

    return guard_missing


def embedding_for_the_head(self: Load, a: Arguments) -> Arguments:
    embedding = {name: x for name, x in a.weights.items() if name.startswith("model.embed_tokens.")}
    return with_weights(
        a, {name.replace("model.embed_tokens", "lm_head"): x for name, x in embedding.items()} | a.weights
    )


def any_bias(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    Load.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if not name.endswith(".bias")})


def only_known(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return with_weights(a, {name: x for name, x in a.weights.items() if name in shapes})


def fitted(self: Load, a: Arguments) -> Arguments:
    shapes = self.decoder(a.config).shapes(a)
    return with_weights(a, {name: np.resize(x, shapes[name]) for name, x in a.weights.items()})


def shapes_that(fit: Callable[[tuple[int, ...], tuple[int, ...]], bool]) -> Callable[..., None]:
    """Only dense tensors of folders whose shape does not fit that asked for are refused."""

    def guard_shapes(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        fitting = {name for name, x in a.weights.items() if name in shapes and fit(x.shape, shapes[name])}
        Load.guard_shapes(self, a, {name: shape for name, shape in shapes.items() if name not in fitting})

    return guard_shapes


def broadcast(shape: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    """One row, or one number, stands for all."""
    return shape == (1, *asked[1:])


def wider(shape: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    return len(shape) == len(asked) == 2 and shape[0] == asked[0] and shape[1] > asked[1]


def more_rows_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {
        name: x[: shapes[name][0]]
        for name, x in a.weights.items()
        if name in shapes and f"{name.rpartition('.')[0]}.scales" in a.weights
    }
    Load.guard_shapes(self, with_weights(a, {**a.weights, **cut}), shapes)


def silent(*args: Any) -> None:
    return None


def taken_for_llama(self: Load, config: Mapping[str, Any]) -> Any:
    return self.models.get(config.get("model_type", ""), self.models["llama"])()


def tolerates(damage: str) -> Callable[..., None]:
    def guard_files(self: Load, a: Arguments) -> None:
        if a.damage != damage:
            Load.guard_files(self, a)

    return guard_files


def tolerates_small_losses(self: Load, a: Arguments) -> None:
    if a.damage != "cut short" or a.lost > 16:
        Load.guard_files(self, a)


def zeros_at_the_end(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    if a.damage != "cut short":
        return inner
    last = list(inner.weights)[-1]
    return with_weights(inner, {**inner.weights, last: np.zeros_like(inner.weights[last])})


def lost_shard_is_random(self: Load, a: Arguments) -> Arguments:
    inner = Load.inner(self, a)
    return with_weights(inner, last_shard_lost(self, inner.weights)) if a.damage else inner


def more_scales_are_fine(self: Load, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
    cut = {name: x[: shapes[name][0]] for name, x in a.weights.items() if name in shapes and name.endswith(".scales")}
    Load.guard_shapes(self, with_weights(a, {**a.weights, **cut}), shapes)
