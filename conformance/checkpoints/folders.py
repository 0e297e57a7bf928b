"""Writes a model in one of the forms of the contract: a folder, its shards, a GGUF file; whole or damaged."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.conformance.checkpoints import NAME, Weights, cut, gguf, safetensors

FEW = 2
"""Bytes that a tensor lacks whose entry gives it too few: those of a number, or of half a one."""

GROWN = {"long text": "general.name", "long list": "tokenizer.ggml.token_type"}
"""What a GGUF file says to be longer than the file itself: damage -> key."""


@dataclass(frozen=True)
class _How:
    """How a model is written. lost: how many bytes a file that is cut short lacks; written: habits of the contract."""

    damage: str
    lost: int
    written: Collection[str]


def write(
    folder: Path,
    config: Mapping[str, Any],
    weights: Weights,
    form: str,
    damage: str = "",
    lost: int = 1,
    written: Collection[str] = (),
) -> Path:
    """Write a model in one of the contract's forms, with one of its damages (or "no tensor": a file lacks one that the index
    places in it, or "few data within": the entry of the first tensor of a file gives it too few bytes, or one of GROWN) and any
    of its habits; return the path to load.

    lost: how many bytes a file that is cut short lacks; of those with as many or fewer nothing is left.
    """
    how = _How(damage, lost, written)
    put = {"gguf": _gguf, "folder": _folder, "sharded": _shards}[form]
    if "links" not in written:
        folder.mkdir(parents=True)
        return put(folder, config, weights, how)
    # As the hub's cache has them: a revision's files are links to what is kept by its content.
    snapshot, blobs = folder / "snapshots" / "main", folder / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    path = put(snapshot, config, weights, how)
    for file in [file for file in snapshot.iterdir() if file.is_file()]:
        blob = blobs / hashlib.sha256(file.name.encode() + file.read_bytes()).hexdigest()
        file.rename(blob)
        file.symlink_to(blob)
    return path


def _gguf(folder: Path, config: Mapping[str, Any], weights: Weights, how: _How) -> Path:
    path = folder / "model.gguf"
    alignment = next((bytes for habit, bytes in gguf.ALIGNMENTS.items() if habit in how.written), gguf.ALIGNMENT)
    grown = GROWN.get(how.damage, "")
    data = gguf.content(config, weights, alignment, how.written, past_the_end=how.damage == "beyond", grown=grown)
    if how.damage == "cut short":
        # The last tensor may be padded, and is whole without that.
        data = cut(data, how.lost + alignment - 1)
    if how.damage == "header":
        data = b"GGML" + data[4:]
    path.write_bytes(data)
    return path


def _folder(folder: Path, config: Mapping[str, Any], weights: Weights, how: _How) -> Path:
    _put(folder, config, weights, {"model.safetensors": list(weights)}, how)
    return folder


def _shards(folder: Path, config: Mapping[str, Any], weights: Weights, how: _How) -> Path:
    files = _split(list(weights), how.written)
    places = {name: file for file, held in files.items() for name in held}
    sizes = {"format": "mlx"} if "index without sizes" in how.written else {"total_size": _size_of(weights)}
    index = {"metadata": sizes, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    _put(folder, config, weights, files, how)
    return folder


def _size_of(weights: Weights) -> int:
    return sum(x.nbytes for x in weights.values())


def _split(names: list[str], written: Collection[str]) -> dict[str, list[str]]:
    """File -> its tensors, round and round, so that the parts of one layer lie in different files."""
    if "one shard" in written:
        return {"model.safetensors": names}
    count = (2, 3, 11)[len(names) % 3]
    pattern, first = "model-{:05}-of-{:05}.safetensors", 1
    if "shards of any names" in written:
        pattern, first = "model.part-{:c}.safetensors", ord("a")
    if "names not of models" in written:
        pattern = "weights-{:05}.safetensors"
    if "shards in folders" in written:
        pattern = "model.part.{}/part.safetensors"
    return {pattern.format(first + i, count): names[i::count] for i in range(count)}


def _put(folder: Path, config: Mapping[str, Any], weights: Weights, files: Mapping[str, list[str]], how: _How) -> None:
    """Write the config, the files of safetensors, and what may lie beside them; a damage is that of the last file."""
    if how.damage != "no config":
        named = {**config, "_name_or_path": NAME} if "not in ASCII" in how.written else config
        (folder / "config.json").write_text(json.dumps(named, ensure_ascii=False), encoding="utf-8")
    copies = copies_elsewhere(files, weights) if "copies elsewhere" in how.written else {}
    *whole, last = files
    tensors = {file: {**{name: weights[name] for name in files[file]}, **copies.get(file, {})} for file in files}
    if how.damage == "no tensor":
        del tensors[last][files[last][0]]
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
    for file in whole:
        (folder / file).write_bytes(safetensors.content(tensors[file], how.written))
    if (data := _last(tensors[last], how)) is not None:
        (folder / last).write_bytes(data)
    _put_beside(folder, weights, how)


def _last(tensors: Weights, how: _How) -> bytes | None:
    """The bytes of the last file, or None where it is missing."""
    few = {"few data": (FEW, 0), "few data within": (0, FEW)}.get(how.damage, (0, 0))
    data = safetensors.content(tensors, how.written, *few)
    if how.damage in ("no shard", "no weights"):
        return None
    if how.damage == "cut short":
        return cut(data, how.lost)
    return struct.pack("<Q", 2**40) + data[8:] if how.damage == "header" else data


def _put_beside(folder: Path, weights: Weights, how: _How) -> None:
    """Files that are none of the model's."""
    if "another file" in how.written and not how.damage:
        # As in repositories of Mistral: the model once more, under names of its own.
        again = safetensors.content({"tok_embeddings.weight": weights["model.embed_tokens.weight"]})
        (folder / "consolidated.safetensors").write_bytes(again)
    others = {name: -x for name, x in weights.items() if x.dtype != np.uint32}
    if "a model beside" in how.written:
        # As a fine-tuned one's, or what an older download left.
        (folder / "model-99999-of-99999.safetensors").write_bytes(safetensors.content(others))
    if "a whole model beside" in how.written:
        # As what was there before the model was saved again, in shards.
        (folder / "model.safetensors").write_bytes(safetensors.content(others))
    if "a GGUF file beside" in how.written:
        # As a vocabulary alone, or what a quantiser counted.
        (folder / "model.gguf").write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 0))
    if "a checkpoint below" in how.written:
        below = folder / "checkpoint-500"
        below.mkdir()
        (below / "model.safetensors").write_bytes(safetensors.content(others))


def copies_elsewhere(files: Mapping[str, list[str]], weights: Weights) -> dict[str, Weights]:
    """What the first file and the last one have of each other's tensors, and no longer as it is: file -> tensors."""
    first, *_, last = files

    def one_of(file: str) -> Weights:
        name = next((name for name in files[file] if "proj.weight" in name), files[file][0])
        return {name: np.flip(weights[name]).copy()}

    return {first: one_of(last), last: one_of(first)}
