"""``inferspec explain``: a requirement from its sentence to its tests, a component's requirements, or its arithmetic.

All of it is read from the contracts, the fault dictionary and the suites: nothing is written down twice.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from inferspec.conformance.bridge.did_you_mean import nearest
from inferspec.conformance.bridge.drivers import driver_of
from inferspec.spec import COMPONENTS, contracts
from inferspec.spec import contract as contract_of
from inferspec.spec.contract import REQUIRED, Contract, Fault, Operation, Requirement, Variant
from inferspec.tools.sources import cited, links, properties

ROOT = Path(__file__).resolve().parent.parent


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("explain", help="a requirement, why it matters, and how it is judged; or a component")
    parser.add_argument(
        "what",
        metavar="REQUIREMENT|COMPONENT|NAME",
        help="ROPE-04, say, or rope; a name of the contract, such as softmax; a fault of a diagnosis; a test, as pytest names"
        " it; or a property that a source cites, such as RO1",
    )
    parser.add_argument(
        "--xray", action="store_true", help="a component's arithmetic on a small example, step by step, with its shapes"
    )
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; 2 for a name that is not known."""
    page = Page(Console(width=None if sys.stdout.isatty() else 120, highlight=False))
    name = options.what
    if found := _requirement(name):
        if options.xray:
            return _refuse(page, f"--xray takes a component: {found[0].component} is that of {found[1].id}")
        requirement(page, *found)
    elif part := _part(name):
        if options.xray:
            from inferspec.tools import xray

            xray.show(page, *part)
        else:
            component(page, *part)
    elif name.upper() in properties():
        if options.xray:
            return _refuse(page, f"--xray takes a component; {name.upper()} is a property")
        cited_property(page, name.upper())
    elif tested := _tested(name):
        if options.xray:
            return _refuse(page, f"--xray takes a component: {tested[0][0].component} is that of {name}")
        for one in tested:
            requirement(page, *one)
    else:
        return _refuse(page, unknown(name))
    return 0


def unknown(name: str) -> str:
    """What to say of a name that is neither a requirement's nor a component's, with those that are nearest to it."""
    ids = {r.id: r for contract in contracts() for r in contract.requirements}
    faults = {fault.name: fault for contract in contracts() for fault in contract.faults}
    near = nearest(name, [*COMPONENTS, *_operations()])
    near += nearest(name, ids, cutoff=0.5 if "-" in name else 0.8)
    near += nearest(name, faults, cutoff=0.8)
    if not near:
        return f"there is no requirement or component {name!r}; the components are {', '.join(COMPONENTS)}"
    texts = {**{id: one.text for id, one in ids.items()}, **{fault: one.text for fault, one in faults.items()}}
    listed = [f"  {one}  {texts.get(one, '')}".rstrip() for one in near]
    return "\n".join([f"there is no requirement or component {name!r}; the nearest are", *listed])


@dataclass
class Page:
    """Writes headings and paragraphs to a console, each paragraph wrapped and indented."""

    console: Console

    def heading(self, text: str, beside: str = "") -> None:
        self.console.print()
        self.console.print(Text.assemble((text, "bold"), f"  {beside}" if beside else ""), soft_wrap=True)

    def paragraph(self, text: str, indent: int = 2, style: str = "") -> None:
        # Rich fills the lines of a padded text up with spaces, which stay in a file.
        for line in Text(text, style).wrap(self.console, max(self.console.width - indent, 1)):
            line.rstrip()
            self.console.print(Text(" " * indent) + line if line else "", soft_wrap=True)

    def line(self, text: str, indent: int = 2, style: str = "") -> None:
        """A line that is not to be broken, since someone will copy it: a link, a command."""
        self.console.print(Text(" " * indent + text, style), soft_wrap=True)


def requirement(page: Page, contract: Contract, about: Requirement) -> None:
    """Everything that the kit knows of a requirement."""
    operation = contract.operation(about.name)
    own = [fault for fault in contract.faults if fault.kills.id == about.id]
    page.paragraph(f"{about.id}  {about.text}", 0, "bold")
    page.paragraph(f"{about.level} · aspect {about.aspect} · {about.name} of {contract.component} ({contract.title})")
    _source(page, about.source)
    _why(page, own)
    page.heading("The oracle", place(operation))
    page.line(f"{operation.__name__}: {spelling(operation)}")
    page.paragraph(prose(operation))
    budget, where = budget_of(operation)
    page.heading("The budget", where)
    page.paragraph(budget)
    _tests(page, about)
    _variants(page, contract, about)


