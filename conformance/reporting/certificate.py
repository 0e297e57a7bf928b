"""The certificate: what a run showed, requirement by requirement, and the verdict that follows from it."""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import json
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import inferspec
from inferspec.conformance.reporting.power import power
from inferspec.conformance.reporting.waivers import Waiver
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.spec import contracts
from inferspec.spec.contract import Level, Requirement, requirements_digest

SCHEMA = Path(__file__).resolve().parents[2] / "spec" / "certificate.schema.json"
FORMAT = 1

STATES = (
    "passed",
    "not_claimed",
    "outside_envelope",
    "waived",
    "unknown",
    "failed",
    "overclaimed",
    "hung",
    "crashed",
)
"""From best to worst: a requirement is as bad as the worst of its tests."""

BAD = frozenset({"failed", "overclaimed", "hung", "crashed"})

STALE = "passes although it is waived"
EXPIRED = "its waiver expired on"
OF_WAIVERS = STALE, EXPIRED
"""What a failure says that is the waiver's, and not the subject's."""


def all_requirements() -> tuple[Requirement, ...]:
    """Every requirement of every contract, in the order of a report."""
    return tuple(requirement for contract in contracts() for requirement in contract.requirements)


def component_of(requirement: Requirement) -> str:
    """The component whose contract has the requirement."""
    return _components()[requirement.id]


@functools.cache
def _components() -> dict[str, str]:
    return {requirement.id: contract.component for contract in contracts() for requirement in contract.requirements}


def of_shard(index: int, count: int) -> frozenset[str]:
    """The ids of the requirements that a shard of a run has, 1 … count: every count-th, so that all take about as long."""
    return frozenset(requirement.id for requirement in all_requirements()[index - 1 :: count])


def judge(
    must_run: Sequence[Test],
    results: Mapping[str, Mapping[str, Any]],
    offers: Iterable[str],
    broken: Mapping[str, str],
    waivers: Mapping[str, Waiver],
    today: datetime.date,
    absent: Mapping[str, str] | None = None,
    thorough: bool = True,
) -> list[dict[str, Any]]:
    """Return a row for each requirement.

    must_run: every test of the kit; results: test id -> its outcome, as far as it ran; offers: the operations that
    the subject offers; broken: operation -> why its module could not be loaded; absent: operation -> why it is not
    claimed, where that is known; thorough: whether enough was asked to say that a waiver is needless.
    """
    waive = functools.partial(_waived, waivers=waivers, today=today, thorough=thorough)
    offered = set(offers)
    tests = _by_requirement(must_run)
    return [
        _row(requirement, tests.get(requirement.id, []), results, offered, broken, absent or {}, waive)
        for requirement in all_requirements()
    ]


def _by_requirement(tests: Iterable[Test]) -> dict[str, list[Test]]:
    found: dict[str, list[Test]] = {}
    for test in tests:
        found.setdefault(test.requirement.id, []).append(test)
    return found


def _row(
    requirement: Requirement,
    tests: Sequence[Test],
    results: Mapping[str, Mapping[str, Any]],
    offered: set[str],
    broken: Mapping[str, str],
    absent: Mapping[str, str],
    waive: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": requirement.id,
        "component": component_of(requirement),
        "name": requirement.name,
        "level": str(requirement.level),
        "aspect": str(requirement.aspect),
        "text": requirement.text,
        "state": "passed",
        "tests": [t.id for t in tests],
        "ran": [t.id for t in tests if t.id in results],
        "examples": 0,
        "worst": 0.0,
        "precision": "float32",
        "message": "",
        "diagnosis": [],
        "failures": [],
    }
    if requirement.name in broken:
        return {**row, "state": "failed", "message": broken[requirement.name], "ran": row["tests"]}
    if requirement.name not in offered:
        return {**row, "state": "not_claimed", "message": absent.get(requirement.name, ""), "ran": row["tests"]}
    return waive(row | _outcome([t.id for t in tests], results))


