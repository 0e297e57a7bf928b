"""Mistakes of preallocated caches: how many tokens they have room for, and what an append past that does."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache_room as room
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.changes import retries
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_sources import LOGICAL_OFFSET
from inferspec.spec.faults.sources import TIRED

FAULTS: tuple[Fault, ...] = (
    Fault(
        "static-kv-cache-room-of-the-class",
        "max_len is written to the class: caches have that of the one that was made last",
        spec.SKV_23,
        {"fresh": states.room_on_the_class, "check_room": states.the_class_s_room},
        "PROPERTIES X7",
    ),
    Fault(
        "static-kv-cache-whole-buffer",
        "an append returns all slots, unwritten ones too",
        spec.SKV_24,
        {"fetched": room.whole_buffer},
        LOGICAL_OFFSET,
    ),
    Fault(
        "static-kv-cache-rounded-length",
        "an append returns slots up to a multiple of 8",
        spec.SKV_24,
        {"fetched": room.room_in_steps},
        "PROPERTIES KV2",
    ),
    Fault(
        "static-kv-cache-last-slot",
        "the last slot is never used",
        spec.SKV_25,
        {"check_room": room.last_slot_unused},
        "PROPERTIES SC6",
    ),
    Fault(
        "static-kv-cache-used-up",
        "rewound slots are not free again",
        spec.SKV_25,
        {"check_room": room.room_used_up},
        "PROPERTIES PG4",
    ),
    Fault(
        "static-kv-cache-state-of-its-own-size",
        "the state of a cache of another max_len is refused",
        spec.SKV_20,
        {"restore_larger": states.of_its_own_size},
        "PROPERTIES KV4",
    ),
    Fault(
        "static-kv-cache-room-of-the-state",
        "a cache that restores a state has the max_len of the cache that it was taken from",
        spec.SKV_20,
        {"restore_larger": states.with_the_room_of_the_state},
        "PROPERTIES KV4",
    ),
    Fault(
        "static-kv-cache-room-of-a-larger-state",
        "a cache that restores the state of a larger one takes as many tokens as that",
        spec.SKV_26,
        {"restore_larger": states.with_the_larger_room},
        "PROPERTIES KV4, PG5",
    ),
    Fault(
        "static-kv-cache-clamps",
        "a chunk that does not fit overwrites the last tokens",
        spec.SKV_26,
        {**room.any_room, "store": room.last_tokens_overwritten},
        "jax.lax.dynamic_update_slice, which clamps its start",
    ),
    Fault(
        "static-kv-cache-ring",
        "a chunk that does not fit drops the first tokens",
        spec.SKV_26,
        {**room.any_room, "store": room.ring},
        "the kind of mlx-lm 358b4d2a",
    ),
    Fault(
        "static-kv-cache-cuts",
        "what does not fit is left out",
        spec.SKV_26,
        {**room.any_room, "store": room.cut_short},
        TIRED,
    ),
    Fault(
        "static-kv-cache-fills-then-refuses",
        "what fits of a chunk is in the cache when it is refused",
        spec.SKV_27,
        {"update_and_fetch": room.fills_then_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "static-kv-cache-cuts-states",
        "of a state that does not fit the first tokens are restored",
        spec.SKV_28,
        {"check_state": states.cut_to_its_room},
        TIRED,
    ),
    Fault(
        "static-kv-cache-room-for-the-last-append",
        "of a state only what was appended last must fit",
        spec.SKV_28,
        states.counts_the_last_append(),
        TIRED,
    ),
    Fault(
        "static-kv-cache-empties-then-refuses",
        "what was cached is dropped before a state is refused",
        spec.SKV_29,
        {"check_state": states.empties_before_it_refuses},
        "PROPERTIES PG5",
    ),
    Fault(
        "static-kv-cache-dead-once-full",
        "after a chunk that did not fit nothing is taken any more",
        spec.SKV_27,
        {"check_room": room.dead_once_full},
        "PROPERTIES PG5",
    ),
    Fault(
        "static-kv-cache-short-once-full-twice",
        "the second chunk in a row that does not fit costs the last token",
        spec.SKV_27,
        {"check_room": retries.harmful(spec.StaticKVCache.check_room, retries.loses_the_last)},
        "PROPERTIES PG5",
    ),
    Fault(
        "static-kv-cache-empty-once-restored-wrongly-twice",
        "the second state in a row that does not fit empties the cache",
        spec.SKV_29,
        {"check_state": retries.harmful(spec.StaticKVCache.check_state, retries.empties)},
        "PROPERTIES PG5",
    ),
)