def component(page: Page, contract: Contract, operations: Sequence[type[Operation]]) -> None:
    """What a component promises, in short; of its operations these."""
    module = sys.modules[contract.operations[0].__module__]
    page.paragraph(f"{contract.component}  {contract.title}", 0, "bold")
    page.paragraph(inspect.cleandoc(module.__doc__ or ""))
    for operation in operations:
        name = operation.signature.operation
        page.heading(spelling(operation), place(operation))
        for one in (one for one in contract.requirements if one.name == name):
            level = "" if one.level == "MUST" else f" ({one.level})"
            page.paragraph(f"{one.id}{level}  {one.text}")
    names = {operation.signature.operation for operation in operations}
    own = [one for one in contract.requirements if one.name in names]
    faults = [one for one in contract.faults if one.kills.name in names]
    variants = [one for one in contract.variants if one.operation in names]
    page.heading(f"{len(own)} requirements, {len(faults)} faults, {len(variants)} honest variants")
    page.line(f"inferspec explain {own[0].id}")
    whole = len(operations) == len(contract.operations)
    page.line(f"inferspec explain --xray {contract.component if whole else operations[0].signature.operation}")


def cited_property(page: Page, name: str) -> None:
    """What a property says that requirements and faults cite as their source, and those that do."""
    page.paragraph(f"{name}  {properties()[name].replace('`', '')}", 0, "bold")
    page.paragraph("a property that documented bugs say must hold (spec/PROPERTIES.md)")
    own = [one for contract in contracts() for one in contract.requirements if name in cited(one.source)]
    page.heading("The requirements that cite it", "" if own else "none")
    for one in own:
        page.paragraph(f"{one.id}  {one.text}")
    faults = [fault for contract in contracts() for fault in contract.faults if name in cited(fault.source)]
    page.heading("The faults that cite it", "" if faults else "none")
    for fault in faults:
        page.paragraph(f"{fault.text} (fault {fault.name}, {fault.kills.id})")


def _place(thing: Any) -> str:
    file = Path(inspect.getsourcefile(thing) or "").resolve()
    shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    return f"{shown}:{inspect.getsourcelines(thing)[1]}"


place: Callable[[Any], str] = functools.cache(_place)
"""Where something is defined: ``spec/rope.py:38``."""


def spelling(operation: type[Operation]) -> str:
    """An operation as an adapter spells it: a call, or an object and what it must have.

    Where a driver uses the object, the operation's own parameters are the kit's: the spelling is that of `impl` then.
    """
    signature, component = operation.signature, operation.__module__.rpartition(".")[2]
    if driver_of(component, signature.operation):
        offered = getattr(importlib.import_module(f"inferspec.impl.{component}"), signature.name)
        methods = [f".{name}" for name in (*operation.methods, *operation.optional_methods) if name != "__call__"]
        return f"{signature.name}{bare(offered)}" + (f": {', '.join(methods)}" if methods else "")
    init = "" if signature.init is None else f"({_parameters(signature.init)})"
    method = f".{signature.method}" if signature.method else ""
    return f"{signature.name}{init}{method}({_parameters(signature.call)})"


def bare(thing: Any) -> str:
    """The parameters of a function or class without types, with those defaults that any library has."""
    empty, found = inspect.Parameter.empty, []
    for one in inspect.signature(thing).parameters.values():
        plain = one.default is None or isinstance(one.default, bool | int | float | str | tuple)
        found.append(one.replace(annotation=empty, default=one.default if plain else empty))
    return str(inspect.Signature(found))


def _parameters(parameters: Mapping[str, Any]) -> str:
    return ", ".join(name if value is REQUIRED else f"{name}={value!r}" for name, value in parameters.items())


def prose(thing: Any) -> str:
    """A docstring without its indentation."""
    return inspect.cleandoc(thing.__doc__ or "")


def budget_of(operation: type[Operation]) -> tuple[str, str]:
    """How an operation's error budget is derived, and where that is written.

    It is a method's docstring that speaks of the budget: that of `evaluate` or of a step of its own; where nothing is
    computed, the class says so.
    """
    for name in ("budget", "attend", "evaluate"):
        method = getattr(operation, name, None)
        if method is not None and method.__doc__ and "udget" in method.__doc__:
            return prose(method), place(method)
    if "udget" in prose(operation):
        return prose(operation), place(operation)
    return "0: nothing is computed, so the answer has to be this one, bit for bit.", place(operation.evaluate)


