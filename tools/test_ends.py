"""The id that ends a sequence, dropped or kept: judged as declared, and of who declares nothing one sentence alone is red."""

from __future__ import annotations

import importlib
import random
import textwrap

import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.envelope import envelope_of
from inferspec.conformance.inputs.generation import ends_of
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.session import Session
from inferspec.conformance.strategies import Pick
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, Test, all_tests
from inferspec.conformance.tapes import LENGTH
from inferspec.spec import contract
from inferspec.spec.contract import Contract, Operation
from inferspec.spec.ends import DROPPED, KEEPING, KEPT, ended
from inferspec.tools.mutation import running

KEEPERS = {
    "generation": "generate",
    "speculative": "speculative_generate",
    "scheduler": "Scheduler",
    "engine": "Engine",
}
QUICK = Profile(diagnose=False, shrink=False, thinned=0.3)

HUGGING_FACE = """
import numpy as np
ARRAYS = "numpy"

def generate(model, tokens, *, max_tokens, eos=(), sampler=None, cache=True):
    if np.ndim(tokens) != 1 or not len(tokens) or max_tokens < 0:
        raise ValueError("tokens or max_tokens")
    return run(model, [int(token) for token in tokens], max_tokens, tuple(eos), sampler, cache)

def run(model, ids, max_tokens, eos, sampler, cache):
    kept, new = model.make_cache() if cache else None, ids
    for _ in range(max_tokens):
        row = model(np.array([new]), kept)[0, -1].astype(np.float32)
        token = int(np.ravel(sampler(row) if sampler else row.argmax())[0])
        yield token
        if token in eos:
            return
        ids = [*ids, token]
        new = [token] if cache else ids
"""
"""A generator of another package, whose ends come out."""


def either(component: str) -> tuple[Contract, type[Operation]]:
    kit = contract(component)
    return kit, kit.operation(KEEPERS[component])


def keeper(component: str) -> type[Operation]:
    """The contract's own operation where ends are kept, whatever it is told."""
    kit, _ = either(component)
    return kit.variant(next(one for one in kit.variants if one.envelope == KEEPING))


def states(component: str, tests: list[Test], **envelope: tuple[str, ...]) -> dict[str, Trial]:
    """The trials of a keeper that declares this."""
    kit, operation = either(component)
    operations = {one.signature.operation: one for one in kit.operations}
    subject = LocalSubject({**operations, operation.signature.operation: keeper(component)}, {}, {component: envelope})
    trials = {test.id: Trial(subject, test.requirement) for test in tests}
    for test in tests:
        test.run(trials[test.id], QUICK)
    return trials


def about(component: str) -> tuple[str, ...]:
    return either(component)[1].either["ends"]


def test_what_comes_out_of_ids_that_an_end_ends():
    assert ended([5, 6, 7, 6], (6, 9)) == [5]
    assert ended([5, 6, 7, 6], (6, 9), KEPT) == [5, 6]
    assert ended([5, 7], (6,), KEPT) == ended([5, 7], (6,), DROPPED) == [5, 7]


@pytest.mark.parametrize("component", KEEPERS)
def test_what_is_declared_changes_nothing_else_of_a_call(component):
    """And who declares both is asked as who declares nothing: that is refused where it is declared."""
    kit, operation = either(component)
    ordinary = importlib.import_module(f"inferspec.conformance.inputs.{component}").ORDINARY[
        operation.signature.operation
    ]
    tape = random.Random(3).randbytes(LENGTH)
    usual, dropped, kept = (
        ordinary.build(Pick(tape, {**envelope_of(kit, declared, {}), **ordinary.asked}))
        for declared in ({}, {"ends": (DROPPED,)}, KEEPING)
    )
    assert str(usual) == str(dropped)
    assert "ends" not in usual.arguments
    assert ends_of(kept) == kept.features["ends"] == KEPT
    assert set(kept.arguments) - set(usual.arguments) == {"ends"}
    assert str(kept.having(ends=DROPPED)) == str(usual.having(ends=DROPPED))


@pytest.mark.parametrize("component", KEEPERS)
def test_the_sentences_about_ends_are_of_the_operation_that_has_them(component):
    kit, operation = either(component)
    assert kit.envelope["ends"] == (DROPPED, KEPT)
    sentences = {one.id: one for one in kit.requirements}
    assert {sentences[id].name for id in about(component)} == {operation.signature.operation}


