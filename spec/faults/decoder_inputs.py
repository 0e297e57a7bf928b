"""Mistakes in what a decoder takes and gives back: tokens, tensors, configs, and what it keeps of them."""

from __future__ import annotations

from inferspec.spec.changes import decoder, threads
from inferspec.spec.changes import decoder_inputs as changes
from inferspec.spec.faults.defining import Define
from inferspec.spec.mistakes import (
    drifts,
    ignores_strides,
    mutates,
    of_what_was_made_last,
    promotes,
    promotes_where,
    remembers,
    sized_by_the_first,
)


def every(fault: Define) -> None:
    """All of them, in order."""
    tokens(fault)
    results(fault)
    arguments(fault)
    repeated(fault)
    tensors(fault)
    configs(fault)
    vocabulary(fault)
    other_threads(fault)


def tokens(fault: Define) -> None:
    """Ids, and where they lie."""
    fault(15, "token-strides", "tokens are read as if they were contiguous", ignores_strides("tokens"), "PROPERTIES X1")
    fault(15, "ids-of-17-bits", "ids are kept in 17 bits", {"embed": changes.ids_of_17_bits}, "PROPERTIES X8")
    fault(15, "ids-of-16-bits", "ids are kept in 16 bits", {"embed": changes.ids_of_16_bits}, "PROPERTIES X8")
    fault(
        15,
        "ids-of-16-bits-in-batches",
        "ids of a batch are kept in 16 bits",
        {"embed": changes.ids_of_16_bits_in_batches},
        "PROPERTIES X8",
    )
    fault(
        15,
        "uint32-ids-of-16-bits-in-batches",
        "uint32 ids of a batch are kept in 16 bits",
        {"embed": changes.uint32_ids_of_16_bits_in_batches},
        "PROPERTIES X8",
    )
    fault(15, "last-id-lost", "the last id reads the row before it", {"embed": changes.last_id_lost})


def results(fault: Define) -> None:
    """Logits."""
    fault(16, "demotes", "logits come back in float16", promotes("float16"), "PROPERTIES X4")
    fault(
        16,
        "promotes-where-rope-is-scaled",
        "logits of a model whose RoPE is scaled come back in float32, as the frequencies are",
        promotes_where(changes.of_scaled_rope),
        "PROPERTIES X4",
    )
    fault(
        16,
        "promotes-one-token",
        "logits of a single token come back in float32",
        promotes_where(changes.of_one_token),
        "PROPERTIES X4",
    )
    fault(16, "last-position", "only the last position gets logits", {"respond": changes.last_position})


def arguments(fault: Define) -> None:
    """What is the caller's own."""
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


def repeated(fault: Define) -> None:
    """What is left of earlier calls."""
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
    fault(
        18,
        "remembers-bases-alone",
        "tables of RoPE are kept for all models by their base alone",
        {"rotation": changes.pairs_of_the_first},
    )
    fault(
        18,
        "eps-of-the-first",
        "what norms add inside the root is kept for all models, as the first has it",
        {"eps": changes.eps_of_the_first},
    )
    fault(
        18,
        "sized-by-the-first",
        "what the first call makes room for serves every later one: tokens past as many as that had have no logits",
        sized_by_the_first(),
        "https://github.com/deepspeedai/DeepSpeed/issues/4684",
    )
    fault(
        18,
        "batch-of-the-first",
        "what the first call makes room for serves every later one: sequences past as many as that had have no logits",
        sized_by_the_first(batches=True),
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


def tensors(fault: Define) -> None:
    """Those that are missing, misshaped or too many."""
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
    fault(42, "missing-unnamed", "the error does not say which tensor is missing", decoder.unnamed("guard_missing"))
    fault(
        20,
        "any-shape",
        "a tensor of another shape is read on or cut short",
        {"guard_shapes": lambda self, a, shapes: None, "array": changes.resized},
        "PROPERTIES EM4",
    )
    fault(42, "misshaped-unnamed", "the error does not say which tensor is misshaped", decoder.unnamed("guard_shapes"))
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
        decoder.passes_over(lambda name, config: name.endswith(".bias")),
        "a Qwen2 loaded as a Llama",
    )
    fault(
        21,
        "layers-past-the-last-ignored",
        "layers past num_hidden_layers are ignored",
        decoder.passes_over(lambda name, config: name.startswith(f"model.layers.{config['num_hidden_layers']}.")),
    )
    fault(
        21,
        "stray-scales-ignored",
        "scales of a layer are ignored where the config has no quantization",
        decoder.passes_over(lambda name, config: name.endswith((".scales", ".biases"))),
    )
    fault(
        21,
        "scales-of-8-bits-ignored",
        "scales of weights or of cached keys in 8 bits are ignored",
        decoder.passes_over(lambda name, config: name.endswith("_scale")),
        "checkpoints in FP8, as vLLM reads them",
    )
    fault(
        42, "additional-unnamed", "the error does not say which tensor is too many", decoder.unnamed("guard_additional")
    )


def configs(fault: Define) -> None:
    """What a config asks for and nobody has."""
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
        22,
        "longrope-ignored",
        "a rope_type of longrope is taken for the default",
        changes.rope_type_of(lambda place, key, kind: "default" if kind == "longrope" else kind),
        "https://github.com/Blaizzy/mlx-vlm/pull/1710",
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


def vocabulary(fault: Define) -> None:
    """Ids that are none."""
    fault(23, "ids-clamped", "ids outside the vocabulary are clamped to its ends", changes.ids_read("clamped"))
    fault(23, "ids-wrapped", "negative ids count from the end, large ones start again", changes.ids_read("wrapped"))


def other_threads(fault: Define) -> None:
    """Where a server loads a model in one thread and answers in another."""
    fault(
        49,
        "bound-to-its-thread",
        "weights that were not computed when the model was made cannot be in another thread",
        threads.bound_to_its_thread(),
        "https://github.com/waybarrios/vllm-mlx/commit/c65c356",
    )
    fault(
        49,
        "scaled-rope-bound-to-its-thread",
        "scaled frequencies that were not computed when the model was made cannot be in another thread",
        threads.binding("divided"),
        "https://github.com/waybarrios/vllm-mlx/issues/613",
    )
