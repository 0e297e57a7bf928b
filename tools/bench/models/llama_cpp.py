"""llama.cpp through llama-cpp-python, on the same GGUF file. It rounds activations to 8 bits before it multiplies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from inferspec.tools.bench.models import AS_STORED


class LlamaCpp:
    """A context, and a greedy loop that reads the last logits where llama.cpp left them."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def ids(self, prompt: Sequence[int], count: int) -> Iterator[int]:
        """Greedy ids."""
        self.model.reset()
        fed = list(prompt)
        for _ in range(count):
            self.model.eval(fed)
            token = int(self._last().argmax())
            yield token
            fed = [token]

    def logits(self, tokens: Sequence[int], split: int) -> np.ndarray:
        """See the package; the first tokens one pass after the other, since only the last logits of each are kept."""
        rows = []
        for end in range(1, split + 1):
            self.model.reset()
            self.model.eval(list(tokens[:end]))
            rows.append(self._last().copy())
        for token in tokens[split:]:
            self.model.eval([token])
            rows.append(self._last().copy())
        return np.stack(rows)

    def _last(self) -> np.ndarray:
        pointer = llama_cpp.llama_get_logits_ith(self.model._ctx.ctx, -1)
        return np.ctypeslib.as_array(pointer, (self.model.n_vocab(),))


def load(source: Path, variant: str, threads: int, positions: int) -> LlamaCpp:
    """Load a GGUF file, with room for so many tokens."""
    settings: dict[str, Any] = {"n_ctx": positions, "n_threads": threads, "n_threads_batch": threads}
    with _weights_as_stored(variant == AS_STORED):
        return LlamaCpp(llama_cpp.Llama(str(source), **settings, n_batch=max(512, positions), verbose=False))


@contextlib.contextmanager
def _weights_as_stored(wanted: bool) -> Iterator[None]:
    """Let it not rearrange weights for instructions of this processor, which `Llama` has no argument for.

    On a Xeon with AMX, llama-cpp-python 0.3.36 as its source builds there ends the process otherwise, in the `ldtilecfg` of
    ggml_backend_amx_mul_mat.
    """
    its_own = llama_cpp.llama_cpp.llama_model_default_params

    def changed() -> Any:
        settings = its_own()
        settings.use_extra_bufts = False
        return settings

    try:
        if wanted:
            llama_cpp.llama_cpp.llama_model_default_params = changed
        yield
    finally:
        llama_cpp.llama_cpp.llama_model_default_params = its_own
