"""The C++ that is compiled for one kernel: metalsim's headers, the rewritten source, and the entry that the runtime calls."""

from __future__ import annotations

from .rewrite import Parameter, Rewritten
from .rewrite.kernels import POSITIONS, VECTORS

_HEADER = '#include "metalsim/msl.h"\n'


def unit(rewritten: Rewritten, expression: str, parameters: tuple[Parameter, ...]) -> str:
    """A translation unit that exports ``msl_entry``, one thread of the kernel ``expression``, and ``msl_set_constant``."""
    numbers = "".join(
        f"  const unsigned int position{n}[3] = {{{POSITIONS[p.position]}, 0, 0}};\n"
        for n, p in enumerate(parameters)
        if p.kind == "position" and POSITIONS[p.position] not in VECTORS
    )
    arguments = ",\n         ".join(_argument(n, parameter) for n, parameter in enumerate(parameters))
    return (
        f"{_HEADER}{rewritten.text}\n"
        '#line 1 "<metalsim entry>"\n'
        'extern "C" MSL_NOSAN void msl_entry(void* const* buffers) {\n'
        "  (void)buffers;\n"
        "  [[maybe_unused]] const unsigned int msl_origin[3] = {0, 0, 0};\n"
        f"{numbers}"
        # Qualified: a kernel may have the name of one of Metal's functions.
        f"  auto kernel = ::{expression.removeprefix('::')};\n"
        f"  kernel({arguments});\n"
        "}\n" + rewritten.constants.setter()
    )


def _argument(number: int, parameter: Parameter) -> str:
    """C++ for one argument: the helpers of metalsim/entry.h make of it what the parameter's type asks for."""
    declared = f"decltype(msl::pickr<{number}>(kernel))"
    bare = f"metal::remove_cv_t<metal::remove_reference_t<{declared}>>"
    if parameter.kind == "buffer":
        return f"msl::bufarg<{declared}>::get(buffers[{parameter.index}])"
    if parameter.kind == "threadgroup":
        return f"msl::dynarg<{declared}>::get({parameter.index})"
    source = POSITIONS[parameter.position]
    return f"msl::posarg<{bare}>::get({source if source in VECTORS else f'position{number}'})"
