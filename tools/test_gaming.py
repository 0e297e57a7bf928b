"""What a subject might try to pass without being right: each trick is seen through."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.reporting.certificate import BAD
from inferspec.conformance.session import Session
from inferspec.conformance.subject import SubjectDied
from inferspec.conformance.suite import Profile, all_tests
from inferspec.conformance.trust.canary import plain_call
from inferspec.tools.right_rope import RIGHT

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
    if name.startswith("inferspec.conformance.judging.trial") or name.startswith("inferspec.spec.numerics"):
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
    "the oracle's file as a module with a name like the kit's": """
import importlib.util, pathlib, sys, inferspec
found = importlib.util.spec_from_file_location("inferspec.mine", pathlib.Path(inferspec.__file__).parent / "spec" / "rope.py")
sys.modules["inferspec.mine"] = importlib.util.module_from_spec(found)
def rope(x, offset=None, base=10000):
    found.loader.exec_module(sys.modules["inferspec.mine"])
    return right(x, offset, base)
""",
    "code run among the oracle's own names": """
import sys
def rope(x, offset=None, base=10000):
    exec("RoPE().result_dtype(None)", vars(sys.modules["inferspec.spec.rope"]))
    return right(x, offset, base)
""",
    "an import in the name of the kit": """
import sys
def rope(x, offset=None, base=10000):
    __import__("inferspec.spec.rope", vars(sys.modules["inferspec.spec.rope"]))
    return right(x, offset, base)
""",
    "the oracle in what its guard holds": """
import sys
def rope(x, offset=None, base=10000):
    held = sys.modules["inferspec.spec.rope"].RoPE.positions
    while held.__code__.co_name != "positions":
        held = next(cell.cell_contents for cell in held.__closure__ if hasattr(cell.cell_contents, "__code__"))
    return right(x, offset, base)
""",
    "the oracle in another process": """
import subprocess, sys
def rope(x, offset=None, base=10000):
    subprocess.run([sys.executable, "-c", "from inferspec.spec.rope import RoPE; RoPE().start(None, 1)"], check=True)
    return right(x, offset, base)
""",
    "the end of the process": "def rope(x, offset=None, base=10000): raise SystemExit(0)",
    "a test that asks to be skipped": "import pytest\ndef rope(x, offset=None, base=10000): pytest.skip()",
    "a second process that answers too": """
import os
def rope(x, offset=None, base=10000):
    os.fork()
    return right(x, offset, base)
""",
    "inputs changed where nobody looks": """
import sys
sys.modules["inferspec.conformance.bridge.arrays"].NumpyArrays.bits = lambda self, y: b""
def rope(x, offset=None, base=10000):
    y = right(x, offset, base)
    x[...] = 0
    return y
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
    session = Session.opened(str(subject), seed=seed)
    session.profile = Profile("standard", seed, shrink=False, diagnose=False)
    try:
        found = [session.run(test).state for test in VALUES]
        # Who is red is not red twice: to look through the whole kit takes longer than the tests.
        return found if BAD.intersection(found) else found + ["failed"] * bool(session.altered())
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


LOOKS_AWAY = """
own, before = np.array, {}
def array(y, *rest, **more):
    return own(before[id(y)][1] if id(y) in before else y, *rest, **more)
np.array = array
def rope(x, offset=None, base=10000):
    y = right(x, offset, base)
    before[id(x)] = x, x.copy()
    x[...] = 0
    return y
"""


def test_numpy_does_not_look_away_from_what_a_call_changes(tmp_path):
    (tmp_path / "rope.py").write_text(BEHIND + LOOKS_AWAY, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"))
    assert subject.call(plain_call("RoPE")).changed == ("x",)
    subject.close()


def test_what_asks_the_kit_is_not_asked_again_with_arrays_of_other_kinds(tmp_path, monkeypatch):
    started, start = [], HostedSubject._start
    monkeypatch.setattr(HostedSubject, "_start", lambda self: (started.append(self), start(self))[1])
    states(tmp_path, BEHIND + TRICKS["a step of the oracle"])
    assert len({id(subject) for subject in started}) == 1


def test_a_subject_that_imports_the_answers_is_told_in_one_line(tmp_path):
    with pytest.raises(AdapterError, match="a subject that asks the kit for the answer certifies nothing"):
        states(tmp_path, "from inferspec.spec.rope import RoPE\n" + RIGHT)


SCHEDULER = "import sys\nfrom inferspec.impl.scheduler import Scheduler\n"
STAND_IN = (
    SCHEDULER
    + """
class BlockManager:
    def __init__(self, num_blocks, block_size, prefix_caching=True):
        self.asked = sys.modules["inferspec.spec.serving"].ModelManager(num_blocks, block_size, prefix_caching)
    @property
    def num_free(self): return self.asked.num_free
    def __getattr__(self, name): return getattr(self.asked, name)
    def allocate(self, tokens): return self.asked.allocate(tokens)
    def append(self, table, tokens): return self.asked.append(table, tokens)
    def mark_computed(self, table, n): return self.asked.mark_computed(table, n)
    def free(self, table): return self.asked.free(table)
"""
)


@pytest.mark.parametrize(
    ("text", "requirement", "passes"), [(SCHEDULER, "SCHED-01", True), (STAND_IN, "BLK-01", False)]
)
def test_the_kit_s_block_manager_is_for_a_scheduler_without_one_alone(tmp_path, text, requirement, passes):
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    session = Session.opened(str(tmp_path / "mine.py"))
    session.profile = Profile("standard", shrink=False, diagnose=False)
    test = next(test for test in all_tests() if test.requirement.id == requirement)
    try:
        assert (session.run(test).state == "passed") is passes
        assert not session.altered()
    finally:
        session.close()


TWO_FACED = """
import pathlib
before = pathlib.Path(__file__).with_name("loaded")
if before.exists():
    {declares}
before.touch()
"""


@pytest.mark.parametrize(
    ("declares", "what"),
    [
        ("ENVELOPE = {'rope': {'dtypes': ['float32']}}", "envelope"),
        ("PRECISION = {'rope': 'native'}", "precision"),
        ("WAIVERS = 'waivers.toml'", "waivers"),
        ("def rope(x): return x", "offers"),
    ],
)
def test_a_subject_declares_the_same_whenever_it_is_loaded(tmp_path, declares, what):
    (tmp_path / "rope.py").write_text(RIGHT + TWO_FACED.format(declares=declares), encoding="utf-8")
    first = HostedSubject(str(tmp_path / "rope.py"))
    known = first.description
    first.close()
    for again in (first, HostedSubject(str(tmp_path / "rope.py"), known=known)):
        with pytest.raises(SubjectDied, match=f"loaded again, it declares another {what} than at first"):
            again.call(plain_call("RoPE"))


def test_workers_have_the_waivers_of_the_beginning(tmp_path):
    (tmp_path / "rope.py").write_text('WAIVERS = "waivers.toml"\n' + RIGHT, encoding="utf-8")
    entry = '[[waiver]]\nrequirement = "ROPE-03"\nscope = "all"\nreason = "r"\nissue = "https://x.org"\nexpires = 2999-01-31\n'
    (tmp_path / "waivers.toml").write_text(entry, encoding="utf-8")
    session = Session.opened(str(tmp_path / "rope.py"))
    (tmp_path / "waivers.toml").write_text("", encoding="utf-8")
    worker = Session.joined(session.handed_on())
    assert worker.waivers == session.waivers != {}
    session.close()


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
