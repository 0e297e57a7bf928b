"""Tensors that are missing, misshaped or without a place, other models and damaged files, taken all the same."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import loading
from inferspec.spec.changes import loading_refusals as changes
from inferspec.spec.changes.decoder import unnamed
from inferspec.spec.contract import Fault
from inferspec.spec.faults.loading_sources import TIRED
from inferspec.spec.loading import LOAD_11, LOAD_12, LOAD_13, LOAD_14, LOAD_15, LOAD_28, Load

FAULTS: tuple[Fault, ...] = (
    Fault(
        "loading-missing-random",
        "a missing tensor keeps its random initial values",
        LOAD_11,
        {"guard_missing": changes.silent, "completed": changes.filled(loading.random_like)},
        "from_pretrained of transformers, which warns",
    ),
    Fault(
        "loading-missing-zero",
        "a missing tensor is zeros",
        LOAD_11,
        {"guard_missing": changes.silent, "completed": changes.filled(np.zeros)},
        TIRED,
    ),
    Fault(
        "loading-missing-head-tied",
        "where an untied model has no head, its embedding serves",
        LOAD_11,
        {"guard_missing": changes.may_lack("lm_head.weight"), "completed": changes.embedding_for_the_head},
        "PROPERTIES EM3",
    ),
    Fault(
        "loading-missing-bias-zero",
        "a missing bias is zeros",
        LOAD_11,
        {"guard_missing": changes.may_lack(".bias"), "completed": changes.filled(np.zeros)},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-index-alone",
        "what the index names is taken to be there: a tensor that its shard lacks keeps its random initial values",
        LOAD_11,
        {"guard_files": changes.tolerates("no tensor"), "inner": changes.lost_shard_is_random},
        "https://github.com/huggingface/huggingface_hub/issues/4725",
    ),
    Fault(
        "loading-missing-unnamed",
        "a missing tensor is refused without a word on which",
        LOAD_28,
        unnamed("guard_missing", Load),
        TIRED,
    ),
    Fault(
        "loading-additional-unnamed",
        "a tensor without a place is refused without a word on which",
        LOAD_28,
        unnamed("guard_additional", Load),
        TIRED,
    ),
    Fault(
        "loading-misshaped-unnamed",
        "a tensor of another shape is refused without a word on which",
        LOAD_28,
        unnamed("guard_shapes", Load),
        TIRED,
    ),
    Fault(
        "loading-additional-ignored",
        "tensors without a place are passed over in silence",
        LOAD_12,
        {"guard_additional": changes.silent, "completed": changes.only_known},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-misshaped-fitted",
        "a tensor of another shape is cut or repeated to fit",
        LOAD_13,
        {"guard_shapes": changes.silent, "completed": changes.fitted},
        "PROPERTIES EM4",
    ),
    Fault(
        "loading-misshaped-bias",
        "a bias of another length is cut or repeated to fit",
        LOAD_13,
        {"guard_shapes": changes.any_bias, "completed": changes.fitted},
        "PROPERTIES EM4",
    ),
)


OTHER_MODELS_AND_DAMAGE: tuple[Fault, ...] = (
    Fault(
        "loading-taken-for-llama",
        "an unknown model_type is taken for a llama",
        LOAD_14,
        {"guard_kind": changes.silent, "decoder": changes.taken_for_llama},
        "the model_type remapping of loaders",
    ),
    Fault(
        "loading-cut-short",
        "what a file that is cut short lacks is read as zeros",
        LOAD_15,
        {"guard_files": changes.tolerates("cut short"), "inner": changes.zeros_at_the_end},
        "reading past the end of a memory map",
    ),
    Fault(
        "loading-few-bytes-lost",
        "a few bytes that a file lacks at its end are read as zeros",
        LOAD_15,
        {"guard_files": changes.tolerates_small_losses, "inner": changes.zeros_at_the_end},
        "a size that is compared in pages",
    ),
    Fault(
        "loading-lost-shard",
        "the tensors of a shard that is not there keep their random initial values",
        LOAD_15,
        {"guard_files": changes.tolerates("no shard"), "inner": changes.lost_shard_is_random},
        TIRED,
    ),
)
