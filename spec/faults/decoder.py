"""Mistakes that any decoder can have, with a cache and without, and other honest ways to compute one.

`shared` makes the fault dictionary of a model of them; Llama and Qwen3 add their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from inferspec.spec.changes import decoder as changes
from inferspec.spec.contract import Change, Fault, Variant
from inferspec.spec.faults import decoder_blocks, decoder_caches, decoder_inputs, decoder_layers, rope_scaling
from inferspec.spec.faults.defining import TIRED
from inferspec.spec.mistakes import promotes
from inferspec.spec.numerics import Precision


def shared(spec: ModuleType, prefix: str, own: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults of a model: those that any decoder can have, and its own in their place (requirement 8)."""
    found: list[Fault] = []

    def fault(
        number: int, name: str, text: str, change: Change, source: str = TIRED, forms: tuple[Change, ...] = ()
    ) -> None:
        requirement = getattr(spec, f"{prefix.upper()}_{number:02d}")
        found.append(Fault(f"{prefix}-{name}", text, requirement, change, source, forms=forms))

    decoder_blocks.every(fault)
    found += own
    decoder_layers.every(fault)
    decoder_inputs.every(fault)
    decoder_caches.every(fault)
    rope_scaling.every(fault)
    return tuple(found)


def variants(name: str, prefix: str) -> tuple[Variant, ...]:
    """Other honest ways to compute a model."""
    found = []
    for operation, suffix in ((name, ""), (f"{name}.incremental", "-incremental")):
        found.append(
            Variant(f"{prefix}-logits-in-float32{suffix}", "logits are always in float32", operation, promotes())
        )
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
