"""Mistakes of key/value caches with appends that do not fit, and in what those change."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.kv_cache import KVCache, StaticKVCache

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
        "features-in-all",
        "keys and values lie beside each other in one buffer, and their head dims are compared in all",
        17,
        {"check_fit": refusals.features_in_all, "store": refusals.keys_beside_values},
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
    *both(
        "short-once-refused-in-turns",
        "a chunk that is refused once a rewind was costs the last token",
        19,
        {
            "check_rewind": retries.marked(KVCache.check_rewind),
            "check_fit": retries.harmful_once_marked(KVCache.check_fit, retries.loses_the_last),
        },
        "PROPERTIES X9",
    ),
    *both(
        "saved-short-once-refused",
        "a state that is taken once a chunk was refused costs the cache its last token",
        19,
        {"check_fit": retries.marked(KVCache.check_fit), "state_of": retries.lost_once_marked},
        "PROPERTIES X9, KV4",
    ),
    Fault(
        "kv-cache-rewound-once-refused-in-turns",
        "a rewind that is refused once a chunk was costs the last token",
        spec.KV_19,
        {
            "check_fit": retries.marked(KVCache.check_fit),
            "check_rewind": retries.harmful_once_marked(KVCache.check_rewind, retries.loses_the_last),
        },
        "PROPERTIES X9",
    ),
    Fault(
        "static-kv-cache-rewound-once-full",
        "a rewind that is refused once there was no room costs the last token",
        spec.SKV_15,
        {
            "check_room": retries.marked(StaticKVCache.check_room),
            "check_rewind": retries.harmful_once_marked(StaticKVCache.check_rewind, retries.loses_the_last),
        },
        "PROPERTIES X9, PG5",
    ),
    Fault(
        "static-kv-cache-full-once-rewound-in-vain",
        "a chunk that has no room costs the last token, once a rewind was refused",
        spec.SKV_27,
        {
            "check_rewind": retries.marked(StaticKVCache.check_rewind),
            "check_room": retries.harmful_once_marked(StaticKVCache.check_room, retries.loses_the_last),
        },
        "PROPERTIES X9, PG5",
    ),
    *both(
        "short-once-restored-behind-a-refused-chunk",
        "a cache that restores a state after a chunk was refused lacks its last token",
        19,
        refusals.append_taken_back,
        "PROPERTIES PG5, KV4",
    ),
    *both(
        "short-once-restored-behind-a-refused-rewind",
        "a cache that restores a state after a rewind was refused lacks its last token",
        15,
        refusals.rewind_taken_back,
        "PROPERTIES PG5, KV4",
    ),
    Fault(
        "static-kv-cache-short-once-restored-when-full",
        "a cache that restores a state after a chunk had no room lacks its last token",
        spec.SKV_27,
        refusals.room_taken_back,
        "PROPERTIES PG5, KV4",
    ),
)
