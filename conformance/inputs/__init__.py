"""The calls that tests draw: one module per component, the same names as the contracts."""

from __future__ import annotations

import importlib

from inferspec.conformance.calls import Call
from inferspec.spec import located


def plain_call(operation: str) -> Call:
    """The plainest call of an operation (`EXAMPLES` of its component's inputs)."""
    about, _ = located(operation)
    examples: dict[str, Call] = importlib.import_module(f"{__name__}.{about.component}").EXAMPLES
    return examples[operation]
