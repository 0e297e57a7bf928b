"""Are the goldens what two oracles say, can nothing else write one, and does every way to spoil one fail closed?"""

import ast
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import inferspec.golden as loader
import inferspec.tools.golden as writer
from inferspec.conformance.suite import all_tests
from inferspec.golden import MANIFEST, ROOT, SUFFIX, GoldenError, by_part, cases, manifest, read, serialised
from inferspec.spec import contract as contract_of
from inferspec.spec.numerics import DTYPES, SHARP, Precision

COMPONENTS = sorted({id.split("/")[0] for id in manifest()})
IDS = sorted(manifest())
HERE = Path(writer.__file__).resolve().parent


@pytest.fixture
def root(tmp_path):
    """A copy of the committed goldens, as if the libraries that are installed had made them."""
    copy = tmp_path / "golden"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    edit_manifest(copy, lambda goldens: [one.update(libraries=installed(one["libraries"])) for one in goldens.values()])
    return copy


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="goldens are computed with PyTorch")


def ran(function, root, *only):
    """Exit code and text of regen or check."""
    text = io.StringIO()
    code = function(only, Console(file=text, width=200), root=root)
    return code, text.getvalue()


def installed(libraries):
    """The same libraries with the versions that are installed here; the recorded ones of what is not."""
    return {name: version(name) if find_spec(name) else recorded for name, recorded in libraries.items()}


