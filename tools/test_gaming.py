"""What a subject might try to pass without being right: each trick is seen through."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from inferspec.conformance import certificate, suite, trial
from inferspec.conformance.binding import AdapterError
from inferspec.conformance.calls import Observation
from inferspec.conformance.certificate import BAD
from inferspec.conformance.inputs import engine as engine_inputs
from inferspec.conformance.inputs import rope as rope_inputs
from inferspec.conformance.integrity import altered
from inferspec.conformance.session import Session
from inferspec.conformance.strategies import Calls
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import numerics, rope
from inferspec.spec.contract import Contract, Operation

RIGHT = """
import numpy as np

def rope(x, offset=None, base=10000):
    starts = [0 if offset is None else offset] if not isinstance(offset, list) else offset
    starts = [s.start if isinstance(s, slice) else s for s in starts]
    dims = x.shape[-1]
    inverse = float(base) ** (-np.arange(0, dims, 2) / dims)
    positions = np.array(starts)[:, None] + np.arange(x.shape[1])
    angles = positions[:, :, None, None] * inverse
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1).astype(x.dtype)
"""
BEHIND = RIGHT.replace("def rope", "def right")

TRICKS = {
    "outputs kept by shape": """
kept = {}
def rope(x, offset=None, base=10000):
    return kept.setdefault((x.shape, str(x.dtype), str(offset), base), right(x, offset, base)).copy()
""",
    "right while the shapes are small": """
def rope(x, offset=None, base=10000):
    return right(x, offset, base) if x.size <= 16 else x.copy()
""",
    "right for the first calls": """
calls = []
def rope(x, offset=None, base=10000):
    calls.append(1)
    return right(x, offset, base) if len(calls) < 20 else x.copy()
""",
    "nan": "def rope(x, offset=None, base=10000): return np.full_like(x, np.nan)",
    "zeros": "def rope(x, offset=None, base=10000): return np.zeros_like(x)",
    "the input": "def rope(x, offset=None, base=10000): return x",
    "a copy of the input": "def rope(x, offset=None, base=10000): return x.copy()",
    "an uninitialised buffer": "def rope(x, offset=None, base=10000): return np.empty_like(x)",
    "a kit made blind where the subject is": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("inferspec.conformance.trial") or name.startswith("inferspec.spec.numerics"):
        for key, value in list(vars(module).items()):
            if callable(value): setattr(module, key, lambda *a, **k: True)
def rope(x, offset=None, base=10000): return x.copy()
""",
    "the oracle by an import inside": """
def rope(x, offset=None, base=10000):
    from inferspec.spec.rope import RoPE
    return right(x, offset, base)
""",
    "the oracle by importlib": """
import importlib
def rope(x, offset=None, base=10000):
    importlib.import_module("inferspec.spec.rope")
    return right(x, offset, base)
""",
    "the oracle by what is loaded": """
import sys
from types import SimpleNamespace
def rope(x, offset=None, base=10000):
    operation = sys.modules["inferspec.spec.rope"].RoPE()
    operation.evaluate(SimpleNamespace(x=x, offset=offset, base=base), None)
    return right(x, offset, base)
""",
    "the oracle by what a package holds": """
import inferspec
def rope(x, offset=None, base=10000):
    inferspec.spec.rope.RoPE
    return right(x, offset, base)
""",
    "the tools, which hold the oracle": """
def rope(x, offset=None, base=10000):
    from inferspec.tools import xray
    return right(x, offset, base)
""",
    "the oracle by a relative name": """
import importlib
def rope(x, offset=None, base=10000):
    importlib.import_module(".rope", "inferspec.spec")
    return right(x, offset, base)
""",
    "the oracle by a relative import": """
def rope(x, offset=None, base=10000):
    exec("from .rope import RoPE", {"__name__": "mine", "__package__": "inferspec.spec"})
    return right(x, offset, base)
""",
    "the oracle by importlib's own import": """
import importlib
def rope(x, offset=None, base=10000):
    importlib.__import__("inferspec.spec.rope")
    return right(x, offset, base)
""",
    "the oracle called as a subject is": """
import sys
def rope(x, offset=None, base=10000):
    sys.modules["inferspec.spec.rope"].RoPE()(dims=x.shape[-1], x=x)
    return right(x, offset, base)
""",
    "a step of the oracle": """
import sys
def rope(x, offset=None, base=10000):
    sys.modules["inferspec.spec.rope"].RoPE().result_dtype(None)
    return right(x, offset, base)
""",
    "the oracle by a name like the kit's": """
__name__ = "inferspec.mine"
def rope(x, offset=None, base=10000):
    from inferspec.spec.rope import RoPE
    return right(x, offset, base)
""",
    "the oracle behind its guard": """
import sys
def rope(x, offset=None, base=10000):
    sys.modules["inferspec.spec.rope"].RoPE.evaluate.__wrapped__
    return right(x, offset, base)
""",
    "the goldens": """
def rope(x, offset=None, base=10000):
    from inferspec.golden import models
    return right(x, offset, base)
""",
}


VALUES = [test for test in all_tests() if test.requirement.id in ("ROPE-03", "ROPE-18")]
"""Tests of what rope computes, for one call and for several."""


def states(folder: Path, text: str, seed: int = 0) -> list[str]:
    """The outcomes of these tests on a file `rope.py` with this text."""
    (folder / "rope.py").write_text(text, encoding="utf-8")
    return outcomes(folder / "rope.py", seed)


