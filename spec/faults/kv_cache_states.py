"""Mistakes of key/value caches in what a state holds, and in what restoring it changes."""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_rewinds as rewinds
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.contract import Fault
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.faults.kv_cache_sources import MLX_LM

FAULTS: tuple[Fault, ...] = (
    *both(
        "restore-forgets-length",
        "a restored cache writes from slot 0 on",
        20,
        {"become": states.offset_lost},
        "https://github.com/vllm-project/vllm-metal/commit/9081de3",
    ),
    *both(
        "state-with-rewound",
        "a state holds rewound tokens too",
        20,
        {"drop": rewinds.remembers_tail, "store": states.forgets_tail, "state_of": states.with_tail},
        "mlx-lm 0.32.2, ConcatenateKVCache.state",
    ),
    *both(
        "no-empty-state",
        "the state of an unused cache cannot be restored",
        20,
        {"become": states.no_empty_state},
        f"{MLX_LM}/commit/beceb5c1",
    ),
    *both(
        "state-shares-buffer",
        "a restored cache writes into the buffer of the first one",
        21,
        {"store": changes.in_buffers, "state_of": states.hands_out_buffers, "become": states.takes_buffers},
        "mlx-lm 0.32.2, KVCache.state",
    ),
    *both(
        "state-of-two-deep",
        "of a state that was handed on from cache to cache the last token is lost the third time",
        20,
        {"state_of": states.with_its_depth, "become": states.two_deep},
    ),
    *(
        fault
        for size in (16, 256)
        for fault in both(
            f"state-in-blocks-of-{size}",
            f"a state is put together of blocks of {size} tokens, which are kept once they are full, whatever is rewound",
            21,
            states.in_blocks(size),
            "PROPERTIES KV4",
        )
    ),
    *both(
        "state-kept-through-a-restore",
        "a state is handed out again while there are as many tokens and no rewind came since, though a restore did",
        22,
        {"drop": states.counts_rewinds, "state_of": states.state_until_rewound},
        "PROPERTIES KV4",
    ),
    *both(
        "live-state",
        "a state follows the cache that it was taken from",
        21,
        {"state_of": states.live_state, "become": states.copies_live},
    ),
    *both(
        "live-state-once-merged",
        "a state of more than sixteen appends follows the cache that it was taken from",
        21,
        {
            "store": refusals.counts_chunks,
            "state_of": states.live_once_merged,
            "become": states.copies_live_or_not,
        },
    ),
    Fault(
        "static-kv-cache-full-state-from-slot-0",
        "a state that fills a ring that was emptied is copied from its first slot on, wherever the ring begins",
        spec.SKV_22,
        {"drop": states.begins_where_it_ended, "become": states.fills_from_slot_0},
        "PROPERTIES KV4",
    ),
    *both(
        "restores-behind",
        "restored tokens come after those that the cache has",
        22,
        {"become": states.restores_behind},
    ),
    *both(
        "restores-under",
        "tokens past the end of the restored ones stay",
        22,
        {"become": states.restores_under},
        "PROPERTIES BK3",
    ),
    *both(
        "restores-in-own-dtype",
        "restored tokens, and those after them, are cast to the dtype of those that the cache had",
        22,
        states.own_buffers,
        "PROPERTIES KV4, X4",
    ),
    *both(
        "restores-in-own-dtype-and-refuses-on",
        "restored tokens are cast to the dtype of those that the cache had, and others after them are refused",
        22,
        {"become": states.into_own_buffers},
        "PROPERTIES KV4, X4",
    ),
    *both(
        "restored-row-for-all",
        "a restored row stands for all the rows that the cache had",
        22,
        {"become": states.row_for_all},
        "PROPERTIES KV4",
    ),
    *both(
        "keeps-its-kind",
        "a cache restores tokens of other heads, dims or rows, and goes on to take such as it had alone",
        22,
        states.kind_of_the_first,
        "PROPERTIES KV4",
    ),
)
