"""From preprocessed Metal source to C++: one pass for each thing that C++ has not."""

from __future__ import annotations

from dataclasses import dataclass

from inferspec.tools.metalsim.declarations import Declaration, declarations
from inferspec.tools.metalsim.errors import syntax_error
from inferspec.tools.metalsim.source import Edits, Source, Unbalanced

from . import (
    address_spaces,
    attributes,
    function_constants,
    instantiations,
    kernels,
    literals,
    private_variables,
    swizzles,
    threadgroup_variables,
)
from .function_constants import FunctionConstants
from .instantiations import Instantiation
from .kernels import KernelFunction, Parameter

__all__ = ["FunctionConstants", "Instantiation", "KernelFunction", "Parameter", "Rewritten", "rewrite"]


@dataclass(frozen=True)
class Rewritten:
    """text: C++, to follow metalsim's headers. kernels: by name. instantiations: by host name."""

    text: str
    kernels: dict[str, KernelFunction]
    instantiations: dict[str, Instantiation]
    constants: FunctionConstants
    source: Source
    declared: tuple[Declaration, ...]

    def needed_constants(self, kernel: KernelFunction) -> set[str]:
        """Names of the function constants without which the kernel cannot be made."""
        if not self.constants.by_index:
            return set()
        return function_constants.needed(self.source, self.declared, kernel.declaration, self.constants)


def scan(text: str, name: str) -> Source:
    """Tokens of the text; ``CompileError`` where a bracket lacks its other half."""
    try:
        return Source(text, name)
    except Unbalanced as error:
        raise syntax_error(error.place, str(error)) from None


def rewrite(source: Source) -> Rewritten:
    """Make C++ of it. Raises ``CompileError`` for what MSL does not take, ``Refused`` for what metalsim does not."""
    declared = tuple(declarations(source))
    edits = Edits(source)
    found = kernels.kernels(source, declared)
    named = instantiations.take(source, declared, edits)
    constants = function_constants.take(source, declared, edits)
    threadgroup_variables.rewrite(source, declared, edits)
    private_variables.rewrite(source, declared, edits)
    address_spaces.merge(source, declared, edits)
    address_spaces.erase(source, edits)
    attributes.erase(source, declared, edits)
    literals.rewrite(source, edits)
    swizzles.rewrite(source, edits)
    return Rewritten(edits.apply(), found, named, constants, source, declared)
