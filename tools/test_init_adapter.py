"""``inferspec init``: the adapter names all of the contract, does nothing by itself, and is certified when one name is filled in."""

from __future__ import annotations

import ast
import re

import pytest

from inferspec.conformance.bridge import adapter as adapters
from inferspec.spec import COMPONENTS, contract, contracts
from inferspec.tools import init_adapter
from inferspec.tools.cli import main

MASK = """
import numpy as np

def causal_mask(L, S, dtype):
    return np.triu(np.full((L, S), -np.inf), S - L + 1).astype(dtype)
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The adapter with all components."""
    path = tmp_path_factory.mktemp("init") / "my_adapter.py"
    assert main(["init", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def uncommented(text: str) -> str:
    """The adapter with every name taken in."""
    names = re.compile(r"^# (?=(def |class |    |ENVELOPE\[| ))", re.MULTILINE)
    head, *parts = text.split("\n# ── ")
    return head + "".join(names.sub("", "# ── " + part) for part in parts)


def test_it_names_everything_that_the_contract_has(text):
    for one in contracts():
        assert f"── {one.component}: {one.title}" in text
        for key in one.envelope:
            assert f"'{key}': " in text
        for operation in one.operations:
            signature = operation.signature
            assert re.search(rf"^# (def|class) {signature.name}\b", text, re.MULTILINE), signature.name
            for name in (*operation.methods, *operation.optional_methods, operation.plain):
                assert not name or re.search(rf"^# +def {name}\(", text, re.MULTILINE), name
    for declaration in ("NAME", "VERSION", "ARRAYS", "ENVELOPE", "PRECISION", "LAYOUT", "WAIVERS", "UNAVAILABLE"):
        assert re.search(rf"^(# )?{declaration} = ", text, re.MULTILINE)


def test_it_names_what_a_call_gives_where_that_is_several_things(text):
    assert re.search(
        r"def aggregate_metrics\(.* Gives ttft, tpot, itl, e2el, output_rate, prefill_rate: in this order", text
    )


def test_it_says_what_a_subject_may_do_instead(text):
    engine = text.partition("── engine")[2]
    assert "'ends': ['dropped']" in engine
    assert "# ends may be instead: 'kept'" in engine
    assert "# outputs may be instead: 'untold'" in engine


def test_what_is_commented_out_is_python(text):
    tree = ast.parse(uncommented(text))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {op.signature.name for one in contracts() for op in one.operations} <= names


def test_as_it_is_it_offers_nothing_and_a_run_says_what_to_do(text, tmp_path):
    (tmp_path / "as_it_is.py").write_text(text, encoding="utf-8")
    with pytest.raises(adapters.AdapterError, match="offers none of the contract's names; define any of: linear, "):
        adapters.load(str(tmp_path / "as_it_is.py"))


def test_with_one_name_filled_in_that_one_is_certified(certify):
    text = init_adapter.adapter(init_adapter.Path("mine.py"), ["attention"])
    declared = re.sub(r"^# (?=ENVELOPE\[| ')", "", text, flags=re.MULTILINE)
    run = certify({"mine.py": declared + MASK}, "--impl", "./mine.py", "-n", "0", "-q")
    assert run.code == 0, run.text
    subject = run.certificate["subject"]
    assert (run.certificate["verdict"], subject["name"], subject["offers"]) == ("conformant", "mine", ["causal_mask"])
    assert run.row("CMASK-01")["state"] == "passed"
    assert set(subject["envelope"]["attention"]) == set(contract("attention").envelope)


def test_a_component_by_itself(tmp_path, capsys):
    assert main(["init", str(tmp_path / "mine.py"), "--component", "rope", "--component", "mlp"]) == 0
    text = (tmp_path / "mine.py").read_text(encoding="utf-8")
    assert re.findall(r"^# ── (\w+):", text, re.MULTILINE) == ["rope", "mlp"]
    assert "inferspec explain --xray rope" in text
    assert f"--impl {tmp_path / 'mine.py'} -n auto" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("taken.py", [], "taken.py is there already; it stays as it is"),
        ("random.py", [], "'random' is also a module of Python itself"),
        ("numpy.py", [], "'numpy' is also an installed module"),
        ("class.py", [], "is no name of a Python module"),
        ("my-adapter.py", [], "is no name of a Python module"),
        ("mine.txt", [], "is no name of a Python module"),
        ("mine.py", ["--component", "ropes"], f"the components are {COMPONENTS[0]}"),
        ("nowhere/mine.py", [], "nowhere/mine.py cannot be written: no such file or directory"),
    ],
)
def test_it_overwrites_nothing_and_refuses_what_cannot_be(tmp_path, capsys, name, arguments, why):
    (tmp_path / "taken.py").write_text("mine", encoding="utf-8")
    assert main(["init", str(tmp_path / name), *arguments]) == 2
    assert why in capsys.readouterr().out
    assert (tmp_path / "taken.py").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken.py"]
