"""What metalsim's own tests share."""

from __future__ import annotations

import pytest

from inferspec.compiler import compiler
from inferspec.tools.metalsim import NoCompiler


@pytest.fixture(scope="session")
def cxx() -> str:
    """The C++ compiler; skips where there is none."""
    try:
        return compiler()
    except NoCompiler as error:
        pytest.skip(str(error))
