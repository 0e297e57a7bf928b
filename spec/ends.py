"""What becomes of the id that ends a sequence: a generator, a scheduler or an engine drops it, or keeps it.

By default it is dropped: it comes out nowhere. Hugging Face's generate, vLLM and nano-vLLM keep it: it is the last id that
comes out, and one like any other to whatever counts ids. Who does so says `ends: ["kept"]` in the envelope, and is judged
by the same sentences. Either way it counts towards max_tokens, no model is fed it, and nothing comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ENDS = DROPPED, KEPT = "dropped", "kept"

KEEPING: Mapping[str, tuple[str, ...]] = {"ends": (KEPT,)}
"""What an adapter declares of a component that keeps ends."""


def left_of(token: int, ends: str) -> list[int]:
    """What comes out of the id that ends a sequence."""
    return [token] if ends == KEPT else []


def ended(ids: Sequence[int], eos: Sequence[int], ends: str = DROPPED) -> list[int]:
    """What comes out of ids of which the first that is of eos ends them, if one is."""
    stop = next((i for i, token in enumerate(ids) if token in eos), None)
    return list(ids) if stop is None else [*ids[:stop], *left_of(ids[stop], ends)]
