"""How speculative decoding is used: `verify` by position, and the generator on a pair of toys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import handed, insisted, spelt
from inferspec.conformance.bridge.drivers.toys import Model
from inferspec.spec.contract import Unreadable
from inferspec.spec.duet import Request
from inferspec.spec.ends import eos_given
from inferspec.spec.speculative import SpeculativeGenerate, consumed, players_of


def verify(subject: Any, given: Mapping[str, Any], to: Arrays) -> Any:
    """What comes of the drafts: an array, or any sequence of ids."""
    names = ("draft_tokens", "draft_probs", "target_probs", "uniform")
    accepted = handed(subject, **{name: given[name] for name in names})
    return accepted if accepted is None or to.owns(accepted) else [_number(token, to) for token in accepted]


def _number(token: Any, to: Arrays) -> Any:
    if isinstance(token, Sequence) or (to.owns(token) and math.prod(token.shape) != 1):
        raise Unreadable(
            "verify gives ids within what it gives; it gives one sequence, the accepted ids and then one more"
        )
    return to.to_numpy(to.ready(token)).item() if to.owns(token) else token


def speculative_generate(subject: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """Run the subject's generator on the toys and return what was seen (`spec.duet`)."""
    a = SpeculativeGenerate().bind({name: value for name, value in given.items() if name != "layout"})
    players = players_of(a)
    target, draft = (
        Model(player, player.make_cache, about["dtype"], to)
        for player, about in zip(players, (a.target, a.draft or a.target), strict=True)
    )
    models = (target, draft if a.draft else target)

    def start(request: Request) -> Iterable[Any]:
        more: dict[str, Any] = {
            "num_draft_tokens": request.num_draft_tokens if "num_draft_tokens" in given else None,
            "eos": eos_given(request.eos, a.eos_as) if request.eos else None,
            "temperature": request.temperature or None,
            "top_k": request.top_k,
            "top_p": request.top_p if request.top_p != 1 else None,
            "uniforms": request.uniforms,
        }
        usual = {"num_draft_tokens": 4, "eos": eos_given((), a.eos_as), "temperature": 0.0, "top_k": None, "top_p": 1.0}
        defaults = spelt(subject, **usual, uniforms=None)
        said = {name: value for name, value in more.items() if value is not None}
        options = {**insisted(subject, **defaults), **spelt(subject, max_tokens=request.max_tokens, **said)}
        asked = {"target": models[0], "draft": models[1], "tokens": request.tokens}
        return handed(partial(subject, **options), **asked)

    return consumed(start, players, a, to.owns)


DRIVERS = {"verify": verify, "speculative_generate": speculative_generate}
