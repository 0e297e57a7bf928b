"""Models in files, as others write them: what `load` is given to read. NumPy alone writes them.

Sources: the safetensors format (huggingface/safetensors, README); docs/gguf.md and ggml-quants.c of ggml; `permute` in
llama.cpp's convert_hf_to_gguf.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Weights = Mapping[str, np.ndarray]

NAME = "Größe/模型 — 0.6B 🤗"
"""What a model is called whose files are not in ASCII."""


def cut(data: bytes, lost: int) -> bytes:
    """What is left of a file whose last bytes are lost."""
    return data[: max(len(data) - lost, 0)]