def _outcome(tests: Sequence[str], results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the tests of one requirement found, together: the worst state of them, and of those that ran all numbers."""
    found = {test: results[test] for test in tests if test in results}
    states = [str(outcome["state"]) for outcome in found.values()] + ["unknown"] * (len(tests) - len(found))
    within = [state for state in states if state != "outside_envelope"]
    state = max(within or states or ["unknown"], key=STATES.index)
    failures = [{"test": test, **outcome} for test, outcome in found.items() if outcome["state"] in BAD]
    precision = "native" if any(one["precision"] == "native" for one in found.values()) else "float32"
    # A share of a budget of another class cannot be compared with these; that of a failure is told all the same.
    alike = [one["worst"] for one in found.values() if one["precision"] == precision or one["state"] in BAD]
    return {
        "state": state,
        "examples": sum(outcome["examples"] for outcome in found.values()),
        "worst": max(alike, default=0.0),
        "precision": precision,
        "failures": failures,
        "diagnosis": list(dict.fromkeys(name for failure in failures for name in failure["diagnosis"])),
        "message": next((one["message"] for one in found.values() if one["state"] == state and one["message"]), ""),
    }


def _waived(row: dict[str, Any], waivers: Mapping[str, Waiver], today: datetime.date, thorough: bool) -> dict[str, Any]:
    waiver = waivers.get(row["id"])
    if waiver is None:
        return row
    if waiver.expired(today):
        return {**row, "state": "failed", "message": f"{EXPIRED} {waiver.expires}: {waiver.issue}"}
    if row["state"] != "passed":
        return row
    if thorough:
        return {**row, "state": "failed", "message": f"{STALE} ({waiver.issue}): remove the waiver"}
    return {**row, "state": "waived", "message": "holds on the few examples that were drawn"}


def measured_precision(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Component -> the tightest precision class that every test of it met, for the components that were tested."""
    tested = [row for row in rows if row["examples"]]
    components = dict.fromkeys(row["component"] for row in tested)
    return {
        component: "native"
        if any(r["precision"] == "native" for r in tested if r["component"] == component)
        else "float32"
        for component in components
    }


def verdict_of(rows: Sequence[Mapping[str, Any]], complete: bool = True) -> str:
    """`incomplete` when anything that must run did not; else `nonconformant` when a MUST is broken; else `conformant`."""
    if not complete or any(row["state"] == "unknown" or set(row["tests"]) != set(row["ran"]) for row in rows):
        return "incomplete"
    if any(row["state"] in BAD and (row["level"] == Level.MUST or "waive" in row["message"]) for row in rows):
        return "nonconformant"
    if not any(row["state"] == "passed" for row in rows):
        return "incomplete"
    return "conformant"


def verdict_text(certificate: Mapping[str, Any]) -> str:
    """The verdict in words: ``conformant with 2 waivers, 1 SHOULD unmet``."""
    rows = certificate["requirements"]
    text = str(certificate["verdict"])
    waived = sum(row["state"] == "waived" for row in rows)
    unmet = sum(row["state"] in BAD and row["level"] == Level.SHOULD for row in rows)
    notes = ([f"{waived} waiver{'s' * (waived > 1)}"] if waived else []) + ([f"{unmet} SHOULD unmet"] if unmet else [])
    return f"{text} with {' and '.join(notes)}" if notes and text != "incomplete" else text


def certificate(
    description: Description,
    rows: list[dict[str, Any]],
    waivers: Mapping[str, Waiver],
    profile: Profile,
    arguments: Sequence[str],
    matmul_error: float | None,
    unclaimed: Mapping[str, list[str]],
    complete: bool,
    altered: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the certificate of a run, ready to be written as JSON; altered: what of the kit was changed in the run."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "kit": {
            "version": inferspec.__version__,
            "requirements": requirements_digest(all_requirements()),
            "faults": sum(len(contract.faults) for contract in contracts()),
            "power": power(),
            "altered": list(altered),
        },
        "subject": _subject(description, unclaimed),
        "environment": {
            "machine": platform.machine(),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "libraries": _libraries(),
        },
        "precision": {
            "matmul_error": matmul_error,
            "matmul": _matmul_class(matmul_error),
            "declared": description.precision,
            "measured": measured_precision(rows),
        },
        "profile": profile.name,
        "seed": profile.seed,
        "arguments": list(arguments),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "complete": complete,
        "requirements": rows,
        "waivers": [
            {**w.plain(), "scope": {key: list(values) for key, values in w.scope.items()}} for w in waivers.values()
        ],
        "verdict": verdict_of(rows, complete),
    }
    return {**body, "digest": digest(body)}


def _subject(description: Description, unclaimed: Mapping[str, list[str]]) -> dict[str, Any]:
    """What a certificate says of its subject."""
    return {
        "spec": description.spec,
        "name": description.name,
        "version": description.version,
        "arrays": description.arrays,
        "library": description.library,
        "device": description.device,
        "kernel_path": description.kernel_path,
        "offers": sorted(description.offers),
        "envelope": description.envelope,
        "unclaimed": dict(unclaimed),
        **({"layout": description.layout} if description.layout else {}),
        **({"edition": description.edition} if description.edition else {}),
    }


def digest(certificate: Mapping[str, Any]) -> str:
    """sha256 of everything but the digest itself: an edit by hand shows. It is a checksum, not a signature."""
    body = {key: value for key, value in certificate.items() if key != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def problems(certificate: Any) -> list[str]:
    """What is wrong with a certificate, in sentences; empty for a sound one made by this kit."""
    import jsonschema

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(certificate), key=lambda e: list(map(str, e.path))
    )
    if not isinstance(certificate, dict) or certificate.keys().isdisjoint(schema["required"]):
        return ["it is no certificate"]
    if errors:
        return [f"{'/'.join(map(str, e.path)) or 'certificate'}: {e.message}" for e in errors]
    return [
        *_odd_kit(certificate),
        *_odd_list(certificate["requirements"]),
        *_odd_rows(certificate["requirements"], certificate["subject"]),
        *_odd_waivers(certificate),
        *_odd_conclusions(certificate),
    ]


