"""Mistakes in the sequence of a decoder: its blocks, head, heads, positions, norms and MLP."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import decoder
from inferspec.spec.changes import decoder_blocks as changes
from inferspec.spec.faults.defining import TINY_LLM, Define
from inferspec.spec.transformer import Decoder


def every(fault: Define) -> None:
    """All of them, in order."""
    sequence(fault)
    head(fault)
    heads(fault)
    positions(fault)
    norms(fault)
    mlp(fault)


def sequence(fault: Define) -> None:
    """What follows what."""
    fault(1, "final-norm-dropped", "the last norm is left out", changes.norm_dropped("model.norm"))
    fault(1, "nulls-refused", "a config with rope_scaling: null is refused", {"guard_config": changes.no_null})
    fault(
        1,
        "null-quantization-refused",
        "a dense model whose config has a quantization_config of null is refused",
        {"guard_config": changes.no_null_quantization},
        "the kind of https://github.com/Blaizzy/mlx-vlm/issues/1776",
    )
    fault(
        1,
        "activation-needed",
        "a config that does not say hidden_act, which is silu then, is refused",
        {"guard_config": changes.activation_needed},
        "a field without a default",
    )
    fault(
        1,
        "whole-bases-refused",
        "a config whose rope_theta is written without a fraction is refused, as that of Qwen3 is",
        {"guard_config": changes.no_whole_base},
        "the kind of https://github.com/sgl-project/sglang/issues/26674",
    )
    fault(
        1,
        "other-fields-refused",
        "a config that says more than the sizes is refused",
        {"guard_config": changes.known_fields_alone},
    )
    fault(1, "window-of-256", "a token sees the last 256 alone", decoder.window(256), "PROPERTIES CM5")
    fault(
        1, "input-norm-dropped", "attention reads the stream without its norm", changes.norm_dropped(".input_layernorm")
    )
    fault(
        1,
        "mlp-norm-dropped",
        "the MLP reads the stream without its norm",
        changes.norm_dropped(".post_attention_layernorm"),
    )
    fault(
        1,
        "norms-swapped",
        "the norms of attention and MLP are exchanged",
        decoder.norm_weights(
            {"input_layernorm": "post_attention_layernorm", "post_attention_layernorm": "input_layernorm"}
        ),
    )
    fault(
        1,
        "residual-of-normed",
        "branches are added to the normed stream",
        {"added": lambda self, x, branch, normed: normed + branch},
    )
    fault(
        1,
        "stream-in-float16",
        "of bfloat16 models the residual stream is kept in float16",
        {"block": changes.in_float16},
    )
    fault(
        1,
        "squares-in-float16",
        "of float16 models the norms square in float16, which overflows past 255",
        {"norm": changes.squares_in_float16},
        "PROPERTIES MO5",
    )
    fault(
        1,
        "stream-clipped",
        "the residual stream is clipped to ±65504, which is meant for float16 models alone",
        {"added": lambda self, x, branch, normed: np.clip(x + branch, -65504, 65504)},
    )
    fault(1, "parallel-blocks", "attention and MLP read the same stream, as in GPT-J", {"block": changes.parallel})
    fault(
        1,
        "embedding-scaled",
        "embeddings are multiplied by sqrt(hidden_size), as in Gemma",
        {"embed": changes.scaled_embedding},
        "the kind of mlx-lm c27c94a0",
    )


def head(fault: Define) -> None:
    """What makes logits."""
    fault(
        2,
        "tied-own-head",
        "a tied model has a head of its own",
        {"head": changes.own_head},
        f"{decoder.MLX_LM}/commit/e92138cb",
    )
    fault(
        2,
        "untied-head-ignored",
        "an untied model uses its embedding as head",
        {"head": lambda self, a: self.matrix("model.embed_tokens", a)},
        "https://github.com/pegainfer-project/pegainfer/pull/544",
    )
    fault(3, "spare-head-used", "a tied model uses an lm_head where the weights have one", {"head": changes.spare_head})
    fault(
        3,
        "spare-head-refused",
        "a tied model refuses weights with an lm_head",
        {"guard_additional": changes.no_spare_head},
    )
    fault(
        3,
        "packed-spare-head-refused",
        "a tied model takes a spare lm_head's weight, and refuses its scales and biases",
        {"guard_additional": changes.no_packed_spare_head},
        "https://github.com/ml-explore/mlx-swift-lm/pull/490",
    )


def heads(fault: Define) -> None:
    """How many there are, and which reads which."""
    fault(
        4,
        "scale-of-hidden",
        "scores are multiplied by (hidden_size / heads)^-0.5",
        {"scale": lambda self, config: changes.head_dim_of_hidden(self, config) ** -0.5},
        "the kind of vllm-metal bbacf63",
    )
    fault(4, "scale-twice", "scores are scaled twice", {"scale": lambda self, config: 1 / self.head_dim(config)})
    fault(4, "scale-missing", "scores are not scaled", {"scale": lambda self, config: 1.0})
    fault(
        4,
        "head-dim-ignored",
        "head_dim is hidden_size / heads, whatever the config says",
        {"head_dim": changes.head_dim_of_hidden},
        "https://github.com/vllm-project/vllm-metal/commit/bbacf63",
    )
    fault(
        4,
        "kv-heads-modulo-four",
        "key heads are counted modulo 4",
        {"read_heads": lambda self, queries, keys: np.arange(queries) // (queries // keys) % 4},
    )
    fault(
        4,
        "sixty-four-features",
        "features of a head past 64 do not enter its scores",
        {"attend": changes.sixty_four_features},
    )
    fault(
        4,
        "large-groups-lack-a-feature",
        "of prompts the last of 128 features is not written where four query heads and more share a key head",
        decoder.path_lacks_a_feature(lambda path: path.dim == 128 and path.ratio >= 4),
    )
    fault(
        4,
        "kv-heads-in-turn",
        "query head h reads key head h mod H",
        {"read_heads": lambda self, queries, keys: np.arange(queries) % keys},
    )
    fault(
        4,
        "groups-of-four-in-turn",
        "where four query heads share each of several key heads, they read them in turn",
        {"read_heads": changes.in_turn_where(lambda queries, keys: queries == 4 * keys)},
    )
    fault(
        4,
        "three-key-heads-in-turn",
        "where several query heads share each of three key heads, they read them in turn",
        {"read_heads": changes.in_turn_where(lambda queries, keys: queries > keys == 3)},
    )
    fault(4, "features-before-heads", "projections are split as D×heads", {"split": changes.features_before_heads})
    fault(4, "heads-not-moved-back", "heads are merged without moving them back", {"merged": changes.merged_in_place})
    fault(
        4,
        "axes-by-their-sizes",
        "heads are told from tokens by how many there are: where they are as many, keys and values are read the wrong way round",
        {"extended": changes.axes_by_their_sizes},
        "https://github.com/foundation-model-stack/foundation-model-stack/pull/255",
    )
    fault(
        4,
        "keys-permuted-like-queries",
        "the change of RoPE layout permutes keys by the number of query heads",
        {"project": changes.keys_permuted_like_queries},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    )


def positions(fault: Define) -> None:
    """The base of RoPE, and what is turned."""
    fault(
        5,
        "rope-parameters-ignored",
        "a base in rope_parameters is not read: it is 10,000",
        changes.theta_of("rope_theta"),
        "https://github.com/InternLM/lmdeploy/pull/4304",
    )
    fault(
        5,
        "default-scaling-refused",
        "a rope_scaling that says that it is none is refused for want of a factor",
        {"guard_config": changes.no_scaling_but_null},
        "https://github.com/sgl-project/sglang/issues/14772",
    )
    fault(
        5,
        "kind-under-both-names-refused",
        "a rope_scaling with its kind under both names is refused",
        {"guard_config": changes.one_name_of_the_kind},
        "a deserialiser that has one name as the alias of the other",
    )
    fault(
        5,
        "base-beside-parameters",
        "a rope_theta beside rope_parameters without one is not read",
        {"theta": changes.base_beside_parameters},
        "https://github.com/InternLM/lmdeploy/issues/4304",
    )
    fault(
        5,
        "rope-theta-whole",
        "rope_theta is read as a whole number",
        {"theta": lambda self, config: float(int(Decoder.theta(self, config)))},
    )
    fault(
        5,
        "rope-theta-ignored",
        "a top-level rope_theta is not read: it is 10,000",
        changes.theta_of("rope_parameters"),
        "https://github.com/lyogavin/airllm/pull/369",
    )
    fault(
        5,
        "rope-traditional",
        "neighbouring features are the pairs of RoPE",
        {"pairs": lambda self, dim: (np.arange(0, dim, 2), np.arange(1, dim, 2))},
        f"{TINY_LLM}/commit/1fc0752",
    )
    fault(
        5,
        "rope-table-in-bfloat16",
        "the table of cosine and sine, or one of them, is in bfloat16",
        changes.table_in_bfloat16("cosine", "sine"),
        forms=(changes.table_in_bfloat16("cosine"), changes.table_in_bfloat16("sine")),
    )
    fault(
        5,
        "rope-frequencies-in-the-dtype",
        "the frequencies of RoPE are cast to the dtype of the model with all else",
        {"rotation": changes.frequencies_in_the_dtype},
        "https://github.com/huggingface/transformers/issues/29496",
    )
    fault(5, "queries-unturned", "only keys are turned by position", {"placed": changes.queries_unturned})
    fault(
        5,
        "rope-dims-of-hidden",
        "frequencies are those of a head dim of hidden_size / heads",
        {"turn": changes.pairs_of_hidden},
    )


def norms(fault: Define) -> None:
    """Their eps."""
    fault(
        6,
        "eps-times-ten",
        "eps is ten times that of the config",
        {"eps": lambda self, n, config: 10 * config["rms_norm_eps"]},
    )
    fault(
        6,
        "eps-outside-root",
        "eps is added outside the root",
        {"inverse_root": lambda self, mean, eps: 1 / (np.sqrt(mean) + eps)},
    )
    fault(6, "eps-fixed", "eps is 1e-6, whatever the config says", {"eps": lambda self, name, config: 1e-6})
    fault(
        6,
        "eps-of-final-norm",
        "the last norm has an eps of 1e-6",
        {"eps": lambda self, name, config: 1e-6 if name == "model.norm" else config["rms_norm_eps"]},
    )


def mlp(fault: Define) -> None:
    """What goes through the gate."""
    fault(7, "gate-and-up-swapped", "gate and up projection are exchanged", {"matrix": changes.gate_and_up_swapped})
    fault(7, "silu-of-low-gates-is-zero", "SiLU is 0 where the gate is below -10", {"activated": changes.no_low_gates})
    fault(
        7,
        "gates-overflow",
        "the gate goes through x · eˣ / (1 + eˣ): inf over inf where it is large",
        {"activated": changes.overflowing},
    )
    fault(7, "gelu", "the gate goes through GELU", {"activated": changes.gelu})
    fault(
        7,
        "sigmoid-for-silu",
        "the gate goes through the sigmoid alone",
        {"activated": lambda self, gate, m: 1 / (1 + np.exp(-gate))},
    )
