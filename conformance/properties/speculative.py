"""Sentences about one request for ids of two models; the suites of speculative decoding share them."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.properties.common import listed, told

REFUSED = ("refused", "calls")


def is_refused_at_once(subject: Trial, call: Call, what: str = "", **bad: Any) -> None:
    """The call with bad arguments is refused, and no model was called; what: they are, where that is not what they read."""
    call = call.having(**bad)
    seen = subject.parts(call.having(seen=REFUSED))
    refused, calls = (seen[part].tolist() for part in REFUSED)
    if refused == [1] and calls == [0, 0]:
        return
    how = f"refused after {calls[0]} calls of the target and {calls[1]} of the draft" if any(refused) else "not refused"
    raise Nonconformance(f"{what or told(bad)} is {how}: it is to be refused before a model is called", call)


def refuses_what_cannot_be_rewound(subject: Trial, call: Call, which: str) -> None:
    """A target or draft of whose cache a layer cannot be rewound is refused at once, unless no cache of it is made."""
    fixed = call.having(**{which: {**call.arguments[which], "fixed": True}})
    try:
        is_refused_at_once(subject, fixed, f"a {which} whose cache cannot be rewound")
    except Nonconformance:
        seen = subject.parts(fixed.having(seen=("refused", "made")))
        if any(seen["refused"]) or seen["made"][("target", "draft").index(which)]:
            raise


def failing(call: Call, left: int, error: str = "RuntimeError") -> Call:
    """The call, of a target that fails once. Of six ids or more no call of it gives more than three, where two are drafted: there is
    a second one."""
    return call.having(target={**call.arguments["target"], "fails": {"who": "target", "left": left, "error": error}})


def lets_go(subject: Trial, call: Call) -> None:
    """Nobody holds a layer of a cache at the end."""
    alive = subject.parts(call)["alive"]
    if alive.any():
        raise Nonconformance(f"layers of caches of target and draft that are still held: {listed(alive)}", call)


def is_fed_no_further(subject: Trial, call: Call) -> None:
    """No model is fed past the last id but one."""
    reach, limit = subject.parts(call)["reach"], call.arguments["max_tokens"]
    if (limit and (reach > limit - 1).any()) or (not limit and (reach > -len(call.arguments["tokens"])).any()):
        raise Nonconformance(
            f"for {limit} ids target and draft are fed {listed(reach)} positions past the prompt", call
        )


def holds_the_text(subject: Trial, call: Call) -> None:
    """The target's cache holds the prompt and what came out, or the beginning of it."""
    if strays := int(subject.parts(call)["strays"][0]):
        raise Nonconformance(f"{strays} calls find other tokens in the target's cache than came out", call)


def sees_the_text_and_its_drafts(subject: Trial, call: Call) -> None:
    """What the draft has seen after each call is the text and its own drafts."""
    if strays := int(subject.parts(call)["strays"][1]):
        raise Nonconformance(f"{strays} calls of the draft see other tokens than the ids and its drafts", call)


def gives_the_ids_and_sees_the_text(subject: Trial, call: Call) -> None:
    """The ids are right, and no model sees anything but the text and the draft's own drafts."""
    try:
        subject.agrees(call)
    except Nonconformance:
        # Said in words, where it is what was seen.
        holds_the_text(subject, call)
        sees_the_text_and_its_drafts(subject, call)
        raise
