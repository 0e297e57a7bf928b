"""Does every way to spoil a stored golden fail closed?"""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import inferspec.golden as loader
import inferspec.tools.golden as writer
from inferspec.golden import MANIFEST, GoldenError, cases, manifest, read
from inferspec.spec import contract as contract_of
from inferspec.tools.golden_copies import contents, edit_manifest, ran, rewrite

COMPONENTS = sorted({id.split("/")[0] for id in manifest()})
IDS = sorted(manifest())


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
