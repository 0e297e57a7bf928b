"""What a subject might try to pass without being right: each trick is seen through."""

from __future__ import annotations

import ast
import copy
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from inferspec.conformance import certificate, integrity, suite, test_rope, trial
from inferspec.conformance.calls import Observation
from inferspec.conformance.canary import believed, plain_call
from inferspec.conformance.certificate import BAD
from inferspec.conformance.delays import Delays
from inferspec.conformance.inputs import engine as engine_inputs
from inferspec.conformance.inputs import rope as rope_inputs
from inferspec.conformance.integrity import altered
from inferspec.conformance.matching import AdapterError
from inferspec.conformance.plugin import Results
from inferspec.conformance.session import Session
from inferspec.conformance.strategies import Calls
from inferspec.conformance.subject import HostedSubject, LocalSubject, SubjectDied
from inferspec.conformance.suite import Profile, all_tests
from inferspec.conformance.tampering import Watch, foreign
from inferspec.spec import contracts, numerics, rope, speculative
from inferspec.spec.contract import Answer, Contract, Operation, changed

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
sys.modules["inferspec.conformance.arrays"].NumpyArrays.bits = lambda self, y: b""
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
    session = Session.opened(str(subject), {}, "standard", seed, limit=20.0)
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


def test_a_subject_that_imports_the_answers_is_told_in_one_line(tmp_path):
    with pytest.raises(AdapterError, match="a subject that asks the kit for the answer certifies nothing"):
        states(tmp_path, "from inferspec.spec.rope import RoPE\n" + RIGHT)


WRITES = """
import pickle, sys, time
def rope(x, offset=None, base=10000):
    frame = sys._getframe()
    while "connection" not in frame.f_locals:
        frame = frame.f_back
    frame.f_locals["connection"].{writes}
    time.sleep(60)
"""
OBSERVED = {"value": None, "raised": "", "message": "", "changed": (), "parts": {}, "number": 1}


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (5, "answered something else than"),
        ([], "answered something else than"),
        ({"number": 1}, "answered with what is no result"),
        (OBSERVED | {"number": 7}, "answered something else than"),
        (OBSERVED | {"value": "x"}, "answered with what is no result"),
        (OBSERVED | {"message": 5}, "answered with what is no result"),
        (OBSERVED | {"changed": (5,)}, "answered with what is no result"),
        (OBSERVED | {"parts": {"": 5}}, "answered with what is no result"),
        (OBSERVED | {"more": 5}, "answered with what is no result"),
    ],
)
def test_an_answer_that_the_subject_wrote_itself_is_a_crash(tmp_path, message, says):
    with pytest.raises(SubjectDied, match=says) as death:
        called(tmp_path, WRITES.format(writes=f"send_bytes(pickle.dumps({message!r}))"))
    assert death.value.state == "crashed"


@pytest.mark.parametrize(
    ("half", "state"), [(b"\x00\x00\x10\x00abc", "hung"), (b"\xff\xff\xff\xff" + b"\x40" * 8, "crashed")]
)
def test_a_part_of_a_message_is_not_waited_for(tmp_path, half, state):
    with pytest.raises(SubjectDied) as death:
        called(tmp_path, WRITES.format(writes=f"_send({half!r})"), limit=1.0 if state == "hung" else 20.0)
    assert death.value.state == state


