"""The safetensors format: a header in JSON, and the data of the tensors behind it."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance.checkpoints import NAME, Weights, cut
from inferspec.spec.numerics import numpy_dtype

LONG = 70_000
"""Characters of a header that is longer than some buffers: those of models with hundreds of packed tensors are."""

_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "uint32": "U32"}


def content(weights: Weights, written: Collection[str] = (), few: int = 0, few_of_first: int = 0) -> bytes:
    """The bytes of a safetensors file. The data are in the order of the weights.

    few: so many bytes fewer than its shape takes belong to the last tensor, and are there. few_of_first: the same of the first
    one, behind which nothing is lacking.
    """
    about = {} if "empty metadata" in written else {"format": "mlx" if "format of MLX" in written else "pt"}
    if "not in ASCII" in written:
        about["name"] = NAME
    if "long header" in written:
        about["notes"] = "x" * LONG
    header: dict[str, Any] = {} if "no metadata" in written and "notes" not in about else {"__metadata__": about}
    at = 0
    for name, x in weights.items():
        header[name] = {
            "dtype": _DTYPES[x.dtype.name],
            "shape": list(x.shape),
            "data_offsets": [at, at + x.nbytes],
        }
        at += x.nbytes
    if few:
        header[name]["data_offsets"][1] -= few
    if few_of_first:
        header[next(iter(weights))]["data_offsets"][1] -= few_of_first
    if "out of order" in written:
        header = dict(sorted(header.items(), reverse=True))
    text = json.dumps(header, ensure_ascii=False).encode()
    # Padding is left to the writer: without it no tensor begins at a multiple of its width.
    text += b" " * (-len(text) % 8 if "unpadded header" not in written else len(text) % 8 == 0)
    return struct.pack("<Q", len(text)) + text + cut(b"".join(x.tobytes() for x in weights.values()), few)


def read(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, bfloat16 too."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    dtypes: dict[str, np.dtype[Any]] = {
        "F32": np.dtype(np.float32),
        "F16": np.dtype(np.float16),
        "U32": np.dtype(np.uint32),
        "BF16": numpy_dtype("bfloat16"),
    }
    found = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(data[start:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
    return found
