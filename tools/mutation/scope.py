"""Which source is mutated, by which suites a mutant is judged, and what is left out by which rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from inferspec.spec import COMPONENTS

SPEC = Path(__file__).resolve().parent.parent.parent / "spec"

HELPERS: Mapping[str, tuple[str, ...]] = {
    "rope_scaling": ("llama", "qwen3"),
    "transformer": ("llama", "qwen3"),
    "stochastic": ("llama", "qwen3"),
    "engine_model": ("engine",),
}
"""What oracles compute with that is no component itself -> the components whose suites judge it."""

UNMUTATED = {
    "__init__": "lists the components",
    "contract": "the machinery of contracts, which computes no answer",
    "numerics": "budgets and roundings: its own tests derive them (spec/test_numerics.py)",
    "ends": "what comes out of an end, by which oracles, drivers and judges alike go: its own tests (tools/test_ends.py) say it",
    "decoder_sentences": "sentences",
    "paged_kv_sentences": "sentences",
    "quantization_sentences": "sentences",
    "sampling_sentences": "sentences",
    "speculative_sentences": "sentences",
    "toy": "the model that subjects are driven with, given to them by the suite",
    "batch_decoder": "the model that caches of a batch are driven with",
    "serving": "drives and observes a scheduler, and lends it the model of a block manager",
    "consumption": "drives and observes a subject: the same for all of them",
    "watch": "drives and observes a subject: the same for all of them",
    "duet": "drives and observes a subject: the same for all of them",
    "engine_decoder": "keeps what the decoders of engines make ready and what they said, and computes nothing itself",
    "engine_stories": "drives and observes a subject: the same for all of them",
    "block_histories": "judges histories, and gives no answer: that of real ones is drawn from the suites' faults",
    "scheduling_histories": "judges histories, and gives no answer: that of real ones is drawn from the suites' faults",
    "lossless": "distributions that draws are tested against: its own tests compare them (spec/test_speculative.py)",
}
"""Modules of spec/ that are not mutated -> why."""

RULES = {
    "declaration": "signatures, envelopes, sentences and defaults outside of functions, which say what the contract is",
    "validation": "guards, and conditions that only raise: what counts as bad input is judged by the guards' own faults",
    "text": "texts of messages and names of parts",
    "judge": "what tests ask of a contract beside its answer, and what drives and observes a subject: the same for every subject",
    "declared": "what only a subject does that says so in its envelope, which a mutant does not: its faults judge it",
    "budget": "what only flows into a budget: the subject's answer has none; too wide a budget lets faults survive, too "
    "narrow a one rejects honest variants (inferspec faults)",
}
"""Why something inside a mutated module is left out."""

BUDGETS = {
    "stochastic.Disturbed",
    "stochastic._Tape",
    "stochastic._drawn",
    "quantization.roundings_of",
    "quantization._Quantised.sizes",
    "quantization._Quantised.restoring",
}
"""Classes and functions that do nothing but bound errors, and that no flow of data tells: Monte Carlo arithmetic, say."""

JUDGING = {
    "batching": ("shown", "attended", "taken", "followed", "_bias"),
    "block_manager": ("Story", "Colliding", "Ranks"),
    "engine": ("last_logits",),
    "generation": ("listen", "requests_of"),
    "quantization": (
        "restored",
        "Quantize.steps",
        "Quantize.nearest",
        "Quantize.farthest",
        "Quantize.beyond",
        "Quantize._range",
    ),
    "rms_norm": ("RMSNorm.exact_rounding", "RMSNorm._product_slack"),
    "sampling": (
        "_Bounds",
        "_undecided",
        "FilterLogits.undecided",
        "Sampler.allowed",
        "Sampler._within_rounding",
        "Sampler.leaves_any_of_equals",
        "Sampler._largest",
        "_in_any_order",
        "_whichever",
        "Sampler.probabilities",
        "_once",
        "_arithmetic",
    ),
    "speculative": ("consumed", "requests_of", "numbers_of", "row_chances", "joint"),
}
"""Functions and classes that judge, drive or observe, and are no part of an answer."""

DECLARED = {"sampling": ("rising", "ways_of")}
"""Functions for those who declare another way than the usual."""


def judges(module: str) -> tuple[str, ...]:
    """The components whose suites judge mutants of a module."""
    return HELPERS.get(module) or (module,)


def modules(components: tuple[str, ...] = ()) -> list[str]:
    """The modules to mutate for some components (all of them by default)."""
    every = [*COMPONENTS, *HELPERS]
    return [module for module in every if not components or set(judges(module)) & set(components)]


def source(module: str) -> str:
    return (SPEC / f"{module}.py").read_text(encoding="utf-8")


def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


def imported(module: str) -> set[str]:
    """The modules of spec/ that a module of it imports."""
    return {
        name.removeprefix("inferspec.spec.")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and (name := node.module or "").startswith("inferspec.spec.")
    }


class Functions(ast.NodeVisitor):
    """Collects the functions of a module, those inside classes too, by their qualified names."""

    def __init__(self, module: ast.Module) -> None:
        self.found: dict[str, ast.FunctionDef] = {}
        self._names: list[str] = []
        self.visit(module)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.found[".".join([*self._names, node.name])] = node
        # What is defined inside belongs to it.

    def _inside(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()


def functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    """The functions and methods of a module by their qualified names; nested ones belong to what they are in."""
    return Functions(module).found


def body(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function, without its docstring."""
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def rule_of(module: str, name: str, function: ast.FunctionDef) -> str:
    """The rule that leaves out a whole function, "" where none does."""
    if function.returns is not None and "Requirement" in ast.unparse(function.returns):
        return "declaration"
    if any(name == one or name.startswith(f"{one}.") for one in JUDGING.get(module, ())):
        return "judge"
    if name in DECLARED.get(module, ()):
        return "declared"
    if any(f"{module}.{name}.".startswith(f"{one}.") for one in BUDGETS):
        return "budget"
    return "validation" if name.rpartition(".")[2].startswith("guard") else ""


def only_raises(node: ast.AST) -> bool:
    """Whether a statement only refuses: a raise, an assertion, or a condition of nothing but a raise."""
    refusal = isinstance(node, ast.If) and not node.orelse and all(isinstance(one, ast.Raise) for one in node.body)
    return refusal or isinstance(node, ast.Raise | ast.Assert)


def _strict(node: ast.AST) -> bool:
    """Whether it has `zip` check lengths."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def expressions(node: ast.AST, rule: str, budget: set[ast.AST]) -> Iterator[tuple[ast.AST, str]]:
    """Every node below, with the rule that leaves it out, "" where none does."""
    if isinstance(node, ast.arguments | ast.Raise):
        return
    if not rule:
        rule = "validation" if only_raises(node) or _strict(node) else "budget" if node in budget else ""
        rule = "text" if isinstance(node, ast.JoinedStr) else rule
    yield node, rule
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or (isinstance(node, ast.keyword) and node.arg == "axis"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from expressions(child, rule, budget)
