"""The cache of a request, and what is fed to it: see `spec/faults/decoder_caches.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.decoder import packed
from inferspec.spec.contract import Arguments, Change
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder, Incremental, Memory


def positions_in_bfloat16(self: Decoder, memory: Memory, length: int) -> np.ndarray:
    return f64(round_to(Decoder.positions(self, memory, length), "bfloat16"))


def single_ids_of_16_bits(self: Incremental, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
    return Decoder.embed(self, ids & 0xFFFF if ids.shape[2] == 1 else ids, a, m)


def positions_to_1024(self: Decoder, memory: Memory, length: int) -> np.ndarray:
    return np.minimum(Decoder.positions(self, memory, length), 1023)


def growth_of_the_first_row(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a cache holds is copied to a larger buffer, of one row."""
    before = memory[layer][0].shape[3] if layer in memory else 0
    whole = Decoder.extended(self, memory, layer, key, value)
    if before <= 256 < whole[0].shape[3]:
        memory[layer] = tuple(np.where(np.arange(x.shape[3])[:, None] < before, x[:, :1], x) for x in whole)
    return memory[layer]


def grown_by_one_step(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A buffer of whole steps of 256, of which an empty cache takes as many as the prompt needs, and a full one a single one."""
    before = memory[layer][0].shape[3] if layer in memory else 0
    whole = Decoder.extended(self, memory, layer, key, value)
    if before:
        room = (-(-before // 256) + 1) * 256
        memory[layer] = tuple(np.where(np.arange(x.shape[3])[:, None] < room, x, 0.0) for x in whole)
    return memory[layer]


def grown_in_the_first_layer(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The first layer sees that a buffer of 256 is full, and makes a larger one of its own."""
    whole = Decoder.extended(self, memory, layer, key, value)
    if layer:
        memory[layer] = tuple(np.where(np.arange(x.shape[3])[:, None] < 256, x, 0.0) for x in whole)
    return memory[layer]


def last_id_of_a_token_lost(
    self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """The head for a single token does not write the last of more than a thousand logits."""
    logits = np.array(Decoder.forward(self, tokens, a, m, memory))
    if tokens.shape[1] == 1 and logits.shape[-1] > 1024:
        logits[..., -1] = 0.0
    return logits


def eight_caches(self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> Any:
    """Layers are counted modulo 8 where their caches are looked for."""
    return Decoder.extended(self, memory, layer % 8, key, value)


def rows_past_eight_of_the_first(
    self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray
) -> Any:
    """Eight rows of a batch have a place in the cache; the others find what the first one has."""
    whole = Decoder.extended(self, memory, layer, key, value)
    if key.shape[1] <= 8 or whole[0].shape[3] == key.shape[3]:
        return whole
    return tuple(np.concatenate([x[:, :8], x[:, :1].repeat(x.shape[1] - 8, axis=1)], axis=1) for x in whole)


def extended_by(change: str) -> Change:
    """What a layer's cache holds after new tokens is wrong."""

    def extended(self: Incremental, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> Any:
        if change == "one for all layers":
            return Decoder.extended(self, memory, 0, key, value)
        if change == "one for all rows":
            key, value = Decoder.extended(self, memory, layer, key, value)
            return tuple(np.broadcast_to(x[:, :1], x.shape) for x in (key, value))
        whole = Decoder.extended(self, memory, layer, key, value)
        if change == "last chunk":
            memory[layer] = key, value
        elif change == "first 256":
            memory[layer] = tuple(x[:, :, :, :256] for x in whole)
        elif change == "last 256":
            memory[layer] = tuple(x[:, :, :, -256:] for x in whole)
        elif change == "none":
            del memory[layer]
            return key, value
        return whole

    return {"extended": extended}


def allocated_positions(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    """The offset is the length of a buffer that grows in steps of 256."""
    offset = memory.get("offset", 0)
    return f64((offset if offset <= 256 else -(-offset // 256) * 256) + np.arange(length))


def one_more(self: Incremental, memory: Memory, length: int) -> np.ndarray:
    offset = memory.get("offset", 0)
    return f64(offset + bool(offset) + np.arange(length))


def counts_calls(self: Incremental, memory: Memory, length: int) -> None:
    memory["offset"] = memory["offset"] + 1 if "offset" in memory else length


def not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    pass


def positions_not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    offset = memory["offset"]
    Incremental.rewind(self, memory, dropped)
    memory["offset"] = offset


def keys_not_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    memory["offset"] -= dropped


def first_layer_rewound(self: Incremental, memory: Memory, dropped: int) -> None:
    others = {layer: memory[layer] for layer in memory.keys() - {"offset", 0}}
    Incremental.rewind(self, memory, dropped)
    memory |= others


def rewinds_all(self: Incremental, a: Arguments) -> Any:
    """What is dropped of one request's cache is dropped of all."""

    def rewind(memories: dict[Any, Memory], owner: Any, dropped: int) -> None:
        for memory in memories.values():
            self.rewind(memory, min(dropped, memory["offset"]))

    return _fed(self, a, rewind, lambda memories, owner: None)


def place_given_away(self: Incremental, a: Arguments) -> Any:
    """The last token that is left behind a rewind stands where the next one of another request is written."""
    given: set[Any] = set()

    def rewind(memories: dict[Any, Memory], owner: Any, dropped: int) -> None:
        self.rewind(memories[owner], dropped)
        given.add(owner)

    def write(memories: dict[Any, Memory], owner: Any) -> None:
        for other in given - {owner}:
            for layer in memories[other].keys() - {"offset"}:
                for left, written in zip(memories[other][layer], memories[owner][layer], strict=True):
                    left[..., -1:, :] = written[..., -1:, :][..., : left.shape[3], :]
            given.discard(other)

    return _fed(self, a, rewind, write)


def _fed(
    self: Incremental,
    a: Arguments,
    rewind: Callable[[dict[Any, Memory], Any, int], None],
    write: Callable[[dict[Any, Memory], Any], None],
) -> Any:
    memories: dict[Any, Memory] = {}
    logits = []
    for chunk, owner, dropped in zip(a.chunks, self.owners(a), a.rewinds or [0] * len(a.chunks), strict=True):
        logits.append(self.forward(chunk, a, Exact(), memories.setdefault(owner, {}))[0])
        write(memories, owner)
        if dropped:
            rewind(memories, owner, dropped)
    return self.finish(np.concatenate(logits, axis=1), a)


def the_latest_without_a_cache(self: Incremental, a: Arguments) -> list[Any]:
    owners: list[Any] = []
    for owner in Incremental.owners(self, a):
        owners.append(owners[-1] if owner is None else owner)
    return owners


def top_left(self: Incremental, length: int, keys: int) -> np.ndarray:
    visible = np.arange(keys) <= np.arange(length)[:, None]
    return visible if length > 1 else np.ones_like(visible)


def top_left_of_tiles(self: Incremental, length: int, keys: int) -> np.ndarray:
    return Decoder.visible(self, length, keys) if length % 16 else top_left(self, length, keys)


def unmasked_after_others(self: Incremental, length: int, keys: int) -> np.ndarray:
    return Decoder.visible(self, length, keys) | (length < keys)


def offset_of_the_model(self: Incremental, a: Arguments) -> Any:
    """Every request has its own keys, and all count their positions together."""
    memories: dict[Any, Memory] = {}
    count, logits = 0, []
    for chunk, owner in zip(a.chunks, self.owners(a), strict=True):
        memory = memories.setdefault(owner, {})
        memory["offset"] = count
        logits.append(self.forward(chunk, a, Exact(), memory)[0])
        count += chunk.shape[1]
    return self.finish(np.concatenate(logits, axis=1), a)


def single_token_without_biases(
    self: Incremental, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None
) -> np.ndarray:
    """The kernel for one row leaves out the biases of groups."""
    single = type("Single", (type(self),), {**packed("biases"), "forward": Decoder.forward})
    return Decoder.forward(single() if tokens.shape[1] == 1 else self, tokens, a, m, memory)
