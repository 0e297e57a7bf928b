"""The contracts hang together: ids, faults, tests and signatures; each folder imports only what it may; one file has tolerances."""

from __future__ import annotations

import ast
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

from inferspec import spec
from inferspec.conformance import suite
from inferspec.spec import COMPONENTS, contracts
from inferspec.spec.contract import REQUIRED, Requirement, Signature, changed, requirements_digest
from inferspec.spec.rope import RoPE

ROOT = Path(spec.__file__).resolve().parent.parent
FOLDERS = ("spec", "conformance", "impl", "tools", "golden")
EVERY = [(contract, requirement) for contract in contracts() for requirement in contract.requirements]
FAULTS = [(contract, fault) for contract in contracts() for fault in contract.faults]
OPERATIONS = [(contract, operation) for contract in contracts() for operation in contract.operations]


def repeated(names):
    names = list(names)
    return {name for name in names if names.count(name) > 1}


def test_every_component_has_a_contract_of_its_name():
    assert tuple(contract.component for contract in contracts()) == COMPONENTS


def test_requirements_have_ids_of_their_own():
    ids = [requirement.id for _, requirement in EVERY]
    assert not repeated(ids)
    assert [i for i in ids if not re.fullmatch(r"[A-Z][A-Z0-9]*-\d\d", i)] == []


def test_requirements_are_sentences_about_an_operation_of_their_contract_with_a_source():
    for contract, requirement in EVERY:
        assert contract.operation(requirement.name), requirement.id
        assert requirement.text, requirement.id
        assert not requirement.text.endswith("."), requirement.id
        assert requirement.source, requirement.id


ALIKE = (
    ("LLAMA-21", "QWEN3-21", "LOAD-12"),
    ("EMB-09", "QEMB-08", "LLAMA-23", "QWEN3-23"),
    ("SPEC-19", "ENG-28"),
    ("SPEC-48", "ENG-40"),
    ("SPEC-47", "SPEC-51", "GEN-22", "ENG-26"),
    ("SPEC-52", "GEN-23"),
    ("SAMP-46", "SPEC-60"),
    ("SAMP-39", "SPEC-22", "SPEC-50"),
    ("DEQ-09", "QMM-13", "QLIN-09", "QEMB-16"),
    ("METR-11", "METR-12", "METR-13"),
    ("QMM-15", "QLIN-10", "ROPE-21"),
)
"""Sentences that say the same in other words."""

APART = {
    "no rows give no rows": "activations of no rows are what an idle batch has; a matrix of no rows is nobody's",
    "a refused append changes nothing": "blocks are shared by requests, a cache is its caller's own",
}
"""Sentences of more than one level, and why."""


def test_one_sentence_has_one_level_in_all_contracts():
    levels = {requirement.id: requirement.level for _, requirement in EVERY}
    assert [ids for ids in ALIKE if len({levels[one] for one in ids}) > 1] == []
    told = {}
    for _, requirement in EVERY:
        told.setdefault(requirement.text, set()).add(requirement.level)
    assert {text for text, found in told.items() if len(found) > 1} == set(APART)


def test_every_requirement_has_a_fault():
    with_fault = {fault.kills.id for _, fault in FAULTS}
    assert [r.id for _, r in EVERY if r.id not in with_fault] == []


def test_every_requirement_has_a_test():
    with_test = {test.requirement.id for test in suite.all_tests()}
    assert [r.id for _, r in EVERY if r.id not in with_test] == []


def test_every_test_is_of_a_requirement_of_a_contract():
    known = {requirement.id: requirement for _, requirement in EVERY}
    assert [test.id for test in suite.all_tests() if known.get(test.requirement.id) != test.requirement] == []
    assert not repeated(test.id for test in suite.all_tests())


def test_every_suite_has_the_name_of_the_component_that_it_is_about():
    """All but those of goldens, which are about several: test_rope.py, or test_rope_….py."""
    of = {one: component for component in COMPONENTS for one in suite.suites_of(component)}
    assert {*suite.suites()} - {*of} == {"test_golden", "test_golden_caches", "test_golden_models"}
    assert [one for one, component in of.items() if not f"{one}_".startswith(f"test_{component}_")] == []
    assert {f"test_{component}" for component in COMPONENTS} <= {*of}


def test_faults_and_variants_have_names_of_their_own():
    names = [f.name for _, f in FAULTS] + [v.name for contract in contracts() for v in contract.variants]
    assert not repeated(names)
    assert [name for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []


def test_every_fault_breaks_a_requirement_of_its_own_component_and_says_how_and_whence():
    for contract, fault in FAULTS:
        assert fault.kills in contract.requirements, fault.name
        assert fault.change, fault.name
        assert fault.text, fault.name
        assert not fault.text.endswith("."), fault.name
        assert fault.source, fault.name


def test_faults_and_variants_replace_only_steps_that_exist():
    for contract, fault in FAULTS:
        assert issubclass(contract.faulty(fault), contract.operation(fault.kills.name))
    for contract in contracts():
        for variant in contract.variants:
            assert issubclass(contract.variant(variant), contract.operation(variant.operation))


def test_faults_and_variants_declare_what_an_adapter_may_declare():
    for contract in contracts():
        for one in (*contract.faults, *contract.variants):
            for key, choices in one.envelope.items():
                assert set(choices) < set(contract.envelope[key]), one.name


def test_a_step_that_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="rope-mistyped: RoPE has no step 'turns'"):
        changed(RoPE, "rope-mistyped", {"turns": lambda self: None})


