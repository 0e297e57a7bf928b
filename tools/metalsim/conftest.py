"""What metalsim's own tests share."""

from __future__ import annotations

import pytest

from inferspec.tools.metalsim import NoCompiler
from inferspec.tools.metalsim.compiler import compiler


@pytest.fixture(scope="session")
def cxx() -> str:
    """The C++ compiler; skips where there is none."""
    try:
        return compiler()
    except NoCompiler as error:
        pytest.skip(str(error))
