"""What metalsim raises."""

from __future__ import annotations

from collections.abc import Sequence

from inferspec.compiler import CompileError

from .reports import Report, Site
from .source import Place


def syntax_error(place: Place, message: str) -> CompileError:
    """What metalsim itself finds wrong in a source, told as the compiler tells its errors."""
    return CompileError(place.file, [f"{place}: error: {message}"])


class Refused(ValueError):
    """The source uses something that metalsim does not run.

    construct: what, in words. file, line: where.
    """

    def __init__(self, construct: str, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}: metalsim does not run {construct}")
        self.construct = construct
        self.file = file
        self.line = line


class KernelError(RuntimeError):
    """A launch found something wrong. reports: all that it found, the harmless ones too."""

    def __init__(self, kernel: str, reports: Sequence[Report]) -> None:
        self.reports = tuple(reports)
        wrong = [report for report in self.reports if not report.finding.harmless]
        lines = "\n".join(f"  {describe(report)}" for report in wrong)
        super().__init__(f"kernel {kernel}: {len(wrong)} finding{'' if len(wrong) == 1 else 's'}\n{lines}")


def describe(report: Report) -> str:
    """A report as one line, for example ``rows.metal:7: data race on threadgroup tile[3]: thread 3 of group (0, 0, 0)
    writes, thread 4 reads at rows.metal:9``."""
    text = f"{_site(report.access.site)}: {report.finding.value}"
    if report.memory:
        text += f" on {report.memory}" + ("" if report.index is None else f"[{report.index}]")
    text += f": thread {report.access.thread} of group {report.access.group}"
    if report.other:
        text += " writes" if report.access.writes else " reads" if report.memory else ""
        text += f", thread {report.other.thread} of group {report.other.group}"
        text += (
            " writes" if report.other.writes else " reads" if report.memory else ""
        ) + f" at {_site(report.other.site)}"
    if report.detail:
        text += f"; {report.detail}"
    return text if report.count == 1 else f"{text} ({report.count} times)"


def _site(site: Site | None) -> str:
    return f"{site.file}:{site.line}" if site else "?"
