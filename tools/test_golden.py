"""Are the goldens what two oracles say, and can nothing else write one?"""

import ast
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import inferspec.tools.golden as writer
from inferspec.conformance.suite import all_tests
from inferspec.golden import MANIFEST, ROOT, SUFFIX, by_part, cases, manifest, read, serialised
from inferspec.spec import contract as contract_of
from inferspec.spec.numerics import DTYPES, SHARP, Precision
from inferspec.tools.golden_copies import contents, ran

COMPONENTS = sorted({id.split("/")[0] for id in manifest()})
IDS = sorted(manifest())
HERE = Path(writer.__file__).resolve().parent


def oracle(operation, bound):
    """Values and budgets of the spec's answer, by part."""
    answer = operation.evaluate(bound, Precision.FLOAT32)
    answers = by_part(answer)
    return {p: one.value for p, one in answers.items()}, {p: one.budget for p, one in answers.items()}


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_golden_is_a_good_call_inside_the_envelope(component):
    contract = contract_of(component)
    for golden in cases(component):
        operation = contract.operation(golden.operation)()
        bound = operation.bind(golden.arguments)
        operation.guard(bound)
        values, budgets = oracle(operation, bound)
        assert not golden.beyond(contract.envelope), golden.id
        assert golden.equals(values, budgets), golden.id
        if operation.parts:
            dtypes = {operation.part_dtype(part, bound) for part in golden.answers}
            # The parts that a pool counts have no dtype of its keys and values.
            if golden.dtype and (floating := {dtype for dtype in dtypes if "float" in dtype}):
                assert golden.dtype in floating, golden.id
        else:
            dtype = operation.result_dtype(bound)
            assert dtype == golden.dtype or dtype not in DTYPES, golden.id
        assert any(r.id == golden.requirement and r.name == golden.operation for r in contract.requirements), golden.id


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_float32_golden_is_sharp(component):
    contract = contract_of(component)
    for golden in cases(component):
        operation = contract.operation(golden.operation)()
        _, budgets = oracle(operation, operation.bind(golden.arguments))
        for part, expected in golden.answers.items():
            if golden.dtype == "float32" and expected.size:
                finite = np.isfinite(expected)
                rms = np.sqrt(np.mean(expected[finite] ** 2))
                assert rms >= SHARP * np.sqrt(np.mean(budgets[part][finite] ** 2)), (golden.id, part)


SCALED = [golden for component in ("llama", "qwen3") for golden in cases(component) if "rope_types" in golden.features]


@pytest.mark.parametrize("golden", [one for one in SCALED if "tokens" in one.arguments], ids=lambda golden: golden.id)
def test_goldens_of_scaled_rope_are_what_whole_models_of_transformers_answer(golden, torch):
    transformers = pytest.importorskip("transformers", reason="its models answer")
    adapter = import_module("inferspec.conformance.subjects.transformers")
    assert transformers.__version__ == adapter.VERSION
    config, weights, tokens = (golden.arguments[name] for name in ("config", "weights", "tokens"))
    model = getattr(adapter, golden.operation)(config, {name: torch.from_numpy(x) for name, x in weights.items()})
    contract = contract_of(golden.component)
    operation = contract.operation(golden.operation)()
    budget = operation.evaluate(operation.bind(golden.arguments), Precision.FLOAT32).budget
    assert (np.abs(model(torch.from_numpy(tokens)).numpy() - golden.expected) <= budget).all()


def test_every_golden_is_used_by_the_suite():
    tested = {test.requirement.id for test in all_tests() if test.file.startswith("test_golden")}
    assert {entry["requirement"] for entry in manifest().values()} == tested


def test_the_goldens_stay_small():
    stored = {name: data for name, data in contents(ROOT).items() if name.endswith((SUFFIX, MANIFEST))}
    calls = {name: data for name, data in stored.items() if not name.startswith("models/")}
    assert sum(map(len, calls.values())) < 2_500_000
    assert sum(map(len, stored.values())) < 6_500_000


def test_a_golden_survives_writing_and_reading():
    for id in IDS:
        path = ROOT / f"{id}{SUFFIX}"
        assert serialised(read(path)) == path.read_bytes(), id


def test_the_loader_gives_fresh_arrays(root):
    first = cases("linear", root)[0]
    first.arguments["x"][...] = 0
    assert cases("linear", root)[0].arguments["x"].any()


def test_the_committed_goldens_are_what_both_oracles_say(torch):
    code, text = ran(writer.check, ROOT)
    assert code == 0, text