def test_an_operation_that_hung_is_waited_for_less_long(tmp_path):
    (tmp_path / "rope.py").write_text("import time\ndef rope(x): time.sleep(60)\n", encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"), limit=2.0)
    for limit in ("2", "0.5", "0.5"):
        with pytest.raises(SubjectDied, match=rf"no answer within {limit} s .* may need a larger --call-limit"):
            subject.call(plain_call("RoPE"))


@pytest.mark.parametrize(("others", "sleeps", "said"), [(0.0, 60, ""), (1.0, 2.5, "KeyError")])
def test_seconds_in_which_others_had_the_core_do_not_count(tmp_path, monkeypatch, others, sleeps, said):
    text = f"import time\ndef rope(x): time.sleep({sleeps}); raise KeyError(7)\n"
    (tmp_path / "rope.py").write_text(text, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"), limit=1.0)
    assert subject.description.offers
    monkeypatch.setattr(Delays, "lost", lambda self: others)
    if said:
        assert subject.call(plain_call("RoPE")).raised == said
    else:
        with pytest.raises(SubjectDied, match="no answer within 1 s"):
            subject.call(plain_call("RoPE"))
    subject.close()


def test_what_a_compiler_lost_counts_though_it_ended_before_the_limit(tmp_path, monkeypatch):
    text = "import time\ndef rope(x): time.sleep(4); raise KeyError(7)\n"
    (tmp_path / "rope.py").write_text(text, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"), limit=2.5)
    assert subject.description.offers
    looks = [time.monotonic()]

    def lost_by_one_that_lived_for_a_second(self):
        looks.append(time.monotonic())
        passed = looks[-1] - looks[-2]
        return passed if passed < 1.0 else 0.0

    monkeypatch.setattr(Delays, "lost", lost_by_one_that_lived_for_a_second)
    assert subject.call(plain_call("RoPE")).raised == "KeyError"
    subject.close()


def test_threads_that_take_the_core_from_each_other_do_not_go_on_for_ever(tmp_path, monkeypatch):
    (tmp_path / "rope.py").write_text("import time\ndef rope(x): time.sleep(600)\n", encoding="utf-8")
    monkeypatch.setattr(Delays, "lost", lambda self: 0.95)
    subject = HostedSubject(str(tmp_path / "rope.py"), limit=0.2)
    with pytest.raises(SubjectDied, match="no answer within"):
        subject.call(plain_call("RoPE"))


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not tell")
def test_what_a_process_waits_for_a_core_is_seen_and_what_it_sleeps_is_not():
    some = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, [{some}])\nwhile True: pass\n"
    starts = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spin!r}])\n"
    texts = (spin, starts, "import time; time.sleep(3600)")
    running = [subprocess.Popen([sys.executable, "-c", text], start_new_session=True) for text in texts]
    spins, spins_within, sleeps = (Delays(one.pid) for one in running)
    try:
        until(lambda: min(spins.lost(), spins_within.lost()) > 0.2, pause=1)
        until(lambda: sleeps.lost() < 0.01, pause=1)
    finally:
        for one in running:
            os.killpg(one.pid, signal.SIGKILL)
            one.wait()


ENDLESS = """
import fcntl
def rope(x):
    held = open("held", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    while True: pass
"""
KILLED = """
from inferspec.conformance.canary import plain_call
from inferspec.conformance.subject import HostedSubject
HostedSubject("./rope.py").call(plain_call("RoPE"))
"""


def test_a_call_without_end_ends_with_the_suite_that_is_killed(tmp_path):
    (tmp_path / "rope.py").write_text(ENDLESS, encoding="utf-8")
    suite = subprocess.Popen([sys.executable, "-c", KILLED], cwd=tmp_path)
    until(lambda: (tmp_path / "held").exists() and is_held(tmp_path / "held"))
    suite.kill()
    suite.wait()
    until(lambda: not is_held(tmp_path / "held"))


def until(so: Callable[[], bool], pause: float = 0.02) -> None:
    """Wait until it is so, and not for ever."""
    end = time.monotonic() + 600
    while not so():
        assert time.monotonic() < end
        time.sleep(pause)


def is_held(file: Path) -> bool:
    """Whether a process that lives has the lock of a file."""
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_an_error_of_many_words_is_told_by_its_beginning(tmp_path):
    seen = called(tmp_path, 'def rope(x): raise ValueError("x" * 300_000)\n')
    assert seen.message.startswith("x" * 2000 + " … (298000 characters more) (at ")


def test_nothing_is_left_running_of_a_subject_that_is_refused(tmp_path):
    """A thread of its own that runs on would keep its process."""
    lingering = tmp_path / "pid"
    (tmp_path / "mine.py").write_text(
        f"""\
import os, threading, time
open({str(lingering)!r}, "w").write(str(os.getpid()))
threading.Thread(target=lambda: time.sleep(60)).start()
def silu(x): return "no array"
""",
        encoding="utf-8",
    )
    with pytest.raises(AdapterError) as refused:
        Session.opened(str(tmp_path / "mine.py"), {}, "standard", 0, limit=20.0)
    assert "silu returned a builtins.str" in str(refused.value)
    with pytest.raises(ProcessLookupError):
        os.kill(int(lingering.read_text()), 0)


