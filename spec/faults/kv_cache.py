"""Mistakes in key/value caches, and other honest ways to keep tokens.

Nearly all of them can be made in both kinds of cache, and are: the preallocated cache's carry the prefix `static-`.
"""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_rewinds as rewinds
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.contract import Change, Fault, Requirement, Variant
from inferspec.spec.faults import kv_cache_mixtures
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.kv_cache import KVCache
from inferspec.spec.mistakes import clears_in_steps, ignores_strides_in_steps, in_long_halves

MLX_LM = "https://github.com/ml-explore/mlx-lm"
LOGICAL_OFFSET = f"{MLX_LM}/commit/eb98ff72"


def _both(name: str, text: str, kills: int, change: Change, source: str = TIRED) -> tuple[Fault, Fault]:
    """The mistake in a growing cache and in a preallocated one."""
    return (
        Fault(f"kv-cache-{name}", text, _requirement(f"KV-{kills:02}"), change, source),
        Fault(f"static-kv-cache-{name}", text, _requirement(f"SKV-{kills:02}"), change, source),
    )


def _requirement(id: str) -> Requirement:
    return next(one for one in spec.CONTRACT.requirements if one.id == id)


FAULTS: tuple[Fault, ...] = (
    *_both(
        "features-past-64", "features of a head past 64 are not copied", 1, changes.losing(changes.features_past_64)
    ),
    *_both(
        "ring-of-4096",
        "of more than 4096 tokens the last ones alone are there",
        2,
        {"fetched": changes.last_4096},
        "Mistral's sliding window",
    ),
    *_both(
        "position-of-16-bits",
        "positions are held in 16 bits",
        2,
        changes.losing(changes.signed_16_bits),
        "PROPERTIES X8",
    ),
    *_both("seventeenth-append", "the 17th append loses the first token", 2, {"store": changes.lost_after_16}),
    *_both("eight-heads", "heads past the 8th are not copied", 3, changes.losing(changes.heads_past_8)),
    *_both("four-rows", "rows past the 4th are not copied", 3, changes.losing(changes.rows_past_4)),
    *_both(
        "rows-past-tiles",
        "of more than 32 rows those past whole tiles of 32 are zeros",
        3,
        changes.losing(changes.rows_past_whole_tiles),
        "https://github.com/tenstorrent/tt-metal/issues/52671",
    ),
    *_both(
        "common-heads-lack-a-feature",
        "the last feature of eight heads of 64 or 128 dims, in half precision, is not copied",
        1,
        changes.losing(changes.last_of_common_features),
        "PROPERTIES X2",
    ),
    *_both(
        "features-in-eights",
        "features of a head past a multiple of 8 are not copied",
        1,
        changes.losing(changes.past_whole_eights),
        "PROPERTIES X2",
    ),
    *_both(
        "first-past-1024",
        "the 1025th token is lost when it comes alone",
        2,
        {"store": changes.lost_past_1024},
        "PROPERTIES KV2",
    ),
    *_both(
        "eight-rewinds",
        "the ninth rewind drops nothing, nor does any after it",
        12,
        {"drop": rewinds.eight_rewinds},
        "PROPERTIES SP4",
    ),
    *_both(
        "rewinds-to-whole-steps",
        "a rewind to a multiple of 256 tokens loses the last of them",
        12,
        {"drop": rewinds.rewinds_to_whole_steps},
        "PROPERTIES KV1",
    ),
    *_both(
        "exchanged-taken",
        "rows and heads are compared by their product: those of a chunk may be exchanged",
        17,
        {"check_fit": refusals.as_many_rows_of_heads, "store": refusals.reshapes_rows_of_heads},
        "PROPERTIES X9",
    ),
    *_both(
        "one-state",
        "a cache has one state, which is filled anew whenever it is asked for",
        21,
        {"state_of": changes.one_state_for_all},
        "PROPERTIES KV4, CB4",
    ),
    *_both(
        "results-in-workspace",
        "results of a shape lie in a workspace that all caches have in common",
        23,
        {"fetched": changes.in_workspace},
        "PROPERTIES X7",
    ),
    Fault(
        "static-kv-cache-room-in-steps",
        "past 256 tokens max_len is rounded up to a multiple of 256",
        spec.SKV_26,
        {"check_room": changes.room_rounded_up},
        "PROPERTIES SC6, X9",
    ),
    Fault(
        "static-kv-cache-one-past-the-end",
        "a token alone is taken where the cache is full",
        spec.SKV_26,
        {"check_room": changes.one_past_the_end},
        "PROPERTIES X9",
    ),
    Fault(
        "static-kv-cache-rewinds-the-refused",
        "a rewind after a chunk that did not fit drops a token less",
        spec.SKV_27,
        {"update_and_fetch": changes.marks_refused_append, "drop": changes.short_once_refused},
        "PROPERTIES PG5",
    ),
    *_both(
        "value-dim-for-keys",
        "keys are cut to the head dim of the values",
        4,
        {"fetched": changes.value_dim_for_keys},
        "PROPERTIES PA7",
    ),
    *_both(
        "rewind-of-32-bits",
        "n is held in 32 bits: a rewind by 2^32 is one by 0",
        14,
        {"check_rewind": changes.of_32_bits, "drop": changes.drops_of_32_bits},
        "PROPERTIES X8, X9",
    ),
    *_both(
        "no-state-once-refused",
        "after a refused rewind the state is empty",
        15,
        {"rewind": changes.marks_refused, "state_of": changes.no_state_once_refused},
        "PROPERTIES X9",
    ),
    *_both(
        "state-of-two",
        "caches that restore the same state write into its buffers, and into each other",
        21,
        {
            "store": changes.in_buffers,
            "fetched": changes.copied_views,
            "state_of": changes.whole_buffers,
            "become": changes.takes_whole_buffers,
        },
        "PROPERTIES KV4, CB4",
    ),
    *_both(
        "state-of-as-many",
        "a state is handed out again while there are as many tokens as when it was taken",
        21,
        {"state_of": changes.state_of_as_many},
        "PROPERTIES KV2, KV4",
    ),
    *_both(
        "restored-as-many",
        "a state that was restored is handed out again while there are as many tokens as in it",
        21,
        {"become": changes.remembers_the_restored, "state_of": changes.restored_as_many},
    ),
    *_both(
        "state-of-a-full-buffer",
        "the state of a buffer that is just full is the buffer, which is written again after a rewind",
        21,
        {"state_of": changes.full_buffers, "store": changes.into_what_was_handed_out},
        "https://github.com/waybarrios/vllm-mlx/commit/8c814e3",
    ),
    Fault(
        "static-kv-cache-writes-into-the-full",
        "a state that fills a cache in use is its buffer from then on, and is written to after a rewind",
        spec.SKV_21,
        {"become": changes.takes_the_full, "store": changes.into_what_was_handed_out},
        "https://github.com/waybarrios/vllm-mlx/commit/8c814e3",
    ),
    *_both("first-state", "a state that was taken once is handed out again", 21, {"state_of": changes.first_state}),
    Fault(
        "static-kv-cache-room-before-restore",
        "tokens that were restored do not count, and a chunk that does not fit is taken",
        spec.SKV_26,
        {**changes.remembered, "check_room": changes.room_before_restore},
        "PROPERTIES X9, KV4",
    ),
    Fault(
        "static-kv-cache-room-of-rewound",
        "slots that were rewound count as free though others took their place",
        spec.SKV_26,
        {"drop": changes.counts_rewound, "check_room": changes.room_of_rewound},
        "PROPERTIES PG4, X9",
    ),
    *_both(
        "newest-first",
        "new tokens are put before the cached ones",
        1,
        changes.joining(lambda old, new: changes.joined(new, old)),
    ),
    *_both(
        "chunk-alone",
        "an append returns its own chunk alone",
        1,
        {
            "fetched": lambda self, cache: (cache.late[0].copy(), cache.late[1].copy()),
            "store": changes.last_by_reference,
        },
    ),
    *_both(
        "before-append",
        "an append returns the tokens before it",
        1,
        {"update_and_fetch": lambda self, story, key, value: changes.before(self, story, key, value)},
    ),
    *_both(
        "values-are-keys",
        "keys are handed out for values",
        1,
        {"fetched": lambda self, cache: (cache.keys.copy(), cache.keys.copy())},
    ),
    *_both(
        "last-replaced",
        "each chunk takes the place of the one before it",
        1,
        changes.joining(lambda old, new: changes.joined(old[:, :, : max(old.shape[2] - new.shape[2], 0)], new)),
    ),
    *_both("in-float16", "tokens are kept in float16", 1, changes.stored_in("float16"), "the kind of mlx-lm 36963eec"),
    *_both("in-bfloat16", "tokens are kept in bfloat16", 1, changes.stored_in("bfloat16")),
    *_both(
        "decode-position",
        "the position moves on by one token, whatever the chunk",
        2,
        changes.joining(changes.decode_position),
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *_both(
        "chunks-begin-anew",
        "a chunk of more than one token is taken for a prompt, and begins the cache anew",
        2,
        {"store": changes.long_chunk_anew},
        "the kind of mlx-lm db368f25",
    ),
    *_both("no-empty-chunk", "an empty chunk is refused", 2, {"check_pair": changes.no_empty_chunk}, "PROPERTIES SD5"),
    Fault(
        "kv-cache-one-step-of-growth",
        "the buffer grows by 256 tokens, however long the chunk is",
        spec.KV_02,
        {"store": changes.one_step_of_growth},
        "the kind of mlx-lm eb98ff72",
    ),
    *_both(
        "ring-of-1024",
        "of more than 1024 tokens the first ones are overwritten",
        2,
        {"fetched": lambda self, cache: (cache.keys[:, :, -1024:].copy(), cache.values[:, :, -1024:].copy())},
    ),
    Fault(
        "kv-cache-growth-loses",
        "a buffer that grows a second time keeps its whole steps of 256 tokens alone",
        spec.KV_02,
        changes.joining(changes.whole_steps_kept),
        "the kind of mlx-lm e03e45ed",
    ),
    Fault(
        "static-kv-cache-512-slots",
        "slots past the 512th are lost",
        spec.SKV_02,
        {"fetched": lambda self, cache: (cache.keys[:, :, :512].copy(), cache.values[:, :, :512].copy())},
        TIRED,
    ),
    *_both("first-row", "the first batch row serves all", 3, {"fetched": changes.first_row}),
    *_both("axes-exchanged", "rows and heads are exchanged in the buffer", 3, {"fetched": changes.axes_exchanged}),
    *_both(
        "key-dim-for-values",
        "values are cut or filled to the head dim of the keys",
        4,
        {
            "store": lambda self, cache, key, value: KVCache.store(
                self, cache, key, changes.fitted(value, key.shape[3])
            ),
            "check_fit": lambda self, cache, key, value: None,
        },
        "PROPERTIES PA7",
    ),
    *_both(
        "capacity-for-offset", "offset is the size of the buffer", 5, {"offset_of": changes.capacity}, LOGICAL_OFFSET
    ),
    *_both(
        "zeros-not-counted",
        "offset counts the keys that are not zeros",
        5,
        {"offset_of": changes.zeros_not_counted},
        "https://github.com/huggingface/transformers/issues/30377",
    ),
    *_both(
        "behind-the-last-but-zeros",
        "a chunk is written behind the keys that are not zeros",
        1,
        {"store": changes.behind_the_last_but_zeros},
        "https://github.com/huggingface/transformers/issues/30377",
    ),
    *_both(
        "offset-never-back",
        "offset counts what was ever appended",
        5,
        {
            "store": changes.ever_appended,
            "offset_of": lambda self, story: getattr(story.cache, "ever", self.length(story.cache)),
        },
    ),
    *_both(
        "offset-counts-chunks",
        "offset counts appends",
        5,
        {"store": changes.chunks_counted, "offset_of": lambda self, story: getattr(story.cache, "ever", 0)},
    ),
    *_both(
        "offset-inside-prompt",
        "offset is one too small from the second append on",
        5,
        {"offset_of": changes.prompt_first},
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *_both(
        "offset-counts-on",
        "an offset that was read counts on with the cache",
        5,
        {"reread_offset": lambda self, story, step: {"offset": self.length(story.cache)}},
        f"{MLX_LM}/issues/1806",
    ),
    Fault(
        "kv-cache-grows-to-float32",
        "a buffer that has grown is of float32",
        spec.KV_06,
        changes.promoting(lambda number, x, a: x.shape[2] > changes.STEP),
        "PROPERTIES X4",
    ),
    *_both(
        "restores-to-float32",
        "a restored cache is of float32",
        6,
        changes.promoting(lambda number, x, a: any(method == "restore" for method, _ in a.steps[:number])),
        "PROPERTIES X4",
    ),
    *_both(
        "promotes",
        "keys and values come back in float32",
        6,
        {"part_dtype": lambda self, part, a: "float32" if part.endswith("s") else "int64"},
    ),
    *(
        fault
        for part in ("key", "value")
        for fault in _both(
            f"{part}-strides-of-prompts",
            f"of 16 tokens and more in half precision the {part} is read as if it were contiguous",
            7,
            ignores_strides_in_steps(part, in_long_halves),
            "tired engineer",
        )
    ),
    *_both(
        "key-strides", "the key is read as if it were contiguous", 7, ignores_strides_in_steps("key"), "PROPERTIES X1"
    ),
    *_both(
        "value-strides",
        "the value is read as if it were contiguous",
        7,
        ignores_strides_in_steps("value"),
        "PROPERTIES X1",
    ),
    *_both("clears-key", "the key is cleared once it is cached", 8, clears_in_steps("key"), "PROPERTIES X6"),
    *_both("clears-value", "the value is cleared once it is cached", 8, clears_in_steps("value"), "PROPERTIES X6"),
    *_both(
        "first-by-reference",
        "the first chunk is kept by reference",
        9,
        {"store": changes.first_by_reference},
        "the kind of transformers' cache before it concatenated its first chunk",
    ),
    *_both(
        "later-by-reference",
        "from the sixth append on a chunk is written when the next one comes",
        9,
        {
            "store": changes.later_by_reference,
            "drop": changes.forgets_late,
            "become": lambda self, cache, state: changes.become_anew(cache, state),
        },
    ),
    *_both(
        "anew-by-reference",
        "the first chunk after a rewind of all tokens is kept by reference",
        9,
        {"store": changes.anew_by_reference},
    ),
    *_both(
        "last-by-reference",
        "a chunk is written when the next one comes",
        9,
        {
            "store": changes.last_by_reference,
            "drop": changes.forgets_late,
            "become": lambda self, cache, state: changes.become_anew(cache, state),
        },
    ),
    *_both(
        "results-move",
        "results are views of a buffer in which tokens move up to make room",
        10,
        {"store": changes.newest_last, "fetched": changes.views},
    ),
    *_both(
        "results-in-buffer",
        "results are views of the buffer that later appends write to",
        11,
        {"store": changes.in_buffers, "fetched": changes.views},
        "mlx-lm 0.32.2, KVCache.keys_and_values of a full buffer",
    ),
    *_both(
        "rewind-hides",
        "rewound tokens are hidden until the next append brings them back",
        12,
        {"length": rewinds.hidden_length, "drop": rewinds.hides, "store": rewinds.shows_again},
        f"{MLX_LM}/issues/1494",
    ),
    *_both(
        "rewind-keys-alone",
        "a rewind drops keys and leaves the values",
        12,
        {"drop": rewinds.drops_keys, "store": rewinds.stale_values},
    ),
    *_both("rewind-drops-first", "a rewind drops the first tokens", 12, {"drop": rewinds.drops_first}),
    *_both(
        "rewind-to-n",
        "rewind(n) is taken for the length to keep",
        12,
        {"drop": rewinds.keeps_n},
        "the legacy meaning of transformers' DynamicLayer.crop",
    ),
    *_both(
        "rewind-one-short",
        "a rewind leaves one of the tokens that it should drop",
        12,
        {"drop": rewinds.one_short},
        "PROPERTIES SP4",
    ),
    *_both(
        "masked-write",
        "new tokens are added to a slot that is multiplied by 0",
        12,
        {"drop": rewinds.remembers_tail, "store": rewinds.masked_write},
        "PROPERTIES PA2",
    ),
    *_both("rewind-by-0-empties", "a rewind by 0 slices to [:-0], which is nothing", 13, {"drop": rewinds.minus_zero}),
    Fault(
        "kv-cache-rewind-past-512",
        "a rewind by more than 512 tokens leaves one of those that it should drop",
        spec.KV_13,
        {"drop": lambda self, cache, n: KVCache.drop(self, cache, n - (n > 512))},
        "PROPERTIES X2",
    ),
    *_both("never-rewound-to-0", "a rewind by all tokens is ignored", 13, {"drop": rewinds.never_to_zero}),
    *_both(
        "rewind-clamps",
        "a rewind too far or backwards is clamped",
        14,
        {**changes.any_rewind, "drop": rewinds.clamped},
        "mlx-lm 0.32.2, KVCache.trim",
    ),
    *_both(
        "rewind-backwards",
        "a negative rewind is taken",
        14,
        {"check_rewind": rewinds.only_too_far, "drop": rewinds.clamped},
        "PROPERTIES X9",
    ),
    *_both(
        "rewind-clamps-once-restored",
        "a rewind too far or backwards is clamped in a cache that restored a state",
        14,
        {**changes.remembered, "check_rewind": refusals.any_rewind_once_restored, "drop": rewinds.clamped},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "rewind-of-the-longest",
        "a rewind is compared with the tokens that were ever appended",
        14,
        {"check_rewind": refusals.at_its_longest, "store": changes.ever_appended, "drop": rewinds.clamped},
        "PROPERTIES X9",
    ),
    *_both(
        "rewind-then-checks",
        "a bad rewind has dropped tokens when it is refused",
        15,
        {"rewind": rewinds.checks_the_total},
        "PROPERTIES X9",
    ),
    *_both("any-pair", "key and value are not compared", 16, {"check_pair": refusals.unchecked_pair}, "PROPERTIES X9"),
    *_both(
        "adds-axis",
        "a key and value without a batch axis are given one",
        16,
        {"update_and_fetch": refusals.leading_one_added},
        "PROPERTIES X9",
    ),
    *_both(
        "broadcasts",
        "a single row, head or feature is broadcast to all that the cache has",
        17,
        {**changes.nothing, "store": refusals.broadcast},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *_both(
        "begins-anew",
        "a chunk of another shape begins the cache anew",
        17,
        {**changes.nothing, "store": refusals.starts_anew},
    ),
    *_both(
        "one-feature-of-values",
        "values of one feature stand for all features",
        17,
        {"check_fit": refusals.one_feature_of_values, "store": refusals.broadcast},
        "PROPERTIES X9",
    ),
    *_both(
        "fewer-features",
        "a chunk of fewer features is filled up with zeros",
        17,
        {"check_fit": refusals.features_that_fit_in, "store": refusals.written_over_zeros},
        "PROPERTIES X9",
    ),
    *_both(
        "broadcasts-once-restored",
        "a cache that restored a state no longer compares shapes, and broadcasts",
        17,
        {**changes.remembered, "check_fit": refusals.no_fit_once_restored, "store": refusals.broadcast},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "broadcasts-once-rewound",
        "a cache that was rewound no longer compares shapes, and broadcasts",
        17,
        {"drop": refusals.marks_rewound, "check_fit": refusals.no_fit_once_rewound, "store": refusals.broadcast},
        "PROPERTIES X9",
    ),
    *_both(
        "casts",
        "a chunk of another dtype is cast",
        18,
        {**changes.any_dtype, **changes.joining(refusals.cast)},
        "mlx-lm 0.32.2: assignment into the buffer",
    ),
    *_both(
        "casts-once-restored",
        "a cache that restored a state no longer compares dtypes, and casts",
        18,
        {**changes.remembered, "check_dtype": refusals.no_dtype_once_restored, **changes.joining(refusals.cast)},
        "PROPERTIES X9, KV4",
    ),
    *_both(
        "mixes-dtypes",
        "a chunk of another dtype turns the cache into float32",
        18,
        {**changes.any_dtype, **changes.joining(refusals.promoted)},
    ),
    *_both(
        "key-before-checks",
        "the key is in the cache when the value is refused",
        19,
        {"check_append": refusals.key_before_checks},
        "PROPERTIES PG5",
    ),
    *_both(
        "key-before-later-checks",
        "from the fourth chunk on the key is in the cache when the value is refused",
        19,
        {"check_append": refusals.key_before_later_checks, "store": refusals.counts_chunks},
        "PROPERTIES PG5",
    ),
    *_both(
        "offset-before-checks",
        "the offset has moved on when a chunk is refused",
        19,
        {"check_append": refusals.offset_before_checks},
        "PROPERTIES PG5",
    ),
    *_both(
        "restore-forgets-length",
        "a restored cache writes from slot 0 on",
        20,
        {"become": states.offset_lost},
        "https://github.com/vllm-project/vllm-metal/commit/9081de3",
    ),
    *_both(
        "state-with-rewound",
        "a state holds rewound tokens too",
        20,
        {"drop": rewinds.remembers_tail, "store": states.forgets_tail, "state_of": states.with_tail},
        "mlx-lm 0.32.2, ConcatenateKVCache.state",
    ),
    *_both(
        "no-empty-state",
        "the state of an unused cache cannot be restored",
        20,
        {"become": states.no_empty_state},
        f"{MLX_LM}/commit/beceb5c1",
    ),
    *_both(
        "state-shares-buffer",
        "a restored cache writes into the buffer of the first one",
        21,
        {"store": changes.in_buffers, "state_of": states.hands_out_buffers, "become": states.takes_buffers},
        "mlx-lm 0.32.2, KVCache.state",
    ),
    *_both(
        "live-state",
        "a state follows the cache that it was taken from",
        21,
        {"state_of": states.live_state, "become": states.copies_live},
    ),
    *_both(
        "restores-behind",
        "restored tokens come after those that the cache has",
        22,
        {"become": states.restores_behind},
    ),
    *_both(
        "restores-under",
        "tokens past the end of the restored ones stay",
        22,
        {"become": states.restores_under},
        "PROPERTIES BK3",
    ),
    *_both(
        "restores-in-own-dtype",
        "restored tokens, and those after them, are cast to the dtype of those that the cache had",
        22,
        changes.own_buffers,
        "PROPERTIES KV4, X4",
    ),
    *_both(
        "restores-in-own-dtype-and-refuses-on",
        "restored tokens are cast to the dtype of those that the cache had, and others after them are refused",
        22,
        {"become": changes.into_own_buffers},
        "PROPERTIES KV4, X4",
    ),
    *_both(
        "restored-row-for-all",
        "a restored row stands for all the rows that the cache had",
        22,
        {"become": changes.row_for_all},
        "PROPERTIES KV4",
    ),
    *_both(
        "keeps-its-kind",
        "a cache restores tokens of other heads, dims or rows, and goes on to take such as it had alone",
        22,
        changes.kind_of_the_first,
        "PROPERTIES KV4",
    ),
    *_both(
        "casts-to-the-first",
        "a cache that has no tokens any more casts those of another dtype to the dtype of its first",
        30,
        {"store": changes.cast_to_the_first},
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/cache.py (assignment into the buffer casts)",
    ),
    *_both(
        "widens-behind-none",
        "tokens that are concatenated with an empty buffer of a wider dtype take that",
        30,
        {"store": changes.behind_an_empty_buffer},
        "PROPERTIES X4",
    ),
    *_both("of-the-class", "all caches share one buffer", 23, {"fresh": states.of_the_class}),
    *_both(
        "begins-as-first", "a cache begins with the tokens of the first one", 23, {"fresh": states.first_of_the_class}
    ),
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
        {"fetched": changes.whole_buffer},
        LOGICAL_OFFSET,
    ),
    Fault(
        "static-kv-cache-rounded-length",
        "an append returns slots up to a multiple of 8",
        spec.SKV_24,
        {"fetched": changes.room_in_steps},
        "PROPERTIES KV2",
    ),
    Fault(
        "static-kv-cache-last-slot",
        "the last slot is never used",
        spec.SKV_25,
        {"check_room": changes.last_slot_unused},
        "PROPERTIES SC6",
    ),
    Fault(
        "static-kv-cache-used-up",
        "rewound slots are not free again",
        spec.SKV_25,
        {"check_room": changes.room_used_up},
        "PROPERTIES PG4",
    ),
    Fault(
        "static-kv-cache-clamps",
        "a chunk that does not fit overwrites the last tokens",
        spec.SKV_26,
        {**changes.any_room, "store": changes.last_tokens_overwritten},
        "jax.lax.dynamic_update_slice, which clamps its start",
    ),
    Fault(
        "static-kv-cache-ring",
        "a chunk that does not fit drops the first tokens",
        spec.SKV_26,
        {**changes.any_room, "store": changes.ring},
        "the kind of mlx-lm 358b4d2a",
    ),
    Fault(
        "static-kv-cache-cuts",
        "what does not fit is left out",
        spec.SKV_26,
        {**changes.any_room, "store": changes.cut_short},
        TIRED,
    ),
    Fault(
        "static-kv-cache-fills-then-refuses",
        "what fits of a chunk is in the cache when it is refused",
        spec.SKV_27,
        {"update_and_fetch": changes.fills_then_refuses},
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
        {"check_room": changes.dead_once_full},
        "PROPERTIES PG5",
    ),
    *kv_cache_mixtures.FAULTS,
)


def _ways(operation: str, prefix: str) -> tuple[Variant, ...]:
    return (
        Variant(
            f"{prefix}-of-chunks",
            "a list of chunks",
            operation,
            {"store": changes.as_chunks, "check_dtype": changes.of_one_dtype},
        ),
        Variant(f"{prefix}-of-tokens", "token by token", operation, {"store": changes.as_tokens}),
        Variant(
            f"{prefix}-doubling",
            "a buffer that doubles, with garbage in its unused slots",
            operation,
            {
                "store": changes.doubling,
                "check_dtype": changes.of_one_dtype,
                "state_of": changes.copies,
                "become": lambda self, cache, state: changes.hold(cache, state),
            },
        ),
        Variant(
            f"{prefix}-tokens-outermost",
            "tokens are the outermost axis in memory",
            operation,
            {"store": changes.tokens_outermost},
        ),
        Variant(
            f"{prefix}-of-one-dtype",
            "a cache without tokens refuses another dtype than its first",
            operation,
            {"check_dtype": changes.of_one_dtype},
        ),
        Variant(
            f"{prefix}-full-buffer",
            "one buffer from the first append on",
            operation,
            {"store": changes.in_buffers, "check_dtype": changes.of_one_dtype, "state_of": changes.copies},
        ),
    )


VARIANTS: tuple[Variant, ...] = (*_ways("KVCache", "kv-cache"), *_ways("StaticKVCache", "static-kv-cache"))
