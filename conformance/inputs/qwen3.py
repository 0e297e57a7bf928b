"""Calls of Qwen3 on tiny models."""

from __future__ import annotations

from functools import partial

from inferspec.conformance.inputs.decoder import QWEN3, close_scores, forward, incremental, spare_headed
from inferspec.conformance.strategies import Pick, calls
from inferspec.conformance.tapes import LENGTH
from inferspec.spec.qwen3 import CONTRACT

forward_calls = calls(partial(forward, kind=QWEN3))
incremental_calls = calls(partial(incremental, kind=QWEN3))
close_score_calls = calls(partial(close_scores, kind=QWEN3))
spare_headed_calls = calls(partial(spare_headed, kind=QWEN3))(tied=[True], packing=["dense", "4-bit"])

ORDINARY = {QWEN3.name: forward_calls, QWEN3.incremental: incremental_calls}
"""The widest calls of each operation."""

_simplest = bytes(LENGTH)
EXAMPLES = {name: source.build(Pick(_simplest, CONTRACT.envelope), layers=(1,)) for name, source in ORDINARY.items()}
