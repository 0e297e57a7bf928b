"""Mistakes in key/value caches that show where two things come together, a size and a rewind, a view and growth, many appends and
a state."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache_mixtures as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.faults.sources import TIRED

PATHS = (
    ("when-rewound", "once a cache was rewound", changes.rewound),
    ("when-restored", "once a cache has restored a state", changes.restored),
    ("of-wide-heads", "of heads of 64 features and more", changes.of_wide_heads),
    ("where-it-grows", "of a chunk that goes past a buffer of 256", changes.grows),
    ("past-128", "after 128 tokens", changes.past_half_a_buffer),
)

FAULTS: tuple[Fault, ...] = (
    *(
        fault
        for path, where, holds in PATHS
        for part in ("key", "value")
        for fault in both(
            f"{part}-strides-{path}",
            f"{where} the {part} is read as if it were contiguous",
            7,
            changes.misreads(part, holds),
            "PROPERTIES X1",
        )
    ),
    *(
        fault
        for name, (lost, loses) in changes.LOST.items()
        for fault in (
            Fault(
                f"kv-cache-growth-loses-{name}",
                f"{lost} are not copied when the buffer grows past 256 tokens",
                spec.KV_02,
                changes.growing_loses(loses),
                TIRED,
            ),
            *both(f"rewind-loses-{name}", f"{lost} are zeros after a rewind", 12, changes.rewinding_loses(loses)),
            *both(f"state-lacks-{name}", f"{lost} are not in the state", 20, changes.state_loses(loses)),
            *both(
                f"restore-in-use-loses-{name}",
                f"{lost} are zeros where a cache in use restores a state",
                22,
                changes.restoring_loses(loses),
            ),
        )
    ),
    *both(
        "state-without-queue",
        "from the ninth append on chunks wait to be written, and a state lacks those that wait",
        20,
        changes.STATE_WITHOUT_QUEUE,
    ),
    *both(
        "state-of-one-too-many",
        "the state of a cache of more than 256 tokens that was just rewound has a token more",
        20,
        changes.STATE_OF_ONE_TOO_MANY,
    ),
    *both(
        "moved-by-a-state",
        "a state of more than 256 tokens that is taken right after a rewind moves what is appended next on by a place",
        12,
        changes.MOVED_BY_A_STATE,
    ),
    *both(
        "sixteen-appends-back", "a rewind drops the tokens of sixteen appends at most", 12, changes.SIXTEEN_APPENDS_BACK
    ),
    *both(
        "never-empty-past-sixteen",
        "a rewind drops the tokens of sixteen appends at most, also one by all",
        13,
        changes.SIXTEEN_APPENDS_BACK,
    ),
    *both(
        "restored-apart",
        "once more than 256 tokens came since a state was restored, a rewind drops none of what was restored",
        12,
        changes.RESTORED_APART,
    ),
    *both("last-for-empty", "a chunk of no tokens returns what was returned last", 2, changes.LAST_FOR_EMPTY),
    *both(
        "past-the-refused",
        "a token after a chunk that was refused is written where that would have ended",
        19,
        changes.MOVED_ON_WHEN_REFUSED,
    ),
    *both(
        "prompt-by-reference",
        "a first chunk of 32 tokens and more is kept by reference",
        9,
        changes.PROMPT_BY_REFERENCE,
    ),
    *both(
        "whole-steps-by-reference",
        "a first chunk of 256 tokens, or a multiple of them, is kept by reference",
        9,
        changes.WHOLE_STEPS_BY_REFERENCE,
    ),
    *both(
        "clears-prompts",
        "the key of a chunk of 32 tokens and more is cleared once it is cached",
        8,
        changes.CLEARS_PROMPTS,
    ),
    *both("promotes-wide-heads", "heads of 64 features and more come back in float32", 6, changes.PROMOTES_WIDE_HEADS),
    *both("promotes-many-rows", "more than 32 rows come back in float32", 6, changes.PROMOTES_MANY_ROWS),
    *both(
        "long-in-workspace",
        "results of 32 tokens and more lie in a workspace that all caches have in common",
        23,
        changes.LONG_IN_WORKSPACE,
    ),
    Fault(
        "kv-cache-outgrown-handed-on",
        "a buffer that was outgrown is the next cache's, though what was returned of it is still in use",
        spec.KV_23,
        changes.OUTGROWN_HANDED_ON,
        TIRED,
    ),
)
