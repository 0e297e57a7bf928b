"""`generate.speculative_generate(draft_model, model, draft_tokenizer, tokenizer, prompt, proposal_length)`: greedy, and it runs to
the end of the sequence. Editions before July 2026 take no proposal_length and leave the number of drafts to who writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.generation import CourseModel, Tokenizer, ids_of
from inferspec.conformance.bridge.layouts.packages import Package, takes

ASKED: dict[str, Any] = {"temperatures": ("greedy",), "filters": ("none",), "stops": (0, 1)}
UNASKED = {
    "SPEC-38": "the text bounds no number of tokens: its last round drafts as many as any other",
    "SPEC-48": "the text compares the vocabularies of tokenizers, and a tokenizer of this kit has none",
}
ANY_NUMBER = {"SPEC-39": "the text of this edition does not say how many ids are drafted"}


class _Model(CourseModel):
    """A model whose caches may be rewound, each layer by itself: a cache of the course's that was is followed."""

    def __init__(self, own: Any, tokenizer: Tokenizer) -> None:
        super().__init__(own, tokenizer)
        self.num_hidden_layers = len(own.make_cache())

    def _caught_up(self, own: Any, cache: Any) -> None:
        for mine, layer in zip(own, cache, strict=False):
            if mine.offset > layer.offset:
                mine.rewind(mine.offset - layer.offset)


class _Tokenizer(Tokenizer):
    """One that can be compared with another."""

    drafts = 0

    def get_vocab(self) -> dict[str, int]:
        return {str(token): token for token in self.encode("")}

    def most_uses(self) -> int:
        # A round of which no draft stays makes one id.
        return (self.drafts + 2) * super().most_uses()


def _speculative(package: Package) -> Offer:
    own = package.find("speculative_generate", home="generate")
    length = takes(own, "proposal_length", "num_draft_tokens", "num_drafts")

    def speculative_generate(
        target: Any,
        draft: Any,
        tokens: Any,
        max_tokens: int,
        num_draft_tokens: int = 4,
        eos: Sequence[int] = (),
    ) -> Iterator[int]:
        drafts = {length: num_draft_tokens} if length else {}

        def run(tokenizer: _Tokenizer) -> None:
            tokenizer.drafts = max(num_draft_tokens, 0)
            other = _Tokenizer(tokenizer.encode(""), eos, lambda token: None)
            own(_Model(draft, tokenizer), _Model(target, tokenizer), other, tokenizer, "", **drafts)

        return ids_of(run, tokens, max_tokens, eos, _Tokenizer)

    if length:
        return Offer(speculative_generate, ASKED, unasked=UNASKED)
    return Offer(speculative_generate, {**ASKED, "zero_num_draft_tokens": (False,)}, unasked=UNASKED | ANY_NUMBER)


OFFERS = {"speculative_generate": _speculative}