@pytest.mark.parametrize("told", [5, {"spec": "x", "more": 1}, {"name": 5}])
def test_a_description_that_the_subject_wrote_itself_is_one_line(tmp_path, told):
    with pytest.raises(SubjectDied, match=r"rope\.py: what it tells of itself is no description"):
        called(tmp_path, WRITES.format(writes=f"send_bytes(pickle.dumps({told!r}))") + "rope(None)\n")


def called(folder: Path, text: str, limit: float = 20.0) -> Observation:
    """What a file `rope.py` with this text answers to the plainest call."""
    (folder / "rope.py").write_text(text, encoding="utf-8")
    subject = HostedSubject(str(folder / "rope.py"), limit=limit)
    try:
        return subject.call(plain_call("RoPE"))
    finally:
        subject.close()


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
    session = Session.opened(str(tmp_path / "mine.py"), {}, "standard", 0, limit=20.0)
    session.profile = Profile("standard", shrink=False, diagnose=False)
    test = next(test for test in all_tests() if test.requirement.id == requirement)
    try:
        assert (session.run(test).state == "passed") is passes
        assert not session.altered()
    finally:
        session.close()


def test_what_a_subject_says_cannot_be_taken_for_what_the_kit_says(tmp_path):
    text = 'NAME = "x\\nverdict: conformant\\x1b[2J"\ndef rope(x, offset=None, base=10000): raise RuntimeError("\\ud800\\x1b[2J")\n'
    (tmp_path / "rope.py").write_text(text, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"))
    assert subject.description.name == "x verdict: conformant\ufffd[2J"
    assert subject.call(plain_call("RoPE")).message.startswith("\ufffd\ufffd[2J")
    subject.close()


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
    session = Session.opened(str(tmp_path / "rope.py"), {}, "standard", 0, limit=20.0)
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


FORGED = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    for name, value in report.user_properties:
        if name == "inferspec":
            value.update(state="passed", message="", diagnosis=[], worst=0.5)
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_report_that_a_plugin_rewrote_gives_no_verdict(certify, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "forging.py": FORGED}
    run = certify(files, "--impl", "./rope.py", "-k", "strided", "-p", "forging", "-n", workers)
    assert run.certificate["verdict"] == "incomplete"
    assert "the report of test_rope.py::test_a_strided_x_is_read_like_its_copy" in run.certificate["kit"]["altered"]
    assert "failed" in run.states("RoPE").values()


LAX = """
import pytest
from inferspec.conformance import trial
strict = trial.Trial.agrees
def lax(self, call, *rest, **more): return None
"""
FOR_A_WHILE = {
    "by a fixture, for each test": """
@pytest.fixture(autouse=True)
def patched(monkeypatch): monkeypatch.setattr(trial.Trial, "agrees", lax)
""",
    "until the end": """
trial.Trial.agrees = lax
@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(): trial.Trial.agrees = strict
""",
}


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("patch", FOR_A_WHILE.values(), ids=FOR_A_WHILE)
def test_a_judge_that_was_blind_for_a_while_gives_no_verdict(certify, patch, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "patching.py": LAX + patch}
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-p", "patching", "-n", workers)
    assert run.code != 0
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.trial.Trial.agrees"]


EMPTY = """
import dataclasses, pytest
@pytest.fixture
def subject(subject):
    return lambda test: subject(dataclasses.replace(test, function=lambda subject, **drawn: None))
"""


def test_another_test_by_the_name_of_the_kit_s_gives_no_verdict(certify):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "emptying.py": EMPTY}
    # A fixture takes the place of one that was there before.
    files["conftest.py"] = 'pytest_plugins = ["emptying"]'
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-n", "0")
    assert run.code != 0
    told = "the test in the place of test_rope.py::test_a_strided_x_is_read_like_its_copy"
    assert told in run.certificate["kit"]["altered"]


