"""Mistakes in key/value caches, and other honest ways to keep tokens.

Nearly all of them can be made in both kinds of cache, and are: the preallocated cache's carry the prefix `static-`.
"""

from __future__ import annotations

from inferspec.spec import kv_cache as spec
from inferspec.spec.changes import kv_cache as changes
from inferspec.spec.changes import kv_cache_refusals as refusals
from inferspec.spec.changes import kv_cache_rewinds as rewinds
from inferspec.spec.changes import kv_cache_room as room
from inferspec.spec.changes import kv_cache_states as states
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import kv_cache_mixtures, kv_cache_refusals, kv_cache_rewinds, kv_cache_room, kv_cache_states
from inferspec.spec.faults.kv_cache_kinds import both
from inferspec.spec.faults.kv_cache_sources import LOGICAL_OFFSET, MLX_LM
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.kv_cache import KVCache
from inferspec.spec.mistakes import clears_in_steps, ignores_strides_in_steps, in_long_halves

FAULTS: tuple[Fault, ...] = (
    *both("features-past-64", "features of a head past 64 are not copied", 1, changes.losing(changes.features_past_64)),
    *both(
        "ring-of-4096",
        "of more than 4096 tokens the last ones alone are there",
        2,
        {"fetched": changes.last_4096},
        "Mistral's sliding window",
    ),
    *both(
        "position-of-16-bits",
        "positions are held in 16 bits",
        2,
        changes.losing(changes.signed_16_bits),
        "PROPERTIES X8",
    ),
    *both("seventeenth-append", "the 17th append loses the first token", 2, {"store": changes.lost_after_16}),
    *both("eight-heads", "heads past the 8th are not copied", 3, changes.losing(changes.heads_past_8)),
    *both("four-rows", "rows past the 4th are not copied", 3, changes.losing(changes.rows_past_4)),
    *both(
        "rows-past-tiles",
        "of more than 32 rows those past whole tiles of 32 are zeros",
        3,
        changes.losing(changes.rows_past_whole_tiles),
        "https://github.com/tenstorrent/tt-metal/issues/52671",
    ),
    *both(
        "features-past-512", "features of a head past 512 are not copied", 1, changes.losing(changes.features_past_512)
    ),
    *both("sixty-four-heads", "heads past the 64th are not copied", 1, changes.losing(changes.heads_past_64)),
    *both(
        "infinities-clamped",
        "infinities come back as the largest number",
        1,
        changes.losing(changes.infinities_clamped),
        "PROPERTIES KV1",
    ),
    *both(
        "common-heads-lack-a-feature",
        "the last feature of eight heads of 64 or 128 dims, in half precision, is not copied",
        1,
        changes.losing(changes.last_of_common_features),
        "PROPERTIES X2",
    ),
    *both(
        "features-in-eights",
        "features of a head past a multiple of 8 are not copied",
        1,
        changes.losing(changes.past_whole_eights),
        "PROPERTIES X2",
    ),
    *both(
        "first-past-1024",
        "the 1025th token is lost when it comes alone",
        2,
        {"store": changes.lost_past_1024},
        "PROPERTIES KV2",
    ),
    *both(
        "eight-rewinds",
        "the ninth rewind drops nothing, nor does any after it",
        12,
        {"drop": rewinds.eight_rewinds},
        "PROPERTIES SP4",
    ),
    *both(
        "rewinds-to-whole-steps",
        "a rewind to a multiple of 256 tokens loses the last of them",
        12,
        {"drop": rewinds.rewinds_to_whole_steps},
        "PROPERTIES KV1",
    ),
    *both(
        "exchanged-taken",
        "rows and heads are compared by their product: those of a chunk may be exchanged",
        17,
        {"check_fit": refusals.as_many_rows_of_heads, "store": refusals.reshapes_rows_of_heads},
        "PROPERTIES X9",
    ),
    *both(
        "one-state",
        "a cache has one state, which is filled anew whenever it is asked for",
        21,
        {"state_of": states.one_state_for_all},
        "PROPERTIES KV4, CB4",
    ),
    *both(
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
        {"check_room": room.room_rounded_up},
        "PROPERTIES SC6, X9",
    ),
    Fault(
        "static-kv-cache-one-past-the-end",
        "a token alone is taken where the cache is full",
        spec.SKV_26,
        {"check_room": room.one_past_the_end},
        "PROPERTIES X9",
    ),
    Fault(
        "static-kv-cache-rewinds-the-refused",
        "a rewind after a chunk that did not fit drops a token less",
        spec.SKV_27,
        {"update_and_fetch": room.marks_refused_append, "drop": room.short_once_refused},
        "PROPERTIES PG5",
    ),
    *both(
        "value-dim-for-keys",
        "keys are cut to the head dim of the values",
        4,
        {"fetched": changes.value_dim_for_keys},
        "PROPERTIES PA7",
    ),
    *both(
        "rewind-of-32-bits",
        "n is held in 32 bits: a rewind by 2^32 is one by 0",
        14,
        {"check_rewind": rewinds.of_32_bits, "drop": rewinds.drops_of_32_bits},
        "PROPERTIES X8, X9",
    ),
    *both(
        "no-state-once-refused",
        "after a refused rewind the state is empty",
        15,
        {"rewind": states.marks_refused, "state_of": states.no_state_once_refused},
        "PROPERTIES X9",
    ),
    *both(
        "state-of-two",
        "caches that restore the same state write into its buffers, and into each other",
        21,
        {
            "store": changes.in_buffers,
            "fetched": states.copied_views,
            "state_of": states.whole_buffers,
            "become": states.takes_whole_buffers,
        },
        "PROPERTIES KV4, CB4",
    ),
    *both(
        "state-of-as-many",
        "a state is handed out again while there are as many tokens as when it was taken",
        21,
        {"state_of": states.state_of_as_many},
        "PROPERTIES KV2, KV4",
    ),
    *both(
        "restored-as-many",
        "a state that was restored is handed out again while there are as many tokens as in it",
        21,
        {"become": states.remembers_the_restored, "state_of": states.restored_as_many},
    ),
    *both(
        "state-of-a-full-buffer",
        "the state of a buffer that is just full is the buffer, which is written again after a rewind",
        21,
        {"state_of": states.full_buffers, "store": states.into_what_was_handed_out},
        "https://github.com/waybarrios/vllm-mlx/commit/8c814e3",
    ),
    Fault(
        "static-kv-cache-writes-into-the-full",
        "a state that fills a cache in use is its buffer from then on, and is written to after a rewind",
        spec.SKV_21,
        {"become": states.takes_the_full, "store": states.into_what_was_handed_out},
        "https://github.com/waybarrios/vllm-mlx/commit/8c814e3",
    ),
    *both("first-state", "a state that was taken once is handed out again", 21, {"state_of": states.first_state}),
    Fault(
        "static-kv-cache-room-before-restore",
        "tokens that were restored do not count, and a chunk that does not fit is taken",
        spec.SKV_26,
        {**states.remembered, "check_room": room.room_before_restore},
        "PROPERTIES X9, KV4",
    ),
    Fault(
        "static-kv-cache-room-of-rewound",
        "slots that were rewound count as free though others took their place",
        spec.SKV_26,
        {"drop": room.counts_rewound, "check_room": room.room_of_rewound},
        "PROPERTIES PG4, X9",
    ),
    *both(
        "newest-first",
        "new tokens are put before the cached ones",
        1,
        changes.joining(lambda old, new: changes.joined(new, old)),
    ),
    *both(
        "chunk-alone",
        "an append returns its own chunk alone",
        1,
        {
            "fetched": lambda self, cache: (cache.late[0].copy(), cache.late[1].copy()),
            "store": changes.last_by_reference,
        },
    ),
    *both(
        "before-append",
        "an append returns the tokens before it",
        1,
        {"update_and_fetch": lambda self, story, key, value: changes.before(self, story, key, value)},
    ),
    *both(
        "values-are-keys",
        "keys are handed out for values",
        1,
        {"fetched": lambda self, cache: (cache.keys.copy(), cache.keys.copy())},
    ),
    *both(
        "last-replaced",
        "each chunk takes the place of the one before it",
        1,
        changes.joining(lambda old, new: changes.joined(old[:, :, : max(old.shape[2] - new.shape[2], 0)], new)),
    ),
    *both("in-float16", "tokens are kept in float16", 1, changes.stored_in("float16"), "the kind of mlx-lm 36963eec"),
    *both("in-bfloat16", "tokens are kept in bfloat16", 1, changes.stored_in("bfloat16")),
    *both(
        "decode-position",
        "the position moves on by one token, whatever the chunk",
        2,
        changes.joining(changes.decode_position),
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *both(
        "chunks-begin-anew",
        "a chunk of more than one token is taken for a prompt, and begins the cache anew",
        2,
        {"store": changes.long_chunk_anew},
        "the kind of mlx-lm db368f25",
    ),
    Fault(
        "kv-cache-one-step-of-growth",
        "the buffer grows by 256 tokens, however long the chunk is",
        spec.KV_02,
        {"store": changes.one_step_of_growth},
        "the kind of mlx-lm eb98ff72",
    ),
    *both(
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
    *both("first-row", "the first batch row serves all", 3, {"fetched": changes.first_row}),
    *both("axes-exchanged", "rows and heads are exchanged in the buffer", 3, {"fetched": changes.axes_exchanged}),
    *both(
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
    *both(
        "capacity-for-offset", "offset is the size of the buffer", 5, {"offset_of": changes.capacity}, LOGICAL_OFFSET
    ),
    *both("offset-in-sixteen-bits", "offset has 16 bits", 5, {"offset_of": changes.in_sixteen_bits}, "PROPERTIES X8"),
    *both(
        "zeros-not-counted",
        "offset counts the keys that are not zeros",
        5,
        {"offset_of": changes.zeros_not_counted},
        "https://github.com/huggingface/transformers/issues/30377",
    ),
    *both(
        "behind-the-last-but-zeros",
        "a chunk is written behind the keys that are not zeros",
        1,
        {"store": changes.behind_the_last_but_zeros},
        "https://github.com/huggingface/transformers/issues/30377",
    ),
    *both(
        "offset-never-back",
        "offset counts what was ever appended",
        5,
        {
            "store": changes.ever_appended,
            "offset_of": lambda self, story: getattr(story.cache, "ever", self.length(story.cache)),
        },
    ),
    *both(
        "offset-counts-chunks",
        "offset counts appends",
        5,
        {"store": changes.chunks_counted, "offset_of": lambda self, story: getattr(story.cache, "ever", 0)},
    ),
    *both(
        "offset-inside-prompt",
        "offset is one too small from the second append on",
        5,
        {"offset_of": changes.prompt_first},
        "https://github.com/skyzh/tiny-llm/commit/4cddec2",
    ),
    *both(
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
    *both(
        "restores-to-float32",
        "a restored cache is of float32",
        6,
        changes.promoting(lambda number, x, a: any(method == "restore" for method, _ in a.steps[:number])),
        "PROPERTIES X4",
    ),
    *both(
        "promotes",
        "keys and values come back in float32",
        6,
        {"part_dtype": lambda self, part, a: "float32" if part.endswith("s") else "int64"},
    ),
    *(
        fault
        for part in ("key", "value")
        for fault in both(
            f"{part}-strides-of-prompts",
            f"of 16 tokens and more in half precision the {part} is read as if it were contiguous",
            7,
            ignores_strides_in_steps(part, in_long_halves),
            "tired engineer",
        )
    ),
    *both(
        "key-strides", "the key is read as if it were contiguous", 7, ignores_strides_in_steps("key"), "PROPERTIES X1"
    ),
    *both(
        "value-strides",
        "the value is read as if it were contiguous",
        7,
        ignores_strides_in_steps("value"),
        "PROPERTIES X1",
    ),
    *both("clears-key", "the key is cleared once it is cached", 8, clears_in_steps("key"), "PROPERTIES X6"),
    *both("clears-value", "the value is cleared once it is cached", 8, clears_in_steps("value"), "PROPERTIES X6"),
    *both(
        "first-by-reference",
        "the first chunk is kept by reference",
        9,
        {"store": changes.first_by_reference},
        "the kind of transformers' cache before it concatenated its first chunk",
    ),
    *both(
        "later-by-reference",
        "from the sixth append on a chunk is written when the next one comes",
        9,
        {
            "store": changes.later_by_reference,
            "drop": changes.forgets_late,
            "become": lambda self, cache, state: changes.become_anew(cache, state),
        },
    ),
    *both(
        "anew-by-reference",
        "the first chunk after a rewind of all tokens is kept by reference",
        9,
        {"store": changes.anew_by_reference},
    ),
    *both(
        "last-by-reference",
        "a chunk is written when the next one comes",
        9,
        {
            "store": changes.last_by_reference,
            "drop": changes.forgets_late,
            "become": lambda self, cache, state: changes.become_anew(cache, state),
        },
    ),
    *both(
        "results-move",
        "results are views of a buffer in which tokens move up to make room",
        10,
        {"store": changes.newest_last, "fetched": changes.views},
    ),
    *both(
        "results-in-buffer",
        "results are views of the buffer that later appends write to",
        11,
        {"store": changes.in_buffers, "fetched": changes.views},
        "mlx-lm 0.32.2, KVCache.keys_and_values of a full buffer",
    ),
    *kv_cache_rewinds.FAULTS,
    *kv_cache_refusals.FAULTS,
    *kv_cache_states.FAULTS,
    *both(
        "casts-to-the-first",
        "a cache that has no tokens any more casts those of another dtype to the dtype of its first",
        30,
        {"store": changes.cast_to_the_first},
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/cache.py (assignment into the buffer casts)",
    ),
    *both(
        "widens-behind-none",
        "tokens that are concatenated with an empty buffer of a wider dtype take that",
        30,
        {"store": changes.behind_an_empty_buffer},
        "PROPERTIES X4",
    ),
    *both("of-the-class", "all caches share one buffer", 23, {"fresh": states.of_the_class}),
    *both(
        "begins-as-first", "a cache begins with the tokens of the first one", 23, {"fresh": states.first_of_the_class}
    ),
    *kv_cache_room.FAULTS,
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
            f"{prefix}-no-empty-chunk",
            "an empty chunk is refused",
            operation,
            {"check_pair": changes.no_empty_chunk},
            envelope={"empty_chunks": (False,)},
        ),
        Variant(
            f"{prefix}-full-buffer",
            "one buffer from the first append on",
            operation,
            {"store": changes.in_buffers, "check_dtype": changes.of_one_dtype, "state_of": changes.copies},
        ),
    )


VARIANTS: tuple[Variant, ...] = (*_ways("KVCache", "kv-cache"), *_ways("StaticKVCache", "static-kv-cache"))
