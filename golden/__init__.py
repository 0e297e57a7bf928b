"""Goldens: calls whose float64 answers two independent oracles agreed on, stored and read back.

`golden/<component>/<case>.safetensors` holds the inputs, the answer and, as metadata, everything else of the call;
`golden/manifest.json` says where each came from and the sha256 of both. `cases` reads them for the suites, with
NumPy and safetensors alone, and fails closed; `inferspec.tools.golden` writes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from inferspec.spec import contract as contract_of
from inferspec.spec.numerics import numpy_dtype, oracles_agree, within

ROOT = Path(__file__).resolve().parent
MANIFEST = "manifest.json"
SUFFIX = ".safetensors"

# One metadata key: the order in which safetensors writes several is not fixed.
_HEAD, _EXPECTED, _ARGUMENT = "golden", "expected", "argument."
_PART = "expected."
_RECORDED = ("component", "operation", "requirement", "recipe", "seed", "inputs", "output", "oracles", "libraries")
_IN_BOTH = ("component", "operation", "requirement", "recipe", "seed")

UNSAID = {"rope_types": "default"}
"""The features of goldens that say nothing of them."""


class GoldenError(Exception):
    """A golden cannot be trusted; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Golden:
    """One call and its answer.

    requirement: the id of the sentence that it is an example of. features: what envelopes speak of
    (``{"dtypes": "bfloat16", "masks": "causal"}``). arguments: the contract's flattened arguments, as a `Call` has
    them. expected: the answer in float64, or its parts by name. condition: by how much the computation magnifies a
    rounding on its way.
    """

    component: str
    name: str
    requirement: str
    operation: str
    recipe: str
    seed: int
    condition: float
    features: Mapping[str, Any]
    arguments: Mapping[str, Any]
    expected: np.ndarray | Mapping[str, np.ndarray]

    @property
    def id(self) -> str:
        return f"{self.component}/{self.name}"

    @property
    def dtype(self) -> str:
        """The dtype of the call, one of the contract's; "" where it has none."""
        return str(self.features.get("dtypes", ""))

    @property
    def answers(self) -> dict[str, np.ndarray]:
        """The answer by part; a single array has the name ""."""
        return by_part(self.expected)

    def equals(self, value: Any, budget: Any) -> bool:
        """Whether another float64 answer (an array, or arrays by part) is the same one: apart by roundings alone, and
        within the budget of any implementation, which is narrower where the answer is tiny."""
        values, budgets = by_part(value), by_part(budget)
        return values.keys() == self.answers.keys() and all(
            self._equals(expected, values[part], budgets[part]) for part, expected in self.answers.items()
        )

    def _equals(self, expected: np.ndarray, value: np.ndarray, budget: np.ndarray) -> bool:
        finite = np.isfinite(expected)
        if value.shape != expected.shape or not (value[~finite] == expected[~finite]).all():
            return False
        largest = self.condition * float(np.abs(expected[finite]).max(initial=0.0))
        apart = np.abs(value[finite] - expected[finite])
        return oracles_agree(value[finite], expected[finite], largest) and bool(within(apart, budget[finite]).all())

    def beyond(self, envelope: Mapping[str, Any]) -> list[str]:
        """The features that lie outside an envelope (key -> choices, or the largest value)."""
        unsaid = {key: value for key, value in UNSAID.items() if key in envelope}
        return [
            f"{key} {value!r}"
            for key, value in {**unsaid, **self.features}.items()
            if not (value <= envelope[key] if isinstance(envelope[key], int) else value in envelope[key])
        ]

    def inputs_digest(self) -> str:
        """sha256 of all but the answer: the arrays, the other arguments, and what the file says about them."""
        digest = hashlib.sha256(json.dumps(self._head(), sort_keys=True).encode())
        for name, x in sorted(_leaves(self.arguments)):
            digest.update(f"{name} {x.dtype.name} {list(x.shape)}".encode() + x.tobytes())
        return digest.hexdigest()

    def output_digest(self) -> str:
        """sha256 of the answer."""
        digest = hashlib.sha256()
        for part, x in sorted(self.answers.items()):
            digest.update(f"{part} {list(x.shape)}".lstrip().encode() + x.tobytes())
        return digest.hexdigest()

    def _head(self) -> dict[str, Any]:
        return {
            "component": self.component,
            "name": self.name,
            "requirement": self.requirement,
            "operation": self.operation,
            "recipe": self.recipe,
            "seed": self.seed,
            "condition": self.condition,
            "features": dict(self.features),
            "arguments": {name: _plain(value) for name, value in self.arguments.items()},
        }


def cases(component: str, root: Path = ROOT, requirement: str | None = None) -> list[Golden]:
    """Return every golden of a component, by name; or those of a requirement alone.

    GoldenError when the folder and the manifest do not name the same goldens, when one cannot be read or differs from
    its sha256, and when the contract's version is no longer that of the manifest.
    """
    entries = {id: entry for id, entry in manifest(root).items() if id.split("/")[0] == component}
    files = {f"{component}/{path.stem}" for path in (root / component).glob(f"*{SUFFIX}")}
    if missing := sorted(set(entries) - files):
        raise GoldenError(f"golden {missing[0]} is in {MANIFEST} but has no file: restore it, or {_regen(missing[0])}")
    if extra := sorted(files - set(entries)):
        raise GoldenError(f"golden {extra[0]} is not in {MANIFEST}: remove the file, or {_regen(extra[0])}")
    if not entries:
        raise GoldenError(f"{component} has no golden: {_regen(component)}")
    return [
        _trusted(id, entry, root)
        for id, entry in sorted(entries.items())
        if requirement in (None, entry.get("requirement", requirement))
    ]