def test_of_a_test_that_ran_twice_the_worse_outcome_counts():
    results = Results()
    results.found += [{"id": "a", "state": state} for state in ("passed", "crashed", "passed")]
    assert results.outcomes() == {"a": {"id": "a", "state": "crashed"}}


def test_the_reports_of_a_lost_worker_count():
    report = SimpleNamespace(when="call", user_properties=[("inferspec", {"id": "a", "state": "passed"})])
    results = Results()
    results.pytest_runtest_logreport(report)
    assert results.forged() == {"the report of a"}
    results.lost = True
    assert results.forged() == set()
    assert results.outcomes()["a"]["state"] == "passed"


OPERATIONS = [operation.signature.operation for contract in contracts() for operation in contract.operations]


def test_a_judge_believes_no_wrong_answer():
    assert list(believed(OPERATIONS)) == []


def test_a_judge_whose_numpy_was_patched_is_found_out(monkeypatch):
    monkeypatch.setattr(np, "abs", lambda x: np.zeros(np.shape(x)))
    assert set(believed(OPERATIONS)) >= {"RoPE", "linear", "scaled_dot_product_attention", "KVCache", "Llama"}


def test_a_judge_whose_contract_was_patched_is_found_out(monkeypatch):
    lax = changed(
        rope.RoPE,
        "Lax",
        {"evaluate": lambda self, a, precision: Answer(np.zeros(a.x.shape), np.full(a.x.shape, np.inf))},
    )
    monkeypatch.setitem(vars(rope.CONTRACT), "operations", (lax,))
    assert list(believed(["RoPE"])) == ["RoPE"]


def test_a_session_that_was_patched_is_named(tmp_path):
    (tmp_path / "rope.py").write_text(RIGHT, encoding="utf-8")
    session = Session.opened(str(tmp_path / "rope.py"), {}, "standard", 0, limit=20.0)
    assert session.altered() == []
    session.run = session.subject.call = lambda *given: None
    assert session.altered() == ["Session.run", "HostedSubject.call"]
    session.close()
    session.subject = LocalSubject({})
    assert session.altered() == ["Session.subject"]


def test_files_that_changed_while_a_run_went_on_are_named(monkeypatch, tmp_path):
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "rope.py").write_text("1")
    monkeypatch.setattr(integrity, "HERE", str(tmp_path))
    before = integrity.files()
    (tmp_path / "spec" / "rope.py").write_text("2")
    assert before.keys() == {"spec/rope.py"}
    assert integrity.files() != before


def test_a_run_whose_files_changed_gives_no_verdict(certify):
    summed = """
from inferspec.conformance import integrity
sums = iter([{}, {"conformance/test_rope.py": "1"}])
integrity.files = lambda: next(sums)
"""
    files = {"rope.py": RIGHT, "summing.py": summed}
    run = certify(files, "--impl", "./rope.py", "-k", "test_rope.py and strided", "-p", "summing", "-n", "0")
    assert "conformance/test_rope.py" in run.certificate["kit"]["altered"]


def test_the_kit_as_it_is_installed_is_not_altered():
    assert altered() == []


JUDGING = [path for package in ("spec", "conformance") for path in Path(integrity.HERE, package).rglob("*.py")]


class WithoutBodies(ast.NodeTransformer):
    """Takes away what functions do, and texts that stand for themselves."""

    def visit_FunctionDef(self, node):
        node.body = [ast.Pass()]
        return node

    def visit_Expr(self, node):
        return None


def test_of_a_file_read_without_what_its_functions_do_all_else_is_there():
    for path in JUDGING:
        data = path.read_bytes()
        whole, head = (WithoutBodies().visit(ast.parse(text)) for text in (data, integrity.without_bodies(data)))
        assert ast.dump(whole) == ast.dump(head), path


TOLD_OTHERWISE = """
import os
from inferspec.conformance import strategies
if "PYTEST_XDIST_WORKER" in os.environ:
    strategies.Pick.one_of = lambda self, *choices: choices[0]
def pytest_configure_node(node):
    for told in node.workerinput["inferspec"].values():
        if isinstance(told, dict) and any(isinstance(value, bytes) for value in told.values()):
            shortest = min(told.values(), key=len)
            told.update(dict.fromkeys(told, shortest))
"""


