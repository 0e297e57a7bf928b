"""How much a kernel computed: from how often each of its basic blocks ran, and what instructions they are made of.

Kernels for cost mode are compiled with a call at the start of each basic block; the runtime counts the calls by their return
addresses. What a block computes is read off the disassembly, from that address to the next such call or to where the
code cannot go on.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BLOCK_CALL = "sanitizer_cov_trace_pc"

# x86-64: scalar and packed SSE; arm64: the same mnemonics for both, told apart by the operands.
X86_FLOAT = re.compile(
    r"v?(add|sub|mul|div|sqrt|min|max|rcp|rsqrt|round|hadd)(s|p)(s|d)$|v?fn?m(add|sub)\d+(s|p)(s|d)$"
)
X86_INTEGER = re.compile(
    r"(add|adc|sub|sbb|mul|imul|div|idiv|inc|dec|neg|not|and|or|xor|shl|sal|shr|sar|rol|ror|shld|shrd|popcnt|lzcnt|tzcnt|bsf|bsr|lea|"
    r"andn|bextr|blsi|blsr|mulx|rorx|sarx|shlx|shrx)[bwlq]?$"
)
ARM_FLOAT = re.compile(
    r"f(add|sub|mul|nmul|div|sqrt|min|max|minnm|maxnm|madd|msub|nmadd|nmsub|mla|mls|neg|abs|rint\w)$"
)
ARM_INTEGER = re.compile(
    r"(add|adds|adc|sub|subs|sbc|mul|madd|msub|smull|umull|smulh|umulh|sdiv|udiv|neg|mvn|and|ands|bic|orr|orn|eor|eon|lsl|lsr|asr|ror|"
    r"clz|rbit|rev\w*|ubfx|sbfx|ubfiz|sbfiz|bfi|bfxil)$"
)
# Functions of the C library that a GPU has instructions for, by how many floating-point operations they are.
CHEAP_CALLS = {
    "fmaf": 2,
    "fmaxf": 1,
    "fminf": 1,
    "floorf": 1,
    "ceilf": 1,
    "truncf": 1,
    "roundf": 1,
    "rintf": 1,
    "sqrtf": 1,
}
SPECIAL_CALL = re.compile(
    r"(exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|sincos|fmod|"
    r"erf|erfc|tgamma|lgamma|hypot|cbrt|remainder|ldexp|scalbn|frexp|nextafter)f?$"
)


@dataclass(frozen=True)
class Work:
    """Operations: of floating-point and integer arithmetic, and calls of special functions."""

    floating: int
    integer: int
    special: int


def operations(library: Path, blocks: Mapping[int, int]) -> Work | None:
    """What the blocks computed that ran so often; None without `objdump`, or with one that names no calls of the runtime's."""
    per_block = _block_work(library)
    if per_block is None:
        return None
    total = [0, 0, 0]
    for pc, count in blocks.items():
        for i, number in enumerate(per_block.get(pc, (0, 0, 0))):
            total[i] += number * count
    return Work(*total)


@functools.lru_cache(maxsize=64)
def _block_work(library: Path) -> dict[int, tuple[int, int, int]] | None:
    if not shutil.which("objdump"):
        return None
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    # Every kernel for cost mode has a block: none is what was not understood, and not a kernel that computes nothing.
    return _blocks_in(subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace").stdout) or None


def _blocks_in(disassembly: str) -> dict[int, tuple[int, int, int]]:
    arm = "file format elf64-littleaarch64" in disassembly or "arm64" in disassembly.partition("Disassembly")[0]
    blocks: dict[int, tuple[int, int, int]] = {}
    begins = False  # the next instruction is the first of a block
    block: int | None = None
    for line in disassembly.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", line)
        if not match:
            if not line.strip() or line.endswith(">:"):
                block, begins = None, False
            continue
        address, mnemonic, operands = int(match[1], 16), match[2], match[3]
        if begins:
            block, begins = address, False
            blocks[block] = (0, 0, 0)
        called = _called(mnemonic, operands)
        if called == BLOCK_CALL:
            begins = True
        elif block is not None:
            work = _call_work(called) if called else _instruction_work(mnemonic, operands, arm)
            floating, integer, special = blocks[block]
            blocks[block] = (floating + work[0], integer + work[1], special + work[2])
            if mnemonic in ("jmp", "ret", "b", "br"):
                block = None
    return blocks


def _called(mnemonic: str, operands: str) -> str | None:
    """The function that an instruction calls, also as a tail call; empty for one of the kernel's own."""
    if mnemonic not in ("call", "callq", "bl", "jmp", "b"):
        return None
    name = re.search(r"<_*([^@+>]+)(@plt)?(\+0x[0-9a-f]+)?>", operands)
    if mnemonic in ("jmp", "b") and not (name and name[2]):
        return None
    return name[1] if name else ""


def _call_work(name: str) -> tuple[int, int, int]:
    if name in CHEAP_CALLS:
        return CHEAP_CALLS[name], 0, 0
    return 0, 0, int(bool(SPECIAL_CALL.match(name)))


def _instruction_work(mnemonic: str, operands: str, arm: bool) -> tuple[int, int, int]:
    if arm:
        lanes = _arm_lanes(operands)
        if ARM_FLOAT.match(mnemonic):
            return lanes * (2 if re.match(r"f(n?m(add|sub)|ml[as])$", mnemonic) else 1), 0, 0
        return 0, int(bool(ARM_INTEGER.match(mnemonic))), 0
    if match := X86_FLOAT.match(mnemonic):
        single = mnemonic.endswith("s")
        packed = mnemonic[-2] == "p"
        width = (32 if "%ymm" in operands else 16) if packed else (4 if single else 8)
        return width // (4 if single else 8) * (2 if match[0].lstrip("v").startswith("f") else 1), 0, 0
    # Of its stack, or of nothing: not the kernel's arithmetic.
    if (
        "%rsp" in operands
        or (mnemonic.startswith("lea") and "%rip" in operands)
        or re.match(r"xor.*(%\w+),\1$", mnemonic + operands)
    ):
        return 0, 0, 0
    return 0, int(bool(X86_INTEGER.match(mnemonic))), 0


def _arm_lanes(operands: str) -> int:
    vector = re.match(r"v\d+\.(\d+)[hsd]", operands)
    return int(vector[1]) if vector else 1
