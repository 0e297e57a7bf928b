"""What goes wrong in the causal mask as an array."""

from __future__ import annotations

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.changes import attention as changes
from inferspec.spec.changes import attention_masks as masks
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, MLX, MLX_LM, TINY_LLM
from inferspec.spec.mistakes import promotes, remembers
from inferspec.spec.numerics import largest

FAULTS: tuple[Fault, ...] = (
    Fault("cmask-top-left", "the mask is aligned top-left", spec.CMASK_01, masks.TOP_LEFT, TINY_LLM + "commit/0c1ae4b"),
    Fault(
        "cmask-buffer-of-1024",
        "all is visible past 1024 queries or keys",
        spec.CMASK_01,
        masks.BUFFER_OF_1024,
        ENGINEER,
    ),
    Fault("cmask-buffer-of-4096", "all is visible past 4096 keys", spec.CMASK_01, masks.BUFFER_OF_4096, ENGINEER),
    Fault("cmask-one-future", "each query sees one future key", spec.CMASK_01, masks.ONE_FUTURE, ENGINEER),
    Fault("cmask-not-itself", "each query misses its own key", spec.CMASK_01, masks.NOT_ITSELF, ENGINEER),
    Fault(
        "cmask-top-left-where-longer",
        "the mask is aligned top-left where L > S",
        spec.CMASK_01,
        masks.TOP_LEFT_WHERE_LONGER,
        MLX + "issues/2835",
    ),
    Fault(
        "cmask-wrapped",
        "where L > S negative counts of visible keys wrap around",
        spec.CMASK_01,
        masks.sees(masks.wraps),
        ENGINEER,
    ),
    Fault(
        "cmask-transposed", "the mask is the transpose: the past is hidden", spec.CMASK_01, masks.TRANSPOSED, ENGINEER
    ),
    Fault(
        "cmask-ones",
        "the mask holds 1 where a key is visible and 0 elsewhere",
        spec.CMASK_01,
        masks.mask_valued(lambda visible: visible * 1.0),
        MLX_LM + "commit/1dc5de4f",
    ),
    Fault(
        "cmask-minus-10000", "hidden entries are -1e4", spec.CMASK_02, {"hidden": lambda self, dtype: -1e4}, ENGINEER
    ),
    Fault("cmask-minus-1e9", "hidden entries are -1e9", spec.CMASK_02, {"hidden": lambda self, dtype: -1e9}, ENGINEER),
    Fault(
        "cmask-lowest-float16",
        "hidden entries are float16's lowest number in every dtype",
        spec.CMASK_02,
        {"hidden": lambda self, dtype: -largest("float16")},
        ENGINEER,
    ),
    Fault(
        "cmask-nan",
        "the mask is (1 - visible) · -inf, NaN at every visible key",
        spec.CMASK_02,
        masks.mask_valued(lambda visible: np.where(visible, np.nan, -np.inf)),
        ENGINEER,
    ),
    Fault("cmask-float32", "the mask is float32 whatever was asked for", spec.CMASK_03, promotes(), ENGINEER),
    Fault("cmask-s-by-l", "the mask is S×L", spec.CMASK_03, masks.mask_shaped(lambda value: value.T), ENGINEER),
    Fault(
        "cmask-four-dims",
        "the mask is 1×1×L×S",
        spec.CMASK_03,
        masks.mask_shaped(lambda value: value[None, None]),
        ENGINEER,
    ),
    Fault(
        "cmask-never-empty",
        "a mask without rows or columns gets one",
        spec.CMASK_03,
        changes.reshapes(lambda a: {"L": max(a.L, 1), "S": max(a.S, 1)}),
        ENGINEER,
    ),
    Fault(
        "cmask-sliced-from-larger",
        "a smaller mask is the upper left corner of a larger one made earlier",
        spec.CMASK_04,
        {"respond": masks.sliced_from_larger},
        ENGINEER,
    ),
    Fault(
        "cmask-handed-out-again",
        "a mask is made once and handed out again: what the last caller wrote into it is still there",
        spec.CMASK_04,
        {"respond": masks.mask_handed_out_again},
        "functools.cache over what makes an array",
    ),
    Fault("cmask-keys-remembered", "the S of the first call is used for all", spec.CMASK_04, remembers("S"), ENGINEER),
    Fault(
        "cmask-negative-is-empty",
        "negative lengths count as 0",
        spec.CMASK_05,
        masks.lengths_by(lambda length: max(length, 0)),
        ENGINEER,
    ),
    Fault(
        "cmask-negative-is-positive",
        "negative lengths lose their sign",
        spec.CMASK_05,
        masks.lengths_by(abs),
        ENGINEER,
    ),
)