def _part(name: str) -> tuple[Contract, Sequence[type[Operation]]] | None:
    """The component of that name with all its operations, or the one that a name of the contract is in, with those that
    have it: softmax is of the component linear."""
    if name.lower() in COMPONENTS:
        contract = contract_of(name.lower())
        return contract, contract.operations
    known = {one.lower(): one for one in _operations()}
    if name.lower() not in known:
        return None
    for contract in contracts():
        if found := [one for one in contract.operations if known[name.lower()] in _names(one)]:
            return contract, found
    return None


def _operations() -> list[str]:
    """All names of the contract."""
    return [name for contract in contracts() for operation in contract.operations for name in _names(operation)]


def _names(operation: type[Operation]) -> list[str]:
    """An operation's names: that of its requirements, that of an adapter, and that of a plain function."""
    signature = operation.signature
    return list(dict.fromkeys(name for name in (signature.operation, signature.name, operation.plain) if name))


def _requirement(name: str) -> tuple[Contract, Requirement] | None:
    """The requirement of that id, or the one that the fault of that name breaks."""
    id = re.sub(r"-(\d)$", r"-0\1", name.upper())
    return next(((c, r) for c in contracts() for r in c.requirements if r.id == id or name in _faults(c, r)), None)


def _tested(name: str) -> list[tuple[Contract, Requirement]]:
    """The requirements of the tests that pytest names so, alone, with their file or with their module."""
    suite, _, test = name.rpartition("::")
    if not test.startswith("test_"):
        return []
    from inferspec.conformance.suite import all_tests

    named = (one for one in all_tests() if one.name == test.partition("[")[0])
    ids = {one.requirement.id for one in named if suite.removesuffix(".py").endswith(Path(one.file).stem) or not suite}
    return [(c, r) for c in contracts() for r in c.requirements if r.id in ids]


def _faults(contract: Contract, about: Requirement) -> list[str]:
    return [fault.name for fault in contract.faults if fault.kills.id == about.id]


def _source(page: Page, source: str) -> None:
    page.paragraph(f"source: {source}" + (" (spec/PROPERTIES.md)" if "PROPERTIES" in source else ""))
    for name in cited(source):
        page.paragraph(f"{name}  {properties()[name].replace('`', '')}", 4)
    for link in links(source):
        if link not in source:
            page.line(link, 4, "cyan")


def _why(page: Page, faults: Iterable[Fault]) -> None:
    seen = [fault for fault in faults if links(fault.source)]
    others = [fault for fault in faults if not links(fault.source)]
    page.heading("Why it matters")
    if not seen:
        page.paragraph("no bug report is linked to it; its tests reject these plausible mistakes:")
    for fault in seen:
        page.paragraph(f"seen in the field: {fault.text} (fault {fault.name})")
        if not fault.source.startswith("http") or " " in fault.source:
            page.paragraph(fault.source, 4)
        for link in links(fault.source):
            if link != fault.source or " " not in fault.source:
                page.line(link, 4, "cyan")
    if seen and others:
        page.paragraph("its tests also reject:")
    for fault in others:
        page.paragraph(f"{fault.text} (fault {fault.name})", 4)


def _tests(page: Page, about: Requirement) -> None:
    from inferspec.conformance.suite import EXAMPLES, Profile, all_tests

    found = [test for test in all_tests() if test.requirement.id == about.id]
    page.heading("The tests", "examples: " + ", ".join(EXAMPLES))
    for test in found:
        drawn = "once" if not test.inputs else ", ".join(str(test.examples(Profile(name))) for name in EXAMPLES)
        page.line(f"conformance/{test.file}:{test.function.__code__.co_firstlineno}  {test.name}  {drawn}")
    here = Path("conformance").resolve() == ROOT / "conformance"
    suites = "conformance" if here else "--pyargs inferspec.conformance"
    page.line(f"pytest {suites} --impl impl -n 0 -m \"requirement(id='{about.id}')\"")


def _variants(page: Page, contract: Contract, about: Requirement) -> None:
    honest = list(_honest(contract, about))
    page.heading("Honest variants that must pass", "" if honest else "none")
    for variant in honest:
        page.paragraph(f"{variant.text} ({variant.name}, class {variant.precision})")


def _honest(contract: Contract, about: Requirement) -> Iterator[Variant]:
    return (v for v in contract.variants if v.operation == about.name and about.id not in v.unmet)


def _refuse(page: Page, text: str) -> int:
    page.console.print(text, style="red", markup=False, soft_wrap=True)
    return 2
