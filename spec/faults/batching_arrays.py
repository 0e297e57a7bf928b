"""Mistakes of batches in the dtype, the strides and the memory of arrays, those given and those returned."""

from __future__ import annotations

from inferspec.spec import batching as spec
from inferspec.spec.changes import batching as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.mistakes import clears_in_steps, ignores_strides_in_steps, in_long_halves

_fault = named("batching")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "promotes",
        "keys and values come back in float32",
        spec.BATCH_12,
        changes.other_dtype("keys", "values"),
        "PROPERTIES X4",
    ),
    _fault(
        "values-promoted", "values come back in float32", spec.BATCH_12, changes.other_dtype("values"), "PROPERTIES X4"
    ),
    _fault(
        "float32-mask",
        "the mask is float32 whatever the keys are",
        spec.BATCH_13,
        changes.other_dtype("mask"),
        "PROPERTIES X4",
    ),
    _fault(
        "float16-mask",
        "the mask is float16 whatever the keys are",
        spec.BATCH_13,
        changes.other_dtype("mask", dtype="float16"),
        "PROPERTIES X4",
    ),
    *(
        _fault(
            f"{part}-strides-of-prompts",
            f"of 16 tokens and more in half precision the {part} is read as if it were contiguous",
            spec.BATCH_14,
            ignores_strides_in_steps(part, in_long_halves),
            "tired engineer",
        )
        for part in ("key", "value")
    ),
    _fault(
        "key-strides",
        "the key is read as if it were contiguous",
        spec.BATCH_14,
        ignores_strides_in_steps("key"),
        "PROPERTIES X1",
    ),
    _fault(
        "value-strides",
        "the value is read as if it were contiguous",
        spec.BATCH_14,
        ignores_strides_in_steps("value"),
        "PROPERTIES X1",
    ),
    _fault(
        "clears-key", "the key is cleared once it is cached", spec.BATCH_15, clears_in_steps("key"), "PROPERTIES X6"
    ),
    _fault(
        "clears-idle",
        "rows of idle slots are zeroed in the caller's arrays",
        spec.BATCH_15,
        {"respond": changes.clears_idle},
        "PROPERTIES X6",
    ),
    _fault(
        "last-by-reference",
        "tokens are written when the next ones come",
        spec.BATCH_16,
        {"store": changes.late},
        "PROPERTIES X6",
    ),
    _fault(
        "prompt-by-reference",
        "the tokens of a prompt are kept by reference",
        spec.BATCH_16,
        {"enter": changes.prompt_by_reference},
        "PROPERTIES X6",
    ),
    _fault(
        "results-in-buffer",
        "every update writes into the arrays of the one before",
        spec.BATCH_17,
        {"fetched": changes.one_buffer},
        "PROPERTIES X7",
    ),
    _fault(
        "mask-in-buffer",
        "every update writes into the mask of the one before",
        spec.BATCH_17,
        {"fetched": changes.one_mask},
        "PROPERTIES X7",
    ),
)
