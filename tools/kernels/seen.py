"""What came of running a target: its kernels, and what was found in them, over all launches and schedules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inferspec.tools.kernels.job import Job, Unusable
from inferspec.tools.metalsim import Finding

Record = dict[str, Any]
_TAIL = 15  # lines of a dead worker's last words


@dataclass(frozen=True)
class Place:
    """A line of a kernel's source, and what a thread did there. what: ``writes``, ``reads``, or nothing where no memory is meant."""

    file: str
    line: int
    thread: int
    group: tuple[int, int, int]
    what: str

    def __str__(self) -> str:
        return f"{short(self.file)}:{self.line}" if self.line else "?"


@dataclass(frozen=True)
class Found:
    """A finding, over all launches. places: one, or two of a race or a divergence; memory, index, detail: of the first time."""

    finding: Finding
    places: tuple[Place, ...]
    memory: str | None
    index: int | None
    detail: str
    count: int
    schedules: tuple[str, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two findings the same: what and where, from whichever side."""
        return self.finding, self.memory, frozenset((place.file, place.line) for place in self.places)

    def also(self, other: Found) -> Found:
        """This one and another of the same key."""
        schedules = tuple(dict.fromkeys((*self.schedules, *other.schedules)))
        return replace(self, count=self.count + other.count, schedules=schedules)


@dataclass(frozen=True)
class Misuse:
    """A line that takes one address space for another."""

    file: str
    line: int
    text: str


@dataclass
class Seen:
    """One kernel. instances: its types and template arguments as launched, with the shapes that each had, and how often.
    misuses: of address spaces, in the source that it is the first to be made of. taken: reports that the target's own code took."""

    kernel: str
    file: str
    launches: int = 0
    instances: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: dict[tuple[Any, ...], Found] = field(default_factory=dict)
    misuses: list[Misuse] = field(default_factory=list)
    threadgroup_bytes: int = 0
    taken: int = 0

    @property
    def wrong_count(self) -> int:
        """How much is wrong with it."""
        return len(self.wrong) + len(self.misuses)

    @property
    def wrong(self) -> list[Found]:
        """The findings that are no right kernel's."""
        return [found for found in self.findings.values() if not found.finding.harmless]

    @property
    def harmless(self) -> list[Found]:
        """Those that a right kernel may have."""
        return [found for found in self.findings.values() if found.finding.harmless]


@dataclass
class Survey:
    """All kernels of a target. linted: whether address spaces were checked. listings: file -> number -> line, of files in which something was found. notes: why runs did not come to
    their end, and which tests failed."""

    target: str
    schedules: tuple[str, ...]
    linted: bool = False
    kernels: dict[str, Seen] = field(default_factory=dict)
    listings: dict[str, dict[int, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    launches: list[Record] = field(default_factory=list)

    def add(self, record: Record, schedule: str) -> None:
        """Take in one record of a worker."""
        if "launch" in record:
            self._add_launch(record["launch"], schedule)
        elif "misuse" in record:
            self.kernels[record["kernel"]].misuses.append(Misuse(**record["misuse"]))
        elif "listing" in record:
            lines = {int(number): line for number, line in record["listing"]["lines"].items()}
            self.listings.setdefault(record["listing"]["file"], lines)
        elif done := record.get("done"):
            self._note(done, schedule)

    def _add_launch(self, launch: Record, schedule: str) -> None:
        seen = self.kernels.setdefault(launch["kernel"], Seen(launch["kernel"], launch["file"]))
        seen.launches += 1
        seen.threadgroup_bytes = max(seen.threadgroup_bytes, launch["threadgroup_bytes"])
        shapes = seen.instances.setdefault(launch["instance"], {})
        text = shapes_of(launch)
        shapes[text] = shapes.get(text, 0) + 1
        seen.taken += launch["taken"]
        for report in launch["reports"]:
            found = _found(report, schedule)
            known = seen.findings.get(found.key)
            seen.findings[found.key] = known.also(found) if known else found
        self.launches.append({key: value for key, value in launch.items() if key != "reports"})

    def _note(self, done: Record, schedule: str) -> None:
        if done.get("failed"):
            told = f"{schedule}: {done['failed']} of its tests failed, {done['passed']} passed"
            self.notes.append("\n  ".join([told + (":" if done["failures"] else ""), *done["failures"]]))
        if done.get("trouble"):
            self.notes.append(f"{schedule}: {done['trouble']}")

    @property
    def complete(self) -> bool:
        """Whether every run came to its end, and the target's own tests passed: else a kernel may not have been seen at all."""
        return not self.notes

    @property
    def found(self) -> bool:
        """Whether anything but the harmless was found."""
        return any(seen.wrong_count for seen in self.kernels.values())

    @property
    def clean(self) -> bool:
        """Whether all of it ran, and nothing was found but the harmless."""
        return self.complete and not self.found

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "target": self.target,
            "schedules": list(self.schedules),
            "clean": self.clean,
            "complete": self.complete,
            "notes": self.notes,
            "address_spaces": "checked" if self.linted else "not checked",
            "kernels": [_seen_as_json(seen) for seen in self.kernels.values()],
        }


def survey(jobs: Sequence[Job], verbose: bool = False) -> Survey:
    """Run jobs of one target, one after the other.

    Raises ``Unusable`` where the target cannot be run, or launches no kernel.
    """
    result = Survey(jobs[0].target, tuple(job.schedule for job in jobs), any(job.lint for job in jobs))
    for job in jobs:
        for record in run(job, verbose):
            result.add(record, job.schedule)
    if not result.kernels:
        because = f" ({'; '.join(result.notes)})" if result.notes else ""
        if not jobs[0].as_gpu and jobs[0].way != "file":
            because += "; --as-gpu is for code that launches only where a GPU is the default device"
        raise Unusable(f"{result.target} launched no Metal kernel{because}")
    return result


def run(job: Job, verbose: bool = False) -> Iterable[Record]:
    """A job's records; its process has ended when they come.

    Raises ``Unusable`` where it says so, or died before it launched a kernel.
    """
    with tempfile.TemporaryDirectory(prefix="inferspec-kernels-") as folder:
        asked, told, said = (Path(folder, name) for name in ("job.json", "records.jsonl", "output"))
        asked.write_text(job.as_json(), encoding="utf-8")
        told.touch()
        # -P would keep the current folder from sys.path; a module there is a target like any other.
        command = [sys.executable, "-m", "inferspec.tools.kernels.worker", str(asked), str(told)]
        with open(said, "wb") as output:
            stream = None if verbose else output
            code = subprocess.run(command, stdout=stream, stderr=stream, env=dict(os.environ)).returncode
        records = list(_records(told))
        for record in records:
            if "unusable" in record:
                raise Unusable(record["unusable"])
        if not any("done" in record for record in records):
            words = said.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
            trouble = f"its process ended with {code}" + (": " + "\n".join(words) if words else "")
            records.append({"done": {"trouble": trouble}})
        return records


def _records(path: Path) -> Iterable[Record]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the last line of a process that died while it wrote
            return


def shapes_of(launch: Record) -> str:
    """``x=float32[4,97] out=float32[4] threads=128,1,1 threadgroup=32,1,1``: a launch line, but for values; without what
    MLX passes of each array by itself."""
    names = {name for name, _, _ in launch["buffers"]}
    derived = {f"{name}_{suffix}" for name in names for suffix in ("shape", "strides", "ndim")}
    buffers = [
        f"{name}={dtype}[{','.join(map(str, shape))}]"
        for name, dtype, shape in launch["buffers"]
        if shape and name not in derived
    ]
    sizes = [
        f"{key}={','.join(map(str, launch[name]))}"
        for key, name in (("threads", "grid"), ("threadgroup", "threadgroup"))
    ]
    return " ".join(buffers + sizes)


def short(file: str) -> str:
    """A header's path as it is included, other names as they are."""
    return file.rpartition("/include/")[2]


def _found(report: Record, schedule: str) -> Found:
    accesses = [access for access in (report["access"], report["other"]) if access]
    return Found(
        Finding(report["finding"]),
        tuple(_place(access, bool(report["memory"])) for access in accesses),
        report["memory"],
        report["index"],
        report["detail"],
        report["count"],
        (schedule,),
    )


def _place(access: Record, memory: bool) -> Place:
    site = access["site"] or {"file": "", "line": 0}
    what = ("writes" if access["writes"] else "reads") if memory else ""
    x, y, z = access["group"]
    return Place(site["file"], site["line"], access["thread"], (x, y, z), what)


def _seen_as_json(seen: Seen) -> dict[str, Any]:
    return {
        "kernel": seen.kernel,
        "file": seen.file,
        "launches": seen.launches,
        "threadgroup_bytes": seen.threadgroup_bytes,
        "reports_taken_by_the_target": seen.taken,
        "instances": seen.instances,
        "findings": [_found_as_json(found) for found in seen.wrong],
        "address_spaces": [asdict(misuse) for misuse in seen.misuses],
        "harmless": [_found_as_json(found) for found in seen.harmless],
    }


def _found_as_json(found: Found) -> dict[str, Any]:
    return {
        "finding": found.finding.value,
        "memory": found.memory,
        "index": found.index,
        "places": [
            {"file": place.file, "line": place.line, "thread": place.thread, "group": place.group, "what": place.what}
            for place in found.places
        ],
        "detail": found.detail,
        "count": found.count,
        "schedules": list(found.schedules),
    }
