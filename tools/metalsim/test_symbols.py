"""From program counters to source lines: the kernel's own, whatever was inlined into them."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from inferspec import compiler

from . import symbols
from .reports import Site

ATOS = f"""\
clamp (in half.dylib) ({symbols.HEADERS}/metalsim/math.h:40)
half_of (in half.dylib) ({compiler.UNIT}/half.metal:7)
msl_entry (in half.dylib) ({compiler.UNIT}/half.metal:12)

msl_entry (in half.dylib) ({compiler.UNIT}/half.metal:14)

0x0000000000002000 (in half.dylib)
"""
"""What macOS says of three addresses: of inlined code, of code that is not, and of none."""


def test_a_call_that_ends_a_line_is_on_that_line() -> None:
    source = """
#include <dlfcn.h>
#line 1 "calls.metal"
static char* last;
__attribute__((noinline)) static void remember() { last = (char*)__builtin_return_address(0); }
extern "C" long call() {
  remember();
  asm volatile("nop");
  Dl_info info;
  dladdr((void*)call, &info);
  return last - (char*)info.dli_fbase;
}
"""
    built = compiler.shared_library(source, ["-O1", "-g1", "-gdwarf-4"], label="calls")
    pc = ctypes.CDLL(str(built)).call()
    assert symbols.sites(built, [pc]) == {0: None, pc: Site("calls.metal", 4)}


def test_on_macos_a_line_of_a_kernel_is_told_and_none_of_the_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without -fullPath it tells the last names of the paths alone.
    cut = "*-fullPath*) cat;; *) sed 's,(/.*/,(,';;"
    atos = tmp_path / "atos"
    atos.write_text(f"#!/bin/sh\ncase \"$*\" in {cut} esac <<'END'\n{ATOS}END\n")
    atos.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(symbols, "MAC", True)
    sites = symbols.sites(tmp_path / "half.dylib", [0x101, 0x202, 0x2001])
    assert sites == {0: None, 0x101: Site("half.metal", 7), 0x202: Site("half.metal", 14), 0x2001: None}