@pytest.mark.parametrize("component", ["generation", "scheduler"])
def test_of_who_keeps_ends_and_does_not_say_so_these_sentences_alone_are_red(component):
    kit, operation = either(component)
    ids = {one.id for one in kit.requirements if one.name == operation.signature.operation}
    tests = [test for test in all_tests() if test.requirement.id in ids]
    red = {trial.requirement.id for trial in states(component, tests).values() if trial.outcome.state != "passed"}
    assert red == set(about(component))


@pytest.mark.parametrize("component", ["generation", "speculative", "scheduler"])
def test_the_failure_says_how_to_declare_it_and_then_it_is_none(component):
    tests = [test for test in all_tests() if test.requirement.id in about(component)]
    told = [trial.outcome.message for trial in states(component, tests).values() if trial.outcome.state == "failed"]
    line = f"ENVELOPE = {{'{component}': {{'ends': ['kept']}}}}"
    assert told
    assert [text for text in told if f"if ends are to be kept, declare {line}" not in text] == []
    assert {trial.outcome.state for trial in states(component, tests, **KEEPING).values()} == {"passed"}


def test_who_declares_to_keep_ends_and_drops_them_is_told_so():
    kit, operation = either("generation")
    test = next(one for one in all_tests() if one.requirement.id == "GEN-06")
    dropping = kit.faulty(next(one for one in kit.faults if one.name == "generation-kept-end-dropped"))
    subject = LocalSubject({operation.signature.operation: dropping}, {}, {"generation": KEEPING})
    trial = Trial(subject, test.requirement)
    test.run(trial, Profile(shrink=False))
    assert trial.outcome.message.endswith(
        "if ends are to be dropped, declare ENVELOPE = {'generation': {'ends': ['dropped']}}"
    )
    assert "generation-kept-end-dropped" in trial.outcome.diagnosis


def test_mistakes_of_who_keeps_ends_explain_nobody_who_drops_them():
    kit, operation = either("generation")
    test = next(one for one in all_tests() if one.requirement.id == "GEN-06")
    trial = Trial(LocalSubject({operation.signature.operation: keeper("generation")}), test.requirement)
    test.run(trial, Profile(shrink=False))
    assert "generation-emits-eos" in trial.outcome.diagnosis
    keeping = {fault.name for fault in kit.faults if fault.envelope}
    assert not keeping & set(trial.outcome.diagnosis)


@pytest.mark.parametrize(
    ("declared", "red"), [("", {"GEN-06", "GEN-07"}), ("['kept']", set()), ("['dropped']", {"GEN-06", "GEN-07"})]
)
def test_a_generator_of_another_package_is_judged_as_it_declares(tmp_path, monkeypatch, declared, red):
    text = HUGGING_FACE + (f"ENVELOPE = {{'generation': {{'ends': {declared}}}}}\n" if declared else "")
    (tmp_path / "mine.py").write_text(textwrap.dedent(text), encoding="utf-8")
    session = Session.opened(str(tmp_path / "mine.py"), profile="quick")
    wanted = ("GEN-01", "GEN-06", "GEN-07", "GEN-12", "GEN-17", "GEN-18")
    try:
        tests = [test for test in all_tests() if test.requirement.id in wanted]
        assert {test.requirement.id for test in tests if session.run(test).state != "passed"} == red
    finally:
        session.close()


def test_a_subject_does_the_one_or_the_other(tmp_path):
    (tmp_path / "both.py").write_text(HUGGING_FACE + "ENVELOPE = {'generation': {'ends': ['dropped', 'kept']}}\n")
    with pytest.raises(
        AdapterError, match="takes a list of one of \\['dropped', 'kept'\\], the one thing that it does"
    ):
        load(str(tmp_path / "both.py"))


def test_mutants_of_oracles_are_judged_by_who_keeps_ends_too():
    asked = list(running._asked("generation"))
    again = [test.requirement.id for test, envelope in asked if envelope == KEEPING]
    assert set(again) == set(about("generation"))
    assert len(asked) == len({test.id for test, _ in asked}) + len(again)
