"""Mistakes of key/value caches in what a rewind drops, and which rewinds are refused."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_rewinds as rewinds
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.faults.kv_cache_sources import MLX_LM
from inferspec.spec.kv_cache import KVCache

FAULTS: tuple[Fault, ...] = (
    *both(
        "rewind-hides",
        "rewound tokens are hidden until the next append brings them back",
        12,
        {"length": rewinds.hidden_length, "drop": rewinds.hides, "store": rewinds.shows_again},
        f"{MLX_LM}/issues/1494",
    ),
    *both(
        "rewind-keys-alone",
        "a rewind drops keys and leaves the values",
        12,
        {"drop": rewinds.drops_keys, "store": rewinds.stale_values},
    ),
    *both(
        "rewind-third-in-a-row",
        "of rewinds right after each other all but the first two drop a token less",
        12,
        {"drop": rewinds.third_in_a_row, "store": rewinds.ends_the_row},
    ),
    *both("rewind-drops-first", "a rewind drops the first tokens", 12, {"drop": rewinds.drops_first}),
    *both(
        "rewind-to-n",
        "rewind(n) is taken for the length to keep",
        12,
        {"drop": rewinds.keeps_n},
        "the legacy meaning of transformers' DynamicLayer.crop",
    ),
    *both(
        "rewind-one-short",
        "a rewind leaves one of the tokens that it should drop",
        12,
        {"drop": rewinds.one_short},
        "PROPERTIES SP4",
    ),
    *both(
        "masked-write",
        "new tokens are added to a slot that is multiplied by 0",
        12,
        {"drop": rewinds.remembers_tail, "store": rewinds.masked_write},
        "PROPERTIES PA2",
    ),
    *both("rewind-by-0-empties", "a rewind by 0 slices to [:-0], which is nothing", 13, {"drop": rewinds.minus_zero}),
    Fault(
        "kv-cache-rewind-past-512",
        "a rewind by more than 512 tokens leaves one of those that it should drop",
        spec.KV_13,
        {"drop": lambda self, cache, n: KVCache.drop(self, cache, n - (n > 512))},
        "PROPERTIES X2",
    ),
    *both("never-rewound-to-0", "a rewind by all tokens is ignored", 13, {"drop": rewinds.never_to_zero}),
    *both(
        "rewind-clamps",
        "a rewind too far or backwards is clamped",
        14,
        {**changes.any_rewind, "drop": rewinds.clamped},
        "mlx-lm 0.32.2, KVCache.trim",
    ),
    *both(
        "rewind-backwards",
        "a negative rewind is taken",
        14,
        {"check_rewind": rewinds.only_too_far, "drop": rewinds.clamped},
        "PROPERTIES X9",
    ),
    *both(
        "rewind-clamps-once-restored",
        "a rewind too far or backwards is clamped in a cache that restored a state",
        14,
        {**states.remembered, "check_rewind": refusals.any_rewind_once_restored, "drop": rewinds.clamped},
        "PROPERTIES X9, KV4",
    ),
    *both(
        "rewind-of-the-longest",
        "a rewind is compared with the tokens that were ever appended",
        14,
        {"check_rewind": refusals.at_its_longest, "store": changes.ever_appended, "drop": rewinds.clamped},
        "PROPERTIES X9",
    ),
    *both(
        "rewind-then-checks",
        "a bad rewind has dropped tokens when it is refused",
        15,
        {"rewind": rewinds.checks_the_total},
        "PROPERTIES X9",
    ),
    *both(
        "empty-once-refused-twice",
        "the second rewind in a row that is refused empties the cache",
        15,
        {"check_rewind": retries.harmful(KVCache.check_rewind, retries.empties)},
        "PROPERTIES X9",
    ),
)
