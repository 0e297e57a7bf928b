"""Goldens of paged storage: each cache is one tensor of its tokens, whose pages are counted and never kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from inferspec.spec import paged_kv_sentences as spec
from inferspec.tools.recipes import Case, Draw

Steps = Sequence[tuple[str, dict[str, Any]]]
Dense = tuple[torch.Tensor, torch.Tensor]
"""Keys and values of a cache, 1×H×S×D each."""


def dense_caches(
    num_pages: int, page_size: int, num_kv_heads: int, head_dim: int, dtype: str, steps: Steps
) -> dict[str, torch.Tensor]:
    """What a pool's caches hold, if each had a memory of its own."""
    none = torch.zeros(1, num_kv_heads, 0, head_dim, dtype=torch.float64)
    caches: dict[int, Dense] = {}
    mine: set[int] = set()
    parts: dict[str, torch.Tensor] = {}

    def pages(cache: Dense) -> int:
        return math.ceil(cache[0].shape[2] / page_size)

    for number, (method, given) in enumerate(steps, 1):
        cache = caches.get(given.get("cache", -1), (none, none))
        length = cache[0].shape[2]
        told: dict[str, Any] = {}
        match method:
            case "append":
                chunk = given["key"], given["value"]
                caches[given["cache"]] = tuple(map(torch.cat, zip(cache, chunk, strict=True), (2, 2)))  # type: ignore[assignment]
            case "rewind":
                caches[given["cache"]] = cache[0][:, :, : length - given["n"]], cache[1][:, :, : length - given["n"]]
            case "release":
                del caches[given["cache"]]
            case "allocate":
                mine.add(number)
                told = {"page": 1}
            case "free":
                mine.remove(given["step"])
            case "gather" | "read":
                told = dict(zip(("keys", "values"), cache, strict=True))
            case "offset":
                told = {"offset": length}
            case "pages":
                full, rest = divmod(length, page_size)
                told = {"page_ids": pages(cache), "page_lens": [page_size] * full + [rest] * (rest > 0)}
            case "num_free":
                told = {"num_free": num_pages - len(mine) - sum(map(pages, caches.values()))}
            case "table":
                rows = [caches.get(row, (none, none)) for row in given["caches"]]
                told = {"context_lens": [keys.shape[2] for keys, _ in rows]}
                for row, pair in enumerate(rows):
                    told |= {f"row {row} {name}": x for name, x in zip(("keys", "values"), pair, strict=True)}
        parts |= {f"{number} {name}": torch.as_tensor(x) for name, x in told.items()}
    return parts


def _steps(draw: Draw, told: str, heads: int, dim: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """told: ``0+5`` appends 5 tokens to cache 0, ``0-2`` rewinds it by 2, ``0x`` releases it, ``0g`` gathers, ``0r``
    reads its pages, ``0o`` is its offset, ``0p`` its pages, ``t02`` the table of the caches 0 and 2; ``a`` takes a page,
    ``f3`` gives back the one of step 3, ``n`` is how many are free."""
    words = {"g": "gather", "r": "read", "o": "offset", "p": "pages", "x": "release"}
    for word in told.split():
        match word[0], word[1:]:
            case "a", "":
                yield "allocate", {}
            case "n", "":
                yield "num_free", {}
            case "f", step:
                yield "free", {"step": int(step)}
            case "t", rows:
                yield "table", {"caches": tuple(map(int, rows))}
            case cache, rest if rest[0] == "+":
                chunk = {name: draw.values(1, heads, int(rest), dim) for name in ("key", "value")}
                yield "append", {"cache": int(cache), **chunk}
            case cache, rest if rest[0] == "-":
                yield "rewind", {"cache": int(cache), "n": int(rest[1:])}
            case cache, rest:
                yield words[rest], {"cache": int(cache)}


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    pool: tuple[int, int, int, int],
    told: str,
) -> Case:
    """pool: its pages, their size, the heads and their dim."""
    pages, page_size, heads, dim = pool

    def inputs(draw: Draw) -> dict[str, Any]:
        names = {"num_pages": pages, "page_size": page_size, "num_kv_heads": heads, "head_dim": dim, "dtype": dtype}
        return {**names, "steps": tuple(_steps(draw, told, heads, dim))}

    features: dict[str, Any] = {"page_sizes": page_size, "pool_pages": pages}
    if "+" in told:  # what a pool alone tells is counted
        features["rewinding"] = "-" in told
    if requirement.name == spec.PKV_01.name:  # tables are told of caches that hold something
        features["empty_chunks"] = any(word.endswith("+0") for word in told.split())
    features["dtypes"] = dtype
    return Case(name, requirement, seed, features, inputs, dense_caches)


CASES = (
    _case("pool-free-pages", spec.POOL_02, 901, "float32", (5, 4, 2, 3), "n a n a a n f2 n a f4 f5 n"),
    _case("cache-appends", spec.PKV_01, 911, "float32", (7, 4, 2, 5), "0+3 0g 0+1 0g 0+6 0g"),
    _case("cache-appends-bfloat16", spec.PKV_01, 912, "bfloat16", (5, 8, 3, 4), "0+8 0+1 0g"),
    _case("cache-chunks", spec.PKV_02, 913, "float16", (9, 3, 2, 5), "0+7 0+0 0+2 0+4 0g"),
    _case("cache-pages-of-one", spec.PKV_02, 914, "float32", (9, 1, 2, 3), "0+2 1+3 0+1 0g 1g"),
    _case("cache-read-by-pages", spec.PKV_03, 915, "float32", (7, 4, 3, 2), "1+2 0+5 1+3 0+4 0r 1r"),
    _case("cache-offsets", spec.PKV_04, 916, "float32", (5, 2, 1, 3), "0o 0+3 0o 0-2 0o 0+4 0o 0g 0x 1o"),
    _case("cache-pages", spec.PKV_05, 917, "float32", (7, 4, 1, 3), "0+3 0p 0+1 0p 0+1 0p 1+8 1p 1+1 1p n 1g"),
    _case("cache-page-lens", spec.PKV_06, 918, "float32", (9, 8, 1, 2), "0+8 0p 0+9 0p 0g 1+5 1p"),
    _case("caches-side-by-side", spec.PKV_08, 919, "bfloat16", (9, 2, 2, 3), "0+3 1+2 2+5 1x 0+4 3+3 0g 2g 3g"),
    _case("cache-rewinds", spec.PKV_12, 920, "float32", (7, 4, 2, 3), "0+6 0-3 0g 0+4 0g 0-7 0+2 0g"),
    _case("cache-rewinds-of-pages", spec.PKV_13, 921, "float16", (5, 4, 1, 2), "0+9 n 0-1 n 0-3 n 1+9 n 0-5 n 1g"),
    _case("cache-releases", spec.PKV_17, 922, "float32", (5, 3, 1, 2), "0+7 1+3 n 0x n 2+9 1g n 1x n"),
    _case("table-rows", spec.TABLE_01, 951, "float32", (9, 4, 2, 3), "0+5 1+9 2+1 t012 t20"),
    _case("table-rows-bfloat16", spec.TABLE_01, 952, "bfloat16", (7, 8, 1, 4), "2+17 0+3 t02"),
    _case("table-lengths", spec.TABLE_02, 953, "float16", (9, 3, 1, 2), "0+3 1+4 3+1 t0131"),
    _case("table-again", spec.TABLE_03, 954, "float32", (9, 2, 2, 3), "0+3 1+2 t01 0+2 t01 1-1 2+1 t210"),
)
