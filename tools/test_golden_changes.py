"""What is told of goldens that would change, and what is written of those on which the oracles disagree?"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import inferspec.tools.golden as writer
from inferspec.golden import MANIFEST, GoldenError, cases, manifest, read
from inferspec.tools.golden_copies import contents, edit_manifest, ran, rewrite, with_case

IDS = sorted(manifest())


def wrong(compute, by):
    return lambda **arguments: compute(**arguments) + by


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