def test_regen_leaves_every_byte_as_it_is(torch, root):
    before = contents(root)
    assert ran(writer.regen, root)[0] == 0
    assert contents(root) == before
    assert [path.name for path in root.parent.iterdir()] == ["golden"]


def test_regen_from_nothing_gives_the_same_goldens(torch, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert ran(writer.regen, first)[0] == ran(writer.regen, second)[0] == 0
    assert contents(first) == contents(second)
    assert sorted(manifest(first)) == IDS
    for component in COMPONENTS:
        for made, stored in zip(cases(component, first), cases(component), strict=True):
            # Values may differ by the roundings of another processor; all else is the same to the last bit.
            assert serialised(replace(made, expected=stored.expected)) == serialised(stored), made.id
            unbounded = {part: np.full(x.shape, np.inf) for part, x in stored.answers.items()}
            assert made.equals(stored.expected, unbounded), made.id


def test_no_implementation_can_reach_the_writer():
    reached, todo = set(), [HERE / "golden.py", *(HERE / "recipes").glob("*.py")]
    while todo:
        path = todo.pop()
        for name in imported(path):
            source = source_of(name)
            if source and source not in reached:
                reached.add(source)
                todo.append(source)
    top = {path.relative_to(HERE.parent).parts[0] for path in reached}
    assert top == {"spec", "golden", "tools"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("inferspec."):
            yield node.value


def source_of(name):
    if not name.startswith("inferspec."):
        return None
    base = HERE.parent.joinpath(*name.split(".")[1:])
    return next((p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()), None)


BLOCKED = """
import sys
for name in ("inferspec.impl", "inferspec.conformance", "mlx", "mlx.core", "mlx_lm"):
    sys.modules[name] = None
from pathlib import Path
from inferspec.tools.golden import regen
code = regen(root=Path(sys.argv[1]))
loaded = [name for name, module in sys.modules.items() if module and name.startswith(("inferspec.impl", "inferspec.conf", "mlx"))]
sys.exit(f"loaded {loaded}" if loaded else code)
"""


def test_regen_needs_no_implementation(torch, root):
    before = contents(root)
    run = subprocess.run([sys.executable, "-c", BLOCKED, str(root)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert contents(root) == before


def test_the_loader_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; from inferspec import golden; print(len(golden.cases('rope')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) == len(cases("rope"))


def test_without_torch_one_line_says_what_to_install(monkeypatch, root):
    monkeypatch.setitem(sys.modules, "torch", None)
    for function in (writer.regen, writer.check):
        code, text = ran(function, root)
        assert code == writer.UNABLE
        assert text == "goldens need PyTorch: pip install torch (or inferspec[oracle])\n"


def test_without_transformers_one_line_says_what_to_install(monkeypatch, root, torch):
    monkeypatch.setattr(writer, "find_spec", lambda name: None)
    code, text = ran(writer.check, root, "llama")
    assert (code, text) == (
        writer.UNABLE,
        "some of these goldens need transformers: pip install transformers (or inferspec[oracle])\n",
    )
    assert ran(writer.check, root, "rope")[0] == writer.GOOD


def test_infinities_that_both_oracles_give_are_stored(root):
    golden = read(root / "linear/silu.safetensors")
    both = replace(golden, expected=np.array([1.0, -np.inf, np.inf]))
    budget = np.full(3, np.inf)
    assert both.equals(both.expected, budget)
    assert not both.equals(np.array([1.0, -np.inf, -np.inf]), budget)
    assert not both.equals(np.array([1.0, -np.inf, 0.0]), budget)
    assert not both.equals(np.array([np.inf, -np.inf, np.inf]), budget)
    assert not both.equals(np.array([1.0, -np.inf, np.nan]), budget)


def test_a_third_oracle_keeps_the_same_tokens(torch):
    """transformers' cache layers, which concatenate or copy, tell the stories of the goldens alike."""
    pytest.importorskip("transformers")
    from inferspec.conformance.bridge.arrays import arrays
    from inferspec.conformance.bridge.drivers.kv_cache import drive
    from inferspec.conformance.subjects import transformers as subject

    to = arrays("torch")
    for golden in cases("kv_cache"):
        make = getattr(subject, golden.operation)
        if golden.features.get("rewinding") and not hasattr(make, "rewind"):
            continue
        steps = [
            (method, {name: to.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in given.items()})
            for method, given in golden.arguments["steps"]
        ]
        told = drive(make, {**golden.arguments, "steps": steps, "layout": ""}, to)
        assert told.keys() == golden.answers.keys(), golden.id
        for part, expected in golden.answers.items():
            assert np.array_equal(np.asarray(told[part], np.float64), expected), (golden.id, part)
