"""Mistakes of a decoder that is fed in chunks, through a cache for each request."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import decoder, threads
from inferspec.spec.changes import decoder_caches as changes
from inferspec.spec.changes import decoder_layers as layers
from inferspec.spec.faults.defining import TINY_LLM, Define
from inferspec.spec.mistakes import promotes_where
from inferspec.spec.numerics import f64
from inferspec.spec.transformer import Incremental


def every(fault: Define) -> None:
    """All of them, in order."""
    whole(fault)
    paths(fault)
    places(fault)
    chunks(fault)
    batches(fault)
    requests(fault)
    long(fault)
    packed(fault)
    rewound(fault)
    other_threads(fault)


def whole(fault: Define) -> None:
    """What a chunk knows of those before it."""
    fault(
        24,
        "offset-ignored",
        "every chunk starts at position 0",
        {"positions": lambda self, memory, length: f64(np.arange(length))},
        "the kind of mlx-lm db368f25",
    )
    fault(24, "cache-ignored", "a chunk sees nothing but itself", changes.extended_by("none"))
    fault(
        24, "cache-of-the-last-chunk", "a chunk takes the place of those before it", changes.extended_by("last chunk")
    )


def paths(fault: Define) -> None:
    """Kernels for single tokens and for chunks."""
    fault(
        25,
        "tokens-of-large-heads-lack-a-feature",
        "after a prompt a token's heads of 64 features and more lack the last one, in half precision",
        decoder.path_lacks_a_feature(
            lambda path: path.length == 1 < path.keys and path.dim >= 64 and path.dtype != "float32"
        ),
    )
    fault(
        25,
        "tokens-of-large-heads-lack-a-feature-in-float32",
        "after a prompt a token's heads of 64 features and more lack the last one, in float32",
        decoder.path_lacks_a_feature(
            lambda path: path.length == 1 < path.keys and path.dim >= 64 and path.dtype == "float32"
        ),
    )
    fault(
        25,
        "chunks-of-large-heads-lack-a-feature",
        "chunks of 32 tokens and more after others lack the last of 128 features",
        decoder.path_lacks_a_feature(lambda path: 32 <= path.length < path.keys and path.dim == 128),
    )
    fault(
        25,
        "tokens-of-groups-of-four-lack-a-feature",
        "after a prompt a token's heads lack the last feature where four query heads share each of several key heads",
        decoder.path_lacks_a_feature(lambda path: path.length == 1 < path.keys and path.ratio == 4),
    )
    fault(
        25,
        "tokens-lack-an-id",
        "of a single token the last of more than a thousand logits is not written",
        {"forward": changes.last_id_of_a_token_lost},
    )
    fault(
        30,
        "packed-tokens-lack-an-id",
        "of single tokens the last logit is not written, in 4 bits and half precision",
        {"forward": decoder.packed_path_lacks_an_id(lambda length: length == 1, half=True)},
    )
    fault(
        30,
        "packed-chunks-of-the-first-row",
        "the first of several chunks of 33 tokens and more serves them all where layers are packed",
        {"forward": layers.first_of_packed_prompts},
        "PROPERTIES X2",
    )
    fault(
        30,
        "packed-chunks-lack-an-id",
        "of 8 tokens and more the last logit is not written, in 4 bits",
        {"forward": decoder.packed_path_lacks_an_id(lambda length: length >= 8)},
    )


def places(fault: Define) -> None:
    """Which cache, and which position."""
    fault(25, "eight-caches", "layers past the eighth write into caches of others", {"extended": changes.eight_caches})
    fault(
        25,
        "single-ids-of-16-bits",
        "the id of a single token is kept in 16 bits",
        {"embed": changes.single_ids_of_16_bits},
        "PROPERTIES X8",
    )
    fault(24, "cache-of-all-layers", "all layers write into one cache", changes.extended_by("one for all layers"))
    fault(
        25,
        "offset-one-more",
        "the first token after the prompt is one position too far",
        {"positions": changes.one_more},
        "https://github.com/GeeeekExplorer/nano-vllm/commit/f5b4840",
    )


def chunks(fault: Define) -> None:
    """Several tokens after others."""
    fault(
        26,
        "offset-counts-calls",
        "the offset grows by one with every call after the first",
        {"advance": changes.counts_calls},
        f"the kind of {TINY_LLM}/commit/4cddec2",
    )
    fault(
        26,
        "chunk-mask-top-left",
        "the mask of a chunk is aligned with the first key",
        {"visible": changes.top_left},
        "PROPERTIES CM1",
    )
    fault(
        26,
        "tiles-mask-top-left",
        "the mask of a chunk of 16 tokens or a multiple of them is aligned with the first key",
        {"visible": changes.top_left_of_tiles},
        "the kind of https://github.com/gittensor-ai-lab/sparkinfer/issues/3",
    )
    fault(26, "chunk-unmasked", "a chunk after others has no mask", {"visible": changes.unmasked_after_others})


def batches(fault: Define) -> None:
    """Rows that serve others."""
    fault(
        27,
        "cache-first-row-for-all",
        "the first sequence's keys serve the whole batch",
        changes.extended_by("one for all rows"),
    )
    fault(
        27,
        "cache-of-eight-rows",
        "sequences past the eighth of a batch find the first one's keys in the cache",
        {"extended": changes.rows_past_eight_of_the_first},
    )
    fault(
        27,
        "single-token-first-row-turned",
        "of single tokens only the first sequence's is turned",
        decoder.first_row_turned(single=True),
        f"{decoder.MLX}/commit/76a977ca4",
    )


def requests(fault: Define) -> None:
    """Requests that take turns."""
    fault(
        28,
        "one-cache-for-all",
        "all requests of a model share a cache",
        {"owners": lambda self, a: [0] * len(a.chunks)},
    )
    fault(
        28,
        "two-caches-for-all",
        "requests of a model take its two caches in turn",
        {"owners": lambda self, a: [owner and owner % 2 for owner in Incremental.owners(self, a)]},
    )
    fault(
        28,
        "cache-kept-for-none",
        "a model keeps the cache that it was given, for calls without one",
        {"owners": changes.the_latest_without_a_cache},
        "PROPERTIES X7",
    )
    fault(28, "one-offset-for-all", "requests count their positions together", {"respond": changes.offset_of_the_model})


def long(fault: Define) -> None:
    """Caches that grow."""
    fault(
        29,
        "cache-full-at-256",
        "what comes after 256 tokens is not kept",
        changes.extended_by("first 256"),
        "PROPERTIES KV2",
    )
    fault(
        29,
        "growth-of-the-first-row",
        "a cache that grows keeps the first row of its batch",
        {"extended": changes.growth_of_the_first_row},
        "PROPERTIES X3",
    )
    fault(
        29,
        "positions-in-bfloat16",
        "positions are kept in bfloat16: past 256 several tokens are at one",
        {"positions": changes.positions_in_bfloat16},
        "https://github.com/huggingface/candle/pull/3520",
    )
    fault(
        29,
        "positions-end-at-1024",
        "all tokens past the first 1024 are at the last position of a table",
        {"positions": changes.positions_to_1024},
        "https://github.com/deepspeedai/DeepSpeed/issues/2485",
    )
    fault(
        29, "cache-ring-of-256", "only the last 256 tokens are kept", changes.extended_by("last 256"), "PROPERTIES KV2"
    )
    fault(
        29,
        "grows-by-one-step",
        "a cache that is full grows by 256 tokens, however many more a chunk has: what has no room is zeros",
        {"extended": changes.grown_by_one_step},
    )
    fault(
        29,
        "grows-in-the-first-layer",
        "past 256 tokens the first layer's cache grows, and those of the others do not: what has no room is zeros",
        {"extended": changes.grown_in_the_first_layer},
        "transformers, DynamicCache.update, where the first layer counts for all",
    )
    fault(
        29,
        "offset-of-the-buffer",
        "past 256 tokens the offset is the length of the buffer",
        {"positions": changes.allocated_positions},
        f"{decoder.MLX_LM}/commit/eb98ff72",
    )


def packed(fault: Define) -> None:
    """Packed weights, and the dtype of logits."""
    fault(
        30,
        "packed-single-token",
        "packed layers leave out the biases of groups where there is one token",
        {"forward": changes.single_token_without_biases},
    )
    fault(
        31,
        "chunk-promotes",
        "logits of chunks behind others come back in float32, as the mask is",
        promotes_where(lambda a: len(a.chunks) > 1),
        "PROPERTIES X4",
    )


def rewound(fault: Define) -> None:
    """Caches whose last tokens were dropped."""
    fault(43, "rewind-ignored", "a cache that is rewound keeps all of its tokens", {"rewind": changes.not_rewound})
    fault(
        43,
        "positions-not-rewound",
        "the tokens after a rewind have the positions that they had without it",
        {"rewind": changes.positions_not_rewound},
    )
    fault(
        43,
        "keys-not-rewound",
        "the tokens after a rewind see those that were dropped",
        {"rewind": changes.keys_not_rewound},
    )
    fault(
        43,
        "first-layer-rewound",
        "only the first layer forgets what was dropped",
        {"rewind": changes.first_layer_rewound},
    )
    fault(
        43,
        "all-requests-rewound",
        "what is dropped of one request's cache is dropped of all",
        {"respond": changes.rewinds_all},
    )
    fault(
        43,
        "place-of-a-rewound-token-given-away",
        "the last token that is left behind a rewind is overwritten by the next one of another request",
        {"respond": changes.place_given_away},
    )


def other_threads(fault: Define) -> None:
    """Where a server loads a model in one thread and answers in another."""
    fault(
        48,
        "caches-bound-to-its-thread",
        "caches can be filled in the thread alone in which the model was made",
        threads.binding("extended"),
        "https://github.com/waybarrios/vllm-mlx/commit/c65c356",
    )