def outcomes(subject: Path, seed: int = 0) -> list[str]:
    """The outcomes of these tests on a subject."""
    session = Session.opened(str(subject), {}, "quick", seed, limit=20.0)
    session.profile = Profile("quick", seed, shrink=False, diagnose=False)
    try:
        return [session.run(test).state for test in VALUES]
    finally:
        session.close()


def test_the_right_one_behind_the_tricks_passes(tmp_path):
    assert "passed" in (found := set(states(tmp_path, RIGHT)))
    assert found <= {"passed", "outside_envelope"}


def test_what_is_open_stays_open(tmp_path):
    opened = "import inferspec, inferspec.tools.metalsim, inferspec.conformance.subjects\n"
    used = "inferspec.__version__, inferspec.tools.metalsim.Mode, inferspec.conformance.subjects.__path__\n"
    assert not BAD.intersection(found := states(tmp_path, opened + used + RIGHT)), found


def test_a_package_may_have_a_module_of_our_name(tmp_path):
    (tmp_path / "mine" / "inferspec").mkdir(parents=True)
    (tmp_path / "mine" / "inferspec" / "__init__.py").touch()
    (tmp_path / "mine" / "inferspec" / "spec.py").write_text(RIGHT, encoding="utf-8")
    (tmp_path / "mine" / "__init__.py").write_text("from .inferspec.spec import rope\n", encoding="utf-8")
    assert not BAD.intersection(found := outcomes(tmp_path / "mine")), found


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_a_trick_is_red(tmp_path, trick):
    found = states(tmp_path, BEHIND + trick)
    assert BAD.intersection(found), found


def test_a_subject_that_imports_the_answers_is_told_in_one_line(tmp_path):
    with pytest.raises(AdapterError, match="a subject that asks the kit for the answer certifies nothing"):
        states(tmp_path, "from inferspec.spec.rope import RoPE\n" + RIGHT)


MEMORY = """
import hashlib, pathlib
table = pathlib.Path(__file__).with_name("answers.txt")
known = set(table.read_text().split()) if table.exists() else None
def rope(x, offset=None, base=10000):
    key = hashlib.sha256(repr((x.tobytes(), x.shape, str(x.dtype), str(offset), base)).encode()).hexdigest()
    if known is None:
        with table.open("a") as file: file.write(key + " ")
    return right(x, offset, base) if known is None or key in known else x.copy()
"""


def test_answers_learnt_by_heart_are_of_no_use_with_another_seed(tmp_path):
    learning, by_heart = (states(tmp_path, BEHIND + MEMORY) for _ in range(2))
    assert learning == by_heart
    assert not BAD.intersection(by_heart)
    assert BAD.intersection(states(tmp_path, BEHIND + MEMORY, seed=1))


BLIND = """
from inferspec.conformance.trial import Trial
Trial.agrees = lambda self, call, *rest, **more: None
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_judge_that_was_made_blind_gives_no_verdict(certify, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "conftest.py": BLIND}
    run = certify(files, "--impl", "./rope.py", "-k", "test_rope.py and offset", "-n", workers)
    assert run.code != 0
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.trial.Trial.agrees"]
    assert run.certificate["verdict"] == "incomplete"
    assert "the kit was changed while it ran: inferspec.conformance.trial.Trial.agrees" in run.text


def test_the_kit_as_it_is_installed_is_not_altered():
    assert altered() == []


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        (numerics, "f64"),
        (certificate, "digest"),
        (rope.RoPE, "evaluate"),
        (numerics, "MODEL_LOGITS"),
        (trial, "within"),
        (suite, "EXAMPLES"),
        (suite, "FURTHER"),
        (Contract, "faults"),
        (Observation, "results"),
        (suite, "efforts"),
        (rope_inputs, "rope_calls"),
        (engine_inputs, "crowds"),
        (suite.Test, "shrinks"),
        (Operation, "plain"),
    ],
)
def test_what_was_changed_in_the_kit_is_named(monkeypatch, owner, attribute):
    monkeypatch.setattr(owner, attribute, len)
    name = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    assert altered() == [f"{name}.{attribute}"]


def test_a_strangers_function_around_ours_is_named(monkeypatch):
    def certain(self):
        return not original.fget(self)

    original = vars(Calls)["asked"]
    monkeypatch.setattr(Calls, "asked", property(certain))
    assert altered() == ["inferspec.conformance.strategies.Calls.asked"]


def test_inputs_of_somebody_else_are_named(monkeypatch):
    monkeypatch.setattr(rope_inputs, "rope_calls", Calls(lambda pick: None))
    assert altered() == ["inferspec.conformance.inputs.rope.rope_calls"]


def test_a_function_of_ours_that_holds_itself_is_no_end(monkeypatch):
    # In the place of another of ours: nothing of what it holds is what the file has there.
    again = kit_function_that_holds_itself()
    monkeypatch.setattr(Calls, "asked", property(again))
    assert altered() == ["inferspec.conformance.strategies.Calls.asked"]


def kit_function_that_holds_itself():
    """A closure that is one of its own cells, from a file of the kit's."""
    found = {}
    source = "def outer():\n    def inner(self):\n        return inner\n    return inner\n"
    exec(compile(source, str(Path(suite.__file__).with_name("made.py")), "exec"), found)
    return found["outer"]()


def test_a_default_that_was_changed_is_named(monkeypatch):
    monkeypatch.setattr(certificate.verdict_of, "__defaults__", (False,))
    assert altered() == ["inferspec.conformance.certificate.verdict_of"]


def test_a_table_that_was_changed_is_named(monkeypatch):
    monkeypatch.setitem(suite.EXAMPLES, "quick", 1)
    assert altered() == ["inferspec.conformance.suite.EXAMPLES"]
