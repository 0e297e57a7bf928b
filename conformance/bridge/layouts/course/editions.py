"""Which edition of the course a package was written to.

Days are numbered as in two of them: the older one numbers week 2 as it stood from 2025 to July 2026, the newer one as it stands
since August 2026.
"""

from __future__ import annotations

from inferspec.conformance.bridge.layouts.packages import Package


def is_of_july_2026(package: Package) -> bool:
    """Whether the text is that of July 2026 or later: its week 2 begins with a module of kernels."""
    return "week2_kernels" in package.modules or "week2_kernels" in package.broken


OLDER, NEWER = "edition of 2025 to July 2026", "edition of August 2026"


def edition(package: Package) -> str:
    """The edition whose days tell where what a package has is taught."""
    return NEWER if is_of_july_2026(package) else OLDER