def _odd_kit(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Whether it is as this kit wrote it."""
    if certificate["digest"] != digest(certificate):
        yield "the digest does not match: the certificate was changed after it was written"
    if certificate["kit"]["requirements"] != requirements_digest(all_requirements()):
        yield "it certifies another list of requirements than this kit's: run the suites again with this version"
    if altered := certificate["kit"]["altered"]:
        yield f"the kit was changed while it ran: {', '.join(altered[:5])}"


def _odd_list(listed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Whether there is one row for each requirement of this kit, with its sentence and its tests."""
    rows = {row["id"]: row for row in listed}
    sentences = {r.id: (r.text, r.name, str(r.level), str(r.aspect), component_of(r)) for r in all_requirements()}
    if missing := [i for i in sentences if i not in rows]:
        yield f"requirements are missing: {', '.join(missing)}"
    if len(rows) != len(listed):
        yield "a requirement has more than one row"
    told = {i: (r["text"], r["name"], r["level"], r["aspect"], r["component"]) for i, r in rows.items()}
    if edited := [i for i in rows if told[i] != sentences.get(i)]:
        yield f"these rows are not requirements of this kit: {', '.join(edited)}"
    must_run = _by_requirement(all_tests())
    if odd := [i for i, row in rows.items() if set(row["tests"]) != {t.id for t in must_run.get(i, [])}]:
        yield f"these rows do not name this kit's tests: {', '.join(odd)}"


def _odd_conclusions(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Whether precision and verdict follow from the rows."""
    rows = certificate["requirements"]
    if certificate["precision"]["measured"] != measured_precision(rows):
        yield "the measured precision does not follow from its rows"
    if certificate["verdict"] != verdict_of(rows, certificate["complete"]):
        yield f"the verdict {certificate['verdict']!r} does not follow from its rows"


def _odd_rows(rows: Sequence[Mapping[str, Any]], subject: Mapping[str, Any]) -> list[str]:
    """What no run can have found, whatever its subject."""
    odd: dict[str, list[str]] = {}
    for row in rows:
        for what in (*_odd_result(row), *_odd_claim(row, subject)):
            odd.setdefault(what, []).append(row["id"])
    return [f"these rows {what}: {', '.join(ids)}" for what, ids in odd.items()]


def _odd_result(row: Mapping[str, Any]) -> Iterator[str]:
    """What is odd of what a row says of its tests."""
    if row["failures"] and row["state"] not in BAD:
        yield "say more than their failures"
    if row["state"] in ("passed", "waived") and not row["examples"]:
        yield "passed without an example"
    if math.isnan(row["worst"]) or (row["state"] == "passed" and math.isinf(row["worst"])):
        yield "have a worst error that is no number"


def _odd_claim(row: Mapping[str, Any], subject: Mapping[str, Any]) -> Iterator[str]:
    """What is odd of whether a row is claimed."""
    offered = row["name"] in subject["offers"]
    if not offered and row["state"] not in (*BAD, "not_claimed"):
        yield "are of operations that the subject does not offer"
    # With a layout a test may find that a branch is not written yet, but only by trying it.
    if offered and row["state"] == "not_claimed" and ("layout" not in subject or not row["examples"]):
        yield "are not claimed although the subject offers them"


def _odd_waivers(certificate: Mapping[str, Any]) -> list[str]:
    """Rows that are waived, and by nothing that holds; a run that ends at midnight may be dated a little later."""
    try:
        made = datetime.datetime.fromisoformat(certificate["date"]) - datetime.timedelta(hours=1)
        expires = {w["requirement"]: datetime.date.fromisoformat(w["expires"]) for w in certificate["waivers"]}
    except (ValueError, OverflowError) as error:
        return [f"a date cannot be read: {error}"]
    waived = [row["id"] for row in certificate["requirements"] if row["state"] == "waived"]
    found = []
    if odd := [i for i in waived if i not in expires]:
        found.append(f"these rows are waived without a waiver: {', '.join(odd)}")
    if odd := [i for i in waived if i in expires and expires[i] < made.date()]:
        found.append(f"these rows are waived by a waiver that had expired: {', '.join(odd)}")
    return found


def _matmul_class(error: float | None) -> str:
    from inferspec.spec.numerics import matmul_class

    return "unknown" if error is None else matmul_class(error)


def _libraries() -> dict[str, str]:
    found = {}
    for name in (
        "mlx",
        "mlx-metal",
        "mlx-cpu",
        "mlx-lm",
        "torch",
        "transformers",
        "jax",
        "numpy",
        "ml_dtypes",
        "hypothesis",
        "pytest",
    ):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(certificate: Mapping[str, Any], path: str | Path) -> None:
    """Write a certificate; a half-written one never takes the place of an older one."""
    path, text = Path(path), json.dumps(certificate, indent=1) + "\n"
    if path.exists() and not path.is_file():
        # A device or a pipe (/dev/null, /dev/stdout) is written to: it would be gone if a file took its place.
        path.write_text(text, encoding="utf-8")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