def contents(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def edit_manifest(root, change):
    path = root / MANIFEST
    whole = json.loads(path.read_text())
    change(whole["goldens"])
    path.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n")


def rewrite(root, id, **changes):
    path = root / f"{id}{SUFFIX}"
    path.write_bytes(serialised(replace(read(path), **changes)))


def oracle(operation, bound):
    """Values and budgets of the spec's answer, by part."""
    answer = operation.evaluate(bound, Precision.FLOAT32)
    answers = by_part(answer)
    return {p: one.value for p, one in answers.items()}, {p: one.budget for p, one in answers.items()}


# What is stored.


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


# Two oracles, and nothing else.


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


def wrong(compute, by):
    return lambda **arguments: compute(**arguments) + by


def with_case(monkeypatch, id, change):
    """Replace one recipe; `change` gets the case and gives what stands in its place (any number)."""
    component, name = id.split("/")
    module = import_module(f"inferspec.tools.recipes.{component}")
    cases_now = [new for case in module.CASES for new in (change(case) if case.name == name else [case])]
    monkeypatch.setattr(module, "CASES", tuple(cases_now))


@pytest.mark.parametrize("id", ["rope/rope-slices", "linear/silu", "embedding/lookup"])
def test_disagreeing_oracles_write_nothing(torch, monkeypatch, root, id):
    with_case(monkeypatch, id, lambda case: [replace(case, compute=wrong(case.compute, 1e-9))])
    before = contents(root)
    code, text = ran(writer.regen, root)
    assert code == writer.DIFFERENT
    assert f"{id} refused: the oracles disagree: float64 PyTorch and the spec are 1e-09 apart" in text
    assert f"1 of {len(IDS)} refused: nothing was written" in text
    assert contents(root) == before
    assert ran(writer.check, root)[0] == writer.DIFFERENT


def test_one_disagreeing_part_writes_nothing(torch, monkeypatch, root):
    def off(compute):
        return lambda **arguments: {
            part: x + 1e-9 if part == "3 values" else x for part, x in compute(**arguments).items()
        }

    with_case(monkeypatch, "kv_cache/appends", lambda case: [replace(case, compute=off(case.compute))])
    before = contents(root)
    code, text = ran(writer.regen, root)
    assert code == writer.DIFFERENT
    assert "kv_cache/appends refused: 3 values: the oracles disagree: float64 PyTorch and the spec are 1e-09" in text
    assert contents(root) == before


def test_a_missing_part_writes_nothing(torch, monkeypatch, root):
    def short(compute):
        return lambda **arguments: {p: x for p, x in compute(**arguments).items() if p != "tpot"}

    with_case(monkeypatch, "metrics/latencies", lambda case: [replace(case, compute=short(case.compute))])
    code, text = ran(writer.regen, root)
    assert code == writer.DIFFERENT
    assert "metrics/latencies refused: the oracles disagree: PyTorch gives ttft, itl, e2el, the spec ttft, tpot" in text


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


def test_disagreeing_oracles_leave_an_empty_root_empty(torch, monkeypatch, tmp_path):
    with_case(monkeypatch, "mlp/swiglu", lambda case: [replace(case, compute=wrong(case.compute, 1.0))])
    assert ran(writer.regen, tmp_path / "golden")[0] == writer.DIFFERENT
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_is_not_finite_is_refused(torch, monkeypatch, root):
    with_case(monkeypatch, "mlp/swiglu", lambda case: [replace(case, compute=wrong(case.compute, np.nan))])
    code, text = ran(writer.regen, root)
    assert (code, "not finite" in text) == (writer.DIFFERENT, True)


def test_a_case_outside_the_envelope_is_refused(torch, monkeypatch, root):
    with_case(monkeypatch, "rope/rope", lambda case: [replace(case, features={**case.features, "bases": 7})])
    code, text = ran(writer.regen, root)
    assert code == writer.DIFFERENT
    assert "rope/rope refused: bases 7 is outside the contract's envelope" in text


def test_an_interrupted_move_fails_closed(torch, monkeypatch, root):
    with_case(monkeypatch, "rope/rope", lambda case: [replace(case, seed=999)])
    moves = writer.os.replace

    def interrupted(source, target):
        if Path(target).name == MANIFEST:
            raise KeyboardInterrupt
        moves(source, target)

    monkeypatch.setattr(writer.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ran(writer.regen, root)
    with pytest.raises(GoldenError, match="rope/rope: the file's inputs"):
        cases("rope", root)
    assert [path.name for path in root.parent.iterdir()] == ["golden"]


# What the table shows.


def test_the_table_tells_inputs_new_and_gone(torch, monkeypatch, root):
    with_case(monkeypatch, "rope/rope", lambda case: [replace(case, seed=999)])
    with_case(monkeypatch, "mlp/swiglu", lambda case: [])
    with_case(monkeypatch, "linear/silu", lambda case: [case, replace(case, name="silu-again", seed=7)])
    before = contents(root)
    code, text = ran(writer.check, root)
    assert code == writer.DIFFERENT
    assert contents(root) == before
    lines = {
        id: line
        for line in text.splitlines()
        for id in ("rope/rope ", "mlp/swiglu ", "linear/silu-again ")
        if id in line
    }
    assert "inputs changed, output moved" in lines["rope/rope "]
    assert "gone" in lines["mlp/swiglu "]
    assert "new" in lines["linear/silu-again "]
    assert ran(writer.regen, root)[0] == 0
    assert ran(writer.check, root)[0] == 0
    assert not (root / "mlp/swiglu.safetensors").exists()
    assert len(cases("mlp", root)) == len(cases("mlp")) - 1


def test_a_moved_value_is_told_in_numbers_and_budgets(torch, root):
    value = read(root / "mlp/swiglu.safetensors").expected.copy()
    value[0, 0] += 0.5
    rewrite(root, "mlp/swiglu", expected=value)
    edit_manifest(root, lambda m: m["mlp/swiglu"].update(output=read(root / "mlp/swiglu.safetensors").output_digest()))
    code, text = ran(writer.check, root)
    line = next(line for line in text.splitlines() if "mlp/swiglu " in line)
    assert code == writer.DIFFERENT
    assert "output moved" in line
    assert " 0.5 " in line
    assert float(line.split("│")[4]) > 1000


def test_another_processors_roundings_move_nothing(torch, root):
    value = read(root / "mlp/swiglu.safetensors").expected
    rewrite(root, "mlp/swiglu", expected=np.nextafter(value, np.inf))
    edit_manifest(root, lambda m: m["mlp/swiglu"].update(output=read(root / "mlp/swiglu.safetensors").output_digest()))
    before = contents(root)
    assert ran(writer.check, root)[0] == 0
    assert ran(writer.regen, root)[0] == 0
    assert contents(root) == before


def test_another_torch_says_what_to_do(torch, root):
    before = contents(root)
    edit_manifest(root, lambda m: m["rope/rope"]["oracles"].update(torch="2.1.0"))
    code, text = ran(writer.check, root)
    assert code == writer.DIFFERENT
    assert "manifest.json was agreed with torch 2.1.0, torch " in text
    assert "run `inferspec golden regen`, read the diff and commit it" in text
    assert "torch 2.1.0 → " in next(line for line in text.splitlines() if "rope/rope " in line)
    assert ran(writer.regen, root)[0] == 0
    assert contents(root) == before


def test_another_numpy_is_told_but_no_failure(torch, root):
    edit_manifest(root, lambda m: m["rope/rope"]["libraries"].update(numpy="1.0.0"))
    code, text = ran(writer.check, root)
    assert code == 0
    assert "numpy 1.0.0 → " in text


def test_only_some(torch, root, monkeypatch):
    edit_manifest(root, lambda m: m["mlp/swiglu"].update(seed=0))
    (root / "mlp/stray.safetensors").write_bytes(b"")
    assert ran(writer.regen, root, "rope", "linear/silu")[0] == 0
    assert manifest(root)["mlp/swiglu"]["seed"] == 0
    assert (root / "mlp/stray.safetensors").exists()
    assert ran(writer.check, root, "rope")[0] == 0
    assert ran(writer.check, root, "mlp")[0] == writer.DIFFERENT
    code, text = ran(writer.check, root, "ropes")
    assert code == writer.UNABLE
    assert "no golden or component 'ropes'; components: attention," in text


# Every way to spoil the stored ones.


def changed_output(root):
    rewrite(root, "rope/rope", expected=read(root / "rope/rope.safetensors").expected * (1 + 1e-15))


def changed_input(root):
    golden = read(root / "rope/rope.safetensors")
    x = golden.arguments["x"].copy()
    x[0, 0, 0, 0] *= -1
    rewrite(root, "rope/rope", arguments={**golden.arguments, "x": x})


def changed_argument(root):
    rewrite(root, "rope/rope", arguments={**read(root / "rope/rope.safetensors").arguments, "base": 500000})


def changed_feature(root):
    golden = read(root / "rope/rope.safetensors")
    rewrite(root, "rope/rope", features={**golden.features, "dtypes": "float16"})


def changed_part(root):
    golden = read(root / "kv_cache/restored.safetensors")
    values = {**golden.answers, "7 offset": np.array(3.0)}
    rewrite(root, "kv_cache/restored", expected=values)


def changed_step(root):
    golden = read(root / "kv_cache/restored.safetensors")
    first, (_, given), *rest = golden.arguments["steps"]
    rewrite(root, "kv_cache/restored", arguments={"steps": (first, ("rewind", {"n": given["n"] + 1}), *rest)})


def changed_token(root):
    golden = read(root / "kv_cache/restored.safetensors")
    golden.arguments["steps"][0][1]["key"][0, 0, 0, 0] *= -1
    rewrite(root, "kv_cache/restored", arguments=golden.arguments)


def truncated(root):
    path = root / "rope/rope.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def other_golden(root):
    shutil.copy(root / "rope/rope-decode.safetensors", root / "rope/rope.safetensors")


def spoil(**changes):
    return lambda root: edit_manifest(root, lambda m: m["rope/rope"].update(changes))


def incomplete(root):
    edit_manifest(root, lambda m: m["rope/rope"].pop("oracles"))


def unlisted(root):
    edit_manifest(root, lambda m: m.pop("rope/rope"))


def extra(root):
    shutil.copy(root / "rope/rope.safetensors", root / "rope/rope-new.safetensors")


def missing(root):
    (root / "rope/rope.safetensors").unlink()


def no_json(root):
    (root / MANIFEST).write_text("{")


def no_manifest(root):
    (root / MANIFEST).unlink()


def no_objects(root):
    edit_manifest(root, lambda m: m.update({"rope/rope": "yes"}))


def nothing_left(root):
    shutil.rmtree(root / "rope")
    edit_manifest(root, lambda m: [m.pop(id) for id in IDS if id.startswith("rope/")])


SPOILT = {
    changed_output: "rope/rope: the file's output and the sha256 in manifest.json differ",
    changed_input: "rope/rope: the file's inputs and the sha256 in manifest.json differ",
    changed_argument: "rope/rope: the file's inputs and",
    changed_feature: "rope/rope: the file's inputs and",
    truncated: "rope/rope cannot be read",
    other_golden: "rope/rope says of itself that it is rope/rope-decode",
    spoil(seed=5): "rope/rope: seed is 201 in the file and 5 in manifest.json",
    spoil(recipe="by hand"): "rope/rope: recipe is 'complex_rotation' in the file and 'by hand'",
    spoil(inputs="0" * 64): "rope/rope: the file's inputs and",
    spoil(output="0" * 64): "rope/rope: the file's output and",
    spoil(oracles={"torch": "2.13.0"}): "rope/rope was agreed with version None of the rope contract",
    spoil(oracles="both"): "rope/rope was agreed with version None of the rope contract",
    incomplete: "rope/rope has no 'oracles' in manifest.json",
    unlisted: "rope/rope is not in manifest.json",
    extra: "rope/rope-new is not in manifest.json",
    missing: "rope/rope is in manifest.json but has no file",
    no_json: "manifest.json cannot be read",
    no_manifest: "manifest.json cannot be read",
    no_objects: "manifest.json has an entry that is not an object",
    nothing_left: "rope has no golden",
}


@pytest.mark.parametrize(("change", "message"), SPOILT.items(), ids=[f"{i}-{c.__name__}" for i, c in enumerate(SPOILT)])
def test_a_spoilt_golden_fails_closed(root, change, message):
    change(root)
    with pytest.raises(GoldenError, match=message) as failure:
        cases("rope", root)
    assert "inferspec golden regen" in str(failure.value)


@pytest.mark.parametrize("change", SPOILT, ids=[f"{i}-{c.__name__}" for i, c in enumerate(SPOILT)])
def test_check_refuses_what_is_spoilt_and_regen_repairs_it(torch, root, change):
    before = contents(root)
    change(root)
    # Of all that is there these two are asked: what is spoilt, and one beside it.
    assert ran(writer.check, root, "rope", "mlp")[0] == writer.DIFFERENT
    assert ran(writer.regen, root, "rope", "mlp")[0] == 0
    assert contents(root).keys() == before.keys()
    assert ran(writer.check, root, "rope", "mlp")[0] == 0


@pytest.fixture
def raised(monkeypatch):
    """The rope contract is a version further."""

    def contract(component):
        now = contract_of(component)
        return replace(now, version=now.version + 1) if component == "rope" else now

    monkeypatch.setattr(loader, "contract_of", contract)
    monkeypatch.setattr(writer, "contract_of", contract)


def test_a_raised_contract_version_asks_for_agreement(raised, root):
    now = contract_of("rope").version
    message = f"was agreed with version {now} of the rope contract, which is at {now + 1}: "
    with pytest.raises(GoldenError, match=message) as failure:
        cases("rope", root)
    assert "run `inferspec golden regen --only rope`" in str(failure.value)
    assert cases("mlp", root)


def test_regen_agrees_anew_with_a_raised_contract_version(torch, raised, root):
    code, text = ran(writer.check, root)
    assert code == writer.DIFFERENT
    assert "oracle changed" in next(line for line in text.splitlines() if "│ rope/rope " in line)
    assert ran(writer.regen, root, "rope")[0] == 0
    assert ran(writer.check, root)[0] == 0
    assert cases("rope", root)


def test_no_flipped_byte_goes_unnoticed(root):
    path = root / "linear/silu-bfloat16.safetensors"
    whole = path.read_bytes()
    for position in range(0, len(whole), 3):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(GoldenError):
            cases("linear", root)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_whole_copy_is_read(root, component):
    assert [golden.id for golden in cases(component, root)] == [id for id in IDS if id.split("/")[0] == component]


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_goldens_of_each_requirement_are_all_there_are(root, component):
    every = cases(component, root)
    for about in {golden.requirement for golden in every}:
        wanted = [golden.id for golden in every if golden.requirement == about]
        assert [golden.id for golden in cases(component, root, requirement=about)] == wanted


@pytest.mark.parametrize(
    ("change", "what"), [(changed_part, "output"), (changed_step, "inputs"), (changed_token, "inputs")]
)
def test_a_spoilt_story_fails_closed(torch, root, change, what):
    before = contents(root)
    change(root)
    with pytest.raises(
        GoldenError, match=f"kv_cache/restored: the file's {what} and the sha256 in manifest.json differ"
    ):
        cases("kv_cache", root)
    assert ran(writer.check, root, "kv_cache")[0] == writer.DIFFERENT
    assert ran(writer.regen, root, "kv_cache")[0] == 0
    assert contents(root) == before
