"""What becomes of the id that ends a sequence: a generator, a scheduler or an engine drops it, or keeps it.

By default it is dropped: it comes out nowhere. Hugging Face's generate, vLLM and nano-vLLM keep it: it is the last id that
comes out, and one like any other to whatever counts ids. Who does so says `ends: ["kept"]` in the envelope, and is judged
by the same sentences. Either way it counts towards max_tokens, no model is fed it, and nothing comes after it.

Generators are given the ids that may end one as a collection, or, where they take `eos` for one id, as that: `eos_as: ["id"]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ENDS = DROPPED, KEPT = "dropped", "kept"

KEEPING: Mapping[str, tuple[str, ...]] = {"ends": (KEPT,)}
"""What an adapter declares of a component that keeps ends."""

EOS_AS = IDS, ID = "ids", "id"

ONE_ID: Mapping[tuple[str, str], Mapping[str, tuple[int, ...]]] = {("eos_as", ID): {"stops": (0, 1)}}
"""What is left of an envelope where `eos` is one id (`Contract.alone`)."""


def eos_given(eos: Sequence[int], eos_as: str) -> Any:
    """The ids that may end a sequence as a generator takes them; of one id alone, None where there is none."""
    return eos if eos_as == IDS else next(iter(eos), None)


def left_of(token: int, ends: str) -> list[int]:
    """What comes out of the id that ends a sequence."""
    return [token] if ends == KEPT else []


def ended(ids: Sequence[int], eos: Sequence[int], ends: str = DROPPED) -> list[int]:
    """What comes out of ids of which the first that is of eos ends them, if one is."""
    stop = next((i for i, token in enumerate(ids) if token in eos), None)
    return list(ids) if stop is None else [*ids[:stop], *left_of(ids[stop], ends)]
