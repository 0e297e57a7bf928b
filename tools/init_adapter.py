"""``inferspec init``: an adapter to fill in, every name of the contract in it as a comment.

Signatures are those of the kit's own implementation, which the suites certify, so that a new name of the contract shows
up here by itself.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import keyword
import pprint
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from inferspec.spec import COMPONENTS
from inferspec.spec import contract as contract_of
from inferspec.spec.contract import REQUIRED, STORY, Contract, Operation
from inferspec.tools.arguments import no_component
from inferspec.tools.explain import ROOT, bare, prose
from inferspec.tools.told import told

HEAD = '''"""{name}: what `inferspec` certifies of it.

Fill in what you have: take the comment signs off a name below and call your code from there, or import your own thing
under that name (`from my_pkg.layers import RotaryEmbedding as RoPE`). Leave the rest: what is not offered is not claimed.

    pytest --pyargs inferspec.conformance --impl ./{file} -n auto    certify it
    pytest --pyargs inferspec.conformance --impl ./{file} -m "requirement(component='{first}')"    while you work on a part
    inferspec explain {requirement}    what a requirement means, why it matters, how it is judged
    inferspec explain --xray {first}    the formula on a small example, step by step

Only the parameters that yours take are passed; what the signature lacks (`bias`, `mask` …) is not claimed.
"""

NAME = "{name}"
VERSION = "0.1"

# The arrays that you take and return: "mlx", "torch", "numpy" or "jax". Guessed from what this file imports. NumPy's bfloat16
# is that of ml_dtypes.
# ARRAYS = "numpy"

# What you support of a component; tests draw from nothing else. Each component below says what is claimed without an entry.
ENVELOPE = {{}}

# "native" where steps are rounded to the input's dtype, with sums in float32; "float32", the default, is held to tighter
# budgets.
# PRECISION = {{"{first}": "native"}}
{layout}
# Known failures, which a certificate then counts as waived: a TOML file beside this one, with entries like
#   [[waiver]]
#   requirement = "{requirement}"
#   scope = "all"              # or {{ dtypes = ["float16"] }}
#   reason = "why it is so"
#   issue = "https://…"        # where it is being dealt with
#   expires = {expires}
# WAIVERS = "waivers.toml"

# Why this cannot run here (no GPU, a library that is missing), if it cannot: a run then says so in one line.
# UNAVAILABLE = ""
'''


class Refused(Exception):
    """The adapter cannot be written; the message says why."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("init", help="write an adapter to fill in: every name of the contract, as a comment")
    parser.add_argument("file", type=Path, metavar="FILE", help="where to, my_adapter.py say; it must not be there yet")
    parser.add_argument(
        "--component", action="append", default=[], metavar="COMPONENT", help="only this one; repeatable (default: all)"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; 2 when there is something in the way."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        write(options.file, options.component)
    except Refused as error:
        console.print(str(error), style="red", markup=False)
        return 2
    console.print(f"{options.file}: fill in what you have, then")
    console.print(f"  pytest --pyargs inferspec.conformance --impl {_spec(options.file)} -n auto", markup=False)
    return 0


def write(file: Path, components: Sequence[str] = ()) -> None:
    """Write an adapter; Refused when the file is there, or no module can have its name."""
    if problem := no_component("--component", components):
        raise Refused(problem)
    if file.suffix != ".py" or not file.stem.isidentifier() or keyword.iskeyword(file.stem):
        raise Refused(f"{file} is no name of a Python module; my_adapter.py is one")
    if (taken := _taken(file)) and not file.exists():
        raise Refused(f"{file}: {file.stem!r} is also {taken}, which would not be found any more; take another name")
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(adapter(file, components or COMPONENTS))
    except FileExistsError:
        raise Refused(f"{file} is there already; it stays as it is") from None
    except OSError as error:
        raise Refused(f"{file} cannot be written: {told(error)}") from error


def _taken(file: Path) -> str:
    """Whose name the module has already: Python's, or that of something installed; "" where it is nobody's."""
    if file.stem in sys.stdlib_module_names:
        return "a module of Python itself"
    beside = {Path.cwd(), file.absolute().parent}
    installed = PathFinder.find_spec(file.stem, [one for one in sys.path if Path(one).absolute() not in beside])
    return f"an installed module ({installed.origin or file.stem})" if installed else ""


def adapter(file: Path, components: Sequence[str]) -> str:
    """The text of an adapter."""
    chosen = [contract_of(component) for component in components]
    layouts = {one.component: one.layouts[-1] for one in chosen if len(one.layouts) > 1}
    layout = f"\n# The order of your arrays' axes where it is another than the contract's.\n# LAYOUT = {layouts}\n"
    head = HEAD.format(
        name=file.stem,
        file=file.name,
        first=components[0],
        layout=layout if layouts else "",
        requirement=chosen[0].requirements[0].id,
        expires="2027-12-31",
    )
    return "\n".join([head, *(_component(one) for one in chosen)])


def _spec(file: Path) -> str:
    return str(file) if file.is_absolute() or ".." in file.parts else f"./{file}"


def _listed(contract: Contract) -> dict[str, Any]:
    """What is claimed of a component without an entry."""
    usual = {key: contract.envelope[key][:1] for key in _either(contract)}  # type: ignore[index]
    asked = {**contract.envelope, **_unless_declared(contract), **usual}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asked.items()}


