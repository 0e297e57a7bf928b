"""Mistakes of key/value caches with appends that do not fit, and in what those change."""

from __future__ import annotations

from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.kv_cache import KVCache

FAULTS: tuple[Fault, ...] = (
    *both("any-pair", "key and value are not compared", 16, {"check_pair": refusals.unchecked_pair}, "PROPERTIES X9"),
    *both(
        "adds-axis",
        "a key and value without a batch axis are given one",
        16,
        {"update_and_fetch": refusals.leading_one_added},
        "PROPERTIES X9",
    ),
    *both(
        "broadcasts",
        "a single row, head or feature is broadcast to all that the cache has",
        17,
        {**changes.nothing, "store": refusals.broadcast},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *both(
        "begins-anew",
        "a chunk of another shape begins the cache anew",
        17,
        {**changes.nothing, "store": refusals.starts_anew},
    ),
    *both(
        "one-feature-of-values",
        "values of one feature stand for all features",
        17,
        {"check_fit": refusals.one_feature_of_values, "store": refusals.broadcast},
        "PROPERTIES X9",
    ),
    *both(
        "fewer-features",
        "a chunk of fewer features is filled up with zeros",
        17,
        {"check_fit": refusals.features_that_fit_in, "store": refusals.written_over_zeros},
        "PROPERTIES X9",
    ),
    *both(
        "broadcasts-once-restored",
        "a cache that restored a state no longer compares shapes, and broadcasts",
        17,
        {**states.remembered, "check_fit": refusals.no_fit_once_restored, "store": refusals.broadcast},
        "PROPERTIES X9, KV4",
    ),
    *both(
        "broadcasts-once-rewound",
        "a cache that was rewound no longer compares shapes, and broadcasts",
        17,
        {"drop": refusals.marks_rewound, "check_fit": refusals.no_fit_once_rewound, "store": refusals.broadcast},
        "PROPERTIES X9",
    ),
    *both(
        "casts",
        "a chunk of another dtype is cast",
        18,
        {**changes.any_dtype, **changes.joining(refusals.cast)},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *both(
        "casts-once-restored",
        "a cache that restored a state no longer compares dtypes, and casts",
        18,
        {**states.remembered, "check_dtype": refusals.no_dtype_once_restored, **changes.joining(refusals.cast)},
        "PROPERTIES X9, KV4",
    ),
    *both(
        "mixes-dtypes",
        "a chunk of another dtype turns the cache into float32",
        18,
        {**changes.any_dtype, **changes.joining(refusals.promoted)},
    ),
    *both(
        "key-before-checks",
        "the key is in the cache when the value is refused",
        19,
        {"check_append": refusals.key_before_checks},
        "PROPERTIES PG5",
    ),
    *both(
        "key-before-later-checks",
        "from the fourth chunk on the key is in the cache when the value is refused",
        19,
        {"check_append": refusals.key_before_later_checks, "store": refusals.counts_chunks},
        "PROPERTIES PG5",
    ),
    *both(
        "offset-before-checks",
        "the offset has moved on when a chunk is refused",
        19,
        {"check_append": refusals.offset_before_checks},
        "PROPERTIES PG5",
    ),
    *both(
        "kind-of-the-refused-behind-nothing",
        "behind an empty chunk a chunk that is refused has those like it taken, and the others refused",
        19,
        {"store": refusals.marks_empty_chunks, "check_fit": refusals.kind_of_the_refused},
        "PROPERTIES X9",
    ),
    *both(
        "short-once-refused-twice",
        "the second chunk in a row that is of another dtype costs the last token",
        19,
        {"check_dtype": retries.harmful(KVCache.check_dtype, retries.loses_the_last)},
        "PROPERTIES X9",
    ),
)
