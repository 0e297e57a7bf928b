"""Goldens of batches: a list of tokens for each request, PyTorch's attention of each request alone, and its own mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from inferspec.spec import batching as spec
from inferspec.tools.recipes import Case, Draw

Steps = Sequence[tuple[str, dict[str, Any]]]
Request = dict[str, list[torch.Tensor]]
"""Its tokens' keys and values, H×D each."""


def requests_alone(steps: Steps, max_requests: int, max_len: int) -> dict[str, torch.Tensor]:
    """Every request by itself; `max_len` is never passed here."""
    requests: dict[int, Request] = {}
    updates: dict[int, dict[int, Request]] = {}
    parts: dict[str, torch.Tensor] = {}
    for number, (method, given) in enumerate(steps, 1):
        match method:
            case "add":
                requests[given["slot"]] = {name: list(given[name][0].unbind(1)) for name in ("key", "value")}
            case "remove":
                del requests[given["slot"]]
            case "update_and_fetch":
                requests = {
                    slot: {name: [*old, *given[name][slot].unbind(1)] for name, old in request.items()}
                    for slot, request in requests.items()
                }
                updates[number] = requests
                shown = in_slots(requests, max_requests, given["mask_length"])
                parts |= {f"{number} {name}": x for name, x in shown.items()}
            case "offsets":
                lengths = [len(requests[slot]["key"]) if slot in requests else 0 for slot in range(max_requests)]
                parts[f"{number} offsets"] = torch.tensor(lengths)
            case "attend":
                parts[f"{number} attended"] = attended(given["query"], updates[given["step"]])
    return parts


def in_slots(requests: dict[int, Request], slots: int, queries: int) -> dict[str, torch.Tensor]:
    """The tokens of each request at the end of its row, and the mask that is added to the logits."""
    longest = max(len(request["key"]) for request in requests.values())
    parts: dict[str, torch.Tensor] = {"mask": torch.full((slots, 1, queries, longest), -torch.inf, dtype=torch.float64)}
    for slot, request in requests.items():
        for name, tokens in request.items():
            first = longest - len(tokens)
            heads, dim = tokens[0].shape
            rows = parts.setdefault(f"{name}s", torch.zeros(slots, heads, longest, dim, dtype=torch.float64))
            rows[slot, :, first:] = torch.stack(tokens, dim=1)
        parts["mask"][slot, 0, :, first:] = torch.where(seen(queries, len(tokens)), 0.0, -torch.inf)
    return parts | {"finite": torch.tensor(1), "seen_by_idle": torch.tensor(0)}


def seen(queries: int, tokens: int) -> torch.Tensor:
    """Which tokens each query sees, when the last query is the last token."""
    return torch.ones(queries, tokens, dtype=torch.bool).tril(tokens - queries)


def attended(query: torch.Tensor, requests: dict[int, Request]) -> torch.Tensor:
    """Attention of each request's queries over its own tokens; zeros where there is no request."""
    out = torch.zeros_like(query)
    for slot, request in requests.items():
        keys, values = (torch.stack(request[name], dim=1)[None] for name in ("key", "value"))
        mask = seen(query.shape[2], keys.shape[2])
        out[slot] = F.scaled_dot_product_attention(query[slot : slot + 1], keys, values, mask, enable_gqa=True)[0]
    return out


def _steps(draw: Draw, told: str, slots: int, dims: tuple[int, int, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """told: ``+1:5`` adds a request of 5 tokens in slot 1, ``-1`` removes it, ``3`` are 3 tokens for all, ``o`` reads the
    offsets, ``?`` asks with queries of as many tokens as came last."""
    heads, key_dim, value_dim = dims
    length = updated = 0

    def arrays(rows: int, tokens: int) -> dict[str, Any]:
        return {name: draw.values(rows, heads, tokens, d) for name, d in (("key", key_dim), ("value", value_dim))}

    for number, word in enumerate(told.split(), 1):
        match word[0]:
            case "+":
                slot, tokens = map(int, word[1:].split(":"))
                yield "add", {**arrays(1, tokens), "slot": slot, "stale": 0}
            case "-":
                yield "remove", {"slot": int(word[1:])}
            case "o":
                yield "offsets", {}
            case "?":
                yield "attend", {"query": draw.values(slots, 2 * heads, length, key_dim), "step": updated}
            case _:
                length, updated = int(word), number
                yield "update_and_fetch", {**arrays(slots, length), "mask_length": length}


def _case(
    name: str,
    requirement: Any,
    seed: int,
    dtype: str,
    slots: int,
    dims: tuple[int, int, int],
    told: str,
    max_len: int = 16,
    **features: Any,
) -> Case:
    """dims: heads, and the head dims of keys and values."""

    def inputs(draw: Draw) -> dict[str, Any]:
        return {"max_requests": slots, "max_len": max_len, "steps": tuple(_steps(draw, told, slots, dims))}

    same = "same" if dims[1] == dims[2] else "different"
    known = {"dtypes": dtype, "slots": slots, "head_dims": same, "empty_caches": ":0" in told, "offsets": "o" in told}
    return Case(name, requirement, seed, {**known, **features}, inputs, requests_alone)


CASES = (
    _case("batch-tokens", spec.BATCH_01, 801, "float32", 2, (2, 4, 4), "+0:3 1 +1:5 1 2"),
    _case("batch-tokens-bfloat16", spec.BATCH_01, 802, "bfloat16", 3, (2, 4, 5), "+2:2 3 +0:4 1 1"),
    _case("batch-lengths", spec.BATCH_02, 803, "float32", 3, (1, 4, 6), "+0:7 +1:1 +2:4 1 1"),
    _case("batch-lengths-past-32", spec.BATCH_02, 804, "float16", 2, (1, 2, 2), "+0:40 +1:2 1", 41),
    _case("batch-chunks", spec.BATCH_03, 805, "float32", 2, (2, 3, 4), "+0:1 +1:6 4 3"),
    _case("batch-idle", spec.BATCH_04, 806, "float32", 3, (1, 4, 4), "+1:3 2 +0:2 1 -1 1"),
    _case("batch-reused", spec.BATCH_06, 807, "bfloat16", 2, (2, 4, 4), "+0:6 +1:2 1 -0 1 +0:2 1"),
    _case("batch-attention", spec.BATCH_07, 808, "float32", 3, (2, 4, 4), "+0:5 +2:2 1 ? +1:7 3 ? -0 2 ?"),
    _case("batch-attention-float16", spec.BATCH_07, 809, "float16", 2, (1, 6, 6), "+1:9 2 ? +0:1 1 ?"),
    _case("batch-comings", spec.BATCH_08, 810, "float32", 5, (1, 3, 5), "+3:2 1 +0:4 1 +4:1 2 -3 1 +3:3 1 -0 1"),
    _case("batch-beginning", spec.BATCH_09, 811, "float32", 2, (2, 3, 3), "+0:0 2 +1:0 1 1"),
    _case("batch-offsets", spec.BATCH_18, 812, "float16", 3, (1, 2, 3), "o +1:4 o 2 +0:1 o 1 o -1 o"),
)
