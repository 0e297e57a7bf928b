"""Calls of Llama on tiny models."""

from __future__ import annotations

from functools import partial

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope
from inferspec.conformance.inputs.decoder import (
    LLAMA,
    OTHER_BITS,
    USUAL,
    Models,
    close_scores,
    forward,
    incremental,
    low_gates,
    optional,
    plainest,
    rewinding,
    spare_headed,
)
from inferspec.conformance.inputs.rope_scaling import SCALED, UNSCALED
from inferspec.conformance.strategies import Calls, Pick, calls
from inferspec.conformance.tapes import LENGTH
from inferspec.spec.llama import ABSENT_FIELDS, CONTRACT

any_forward_calls = calls(partial(forward, kind=LLAMA))
any_incremental_calls = calls(partial(incremental, kind=LLAMA))
forward_calls = Models(partial(forward, kind=LLAMA), preferred=USUAL, yielding=["group_sizes"])(rope_types=UNSCALED)
incremental_calls = Models(partial(incremental, kind=LLAMA), preferred=USUAL, yielding=["group_sizes"])(
    rope_types=UNSCALED
)
rewinding_calls = Models(partial(rewinding, kind=LLAMA), preferred=USUAL)(rope_types=UNSCALED)
scaled_calls, scaled_incremental_calls = forward_calls(**SCALED), incremental_calls(**SCALED)
low_gate_calls = Models(partial(low_gates, kind=LLAMA), preferred=USUAL)(rope_types=UNSCALED, packing=["dense"])
close_score_calls = Calls(partial(close_scores, kind=LLAMA), preferred=USUAL)(tied=[False], rope_types=UNSCALED)
spare_headed_calls = Calls(partial(spare_headed, kind=LLAMA), preferred=USUAL)(
    tied=[True], rope_types=UNSCALED, packing=["dense", "4-bit"]
)

ORDINARY = {LLAMA.name: any_forward_calls, LLAMA.incremental: any_incremental_calls}
"""The widest calls of each operation."""

_simplest = bytes(LENGTH)
EXAMPLES = {name: source.build(Pick(_simplest, CONTRACT.envelope), layers=(1,)) for name, source in ORDINARY.items()}


def _without(field: str, envelope: Envelope) -> Call:
    """A call of a model whose config lacks a field."""
    call = plainest(any_forward_calls, _choices, {"heads": [(1, 1), (2, 2), (3, 3)], "rope": ["rope_theta"]}, envelope)
    return call.having(config={key: x for key, x in call.arguments["config"].items() if key != field})


_choices = {
    "head_dims": ("free", "multiple"),
    "rope": ("rope_parameters",),
    "tied": (True,),
    "biases": ("attention", "mlp", "both", "qkv"),
    "packing": OTHER_BITS,
}
OPTIONAL = {
    LLAMA.name: {
        **optional(any_forward_calls, **_choices),
        "absent_fields": {field: partial(_without, field) for field in ABSENT_FIELDS},
    }
}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""
