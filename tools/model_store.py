"""Keeps the goldens of a model: partial answers in a cache while they are made, then the files of `golden/models`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save, save_file

from inferspec.golden.models import LOGITS, RECORD, ModelGolden
from inferspec.tools.model_oracles import Reply

CACHE = Path(os.environ.get("INFERSPEC_CACHE") or Path.home() / ".cache" / "inferspec") / "model-goldens"


def digest(*values: Any) -> str:
    """sha256 of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Partial:
    """Answers that an interrupted run left behind. Their file names hold all that they depend on, so that one made by
    other weights, another library or another prompt is never taken up."""

    folder: Path

    def get(self, key: str) -> Reply | None:
        """The reply of that key, if it is here and whole."""
        try:
            with safe_open(self.folder / f"{key}.safetensors", framework="numpy") as file:
                head = json.loads(file.metadata()["reply"])
                return Reply(tuple(head["greedy"]), float(head["gap"]), file.get_tensor("logits"))
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply; a run that dies while writing leaves nothing under its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        head = {"reply": json.dumps({"greedy": reply.greedy, "gap": reply.gap})}
        beside = self.folder / f".{key}.{os.getpid()}"
        save_file({"logits": np.ascontiguousarray(reply.logits)}, beside, head)
        beside.replace(self.folder / f"{key}.safetensors")

    def clear(self) -> None:
        """Forget all."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write(golden: ModelGolden, folder: Path) -> None:
    """Write golden.json and logits.safetensors; golden.json last, whose hashes refuse what a broken move leaves."""
    tensors: dict[str, np.ndarray] = {}
    entries = []
    for prompt in golden.prompts:
        tensors |= {f"{prompt.name}.last": prompt.last, f"{prompt.name}.columns": prompt.columns}
        entry: dict[str, Any] = {
            "name": prompt.name,
            "text": prompt.text,
            "ids": list(prompt.ids),
            "greedy": list(prompt.greedy),
            "gap": prompt.gap,
            "sha256": prompt.digest(),
        }
        entries.append({**entry, "chat": list(prompt.chat)} if prompt.chat else entry)
    record = {**golden.record, "columns": golden.columns.tolist(), "prompts": entries}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".golden-") as beside:
        Path(beside, LOGITS).write_bytes(save({name: np.ascontiguousarray(x) for name, x in tensors.items()}))
        Path(beside, RECORD).write_text(_json(record), encoding="utf-8")
        for name in (LOGITS, RECORD):
            os.replace(Path(beside, name), folder / name)


def _json(record: Mapping[str, Any]) -> str:
    """Indented, with lists of numbers on one line: token ids by the hundred are not to be read one a line."""
    text = json.dumps(_folded(record), indent=1, ensure_ascii=False)
    return text.replace('"\\u0000', "").replace('\\u0000"', "") + "\n"


def _folded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _folded(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(item, int) for item in value):
            return f"\0{json.dumps(list(value))}\0"
        return [_folded(item) for item in value]
    return value
