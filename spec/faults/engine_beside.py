"""Two engines at once, in which what is kept of a request by its id is kept for both."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_beside as changes
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults.defining import named

_fault = named("engine")


def _of_all(name: str, mistake: str, change: Change) -> Fault:
    return _fault(f"{name}-of-all", f"{mistake}, by its id, for all engines", spec.ENG_35, change, "PROPERTIES X7")


def _of_the_class(name: str, what: str, limit: str, source: str = "PROPERTIES X7") -> Fault:
    mistake = f"{what} is the class's own: that of the engine that was made last"
    return _fault(f"{name}-of-the-class", mistake, spec.ENG_35, changes.on_the_class(limit), source)


FAULTS: tuple[Fault, ...] = (
    _of_all("arrivals", "when a request came is kept in one place", changes.of_all("arrival")),
    _of_all(
        "times",
        "when the ids of a request came is kept in one place",
        {"fresh": changes.beside, "stamp": changes.stamps_all},
    ),
    _of_all("ends", "what ends a request is kept in one place", changes.of_all("eos")),
    _of_all("priorities", "the priority of a request is kept in one place", changes.of_all("priority")),
    _of_all(
        "logits",
        "the logits of a request are kept in one place",
        {"fresh": changes.beside, "emit": changes.logits_for_all},
    ),
    _of_all(
        "drafts",
        "what the draft has read of a request is kept in one place",
        {
            "fresh": changes.beside,
            "guesses": changes.draft_for_all,
            "rewound": changes.draft_taken_for_its_own,
        },
    ),
    _of_the_class(
        "page-size", "how many tokens a page has", "page_size", "nano-vLLM, Sequence.block_size; PROPERTIES X7"
    ),
    _of_the_class("limits", "how many may run", "max_requests"),
    _of_the_class("num-draft-tokens", "how many ids are guessed at a time", "num_draft_tokens"),
    _of_the_class("prefix-caching", "whether prefixes are cached", "prefix_caching"),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "engine-without-prefix-caching",
        "prefixes are not cached, and who asks for it is refused",
        "Engine",
        {"fresh": changes.without_prefix_caching},
        envelope={"prefix_caching": (False,)},
    ),
)