@pytest.mark.parametrize(
    ("text", "name", "init", "call"),
    [
        ("silu(x)", "silu", None, {"x": REQUIRED}),
        ("softmax(x, axis=-1)", "softmax", None, {"x": REQUIRED, "axis": -1}),
        ("Norm(dims, eps=1e-5)(x)", "Norm", {"dims": REQUIRED, "eps": 1e-5}, {"x": REQUIRED}),
        ("Table(weight).as_linear(x)", "Table.as_linear", {"weight": REQUIRED}, {"x": REQUIRED}),
        ("Cache()(key, offset=None)", "Cache", {}, {"key": REQUIRED, "offset": None}),
        ("Cache.attention(steps)", "Cache.attention", None, {"steps": REQUIRED}),
    ],
)
def test_a_signature_is_read_as_it_is_spelt(text, name, init, call):
    signature = Signature.parse(text)
    assert (signature.operation, signature.init, signature.call) == (name, init, call)


@pytest.mark.parametrize("text", ["silu", "1", "a.b", "x[0](y)"])
def test_what_is_no_call_is_no_signature(text):
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)


def test_operations_have_names_of_their_own_and_speak_of_their_own_parameters_and_envelope():
    assert not repeated(operation.signature.operation for _, operation in OPERATIONS)
    for contract, operation in OPERATIONS:
        assert operation.implied <= set(operation.signature.init or ()), operation
        for parameter, (key, left) in operation.narrows.items():
            assert parameter in operation.signature.parameters, operation
            assert set(left) <= set(contract.envelope[key]), (operation, key)
        for (method, _), (key, left) in operation.optional_parameters.items():
            assert method in operation.methods, operation
            assert set(left) <= set(contract.envelope[key]), (operation, key)
        for key, about in operation.either.items():
            assert operation.signature.parameters[key] == contract.envelope[key][0], (operation, key)
            assert set(about) <= {one.id for one in contract.requirements}, (operation, key)


def test_the_digest_of_the_requirements_sees_every_sentence():
    whole = tuple(requirement for _, requirement in EVERY)
    first = whole[0]
    reworded = Requirement(first.id, first.text + "!", first.name, first.level, first.aspect, first.source)
    assert requirements_digest(whole) == requirements_digest(whole[::-1])
    assert len({requirements_digest(rs) for rs in (whole, whole[1:], (reworded, *whole[1:]))}) == 3


# What the folders may import, and where tolerances are


def sources(folder: str, with_tests: bool = True) -> list[Path]:
    found = [path for path in sorted((ROOT / folder).rglob("*.py")) if with_tests or not path.name.startswith("test_")]
    assert found, folder
    return found


def imports(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def of_ours(path: Path) -> set[str]:
    """The folders of the kit that a file imports from, and its compiler."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("inferspec.")}


def test_the_spec_needs_nothing_but_numpy_and_the_standard_library():
    allowed = {*sys.stdlib_module_names, "numpy", "ml_dtypes", "inferspec"}
    for path in sources("spec", with_tests=False):
        assert {name.split(".")[0] for name in imports(path)} <= allowed, path
        assert of_ours(path) <= {"spec"}, path


@pytest.mark.parametrize(
    ("folder", "never"),
    [
        ("impl", {"spec", "conformance", "tools", "golden"}),
        ("conformance", {"impl", "tools"}),
        ("golden", {"impl", "tools"}),
    ],
)
def test_dependencies_point_one_way(folder, never):
    for path in sources(folder, with_tests=folder == "conformance"):
        assert not of_ours(path) & never, path


TOLERANCES = {
    "allclose",
    "isclose",
    "approx",
    "assert_allclose",
    "assert_almost_equal",
    "rtol",
    "atol",
    "rel_tol",
    "abs_tol",
}


def tolerances(tree: ast.AST, comparisons: bool = True) -> list[int]:
    """The lines that speak of a tolerance, or compare with a small number."""
    found = []
    for node in ast.walk(tree):
        name = (
            getattr(node, "id", "") or getattr(node, "attr", "") or (node.arg if isinstance(node, ast.keyword) else "")
        )
        compares = comparisons and isinstance(node, ast.Compare) and any(map(is_small, ast.walk(node)))
        if name in TOLERANCES or compares:
            found.append(node.lineno if hasattr(node, "lineno") else node.value.lineno)
    return found


def is_small(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return isinstance(node.right, ast.UnaryOp) and isinstance(node.right.op, ast.USub)
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < 1e-2


@pytest.mark.parametrize(
    "line",
    [
        "np.allclose(x, y)",
        "x == pytest.approx(y)",
        "close(x, y, rtol=0.1)",
        "abs(x - y) < 1e-6",
        "e <= 2.0**-10 * y",
        "ok = 1e-3 > e",
    ],
)
def test_a_tolerance_is_found_where_there_is_one(line):
    assert tolerances(ast.parse(line))


def test_no_file_but_numerics_has_a_tolerance():
    found = []
    for path in chain.from_iterable(sources(folder) for folder in FOLDERS):
        name = path.relative_to(ROOT).as_posix()
        # A fault may compare with what it likes: that is its mistake.
        compares = not name.startswith(("spec/faults/", "spec/changes/"))
        lines = tolerances(ast.parse(path.read_text(encoding="utf-8")), comparisons=compares)
        found += [f"{name}:{line}" for line in lines if name != "spec/numerics.py"]
    assert found == []
