"""Is a subject that does otherwise than is usual, where either is right, asked for that, and nobody else?"""

import pytest

from inferspec.conformance.judging.instead import give_what_is_taken
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.session import Session
from inferspec.conformance.subject import LocalSubject, SubjectDied
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.spec.ends import ID, IDS, eos_given
from inferspec.spec.generation import Generate
from inferspec.spec.sampling import DRAWS_BY, Sampler

GENERATE = """
import numpy as np

def generate(model, tokens, max_tokens, eos{default}, sampler=None):
    feed, cache = [int(token) for token in tokens], model.make_cache()
    for number in range(max_tokens):
        row = model(np.array([feed]), cache)[0, -1]
        feed = [int(row.argmax()) if sampler is None else int(np.asarray(sampler(row)).item())]
        if {ends}:
            return
        yield feed[0]
"""
SPECULATE = """
import numpy as np

def speculative_generate(target, draft, tokens, max_tokens, eos{default}, num_draft_tokens=4):
    feed, cache = [int(token) for token in tokens], target.make_cache()
    for number in range(max_tokens):
        feed = [int(target(np.array([feed]), cache)[0, -1].argmax())]
        if {ends}:
            return
        yield feed[0]
"""
SOURCES = {"generation": (GENERATE, "GEN-06"), "speculative": (SPECULATE, "SPEC-26")}


@pytest.fixture(params=SOURCES)
def component(request):
    return request.param


@pytest.fixture
def opened(component, tmp_path):
    sessions = []

    def start(ends, default="=None", declared="", requirement=""):
        source, about = SOURCES[component]
        path = tmp_path / "mine.py"
        path.write_text(source.format(ends=ends, default=default) + declared, encoding="utf-8")
        session = Session.opened(str(path))
        sessions.append(session)
        return session, states(session, requirement or about)

    yield start
    for session in sessions:
        session.close()


def states(session, requirement):
    """What those tests of a requirement found that are asked."""
    found = set()
    for test in (test for test in all_tests() if test.requirement.id == requirement):
        trial = Trial(session.subject, test.requirement)
        test.run(trial, Profile("quick", shrink=False, diagnose=False))
        found.add(trial.outcome.state)
    return found - {"outside_envelope"}


@pytest.mark.parametrize("default", ["=None", "=-1", ""])
def test_a_generator_that_stops_at_one_id_is_given_one(component, opened, default):
    session, found = opened("feed[0] == eos", default)
    assert session.description.envelope == {component: {"eos_as": [ID]}}
    assert found == {"passed"}


def test_a_generator_that_does_not_stop_at_one_id_that_comes_first_is_red(component, opened):
    session, found = opened("number and feed[0] == eos")
    assert session.description.envelope == {component: {"eos_as": [ID]}}
    assert "failed" in found


def test_an_id_of_numpy_is_equal_to_a_collection_of_it_alone_and_yet_one_is_given(component, opened):
    session, found = opened("np.int64(feed[0]) == eos")
    assert session.description.envelope == {component: {"eos_as": [ID]}}
    assert found == {"passed"}


@pytest.mark.parametrize("ends", ["feed[0] in eos", "feed[0] in eos[:1]", "False"])
def test_a_generator_that_takes_several_or_stops_at_none_is_given_several(component, opened, ends):
    session, found = opened(ends, "=()")
    assert session.description.envelope == {}
    assert ("failed" in found) == (ends != "feed[0] in eos")


def test_who_declares_several_is_given_several(component, opened):
    declared = f'\nENVELOPE = {{"{component}": {{"eos_as": ["{IDS}"]}}}}'
    assert "failed" in opened("feed[0] == eos", declared=declared)[1]


def test_the_contract_s_own_generators_are_given_several():
    kits = contract("generation"), contract("speculative")
    operations = {
        name: kit.operation(name)
        for kit in kits
        for name in ("generate", "speculative_generate")
        if name in {op.signature.operation for op in kit.operations}
    }
    subject = LocalSubject(operations)
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope == {}


@pytest.mark.parametrize(
    ("draws_by", "left"),
    [("other", {}), ("id", {}), *((way, {"draws_by": [way]}) for way in DRAWS_BY[1:])],
)
@pytest.mark.parametrize(
    "envelope",
    [
        {},
        {"dtypes": ["bfloat16"], "uniform_dtypes": ["float16"], "leading_dims": [()]},
        {"leading_dims": [(2, 3)], "temperatures": ["other"]},
    ],
)
def test_the_order_in_which_a_sampler_draws_is_seen(draws_by, left, envelope):
    class Draws(Sampler):
        def draws_by(self):
            return "id" if draws_by == "other" else draws_by

        def uniforms(self, a, rows):
            return 1 - super().uniforms(a, rows) if draws_by == "other" else super().uniforms(a, rows)

    subject = LocalSubject({"Sampler": Draws}, envelope={"sampling": envelope} if envelope else None)
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope.get("sampling", {}) == {**envelope, **left}


@pytest.mark.parametrize("envelope", [{"temperatures": ["greedy"]}, {"draws_by": ["id"]}, {"generators": ["own"]}])
def test_who_draws_nothing_or_says_how_is_asked_nothing(envelope):
    class Draws(Sampler):
        def draws_by(self):
            return "order"

    subject = LocalSubject({"Sampler": Draws}, envelope={"sampling": envelope})
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope == {"sampling": envelope}


class OfOneId(Generate):
    """Takes one id that ends it, or None."""

    def guard(self, a):
        super().guard(a)
        if a.eos and a.eos_as == IDS:
            raise TypeError("eos is one id")


class OfOneAtMost(Generate):
    """Takes one id that ends it, or a collection of one."""

    def guard(self, a):
        super().guard(a)
        if len(a.eos) > 1:
            raise TypeError("one id ends it")


class Dying(LocalSubject):
    """Dies where another subject raises."""

    def call(self, call, results=(), watch=False):
        seen = super().call(call, results, watch)
        if seen.raised:
            raise SubjectDied("crashed", "the process is gone")
        return seen


@pytest.mark.parametrize("kind", [LocalSubject, Dying])
@pytest.mark.parametrize("envelope", [{}, {"prompts": ["array"]}, {"stops": [0, 1]}])
def test_who_refuses_a_collection_or_dies_of_it_is_given_one_id(kind, envelope):
    subject = kind({"generate": OfOneId}, envelope={"generation": envelope} if envelope else None)
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope == {"generation": {**envelope, "eos_as": [ID]}}


def test_who_takes_a_collection_of_one_id_and_declares_that_no_more_end_it_is_given_that():
    subject = LocalSubject({"generate": OfOneAtMost}, envelope={"generation": {"stops": [0, 1]}})
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope == {"generation": {"stops": [0, 1]}}


def test_whose_plainest_call_fails_is_left_alone():
    subject = LocalSubject({"generate": OfOneId})
    give_what_is_taken(subject, subject.description, without={"generate"})
    assert subject.description.envelope == {}


def test_a_prompt_is_given_as_it_is_taken():
    class Arrays(OfOneId):
        def guard(self, a):
            super().guard(a)
            if isinstance(a.tokens, tuple | list):
                raise TypeError("tokens are an array")

    subject = LocalSubject({"generate": Arrays}, envelope={"generation": {"prompts": ["array"]}})
    give_what_is_taken(subject, subject.description)
    assert subject.description.envelope == {"generation": {"prompts": ["array"], "eos_as": [ID]}}


def test_of_several_ids_one_is_given_where_one_is_taken():
    assert eos_given((5, 6), IDS) == (5, 6)
    assert eos_given((5, 6), ID) == 5
    assert eos_given((), ID) is None
