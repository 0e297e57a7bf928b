"""The process that runs a target: what metalsim tells of its launches goes out as lines of JSON, each as soon as it is known.

    python -m inferspec.tools.kernels.worker JOB RECORDS

A target that takes its process with it loses nothing of what was told before.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from inferspec.tools import metalsim
from inferspec.tools.kernels import drive
from inferspec.tools.kernels.job import Job, Unusable, schedule
from inferspec.tools.metalsim.lint import lint
from inferspec.tools.metalsim.listing import Listing
from inferspec.tools.metalsim.reports import Report
from inferspec.tools.metalsim.runtime import Launch, Outcome
from inferspec.tools.metalsim.settings import current

_MLX_PREFIX = "custom_kernel_"


class Recorder:
    """Writes records: launches, and once for each file the lines of those in which something was found.

    lint: each source is also checked for misuse of address spaces, at its first launch.
    """

    def __init__(self, out: TextIO, lint: bool) -> None:
        self._out = out
        self._lint = lint
        self._linted: set[Listing] = set()
        self._listed: set[str] = set()

    def write(self, **record: Any) -> None:
        """A record, at once."""
        self._out.write(json.dumps(record) + "\n")
        self._out.flush()

    def take(self, report: Report) -> None:
        """What metalsim calls with each report: `launched` tells of them. Without a taker a finding would raise."""

    def launched(self, launch: Launch, outcome: Outcome) -> None:
        """What metalsim calls after each launch."""
        # Code that takes the reports itself, as a test of a broken kernel does, has its reasons.
        reports = outcome.reports if current().on_report == self.take else ()
        self.write(
            launch={
                "kernel": _name(launch),
                "instance": launch.kernel.removeprefix(_MLX_PREFIX),
                "file": launch.listing.name if launch.listing else "",
                "buffers": [[b.name, b.array.dtype.name, list(b.array.shape)] for b in launch.buffers],
                "grid": launch.grid,
                "threadgroup": launch.threadgroup,
                "threadgroup_bytes": outcome.threadgroup_bytes,
                "seconds": outcome.seconds,
                "reports": [report.as_dict() for report in reports],
                "taken": len(outcome.reports) - len(reports),
                "cost": outcome.cost.as_dict() if outcome.cost else None,
            }
        )
        sites = [access.site for report in reports for access in (report.access, report.other) if access]
        if launch.listing:
            self._list_files(launch.listing, {site.file for site in sites if site})
            if self._lint and launch.listing not in self._linted:
                self._linted.add(launch.listing)
                self._lint_text(_name(launch), launch.listing)

    def _lint_text(self, kernel: str, listing: Listing) -> None:
        for misuse in lint(listing.expanded):
            self.write(kernel=kernel, misuse=asdict(misuse))
            self._list_files(listing, {misuse.file})

    def _list_files(self, listing: Listing, files: set[str]) -> None:
        files -= self._listed
        if not files:
            return
        own = listing.lines()
        for file in files:
            lines = own.get(file) or _lines_of(Path(file))
            if lines:
                self._listed.add(file)
                self.write(listing={"file": file, "lines": lines})


def _name(launch: Launch) -> str:
    """The kernel's name as its author knows it: a body's by the name that `metal_kernel` was given."""
    if launch.listing and launch.kernel.startswith(_MLX_PREFIX):
        return Path(launch.listing.name).stem
    return launch.kernel


def _lines_of(path: Path) -> dict[int, str]:
    if not path.is_file():
        return {}
    return dict(enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1))


def _say_gpu() -> None:
    import mlx.core as mx

    mx.default_device = lambda: mx.Device(mx.gpu)


def main(job_file: str, records: str) -> int:
    """Run a job. The records' last one is ``done`` or ``unusable``."""
    job = Job.from_json(Path(job_file).read_text(encoding="utf-8"))
    with open(records, "w", encoding="utf-8") as out:
        recorder = Recorder(out, job.lint)
        metalsim.configure(
            metalsim.Settings(
                job.mode,
                schedule(job.schedule),
                job.timeout,
                on_report=recorder.take,
                strict=job.strict,
            )
        )
        metalsim.observe(recorder.launched)
        try:
            if job.way != "file":
                metalsim.install()
                if job.as_gpu:
                    _say_gpu()
            done = drive.drive(job)
        except (Unusable, metalsim.NoCompiler) as error:
            recorder.write(unusable=str(error))
            return 2
        except ImportError as error:
            recorder.write(unusable=f"{error}: Python targets need MLX")
            return 2
        recorder.write(done=done)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
