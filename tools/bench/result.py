"""What a run found: cases, contenders and their times, as objects and as a JSON file of a versioned schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from inferspec.tools.bench.peers import AGAIN, OURS
from inferspec.tools.bench.statistics import Ratio, Spread, noise, speedup
from inferspec.tools.generate import Unusable
from inferspec.tools.told import shortened, told

FORMAT = 1
SCHEMA = Path(__file__).resolve().parent / "result.schema.json"

TIMED, OTHER, REFUSED, FAILED = "timed", "other precision", "refused", "failed"
"""States of a contender: as the contract asks; timed although it computes in another precision; not timed since its
answer is another; not timed since it broke."""


@dataclass
class Contender:
    """One contender of a case. worst: its worst error in budgets of the class that it is named for; difference: the
    largest one of its logits, as a share of the largest logit; times: seconds by round."""

    name: str
    state: str
    note: str = ""
    precision: str = ""
    worst: float | None = None
    difference: float | None = None
    message: str = ""
    times: dict[int, float] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        """Whether there is a time."""
        return bool(self.times)

    @property
    def seconds(self) -> Spread:
        """Median and quartiles."""
        return Spread.of(list(self.times.values()))


@dataclass
class CaseResult:
    """One operation at one size, or one phase of a model.

    per: what a time is of, "call" or "token"; traffic, work: bytes and floating-point operations of that; bound: which
    limit of the machine it meets first; least: seconds that it takes at that limit, None where limits are not known.
    """

    name: str
    group: str
    dtype: str
    per: str
    traffic: float
    work: float
    bound: str
    least: float | None
    contenders: list[Contender]

    def of(self, name: str) -> Contender | None:
        """The contender of that name, if it was timed."""
        return next((one for one in self.contenders if one.name == name and one.timed), None)

    def speedup(self, name: str, other: str) -> Ratio | None:
        """How many times as fast one contender is as another."""
        first, second = self.of(name), self.of(other)
        return speedup(first.times, second.times) if first and second else None

    @property
    def again(self) -> Ratio | None:
        """Ours against ours: 1, but for noise."""
        return self.speedup(AGAIN, OURS)

    @property
    def noise(self) -> float | None:
        """The factor by which ratios of this case err."""
        return noise(self.again)

    def share(self, contender: Contender) -> float | None:
        """Of the machine's limit that a contender reaches."""
        return self.least / contender.seconds.median if self.least and contender.timed else None


@dataclass
class Result:
    """A whole run. command: how to repeat it; missing: what was not there -> how to install it."""

    kind: str
    command: list[str]
    settings: dict[str, Any]
    machine: dict[str, Any]
    libraries: dict[str, str]
    missing: dict[str, str]
    cases: list[CaseResult]
    date: str = ""

    @property
    def noise(self) -> float | None:
        """The median of the noise of all cases."""
        known = [one for case in self.cases if (one := case.noise)]
        return Spread.of(known).median if known else None

    def as_json(self) -> dict[str, Any]:
        """With everything that is derived from the times, for those who read no Python."""
        body = {"format": FORMAT, **asdict(self), "noise": self.noise}
        for case, plain in zip(self.cases, body["cases"], strict=True):
            plain["noise"] = case.noise
            plain["again"] = _plain(case.again)
            for one, entry in zip(case.contenders, plain["contenders"], strict=True):
                entry["seconds"] = asdict(one.seconds) if one.timed else None
                entry["share"] = case.share(one)
                entry["ours_is_faster"] = _plain(case.speedup(OURS, one.name)) if one.name != OURS else None
        return json.loads(json.dumps(body))


def _plain(ratio: Ratio | None) -> dict[str, Any] | None:
    return asdict(ratio) if ratio else None


def write(result: Result, path: Path) -> None:
    """Write a result; what does not keep the schema is a mistake of ours."""
    body = result.as_json()
    jsonschema.validate(body, schema())
    path.write_text(json.dumps(body, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read(path: Path) -> Result:
    """Read a result; Unusable, in one line, for a file that is none."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(body, schema())
    except (OSError, ValueError) as error:
        raise Unusable(f"{path} cannot be read: {told(error)}") from error
    except jsonschema.ValidationError as error:
        place = "/".join(map(str, error.absolute_path)) or "it"
        why = f"{place}: {shortened(error.message)}"
        raise Unusable(f"{path} is no result of `inferspec bench` (format {FORMAT}): {why}") from error
    cases = [_case(entry) for entry in body["cases"]]
    names = ("kind", "command", "settings", "machine", "libraries", "missing", "date")
    return Result(**{name: body[name] for name in names}, cases=cases)


def schema() -> dict[str, Any]:
    """What a file must be like."""
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def _case(entry: Mapping[str, Any]) -> CaseResult:
    fields = ("name", "group", "dtype", "per", "traffic", "work", "bound", "least")
    return CaseResult(**{name: entry[name] for name in fields}, contenders=[_contender(c) for c in entry["contenders"]])


def _contender(entry: Mapping[str, Any]) -> Contender:
    fields = ("name", "state", "note", "precision", "worst", "difference", "message")
    times = {int(number): seconds for number, seconds in entry["times"].items()}
    return Contender(**{name: entry[name] for name in fields}, times=times)
