"""Calls of Llama on tiny models."""

from __future__ import annotations

from functools import partial

from inferspec.conformance.inputs.decoder import LLAMA, close_scores, forward, incremental, spare_headed
from inferspec.conformance.strategies import Pick, calls
from inferspec.conformance.tapes import LENGTH
from inferspec.spec.llama import CONTRACT

forward_calls = calls(partial(forward, kind=LLAMA))
incremental_calls = calls(partial(incremental, kind=LLAMA))
close_score_calls = calls(partial(close_scores, kind=LLAMA))
spare_headed_calls = calls(partial(spare_headed, kind=LLAMA))(tied=[True], packing=["dense", "4-bit"])

ORDINARY = {LLAMA.name: forward_calls, LLAMA.incremental: incremental_calls}
"""The widest calls of each operation."""

_simplest = bytes(LENGTH)
EXAMPLES = {name: source.build(Pick(_simplest, CONTRACT.envelope), layers=(1,)) for name, source in ORDINARY.items()}
