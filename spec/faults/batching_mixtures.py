"""Mistakes in caches of batches that show where two things come together, many slots and an idle one, large heads and a slot that is
used again, views and a request that left."""

from __future__ import annotations

from inferspec.spec import batching as spec
from inferspec.spec.changes import batching_mixtures as changes
from inferspec.spec.contract import Change, Fault, Requirement
from inferspec.spec.faults.sources import TIRED


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"batching-{name}", text, kills, change, source)


PATHS = (
    ("in-chunks", "of steps of eight tokens and more", changes.in_chunks),
    ("of-many-slots", "of more than eight slots", changes.of_many_slots),
    ("of-wide-heads", "of heads of 64 features and more", changes.of_wide_heads),
    ("once-one-left", "once a request has left", changes.once_one_left),
    ("who-joins", "of a request that joins others at work", changes.who_joins),
)

FAULTS: tuple[Fault, ...] = (
    *(
        _fault(
            f"{part}-strides-{path}",
            f"{where} the {part} is read as if it were contiguous",
            spec.BATCH_14,
            changes.misreads(part, holds),
            "PROPERTIES X1",
        )
        for path, where, holds in PATHS
        for part in ("key", "value")
    ),
    _fault("idle-past-8-see", "idle slots past the 8th see the last column", spec.BATCH_04, changes.idle_see(8)),
    _fault("idle-past-32-see", "idle slots past the 32nd see the last column", spec.BATCH_04, changes.idle_see(32)),
    _fault(
        "idle-as-given-once-full",
        "once all of four slots and more were taken, what idle ones are given is in their rows",
        spec.BATCH_05,
        {"fetched": changes.once_full},
    ),
    _fault(
        "idle-past-8-as-given",
        "what idle slots past the 8th are given is in their rows",
        spec.BATCH_05,
        changes.idle_are_given(lambda x: x, first=8),
    ),
    _fault(
        "idle-features-as-given",
        "what idle slots are given past the 64th feature is in their rows",
        spec.BATCH_05,
        changes.idle_are_given(changes.features_past_64),
    ),
    _fault(
        "idle-heads-as-given",
        "what idle slots are given past the 8th head is in their rows",
        spec.BATCH_05,
        changes.idle_are_given(changes.heads_past_8),
    ),
    _fault(
        "former-past-8-in-padding",
        "what a former request left in a slot past the 7th is in its padding",
        spec.BATCH_05,
        changes.former_in_padding(lambda x: x, first=7),
    ),
    _fault(
        "former-features-in-padding",
        "what a former request left past the 64th feature is in the padding of its slot",
        spec.BATCH_05,
        changes.former_in_padding(changes.features_past_64),
    ),
    _fault(
        "former-features",
        "of a slot that is used again the values past the 64th feature are those of the request before",
        spec.BATCH_06,
        changes.FEATURES_OF_FORMER,
    ),
    _fault(
        "former-past-7",
        "of a slot past the 7th that is used again the values are those of the request before",
        spec.BATCH_06,
        changes.SLOTS_OF_FORMER,
    ),
    _fault(
        "rewound-join",
        "a cache that joins others at work brings along what was rewound",
        spec.BATCH_32,
        changes.stale_where(changes.at_work),
    ),
    _fault(
        "rewound-of-prompts",
        "a cache of 32 tokens and more brings along what was rewound",
        spec.BATCH_32,
        changes.stale_where(changes.long_prompt),
    ),
    _fault(
        "other-queries-of-long",
        "where there are other queries than new tokens, and more than 64 columns, all are masked as the last one",
        spec.BATCH_19,
        changes.last_for_others(lambda self, story: self.width(story) > 64),
    ),
    _fault(
        "other-queries-once-one-left",
        "where there are other queries than new tokens, and a request has left, all are masked as the last one",
        spec.BATCH_19,
        changes.last_for_others(lambda self, story: hasattr(story, "left")),
    ),
    _fault(
        "other-queries-of-many-slots",
        "where there are other queries than new tokens, of more than eight slots, all are masked as the last one",
        spec.BATCH_19,
        changes.last_for_others(lambda self, story: len(story.batch.rows) > 8),
    ),
    _fault(
        "mask-of-many-columns-in-float32",
        "a mask of more than 64 columns is float32",
        spec.BATCH_13,
        changes.in_float32("mask", lambda x: x.shape[-1] > 64),
    ),
    _fault(
        "mask-of-many-slots-in-float32",
        "the mask of more than eight slots is float32",
        spec.BATCH_13,
        changes.in_float32("mask", lambda x: len(x) > 8),
    ),
    _fault(
        "many-slots-in-float32",
        "keys and values of more than eight slots come back in float32",
        spec.BATCH_12,
        changes.in_float32("s", lambda x: len(x) > 8 and x.ndim == 4),
    ),
    _fault(
        "wide-heads-in-float32",
        "heads of 64 features and more come back in float32",
        spec.BATCH_12,
        changes.in_float32("s", lambda x: x.ndim == 4 and x.shape[-1] >= 64),
    ),
    _fault(
        "long-by-reference",
        "a prompt of 16 tokens and more is kept by reference",
        spec.BATCH_16,
        changes.LONG_BY_REFERENCE,
    ),
    _fault(
        "clears-chunks",
        "the key of a step of eight tokens and more is cleared once it is cached",
        spec.BATCH_15,
        changes.clears(lambda x: x.shape[2] >= 8),
    ),
    _fault(
        "clears-many-slots",
        "the key of a step of more than eight slots is cleared once it is cached",
        spec.BATCH_15,
        changes.clears(lambda x: len(x) > 8),
    ),
)
