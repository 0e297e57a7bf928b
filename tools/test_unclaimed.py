"""Is what a subject leaves out of its envelope reported where it works, and only there?"""

import pytest

from inferspec.conformance.judging.unclaimed import claimed_call, unclaimed
from inferspec.conformance.session import Session
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import all_tests
from inferspec.spec.batching import BatchingKVCache
from inferspec.spec.engine import Engine
from inferspec.spec.generation import Generate
from inferspec.spec.linear import Silu
from inferspec.spec.llama import Llama
from inferspec.spec.rope import RoPE
from inferspec.spec.watch import Request


class AboveZero(Generate):
    """Takes no limit of 0, as litgpt's."""

    def check_limit(self, request: Request) -> None:
        assert request.max_tokens > 0


@pytest.mark.parametrize(
    ("operation", "envelope", "reported"),
    [
        (RoPE, {"rope": {"offsets": ["none", "int"]}}, {"RoPE": ["offsets: slice", "offsets: slices"]}),
        (
            Llama,
            {"llama": {"rope_types": ["default", "yarn"]}},
            {"Llama": ["rope_types: linear", "rope_types: llama3"]},
        ),
        (AboveZero, {"generation": {"zero_max_tokens": [False]}}, {}),
        (BatchingKVCache, {"batching": {"offsets": [False]}}, {}),
        (Generate, {"generation": {"stops": [0, 1]}}, {"generate": ["stops: 2", "stops: 3", "stops: 9"]}),
        (Generate, {"generation": {"eos_as": ["id"]}}, {}),
    ],
)
def test_what_works_although_it_is_not_claimed_is_reported_where_it_was_tried(operation, envelope, reported):
    subject = LocalSubject({operation.signature.operation: operation})
    subject.description.envelope = envelope
    assert unclaimed(subject, subject.description) == reported


def test_of_a_parameter_that_is_not_there_no_other_choice_is_tried():
    subject = LocalSubject({"Engine": Engine, "Llama": Llama})
    subject.description.shown["Engine"] = {"models": ("llama",), "page_sizes": (16,)}
    found = unclaimed(subject, subject.description).get("Engine", ())
    assert not [choice for choice in found if choice.startswith("page_sizes")]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_an_ordinary_call_is_made_within_the_envelope(dtype):
    subject = LocalSubject({"silu": Silu}, envelope={"linear": {"dtypes": [dtype]}})
    assert claimed_call("silu", subject.description).arguments["x"].dtype.name == dtype


def test_where_nothing_is_claimed_there_is_no_ordinary_call():
    subject = LocalSubject({"silu": Silu}, envelope={"linear": {"dtypes": []}})
    assert claimed_call("silu", subject.description) is None


REFUSES = """
class BlockManager:
    def __init__(self, num_blocks, block_size, prefix_caching=True):
        self.num_free = num_blocks
    def allocate(self, *given):
        raise NotImplementedError
    append = mark_computed = free = allocate
"""


def test_steps_that_are_all_refused_are_no_answer(tmp_path):
    (tmp_path / "refuses.py").write_text(REFUSES, encoding="utf-8")
    session = Session.opened(str(tmp_path / "refuses.py"), profile="quick")
    try:
        assert session.smoke["BlockManager"][0] == "overclaimed"
    finally:
        session.close()


HALF_ALONE = """
import numpy as np
ENVELOPE = {"linear": {"dtypes": ["float16"]}}
def silu(x):
    if x.dtype != np.float16:
        raise NotImplementedError("float32")
    ANSWER
"""
WRITTEN, BEGUN = "return (x / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)", "return None"


FOURS = """
import numpy as np
def silu(x):
    if x.shape[-1] % 4:
        raise NotImplementedError("rows are multiples of four")
    return (x / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)
"""


def test_what_lacks_no_more_than_its_plainest_call_is_called_no_stub(tmp_path):
    (tmp_path / "fours.py").write_text(FOURS, encoding="utf-8")
    session = Session.opened(str(tmp_path / "fours.py"), profile="quick")
    try:
        state, told = session.smoke["silu"]
        assert state == "overclaimed"
        assert "its plainest call (NotImplementedError: rows are multiples of four (at " in told
        assert (
            'leave it out if it is a stub, or say what it takes in ENVELOPE["linear"], whose keys are dtypes, ' in told
        )
    finally:
        session.close()


@pytest.mark.parametrize(("answer", "state"), [(WRITTEN, "passed"), (BEGUN, "overclaimed")])
def test_a_plain_call_outside_of_the_envelope_shows_no_stub(tmp_path, answer, state):
    (tmp_path / "half.py").write_text(HALF_ALONE.replace("ANSWER", answer), encoding="utf-8")
    session = Session.opened(str(tmp_path / "half.py"), profile="quick")
    try:
        outcome = session.run(next(test for test in all_tests() if test.requirement.id == "SILU-01"))
        assert (outcome.state, "is a stub" in outcome.message) == (state, state != "passed")
    finally:
        session.close()
