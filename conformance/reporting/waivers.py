"""Waivers: declared, dated, reasoned known failures of a subject (TOML); and those that have no issue to point to."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.spec import contracts
from inferspec.spec.contract import Contract

_FIELDS = ("requirement", "scope", "reason", "issue", "expires")

_FINDING = ("requirements", "reason")


class WaiverError(Exception):
    """A waiver file cannot be used; the message says which entry and why."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """One known failure. scope: "all", or envelope key -> the values that it covers; outside it nothing is waived."""

    requirement: str
    scope: Mapping[str, tuple[Any, ...]]
    reason: str
    issue: str
    expires: datetime.date

    def covers(self, features: Mapping[str, Any]) -> bool:
        """Whether a failing call with these features lies in the scope."""
        return all(_plain(features.get(key)) in values for key, values in self.scope.items())

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "expires": self.expires.isoformat()}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Waiver:
        """What `plain` gave."""
        return cls(**{**data, "expires": datetime.date.fromisoformat(data["expires"])})

    def expired(self, today: datetime.date) -> bool:
        return today > self.expires


def read_waivers(path: str | Path, device: str) -> dict[str, Waiver]:
    """Read what a waiver file waives on a device: requirement id -> waiver. WaiverError for an incomplete or unknown entry.

    device: what the certificate calls it (`cpu`, `gpu`, `cuda`); entries that name another are no waivers there.
    """
    path = Path(path)
    known = {requirement.id: contract for contract in contracts() for requirement in contract.requirements}
    waivers: dict[str, dict[str, Waiver]] = {}
    for number, entry in enumerate(_entries(path)["waiver"], 1):
        waiver = _waiver(entry, f"waivers {path.name}, entry {number}", known)
        device_of, devices = entry.get("device", ""), waivers.setdefault(waiver.requirement, {})
        if devices and ("" in (device_of, *devices) or device_of in devices):
            raise WaiverError(f"waivers {path.name}: {waiver.requirement} is waived twice")
        devices[device_of] = waiver
    # What is wrong in the file is said at once, whoever reads which part of it.
    read_findings(path, device)
    return {name: waiver for name, devices in waivers.items() for on, waiver in devices.items() if on in ("", device)}


def read_findings(path: str | Path, device: str) -> dict[str, str]:
    """Requirement id -> why the subject fails it there, of what is known and yet not waived, for want of an issue to point to.

    A [[finding]] changes nothing in a certificate: the requirement is failed there. device: as of `read_waivers`.
    """
    path = Path(path)
    known = {requirement.id for contract in contracts() for requirement in contract.requirements}
    findings: dict[str, str] = {}
    for number, entry in enumerate(_entries(path)["finding"], 1):
        where = f"waivers {path.name}, finding {number}"
        complete = set(entry) - {"device"} == set(_FINDING) and entry["reason"]
        texts = complete and [
            entry["reason"],
            *(entry["requirements"] if isinstance(entry["requirements"], list) else [0]),
        ]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise WaiverError(f"{where}: a finding has requirements, which is a list, and a reason")
        if unknown := [requirement for requirement in entry["requirements"] if requirement not in known]:
            raise WaiverError(f"{where}: there is no requirement {unknown[0]!r}")
        if _device(entry, where) in ("", device):
            findings |= dict.fromkeys(entry["requirements"], entry["reason"])
    return findings


def _device(entry: Mapping[str, Any], where: str) -> str:
    """The one device on which an entry holds, "" for all."""
    device = entry.get("device", "")
    if "device" in entry and not (isinstance(device, str) and re.fullmatch("[a-z]+", device)):
        raise WaiverError(f'{where}: device is {device!r}; it takes what a certificate calls the device, such as "gpu"')
    return str(device)


def _entries(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WaiverError(f"waivers {path.name}: {error}") from error
    entries = {kind: content.pop(kind, []) for kind in ("waiver", "finding")}
    lists = (isinstance(own, list) and all(isinstance(entry, dict) for entry in own) for own in entries.values())
    if content or not all(lists):
        raise WaiverError(f"waivers {path.name}: it takes [[waiver]] and [[finding]] entries and nothing else")
    return entries


def _waiver(entry: Mapping[str, Any], where: str, known: Mapping[str, Contract]) -> Waiver:
    if missing := [name for name in _FIELDS if not entry.get(name)]:
        raise WaiverError(f"{where} misses {', '.join(missing)}; a waiver has {', '.join(_FIELDS)}")
    if unknown := set(entry) - {*_FIELDS, "device"}:
        raise WaiverError(f"{where} has {sorted(unknown)[0]!r}; a waiver has {', '.join(_FIELDS)}, and may have device")
    if wrong := [name for name in ("requirement", "reason", "issue") if not isinstance(entry[name], str)]:
        raise WaiverError(f"{where}: {wrong[0]} is {entry[wrong[0]]!r}; it takes a text")
    if entry["requirement"] not in known:
        raise WaiverError(f"{where}: there is no requirement {entry['requirement']!r}")
    if not entry["issue"].startswith(("http://", "https://")):
        raise WaiverError(f"{where}: issue is {entry['issue']!r}; it takes the URL of an issue")
    if type(entry["expires"]) is not datetime.date:
        raise WaiverError(f"{where}: expires is {entry['expires']!r}; it takes a date such as 2027-01-31")
    _device(entry, where)
    covered = _scope(entry["scope"], where, known[entry["requirement"]].envelope)
    return Waiver(entry["requirement"], covered, entry["reason"], entry["issue"], entry["expires"])


def _scope(scope: Any, where: str, envelope: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The part of the envelope that a waiver covers, {} for all of it."""
    if scope == "all":
        return {}
    if not (isinstance(scope, dict) and all(isinstance(values, list) for values in scope.values())):
        raise WaiverError(f'{where}: scope is {scope!r}; it takes "all" or a table such as {{ dtypes = ["bfloat16"] }}')
    if strange := set(scope) - set(envelope):
        raise WaiverError(f"{where}: scope has {sorted(strange)[0]!r}; it takes any of {', '.join(envelope)}")
    if odd := [value for values in scope.values() for value in values if not _is_choice(value)]:
        raise WaiverError(f"{where}: scope has {odd[0]!r}; it takes texts, numbers and lists of such")
    for key, values in scope.items():
        # Sizes are drawn beside those of the envelope too; a word that it does not have would waive nothing, and say nothing.
        choices = envelope[key] if isinstance(envelope[key], list | tuple) else ()
        words = [choice for choice in choices if isinstance(choice, str)]
        if words and (unknown := [value for value in values if isinstance(value, str) and value not in words]):
            raise WaiverError(
                f"{where}: scope has {unknown[0]!r} in {key}; it takes any of {', '.join(words)}{meant(unknown[0], words)}"
            )
    return {key: tuple(_plain(value) for value in values) for key, values in scope.items()}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_choice(value: Any) -> bool:
    """Whether a value can be one of an envelope's choices."""
    return isinstance(value, str | int | float) or (isinstance(value, list) and all(map(_is_choice, value)))
