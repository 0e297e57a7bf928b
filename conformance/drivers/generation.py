"""How generators and detokenizers are used: on the toy model, in the subject's own arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from inferspec.conformance.arrays import Arrays
from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.generation import Generate, StreamingDetokenizer, listen, requests_of
from inferspec.spec.numerics import numpy_dtype
from inferspec.spec.toy import Toy, ToyCache
from inferspec.spec.watch import Request, watch


class Layer:
    """A layer of the toy's cache, with what generators read of one: offset, state, and rewind."""

    def __init__(self, cache: ToyCache, to: Arrays) -> None:
        self.cache, self._to = cache, to

    @property
    def offset(self) -> int:
        return len(self.cache.tokens)

    @property
    def state(self) -> Any:
        return self._to.from_numpy(np.array(self.cache.tokens, np.int32))

    def rewind(self, n: int) -> None:
        self.cache.rewind(n)


class Model:
    """The toy behind the contract's interface: tokens B×L of one sequence, logits 1×L×V in a dtype."""

    def __init__(self, toy: Toy, dtype: str, to: Arrays) -> None:
        self._toy, self._dtype, self._to = toy, dtype, to

    def make_cache(self) -> list[Layer]:
        return [Layer(self._toy.make_cache(), self._to)]

    def __call__(self, tokens: Any, cache: list[Layer] | None = None) -> Any:
        if not self._to.owns(tokens):
            raise TypeError(f"the model is given a {type(tokens).__name__}; it takes an array of ids, 1×L")
        ids = self._to.to_numpy(tokens)
        if ids.ndim != 2 or len(ids) != 1 or ids.dtype.kind not in "iu":
            raise ValueError(f"the model is given {ids.dtype.name}{list(ids.shape)}; it takes ids, 1×L")
        rows = self._toy(ids[0].tolist(), None if cache is None else cache[0].cache)
        return self._to.from_numpy(rows.astype(np.float32).astype(numpy_dtype(self._dtype))[None])


def generate(subject: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """Run the subject's generator on the toy and return what was seen (`spec.watch`)."""
    a = _bound(Generate, given)
    toy = Toy(a.model["vocab_size"], a.model["salt"], a.model["rival"])
    model = Model(toy, a.model["dtype"], to)

    def start(request: Request) -> Iterable[Any]:
        more: dict[str, Any] = {"eos": request.eos} if request.eos else {}
        if request.sampler is not None:
            more["sampler"] = _sampler(request.sampler, a.sampler["form"], to)
        if not request.cache:
            more["cache"] = False
        return subject(model, request.tokens, max_tokens=request.max_tokens, **more)

    return watch(start, toy, requests_of(a, to.owns), a)


def _sampler(choose: Any, form: str, to: Arrays) -> Any:
    def sampler(logits: Any) -> Any:
        token = choose(to.to_numpy(logits).astype(np.float64))
        return to.from_numpy(np.array(token, np.int32)) if form == "array" else token

    return sampler


def detokenize(subject: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """Two streams of the subject's detokenizer, in turn."""
    a = _bound(StreamingDetokenizer, given)
    return listen(subject, type(subject)(a.pieces), a)


def _bound(operation: type[Operation], given: Mapping[str, Any]) -> Arguments:
    return operation().bind({name: value for name, value in given.items() if name != "layout"})


DRIVERS = {"generate": generate, "StreamingDetokenizer": detokenize}
