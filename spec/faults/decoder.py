"""Mistakes that any decoder can have, with a cache and without, and other honest ways to compute one.

`shared` makes the fault dictionary of a model of them; Llama and Qwen3 add their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from inferspec.spec.changes import decoder as changes
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults import rope_scaling
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    ignores_strides,
    leaves_unwritten,
    mutates,
    of_what_was_made_last,
    promotes,
    remembers,
)
from inferspec.spec.numerics import Precision, f64
from inferspec.spec.transformer import Decoder, Incremental

TINY_LLM = "https://github.com/skyzh/tiny-llm"
TIRED = "a tired engineer"


def shared(spec: ModuleType, prefix: str, own: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults of a model: those that any decoder can have, and its own in their place (requirement 8)."""
    found: list[Fault] = []

    def fault(number: int, name: str, text: str, change: Change, source: str = TIRED) -> None:
        requirement = getattr(spec, f"{prefix.upper()}_{number:02d}")
        found.append(Fault(f"{prefix}-{name}", text, requirement, change, source))

    fault(1, "final-norm-dropped", "the last norm is left out", changes.norm_dropped("model.norm"))
    fault(1, "nulls-refused", "a config with rope_scaling: null is refused", {"guard_config": changes.no_null})
    fault(
        1,
        "other-fields-refused",
        "a config that says more than the sizes is refused",
        {"guard_config": changes.known_fields_alone},
    )
    fault(1, "window-of-256", "a token sees the last 256 alone", changes.window(256), "PROPERTIES CM5")
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
        changes.norm_weights(
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
    fault(
        2,
        "tied-own-head",
        "a tied model has a head of its own",
        {"head": changes.own_head},
        f"{changes.MLX_LM}/commit/e92138cb",
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
        changes.path_lacks_a_feature(lambda path: path.dim == 128 and path.ratio >= 4),
    )
    fault(
        4,
        "kv-heads-in-turn",
        "query head h reads key head h mod H",
        {"read_heads": lambda self, queries, keys: np.arange(queries) % keys},
    )
    fault(4, "features-before-heads", "projections are split as D×heads", {"split": changes.features_before_heads})
    fault(4, "heads-not-moved-back", "heads are merged without moving them back", {"merged": changes.merged_in_place})
    fault(
        4,
        "keys-permuted-like-queries",
        "the change of RoPE layout permutes keys by the number of query heads",
        {"project": changes.keys_permuted_like_queries},
        "https://github.com/ggml-org/llama.cpp/issues/3018",
    )
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
    fault(5, "queries-unturned", "only keys are turned by position", {"placed": changes.queries_unturned})
    fault(
        5,
        "rope-dims-of-hidden",
        "frequencies are those of a head dim of hidden_size / heads",
        {"turn": changes.pairs_of_hidden},
    )
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
    fault(7, "gate-and-up-swapped", "gate and up projection are exchanged", {"matrix": changes.gate_and_up_swapped})
    fault(7, "gelu", "the gate goes through GELU", {"activated": changes.gelu})
    fault(
        7,
        "sigmoid-for-silu",
        "the gate goes through the sigmoid alone",
        {"activated": lambda self, gate, m: 1 / (1 + np.exp(-gate))},
    )
    found += own
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
        changes.norm_weights({"post_attention_layernorm": "input_layernorm"}),
        f"{changes.MLX}/commit/aa8687681",
    )
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
    fault(11, "sees-the-next", "every token sees the next one too", {"visible": changes.sees_the_next})
    fault(12, "first-row-for-all", "the first sequence serves the whole batch", first_row_for_all("tokens"))
    fault(
        12,
        "eight-sequences",
        "sequences past the eighth have no logits",
        leaves_unwritten(lambda logits: logits[:8]),
        "PROPERTIES X2",
    )
    fault(
        12,
        "first-row-turned",
        "only the first sequence of a batch is turned by position",
        changes.first_row_turned(single=False),
        f"the kind of {changes.MLX}/commit/76a977ca4",
    )
    fault(13, "packed-biases-lost", "the biases of groups are left out", changes.packed("biases"))
    fault(
        13,
        "packed-scale-sign-lost",
        "scales are taken for positive",
        changes.packed("scale sign"),
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
    fault(14, "window-of-32", "a token sees the last 32 alone", changes.window(32), "PROPERTIES CM5")
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
        {"forward": changes.packed_path_lacks_an_id(lambda length: length >= 32)},
    )
    fault(15, "token-strides", "tokens are read as if they were contiguous", ignores_strides("tokens"), "PROPERTIES X1")
    fault(15, "ids-of-17-bits", "ids are kept in 17 bits", {"embed": changes.ids_of_17_bits}, "PROPERTIES X8")
    fault(15, "ids-of-16-bits", "ids are kept in 16 bits", {"embed": changes.ids_of_16_bits}, "PROPERTIES X8")
    fault(15, "last-id-lost", "the last id reads the row before it", {"embed": changes.last_id_lost})
    fault(16, "promotes", "logits come back in float32", promotes(), "PROPERTIES X4")
    fault(16, "last-position", "only the last position gets logits", {"respond": changes.last_position})
    fault(17, "changes-tokens", "the tokens are overwritten", mutates("tokens"), "PROPERTIES X6")
    fault(
        17,
        "changes-weights",
        "a factor is folded into the caller's own weights",
        {"respond": changes.scales_weights},
        "PROPERTIES X6",
    )
    fault(
        41,
        "moves-the-base-of-rope",
        "a base of RoPE in rope_parameters is copied to the top of the caller's own config",
        {"respond": changes.base_moved_within_the_config},
    )
    fault(
        41,
        "takes-the-base-of-rope",
        "of a base of RoPE that is said twice one is taken out of the caller's own config",
        {"respond": changes.base_taken_out_of_the_config},
    )
    fault(
        41,
        "fills-the-config",
        "the default of what is not said is put into the caller's own config",
        {"respond": changes.defaults_filled_in},
    )
    fault(
        41,
        "takes-the-spare-head",
        "a tied model takes a spare head out of the caller's own dict",
        {"respond": changes.spare_head_taken_out},
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/llama.py, sanitize",
    )
    fault(
        41,
        "replaces-weights",
        "a tensor is replaced in the caller's own dict",
        {"respond": changes.tensor_replaced},
    )
    fault(
        18,
        "settings-of-the-model-made-last",
        "what the config says is kept in one place for all models, as it was said last",
        of_what_was_made_last("config"),
        "https://github.com/sgl-project/sglang/pull/33575",
    )
    fault(
        18,
        "remembers-whole-bases",
        "tables of RoPE are kept for all models by the whole part of their base",
        changes.base_kept_by(lambda base, dim: int(base)),
    )
    fault(
        18,
        "remembers-head-dims",
        "tables of RoPE are kept for all models by their head dim alone",
        changes.base_kept_by(lambda base, dim: dim),
        "equinox 0.13.8, RotaryPositionalEmbedding: its tables are kept by size and dtype",
    )
    fault(18, "remembers-tokens", "a result cached by shape serves other tokens", remembers("tokens"))
    fault(
        18,
        "remembers-weights",
        "tensors of the first model serve all of its shapes",
        remembers("weights"),
        "the kind of mlx 874b739f3",
    )
    fault(18, "drifts", "a buffer of an earlier call is added to", drifts())
    fault(
        19,
        "missing-filled",
        "a tensor that is missing stays what it was initialised to",
        {
            "guard_missing": lambda self, a, shapes: None,
            "guard_shapes": changes.shapes_of_those_there,
            "array": changes.filled,
        },
        "PROPERTIES EM4",
    )
    fault(19, "missing-unnamed", "the error does not say which tensor is missing", changes.unnamed("guard_missing"))
    fault(
        20,
        "any-shape",
        "a tensor of another shape is read on or cut short",
        {"guard_shapes": lambda self, a, shapes: None, "array": changes.resized},
        "PROPERTIES EM4",
    )
    fault(20, "misshaped-unnamed", "the error does not say which tensor is misshaped", changes.unnamed("guard_shapes"))
    fault(
        21,
        "additional-ignored",
        "tensors that have no place are ignored",
        {"guard_additional": lambda self, a, shapes: None},
        "PROPERTIES EM4",
    )
    fault(
        21,
        "stray-biases-ignored",
        "biases that the config does not ask for are ignored",
        changes.passes_over(lambda name, config: name.endswith(".bias")),
        "a Qwen2 loaded as a Llama",
    )
    fault(
        21,
        "layers-past-the-last-ignored",
        "layers past num_hidden_layers are ignored",
        changes.passes_over(lambda name, config: name.startswith(f"model.layers.{config['num_hidden_layers']}.")),
    )
    fault(
        21,
        "stray-scales-ignored",
        "scales of a layer are ignored where the config has no quantization",
        changes.passes_over(lambda name, config: name.endswith((".scales", ".biases"))),
    )
    fault(
        21, "additional-unnamed", "the error does not say which tensor is too many", changes.unnamed("guard_additional")
    )
    fault(
        22,
        "unknown-rope-ignored",
        "an unknown rope_type is taken for the default",
        {"guard_config": lambda self, config: self.guard_activation(config)},
        "the kind of mlx-lm cff94b7f",
    )
    fault(
        22,
        "rope-scaling-ignored",
        "rope_scaling, where transformers 4 writes the kind of RoPE, is not read",
        changes.rope_type_of(lambda place, key, kind: kind if place == "rope_parameters" else "default"),
        "the kind of mlx-lm cff94b7f",
    )
    fault(
        22,
        "legacy-rope-type-ignored",
        "the kind of RoPE is read from rope_type alone, and not from type",
        changes.rope_type_of(lambda place, key, kind: kind if key == "rope_type" else "default"),
        "the rope_scaling of configs before rope_type",
    )
    fault(
        22,
        "known-rope-ignored",
        "kinds of RoPE that have a name are taken for the default, others are refused",
        changes.rope_type_of(
            lambda place, key, kind: "default" if kind in ("linear", "dynamic", "llama3", "yarn") else kind
        ),
    )
    fault(
        32,
        "activation-ignored",
        "every hidden_act is silu",
        {"guard_activation": lambda self, config: None},
        "mlx-lm's llama.py",
    )
    fault(
        32,
        "known-activations-ignored",
        "an activation that has a name is taken for silu, others are refused",
        {"guard_activation": changes.known_activations_alone},
    )
    fault(23, "ids-clamped", "ids outside the vocabulary are clamped to its ends", changes.ids_read("clamped"))
    fault(23, "ids-wrapped", "negative ids count from the end, large ones start again", changes.ids_read("wrapped"))
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
    fault(
        25,
        "tokens-of-large-heads-lack-a-feature",
        "after a prompt a token's heads of 64 features and more lack the last one, in half precision",
        changes.path_lacks_a_feature(
            lambda path: path.length == 1 < path.keys and path.dim >= 64 and path.dtype != "float32"
        ),
    )
    fault(
        25,
        "tokens-of-large-heads-lack-a-feature-in-float32",
        "after a prompt a token's heads of 64 features and more lack the last one, in float32",
        changes.path_lacks_a_feature(
            lambda path: path.length == 1 < path.keys and path.dim >= 64 and path.dtype == "float32"
        ),
    )
    fault(
        25,
        "chunks-of-large-heads-lack-a-feature",
        "chunks of 32 tokens and more after others lack the last of 128 features",
        changes.path_lacks_a_feature(lambda path: 32 <= path.length < path.keys and path.dim == 128),
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
        {"forward": changes.packed_path_lacks_an_id(lambda length: length == 1, half=True)},
    )
    fault(
        30,
        "packed-chunks-lack-an-id",
        "of 8 tokens and more the last logit is not written, in 4 bits",
        {"forward": changes.packed_path_lacks_an_id(lambda length: length >= 8)},
    )
    fault(25, "eight-caches", "layers past the eighth write into caches of others", {"extended": changes.eight_caches})
    fault(24, "cache-of-all-layers", "all layers write into one cache", changes.extended_by("one for all layers"))
    fault(
        25,
        "offset-one-more",
        "the first token after the prompt is one position too far",
        {"positions": changes.one_more},
        "https://github.com/GeeeekExplorer/nano-vllm/commit/f5b4840",
    )
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
    fault(26, "chunk-unmasked", "a chunk after others has no mask", {"visible": changes.unmasked_after_others})
    fault(
        27,
        "cache-first-row-for-all",
        "the first sequence's keys serve the whole batch",
        changes.extended_by("one for all rows"),
    )
    fault(
        27,
        "single-token-first-row-turned",
        "of single tokens only the first sequence's is turned",
        changes.first_row_turned(single=True),
        f"{changes.MLX}/commit/76a977ca4",
    )
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
        {"owners": lambda self, a: [owner % 2 for owner in Incremental.owners(self, a)]},
    )
    fault(28, "one-offset-for-all", "requests count their positions together", {"respond": changes.offset_of_the_model})
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
        29, "cache-ring-of-256", "only the last 256 tokens are kept", changes.extended_by("last 256"), "PROPERTIES KV2"
    )
    fault(
        29,
        "offset-of-the-buffer",
        "past 256 tokens the offset is the length of the buffer",
        {"positions": changes.allocated_positions},
        f"{changes.MLX_LM}/commit/eb98ff72",
    )
    fault(
        30,
        "packed-single-token",
        "packed layers leave out the biases of groups where there is one token",
        {"forward": changes.single_token_without_biases},
    )
    fault(31, "chunk-promotes", "logits of chunks come back in float32", promotes(), "PROPERTIES X4")
    rope_scaling.scaled(fault)
    return tuple(found)


def variants(name: str, prefix: str) -> tuple[Variant, ...]:
    """Other honest ways to compute a model."""
    found = []
    for operation, suffix in ((name, ""), (f"{name}.incremental", "-incremental")):
        for precision, where in ((Precision.FLOAT32, "float32"), (Precision.NATIVE, "the dtype of the model")):
            found.append(
                Variant(
                    f"{prefix}-rounds-in-{precision}{suffix}",
                    f"every activation is rounded to the dtype, everything between them to {where}",
                    operation,
                    changes.rounding(precision is Precision.NATIVE, bool(suffix)),
                    precision,
                )
            )
    return (*found, *rope_scaling.variants(name, prefix))
