"""Mistakes of block managers that give a table the cached copy of a block that it computed."""

from __future__ import annotations

from inferspec.spec import block_manager as spec
from inferspec.spec.changes import block_manager_joins as changes
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults.defining import named

_fault = named("block-manager")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "joins-what-looks-alike",
        "a table whose block is computed is given one with the same tokens, whatever stands before them",
        spec.BLK_02,
        {"mark_computed": changes.joins_what_looks_alike},
        "PROPERTIES PC3",
    ),
    _fault(
        "joins-ahead",
        "a table is given the cached copies of blocks that it has yet to compute",
        spec.BLK_02,
        {"mark_computed": changes.joins_ahead},
        "PROPERTIES PC5",
    ),
    _fault(
        "joins-uncounted",
        "a table that is given the copy of a block is not counted as one that has it",
        spec.BLK_05,
        {"mark_computed": changes.joins_uncounted},
        "PROPERTIES PG1",
    ),
    _fault(
        "joins-and-keeps",
        "a table that is given the copy of a block does not give its own back",
        spec.BLK_05,
        {"mark_computed": changes.joins_and_keeps},
        "PROPERTIES PG4",
    ),
    _fault(
        "joins-what-stays-free",
        "a table is given the copy of a block that is free, and stays so",
        spec.BLK_05,
        {"mark_computed": changes.joins_what_stays_free},
        "PROPERTIES PC6",
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "block-manager-joins-copies",
        "a table whose block is computed when another has the same is given that one",
        "BlockManager",
        {"mark_computed": changes.joins_copies},
    ),
)