def manifest(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Return golden id -> where it came from; GoldenError when the manifest cannot be read."""
    try:
        entries = json.loads((root / MANIFEST).read_text(encoding="utf-8"))["goldens"]
        if all(isinstance(entry, dict) for entry in entries.values()):
            return dict(entries)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GoldenError(f"golden {MANIFEST} cannot be read ({error}): restore it, or {_regen()}") from error
    raise GoldenError(f"golden {MANIFEST} has an entry that is not an object: restore it, or {_regen()}")


def read(path: Path) -> Golden:
    """Read one file without asking the manifest; GoldenError when it is no golden."""
    id = f"{path.parent.name}/{path.stem}"
    try:
        with safe_open(path, framework="numpy") as file:
            head = json.loads(file.metadata()[_HEAD])
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        head["arguments"] = {name: _value(name, value, stored) for name, value in head["arguments"].items()}
        parts = {name.removeprefix(_PART): x for name, x in stored.items() if name.startswith(_PART)}
        head["features"] = {name: tuple(x) if isinstance(x, list) else x for name, x in head["features"].items()}
        return Golden(**head, expected=parts or stored[_EXPECTED])
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise GoldenError(f"golden {id} cannot be read ({error}): restore the file, or {_regen(id)}") from error


def serialised(golden: Golden) -> bytes:
    """Return the bytes of a golden's file."""
    tensors = {_ARGUMENT + name: _bits(x) for name, x in _leaves(golden.arguments)}
    answers = {_PART + part if part else _EXPECTED: x for part, x in golden.answers.items()}
    return save({**tensors, **answers}, {_HEAD: json.dumps(golden._head())})


def by_part(value: Any) -> dict[str, np.ndarray]:
    """An answer, or a budget, by the name of the part; a single array has the name ""."""
    return dict(value) if isinstance(value, Mapping) else {"": value}


def _trusted(id: str, entry: Mapping[str, Any], root: Path) -> Golden:
    if absent := [key for key in _RECORDED if key not in entry]:
        raise GoldenError(f"golden {id} has no {absent[0]!r} in {MANIFEST}: restore it, or {_regen(id)}")
    golden = read(root / f"{id}{SUFFIX}")
    if golden.id != id:
        raise GoldenError(f"golden {id} says of itself that it is {golden.id}: restore the file, or {_regen(id)}")
    for key, what in (("inputs", golden.inputs_digest()), ("output", golden.output_digest())):
        if what != entry[key]:
            raise GoldenError(
                f"golden {id}: the file's {key} and the sha256 in {MANIFEST} differ: restore both, or {_regen(id)}"
            )
    for key in _IN_BOTH:
        if entry[key] != getattr(golden, key):
            raise GoldenError(
                f"golden {id}: {key} is {getattr(golden, key)!r} in the file and {entry[key]!r} in {MANIFEST}: "
                f"restore both, or {_regen(id)}"
            )
    agreed, version = _agreed_version(entry), contract_of(golden.component).version
    if agreed != version:
        raise GoldenError(
            f"golden {id} was agreed with version {agreed} of the {golden.component} contract, which is at {version}: "
            f"{_regen(golden.component)}"
        )
    return golden


def _agreed_version(entry: Mapping[str, Any]) -> Any:
    return entry["oracles"].get("spec") if isinstance(entry["oracles"], dict) else None


def _regen(what: str = "") -> str:
    only = f" --only {what}" if what else ""
    return f"run `inferspec golden regen{only}`, read the diff and commit it"


def _leaves(value: Any, path: str = "") -> list[tuple[str, np.ndarray]]:
    """The arrays in nested arguments, each with its path: ``steps.0.1.key``."""
    if isinstance(value, np.ndarray):
        return [(path, value)]
    if not isinstance(value, Mapping | list | tuple):
        return []
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    return [leaf for key, item in items for leaf in _leaves(item, f"{path}.{key}" if path else str(key))]


def _bits(x: np.ndarray) -> np.ndarray:
    """bfloat16 as its bit pattern: safetensors has no NumPy bfloat16."""
    return x.view(np.uint16) if x.dtype.name == "bfloat16" else x


def _plain(value: Any) -> Any:
    """An argument in JSON: arrays by their dtype alone."""
    if isinstance(value, np.ndarray):
        return {"array": value.dtype.name}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": {key: _plain(item) for key, item in value.items()}}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _value(path: str, value: Any, stored: Mapping[str, np.ndarray]) -> Any:
    """The argument that `_plain` wrote."""
    if isinstance(value, list):
        return [_value(f"{path}.{key}", item, stored) for key, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "slice" in value:
        return slice(*value["slice"])
    if "tuple" in value:
        return tuple(_value(path, value["tuple"], stored))
    if "dict" in value:
        return {key: _value(f"{path}.{key}", item, stored) for key, item in value["dict"].items()}
    x = stored[_ARGUMENT + path]
    if value["array"] == "bfloat16":
        return x.view(numpy_dtype("bfloat16"))
    if x.dtype.name != value["array"]:
        raise ValueError(f"{path} is stored as {x.dtype.name}, not {value['array']}")
    return x