def test_no_plugin_where_a_run_began_can_tell_its_workers_what_is_written_in_the_kit_s_files(certify):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "telling.py": TOLD_OTHERWISE}
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-p", "telling", "-n", "1")
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.strategies.Pick.one_of"]


CHANGED = (
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
    (trial, "np"),
    (trial, "dataclass"),
    (test_rope, "test_a_strided_x_is_read_like_its_copy"),
)


def test_what_was_changed_in_the_kit_is_named_and_nothing_else(monkeypatch):
    for owner, attribute in CHANGED:
        monkeypatch.setattr(owner, attribute, len)
    names = {
        owner: owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        for owner, _ in CHANGED
    }
    assert sorted(altered()) == sorted(f"{names[owner]}.{attribute}" for owner, attribute in CHANGED)


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(trial, "within"), (trial.Trial, "agrees"), (trial.Trial, "__getattribute__"), (trial, "max"), (np, "abs")],
)
def test_what_moves_between_two_looks_is_named(monkeypatch, owner, attribute):
    watch = Watch()
    assert watch.moved() == []
    monkeypatch.setattr(owner, attribute, lambda *given: 0, raising=False)
    name = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    assert watch.moved() == [f"{name}.{attribute}"]
    assert watch.moved() == []


def test_a_name_that_python_or_a_lazy_package_binds_later_is_no_move(monkeypatch):
    watch = Watch()
    monkeypatch.setattr(trial, "__warningregistry__", {}, raising=False)
    monkeypatch.setattr(np, "lazy", ModuleType("numpy.lazy"), raising=False)
    monkeypatch.setattr(rope.RoPE, "stream", np.random.default_rng(0), raising=False)
    assert watch.moved() == []


def test_a_strangers_function_beneath_the_kit_is_named(monkeypatch):
    assert foreign() == []
    monkeypatch.setattr(copy, "deepcopy", lambda outcome: outcome)
    assert foreign() == ["copy.deepcopy"]


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


@pytest.mark.parametrize(
    ("owner", "name"),
    [(trial.Trial, "value"), (HostedSubject, "_receive"), (HostedSubject, "description"), (speculative, "joint")],
)
def test_another_function_in_the_place_of_one_with_an_assert_is_named(monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, lambda *given: None)
    of = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    assert altered() == [f"{of}.{name}"]


def test_a_kit_whose_asserts_pytest_has_rewritten_is_not_altered(certify):
    files = {"rope.py": RIGHT, "rewriting.py": "import pytest\npytest.register_assert_rewrite('inferspec')\n"}
    run = certify(files, "--impl", "./rope.py", "-k", "test_rope.py and strided", "-p", "rewriting", "-n", "0")
    assert not run.certificate["kit"]["altered"]


def test_the_function_of_a_test_is_looked_at(monkeypatch):
    test = test_rope.test_a_strided_x_is_read_like_its_copy.conformance
    original = test.function
    object.__setattr__(test, "function", lambda subject, **drawn: None)
    try:
        assert altered() == ["inferspec.conformance.test_rope.test_a_strided_x_is_read_like_its_copy"]
    finally:
        object.__setattr__(test, "function", original)


@pytest.mark.parametrize(("owner", "name"), [(trial.Trial, "__getattribute__"), (trial.Outcome, "further")])
def test_a_method_that_was_added_is_named(monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, lambda self, name: object.__getattribute__(self, name), raising=False)
    assert altered() == [f"inferspec.conformance.trial.{owner.__name__}.{name}"]


def test_a_name_in_the_place_of_one_of_pythons_is_named(monkeypatch):
    monkeypatch.setattr(trial, "max", lambda *given: 0.0, raising=False)
    assert altered() == ["inferspec.conformance.trial.max"]


def test_a_default_that_was_changed_is_named(monkeypatch):
    monkeypatch.setattr(certificate.verdict_of, "__defaults__", (False,))
    assert altered() == ["inferspec.conformance.certificate.verdict_of"]


def test_a_table_that_was_changed_is_named(monkeypatch):
    monkeypatch.setitem(suite.EXAMPLES, "standard", 1)
    assert altered() == ["inferspec.conformance.suite.EXAMPLES"]
