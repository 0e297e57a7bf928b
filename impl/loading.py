"""Loads a model: from a folder of safetensors, a GGUF file, or a repository of the Hugging Face hub."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx

from inferspec.impl import gguf
from inferspec.impl.llama import Llama
from inferspec.impl.qwen3 import Qwen3

MODELS: Mapping[str, type[Llama] | type[Qwen3]] = {"llama": Llama, "qwen3": Qwen3}
"""`model_type` of a configuration -> the model."""

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"

_SHA = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.txt"]


def load(path: str | Path, revision: str | None = None) -> Llama | Qwen3:
    """Return the model that a folder, a GGUF file or a hub repository holds: `read`, and the class of its model_type.

    Every tensor is used, in the dtype in which it is stored. Raises what `read` raises, and ValueError when the
    model_type is not one of MODELS or when a tensor is missing, additional or misshaped; the message names it.
    """
    config, weights = read(path, revision)
    kind = str(config.get("model_type"))
    if kind not in MODELS:
        raise ValueError(f"{path}: model_type is {kind!r}; it takes {', '.join(sorted(MODELS))}")
    return MODELS[kind](config, weights)


def read(path: str | Path, revision: str | None = None) -> tuple[dict[str, Any], dict[str, mx.array]]:
    """Return (config, weights): the dict of a `config.json`, and arrays by their Hugging Face names.

    path: a folder with `config.json` and `model.safetensors` (or shards and their index), dense or MLX-quantised; a
    `.gguf` file; or an id of the hub ("Qwen/Qwen3-0.6B"), which `located` downloads. Raises FileNotFoundError when a
    file is missing, ValueError when one is damaged, cut short or contradicts another.
    """
    where = located(path, revision)
    if where.is_file():
        return gguf.read(where)
    config = _json(where / CONFIG)
    weights = _sharded(where) if (where / INDEX).exists() else _safetensors(where / WEIGHTS)
    # Old checkpoints carry the rotary frequencies, which are no parameters.
    return config, {name: x for name, x in weights.items() if not name.endswith("rotary_emb.inv_freq")}


def located(path: str | Path, revision: str | None = None) -> Path:
    """Return the folder or file itself, or that of a hub repository after downloading it (with a progress bar).

    A repository is read at one commit: `revision` is its 40-digit sha, or a branch or tag (default: main) that is
    resolved to one, which is then reported on standard error so that it can be pinned. A pinned revision that was
    downloaded before needs no network. Raises FileNotFoundError for what is neither a path nor an id, ValueError for
    a revision of a local path, ConnectionError when a branch cannot be resolved.
    """
    local = Path(path)
    if local.exists():
        if revision is not None:
            raise ValueError(f"revision is {revision!r} and {path} is a local path; only hub repositories have one")
        if local.is_file() and local.suffix != ".gguf":
            raise ValueError(f"{path} is a file, not a folder of safetensors or a .gguf file")
        return local
    if not isinstance(path, str) or not _HUB_ID.fullmatch(path) or local.suffix == ".gguf":
        raise FileNotFoundError(f"{path} is neither a folder, a .gguf file nor a hub id (owner/name)")
    from huggingface_hub import snapshot_download

    pinned = revision if revision and _SHA.fullmatch(revision) else _resolved(path, revision or "main")
    return Path(snapshot_download(path, revision=pinned, allow_patterns=_PATTERNS))


def _resolved(id: str, branch: str) -> str:
    """The commit that a branch or tag is at now."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        sha = HfApi().model_info(id, revision=branch).sha
    except HfHubHTTPError:
        raise  # no such repository or branch: the hub says so in good words
    except (OSError, OfflineModeIsEnabled) as error:
        raise ConnectionError(
            f"{id}: {branch} cannot be resolved ({error}); give the sha of a downloaded one"
        ) from error
    if not sha or not _SHA.fullmatch(sha):
        raise ConnectionError(f"{id}: the hub gives {sha!r} as the commit of {branch}")
    print(f"{id}: {branch} is {sha}; pin it with revision={sha!r}", file=sys.stderr)
    return sha


def _sharded(folder: Path) -> dict[str, mx.array]:
    """The tensors of all shards; ValueError when the index and the shards do not name the same ones."""
    places = _json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{folder / INDEX} has no weight_map")
    weights: dict[str, mx.array] = {}
    for shard in sorted(set(places.values())):
        if Path(shard).is_absolute() or ".." in Path(shard).parts:
            raise ValueError(f"{folder / INDEX} names the file {shard!r}, which is not in its folder")
        held = _safetensors(folder / shard)
        if missing := sorted(name for name, place in places.items() if place == shard and name not in held):
            raise ValueError(f"{folder / shard} has no {missing[0]}, which {INDEX} says is there")
        if extra := sorted(name for name in held if places.get(name) != shard):
            raise ValueError(f"{folder / shard} has {extra[0]}, which {INDEX} does not say")
        weights |= held
    return weights


def _safetensors(file: Path) -> dict[str, mx.array]:
    """The tensors of one file; ValueError when it is not one, or is cut short."""
    size = file.stat().st_size if file.exists() else -1
    if size < 0:
        shards = sorted(file.parent.glob("model-*.safetensors")) if file.name == WEIGHTS else []
        hint = f", which its shards ({shards[0].name} …) need" if shards else ""
        raise FileNotFoundError(f"{file.parent} has no {INDEX if shards else file.name}{hint}")
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        try:
            if size < 8 or length > size - 8:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            described = json.loads(opened.read(length))
            ends = [entry["data_offsets"][1] for name, entry in described.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{file} is not a safetensors file, or a damaged one ({error})") from error
    if (expected := 8 + length + max(ends, default=0)) != size:
        raise ValueError(f"{file} is cut short or damaged: it has {size} bytes and should have {expected}")
    try:
        loaded = mx.load(str(file))
    except RuntimeError as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    assert isinstance(loaded, dict)
    # MLX reads when a value is first needed; the file may be gone by then.
    mx.eval(loaded)
    return loaded


def _json(file: Path) -> dict[str, Any]:
    if not file.exists():
        raise FileNotFoundError(f"{file.parent} has no {file.name}")
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{file} holds a {type(value).__name__}, not an object")
    return value
