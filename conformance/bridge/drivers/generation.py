"""How generators and detokenizers are used: on the toy model, in the subject's own arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import Handed, handed, insisted, spelt
from inferspec.conformance.bridge.drivers.toys import Model
from inferspec.spec.contract import Arguments, Operation
from inferspec.spec.ends import eos_given
from inferspec.spec.generation import Generate, StreamingDetokenizer, listen, requests_of
from inferspec.spec.toy import Toy
from inferspec.spec.watch import Request, watch


def generate(subject: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """Run the subject's generator on the toy and return what was seen (`spec.watch`)."""
    a = _bound(Generate, given)
    toy = Toy.of(a.model)
    model = Model(
        lambda tokens, cache: toy(tokens, cache[0] if cache else None), lambda: [toy.make_cache()], a.model["dtype"], to
    )

    def start(request: Request) -> Iterable[Any]:
        more: dict[str, Any] = {"max_tokens": request.max_tokens}
        if request.eos:
            more["eos"] = eos_given(request.eos, a.eos_as)
        if request.sampler is not None:
            more["sampler"] = _sampler(request.sampler, a.sampler["form"], to)
        if not request.cache:
            more["cache"] = False
        # Who insists on a sampler calls it.
        greedy = _sampler(lambda logits: int(np.argmax(logits)), "array", to)
        usual = insisted(subject, **spelt(subject, eos=eos_given((), a.eos_as), sampler=greedy, cache=True))
        return handed(partial(subject, **{**usual, **spelt(subject, **more)}), model=model, tokens=request.tokens)

    return watch(start, toy, requests_of(a, to.owns), a)


def _sampler(choose: Any, form: str, to: Arrays) -> Any:
    def sampler(logits: Any) -> Any:
        row = to.to_numpy(logits).astype(np.float64)
        token = choose(row)
        # An id for each row, as samplers of batches give them.
        return to.from_numpy(np.full(row.shape[:-1], token, np.int32)) if form == "array" else token

    return sampler


def detokenize(subject: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """Two streams of the subject's detokenizer, in turn."""
    a = _bound(StreamingDetokenizer, {name: x for name, x in given.items() if name != "StreamingDetokenizer"})
    # Made as the first was: what makes one need not be the class of what it makes.
    other = given["StreamingDetokenizer"](given)
    takes = StreamingDetokenizer.takes
    return listen(Handed(subject, takes), Handed(other, takes), a)


def _bound(operation: type[Operation], given: Mapping[str, Any]) -> Arguments:
    return operation().bind({name: value for name, value in given.items() if name != "layout"})


DRIVERS = {"generate": generate, "StreamingDetokenizer": detokenize}
