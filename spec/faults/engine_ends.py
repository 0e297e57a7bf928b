"""The id that ends a request, kept wrongly: mistakes of engines that declare to keep it."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_ends as changes
from inferspec.spec.changes import engine_limits as limits
from inferspec.spec.contract import Change, Fault, Requirement, Variant
from inferspec.spec.ends import KEEPING
from inferspec.spec.faults.sources import TIRED


def _kept(name: str, text: str, kills: Requirement, change: Change) -> Fault:
    return Fault(f"engine-kept-end-{name}", text, kills, change, TIRED, KEEPING)


FAULTS: tuple[Fault, ...] = (
    _kept("dropped", "the id that ends a request does not come out", spec.ENG_14, changes.drops()),
    _kept(
        "dropped-at-the-limit",
        "the id that ends a request does not come out as the last of max_tokens ids",
        spec.ENG_14,
        changes.drops(lambda self, m, r: len(r.out) + 1 == r.limit),
    ),
    _kept(
        "dropped-as-the-first",
        "the id that ends a request does not come out as its first id",
        spec.ENG_14,
        changes.drops(lambda self, m, r: not r.out),
    ),
    _kept(
        "dropped-when-guessed",
        "the id that ends a request does not come out of a row of guesses",
        spec.ENG_14,
        changes.drops_when_guessed(),
    ),
    _kept(
        "twice", "the id that ends a request comes out twice", spec.ENG_14, changes.keeps_the_end(changes.comes_again)
    ),
    _kept(
        "and-one-more",
        "one id comes out after the one that ends a request",
        spec.ENG_14,
        {"stops": changes.ends_one_later},
    ),
    _kept(
        "given-alone",
        "a step gives the id that ends a request, and its output is without it",
        spec.ENG_14,
        changes.keeps_the_end(changes.is_not_put_out),
    ),
    _kept(
        "put-out-alone",
        "an output has the id that ends the request, and no step gives it",
        spec.ENG_14,
        changes.keeps_the_end(changes.is_not_given),
    ),
    _kept(
        "without-a-time",
        "the id that ends a request has no time",
        spec.ENG_32,
        changes.keeps_the_end(changes.has_no_time),
    ),
    _kept(
        "without-logits",
        "the logits of the id that ends a request are those of the id before it",
        spec.ENG_36,
        {"emit": changes.keeps_the_logits_before},
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "engine-keeps-ends",
        "every id comes out, and then it is looked at",
        "Engine",
        {"emit": limits.comes_out},
        envelope=KEEPING,
    ),
)
