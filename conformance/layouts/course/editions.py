"""Which edition of the course a package was written to."""

from __future__ import annotations

from inferspec.conformance.layouts.packages import Package


def is_of_july_2026(package: Package) -> bool:
    """Whether the text is that of July 2026 or later: its week 2 begins with a module of kernels."""
    return "week2_kernels" in package.modules