def _unless_declared(contract: Contract) -> dict[str, Any]:
    return {key: kept for operation in contract.operations for key, kept in operation.unless_declared.items()}


def _either(contract: Contract) -> list[str]:
    """Keys of which a subject does one thing or another; the first is what is asked of who declares nothing."""
    either = (key for operation in contract.operations for key in operation.either)
    return list(dict.fromkeys([*either, *(key for key, _ in contract.alone)]))


def _others(contract: Contract, key: str) -> str:
    """What is asked only of who declares it."""
    every: Any = contract.envelope[key]
    asked = _unless_declared(contract).get(key, every[:1])
    return ", ".join(repr(choice) for choice in every if choice not in asked)


def _component(contract: Contract) -> str:
    """The names of a component."""
    lines = [f"\n# ── {contract.component}: {contract.title} (inferspec explain {contract.component})"]
    lines += [f"# {line}".rstrip() for line in _shapes(contract)]
    envelope = pprint.pformat(_listed(contract), width=110, compact=True, sort_dicts=False).splitlines()
    lines += ["#", f'# ENVELOPE["{contract.component}"] = {envelope[0]}', *(f"# {line}" for line in envelope[1:])]
    lines += [f"# {key} may have as well: {_others(contract, key)}" for key in _unless_declared(contract)]
    lines += [f"# {key} may be instead: {_others(contract, key)}" for key in _either(contract)]
    implementation = importlib.import_module(f"inferspec.impl.{contract.component}")
    told: set[str] = set()
    for operation in contract.operations:
        if operation.signature.name not in told:
            told.add(operation.signature.name)
            known = _known(contract, operation.signature.name)
            lines += ["#", *(f"# {line}".rstrip() for line in _stub(operation, implementation, known))]
        if plain := _plain(operation):
            lines += ["#", f"# {plain}"]
    return "\n".join(lines) + "\n"


def _shapes(contract: Contract) -> Iterator[str]:
    """What the contract says of shapes."""
    text = prose(sys.modules[contract.operations[0].__module__])
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("Shapes"):
            yield from textwrap.wrap(paragraph, 116)


def _known(contract: Contract, name: str) -> Callable[[str], bool]:
    """Whether the contract speaks of a member of the class: an operation does, or the driver that uses the object."""
    named = {"__init__", "__call__"}
    for operation in contract.operations:
        if operation.signature.name == name:
            named |= {operation.signature.method, *operation.methods, *operation.optional_methods}
    driver = ROOT / "conformance" / "drivers" / f"{contract.component}.py"
    text = driver.read_text(encoding="utf-8") if driver.exists() else ""
    return lambda member: member in named or bool(re.search(rf"[.\"]{member}\b", text))


def _stub(operation: type[Operation], implementation: ModuleType, known: Callable[[str], bool]) -> Iterator[str]:
    """The name as Python, without its body."""
    name = operation.signature.name
    thing = getattr(implementation, name)
    if not inspect.isclass(thing):
        named = operation.parts if operation.parts != STORY else ()
        gives = f" Gives {', '.join(named)}: in this order, or by name." if named else ""
        yield f"def {name}{bare(thing)}: ...  # {_summary(thing)}{gives}"
        return
    yield f"class {name}:  # {_summary(thing)}"
    members = {key: value for one in reversed(thing.__mro__[:-1]) for key, value in vars(one).items()}
    for member, value in members.items():
        if not known(member):
            continue
        if isinstance(value, property):
            yield "    @property"
            yield f"    def {member}(self): ...  # {_summary(value)}"
        elif inspect.isfunction(value):
            text = f"  # {_summary(value)}" if value.__doc__ and member != "__init__" else ""
            yield f"    def {member}{bare(value)}: ...{text}"


def _plain(operation: type[Operation]) -> str:
    """The plain function that may stand for a class, if one may."""
    if not operation.plain:
        return ""
    signature = operation.signature
    given = {**signature.call, **(signature.init or {})}
    given = {name: value for name, value in given.items() if name not in operation.implied}
    needed = [name for name, value in given.items() if value is REQUIRED]
    optional = [f"{name}={value!r}" for name, value in given.items() if value is not REQUIRED]
    return f"def {operation.plain}({', '.join([*needed, *optional])}): ...  # or so, as a plain function"


def _summary(thing: Any) -> str:
    return " ".join(prose(thing).split("\n\n")[0].split())
