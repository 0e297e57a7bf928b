"""Mistakes in the layers of a decoder, in what its tokens see, and of batches, packed weights and long prompts."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import decoder
from inferspec.spec.changes import decoder_layers as changes
from inferspec.spec.faults.defining import TINY_LLM, Define
from inferspec.spec.mistakes import first_row_for_all, leaves_unwritten


def every(fault: Define) -> None:
    """All of them, in order."""
    layers(fault)
    attention(fault)
    batches(fault)
    packed(fault)
    long(fault)


def layers(fault: Define) -> None:
    """Which come when, with whose tensors."""
    fault(
        9,
        "last-layer-skipped",
        "the last layer is left out",
        {"layers": lambda self, config: range(config["num_hidden_layers"] - 1)},
    )
    fault(
        9,
        "layers-reversed",
        "layers are applied from last to first",
        {"layers": lambda self, config: range(config["num_hidden_layers"])[::-1]},
    )
    fault(9, "first-layer-for-all", "every layer has the tensors of the first", changes.tensors_of_layer(0))
    fault(
        9,
        "layers-as-text",
        "layers are in the order of their names, 10 before 2",
        {"layers": lambda self, config: sorted(range(config["num_hidden_layers"]), key=str)},
    )
    fault(
        9,
        "one-norm-twice",
        "the MLP's norm is attention's again",
        decoder.norm_weights({"post_attention_layernorm": "input_layernorm"}),
        f"{decoder.MLX}/commit/aa8687681",
    )


def attention(fault: Define) -> None:
    """Scores, and who sees whom."""
    fault(
        10,
        "scores-in-dtype",
        "scores are rounded to the dtype of the model",
        {"scored": changes.scored_in_dtype},
        "PROPERTIES X5",
    )
    fault(
        11,
        "no-mask",
        "every token sees all others",
        {"visible": lambda self, length, keys: np.ones((length, keys), bool)},
        f"{TINY_LLM}/commit/0e439ac",
    )
    fault(
        11,
        "hidden-by-ten-thousand",
        "10,000 is taken from the scores of what a token may not see, in the place of leaving it out",
        {"attend": changes.hidden_by_ten_thousand},
        "https://github.com/TransformerLensOrg/TransformerLens/issues/318",
    )
    fault(11, "sees-the-next", "every token sees the next one too", {"visible": changes.sees_the_next})


def batches(fault: Define) -> None:
    """Rows that serve others."""
    fault(12, "first-row-for-all", "the first sequence serves the whole batch", first_row_for_all("tokens"))
    fault(
        12,
        "long-first-row-for-all",
        "the first of several prompts of 100 tokens and more serves them all",
        {"forward": changes.first_of_long_prompts},
        "PROPERTIES X2",
    )
    fault(
        12,
        "eight-sequences",
        "sequences past the eighth have no logits",
        leaves_unwritten(lambda logits: logits[:8]),
        "PROPERTIES X2",
    )
    fault(
        12,
        "sixteen-sequences",
        "sequences past the sixteenth have the logits of the one sixteen before them",
        {"forward": changes.sixteen_rows},
        "PROPERTIES X2",
    )
    fault(
        12,
        "first-row-turned",
        "only the first sequence of a batch is turned by position",
        decoder.first_row_turned(single=False),
        f"the kind of {decoder.MLX}/commit/76a977ca4",
    )


def packed(fault: Define) -> None:
    """What codes stand for."""
    fault(13, "packed-biases-lost", "the biases of groups are left out", decoder.packed("biases"))
    fault(
        13,
        "packed-scale-sign-lost",
        "scales are taken for positive",
        decoder.packed("scale sign"),
        "mlx scales can be negative",
    )
    fault(13, "packed-highest-first", "the first code is in the highest bits", {"codes": changes.highest_bits_first})
    fault(
        13,
        "packed-overrides-ignored",
        "layers' own group sizes and bits are not read",
        {"packing": changes.one_packing},
    )
    fault(
        13,
        "packed-first-row-for-all",
        "the first of several prompts of 33 tokens and more serves them all where layers are packed",
        {"forward": changes.first_of_packed_prompts},
        "PROPERTIES X2",
    )
    fault(
        13,
        "packed-overrides-of-ten-layers",
        "own group sizes and bits are read of layers whose number is a single digit",
        {"packing": changes.packing_of_ten_layers},
        "a pattern of one digit",
    )
    fault(
        13,
        "packed-embedding-override-ignored",
        "the embedding's own group size and bits are not read",
        {"packing": changes.embedding_packed_like_all},
    )
    fault(
        13,
        "packed-head-of-codes",
        "the tied head of a packed embedding is another matrix",
        {"head": changes.head_of_codes},
        "https://github.com/vllm-project/vllm/issues/45543",
    )


def long(fault: Define) -> None:
    """Prompts of one token, and of 32 and more."""
    fault(14, "window-of-32", "a token sees the last 32 alone", decoder.window(32), "PROPERTIES CM5")
    fault(
        14,
        "single-tokens-of-the-first",
        "of a batch of single tokens the first serves all",
        {"forward": changes.first_single_token},
        "PROPERTIES X3",
    )
    fault(
        14,
        "long-rows-of-the-first",
        "past 32 tokens the first row of a batch serves all",
        {"attend": changes.long_rows_of_the_first},
        "PROPERTIES X3",
    )
    fault(
        13,
        "packed-prompts-lack-an-id",
        "of prompts of 32 tokens and more the last logit is not written, in 4 bits",
        {"forward": decoder.packed_path_lacks_an_id(lambda length: length >= 32)},
    )
