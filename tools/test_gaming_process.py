"""What a subject might do with the process that it is given: write its answers itself, hang, or run on."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.run_delay import Delays
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.calls import Observation
from inferspec.conformance.session import Session
from inferspec.conformance.subject import SubjectDied
from inferspec.conformance.trust.canary import plain_call

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
    ("ends", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM)", r"died in RoPE.* \(SIGTERM\)"),
        ("os._exit(7)", r"died in RoPE.* \(exit code 7\)"),
        ("os._exit(0)", r"died in RoPE.* \(exit code 0\)"),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGRTMIN + 3)",
            r"died in RoPE.* \(signal \d+\)",
            marks=pytest.mark.skipif(not hasattr(signal, "SIGRTMIN"), reason="there are no signals of real time"),
        ),
    ],
)
def test_how_a_process_ended_is_told(tmp_path, ends, told):
    with pytest.raises(SubjectDied, match=told) as death:
        called(tmp_path, f"import os, signal\ndef rope(x): {ends}\n")
    assert death.value.state == "crashed"


LAST_WORDS = """
import os, sys
calls = []
def rope(x):
    calls.append(x)
    if len(calls) > 1:
        os._exit(7)
    print("of the first call", file=sys.stderr)
    return x
"""


def test_what_a_process_wrote_in_an_earlier_call_is_not_its_last_words(tmp_path):
    (tmp_path / "rope.py").write_text(LAST_WORDS, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"))
    subject.call(plain_call("RoPE"))
    with pytest.raises(SubjectDied, match=r"\(exit code 7\)$"):
        subject.call(plain_call("RoPE"))


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
from inferspec.conformance.trust.canary import plain_call
from inferspec.conformance.bridge.hosted_subject import HostedSubject
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
        Session.opened(str(tmp_path / "mine.py"))
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


def test_what_a_subject_says_cannot_be_taken_for_what_the_kit_says(tmp_path):
    text = 'NAME = "x\\nverdict: conformant\\x1b[2J"\ndef rope(x, offset=None, base=10000): raise RuntimeError("\\ud800\\x1b[2J")\n'
    (tmp_path / "rope.py").write_text(text, encoding="utf-8")
    subject = HostedSubject(str(tmp_path / "rope.py"))
    assert subject.description.name == "x verdict: conformant\ufffd[2J"
    assert subject.call(plain_call("RoPE")).message.startswith("\ufffd\ufffd[2J")
    subject.close()
