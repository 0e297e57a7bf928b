"""How a scheduler is used: the steps of a story, with the subject's own block manager where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferspec.conformance.arrays import Arrays
from inferspec.conformance.drivers import taken
from inferspec.spec.contract import Arguments
from inferspec.spec.serving import ModelManager, Story


def drive(make: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes a scheduler of a block manager and two limits."""
    managers = given["BlockManager"](given) if "BlockManager" in given else ModelManager
    # Caching is the default: a manager that can only do one of both need not have the parameter.
    options = {} if given["prefix_caching"] else taken(managers, prefix_caching=False)
    manager = managers(given["num_blocks"], given["block_size"], **options)
    return Story(make, manager, Arguments(**{"together": False, **given})).told(given["steps"])


DRIVERS = {"Scheduler": drive}
