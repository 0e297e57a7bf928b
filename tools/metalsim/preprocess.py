"""Includes and macros, as Metal's own compiler would see them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from inferspec import compiler
from inferspec.compiler import CompileError

from .errors import Refused
from .rewrite import scan
from .source import Source

HEADERS = Path(__file__).parent / "include"
_STUBS = HEADERS / "stubs"

# Metal 3.2 on a Mac, as MLX asks for on macOS 15.
_DEFINES = {
    "__METAL__": "1",
    "__METAL_VERSION__": "320",
    "__METAL_MACOS__": "1",
    "__HAVE_BFLOAT__": "1",
}


_TENSOR_HEADER = re.compile(r"(.*?):(\d+):\d+: fatal error: MetalPerformancePrimitives/")


@cache
def mlx_headers() -> Path | None:
    """The folder of MLX's own Metal headers in the installed package (``#include "mlx/backend/metal/kernels/utils.h"``),
    None where MLX is not installed."""
    found = importlib.util.find_spec("mlx")
    for folder in (found.submodule_search_locations or []) if found else []:
        headers = Path(folder) / "include"
        if (headers / "mlx/backend/metal/kernels/utils.h").is_file():
            return headers
    return None


def preprocess(
    text: str, name: str, *, includes: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> Source:
    """Expand includes and macros.

    text: the source. name: what messages call it. includes: folders of headers, before metalsim's stand-ins for
    Metal's own (``<metal_stdlib>``) and MLX's.

    Raises ``CompileError``, with the compiler's words, for a missing header or an ``#error``; ``Refused`` for Metal's
    header of tensor operations.
    """
    mlx = mlx_headers()
    folders = [*includes, _STUBS, *([mlx] if mlx else [])]
    try:
        expanded = compiler.preprocess(f'#line 1 "{name}"\n{text}', folders, _DEFINES | dict(defines or {}))
    except CompileError as error:
        for line in error.diagnostics:
            if match := _TENSOR_HEADER.match(line):
                raise Refused(
                    "Metal 4 tensor operations (MetalPerformancePrimitives)", match[1], int(match[2])
                ) from None
        raise
    return scan(expanded, name)
