"""Shards of one run, made by ``--shard 1/3`` and so on, as one certificate.

A shard runs all tests of its requirements. So each row of the whole is taken from the one shard that ran it, and
nothing is judged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferspec.conformance.reporting.certificate import digest, measured_precision, verdict_of
from inferspec.tools.certificates.reading import Certificate, Refused, tested

ALIKE = ("format", "kit", "subject", "environment", "arguments", "profile", "seed", "waivers")
"""What is the same in all shards of one run: of the environment all but the releases of the kernel and, behind its second number,
of Python, in which runners differ while a new image is brought to them; of the arguments what says what was tested, but for where
the subject lies."""


def merge(shards: Mapping[str, Certificate]) -> Certificate:
    """Join certificates, by name of each, into that of the whole run.

    Refused for fewer than two, for shards of different kits, subjects, machines, libraries or profiles, when a test
    ran in two of them, and when one ran in none.
    """
    if len(shards) < 2:
        raise Refused(f"merge takes two certificates or more; it got {len(shards)}")
    (first_name, first), *others = shards.items()
    for name, other in others:
        _check_alike(first_name, first, name, other)
    # In one order whatever that of the files: the same shards make the same certificate.
    shards = dict(sorted(shards.items(), key=lambda named: (named[1]["arguments"], named[1]["digest"])))
    first = next(iter(shards.values()))
    found = {name: {row["id"]: row for row in shard["requirements"]} for name, shard in shards.items()}
    rows = [_merged({name: of[row["id"]] for name, of in found.items()}) for row in first["requirements"]]
    least_precise = max(shards.values(), key=lambda shard: shard["precision"]["matmul_error"] or 0.0)
    body = {key: value for key, value in first.items() if key != "digest"}
    body |= {
        "precision": {**least_precise["precision"], "measured": measured_precision(rows)},
        "arguments": [],
        "date": min(shard["date"] for shard in shards.values()),
        "complete": True,
        "requirements": rows,
        "shards": [{"digest": shard["digest"], "arguments": shard["arguments"]} for shard in shards.values()],
        "verdict": verdict_of(rows),
    }
    return {**body, "digest": digest(body)}


def _check_alike(first_name: str, first: Certificate, name: str, other: Certificate) -> None:
    for key in ALIKE:
        one, two = _essence(key, first[key]), _essence(key, other[key])
        if one != two:
            raise Refused(f"{name} and {first_name} are not of one run: {key} is {_differing(one, two)}")
    if first["precision"]["declared"] != other["precision"]["declared"]:
        raise Refused(f"{name} and {first_name} are not of one run: they declare different precisions")


def _essence(key: str, value: Any) -> Any:
    """What shards of one run, on machines of one kind, have in common of a value."""
    if key == "environment":
        return {**value, "system": value["system"].partition(" ")[0], "python": value["python"].rpartition(".")[0]}
    if key == "arguments":
        # The subject is compared as the certificate describes it.
        return sorted(option for option in tested(value) if option[0] != "--impl")
    return value


def _differing(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        return ", ".join(f"{other.get(name)!r} and {one.get(name)!r} ({name})" for name in names[:3])
    return f"{other!r} and {one!r}"


def _merged(rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The row of a requirement in the whole, from those in the shards."""
    every = list(rows.values())
    if all(row == every[0] for row in every) and _needs_no_run(every[0]):
        return every[0]
    ran = {name: row for name, row in rows.items() if row["ran"]}
    seen: dict[str, str] = {}
    for name, row in ran.items():
        for test in row["ran"]:
            if test in seen:
                raise Refused(f"{name} and {seen[test]} overlap: both ran {test}")
            seen[test] = name
    identity, tests = every[0]["id"], every[0]["tests"]
    missing = [test for test in tests if test not in seen]
    if missing:
        raise Refused(f"there is a gap: no shard ran {missing[0]} of {identity}")
    if len(ran) > 1:
        raise Refused(f"tests of {identity} ran in different shards, {', '.join(ran)}; --shard keeps them together")
    return next(iter(ran.values()))


def _needs_no_run(row: Mapping[str, Any]) -> bool:
    """Whether a row is what it is without any example: not claimed, or of a module that could not be loaded."""
    return row["ran"] == row["tests"] and not row["examples"] and not row["failures"]
