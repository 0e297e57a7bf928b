"""Does quick draw what it needs to reject every fault?"""

from __future__ import annotations

import json

import pytest

from inferspec.conformance import suite
from inferspec.conformance.suite import Profile, all_tests, quick
from inferspec.tools import quick_examples
from inferspec.tools.quick_examples import SLOW, START, Needed, Survives, times

OVERFLOWS = "test_linear_silu.py::test_silu_is_safe_where_the_exponential_overflows"


def test_what_quick_draws_more_or_fewer_of_are_tests_that_there_are():
    assert set(quick()) <= {test.id for test in all_tests() if test.inputs}


def test_quick_draws_of_every_test_and_no_more_than_twice_what_standard_draws():
    for test in all_tests():
        assert 1 <= test.examples(Profile("quick")) < 2 * test.examples(Profile()) + 1, test.id


def test_each_number_of_examples_that_is_tried_is_one_that_is_drawn():
    for test in all_tests():
        whole = test.examples(Profile())
        numbers = {1, 2, whole - 1, whole, whole + 1}
        assert [test.examples(Profile(thinned=number / whole)) for number in numbers] == [*numbers], test.id


def test_a_fault_that_survives_quick_asks_for_more_examples(monkeypatch):
    monkeypatch.setattr(suite, "quick", dict)
    monkeypatch.setattr(quick_examples, "quick", dict)
    found = quick_examples.needed("linear", "SILU-02")
    assert found.survivors == ("silu-vectors-overflow",)
    assert set(found.examples) == {OVERFLOWS}


def test_with_what_is_kept_nothing_of_a_requirement_survives():
    assert quick_examples.needed("linear", "SILU-02").survivors == ()


def test_a_fault_that_nothing_rejects_is_an_error(monkeypatch):
    monkeypatch.setattr(quick_examples, "rejects", lambda *call: False)
    with pytest.raises(Survives, match="survives twice the examples that standard draws"):
        quick_examples.needed("linear", "SILU-02")


def test_a_test_whose_examples_take_long_draws_a_quarter_of_its_part(monkeypatch, tmp_path):
    _draw_a_fifth(monkeypatch)
    drawn = {test.id: test.examples(Profile("quick")) for test in all_tests()}[OVERFLOWS]
    assert quick_examples.thinned(times(_took(tmp_path, OVERFLOWS, START + drawn * SLOW * 1.01))) == {
        OVERFLOWS: drawn // 4
    }


def test_a_test_whose_examples_are_quick_draws_its_part(monkeypatch, tmp_path):
    _draw_a_fifth(monkeypatch)
    assert quick_examples.thinned(times(_took(tmp_path, OVERFLOWS, START + SLOW))) == {}


def test_a_test_of_a_component_that_is_not_asked_for_draws_what_it_drew(monkeypatch, tmp_path):
    _draw_a_fifth(monkeypatch)
    took = times(_took(tmp_path, OVERFLOWS, 60.0))
    assert quick_examples.thinned(took, ["rope"]) == {}
    assert set(quick_examples.thinned(took, ["linear"])) == {OVERFLOWS}


def test_what_a_test_that_takes_long_needs_is_found_anew_from_a_quarter_of_its_part(monkeypatch, tmp_path):
    for module in (suite, quick_examples):
        monkeypatch.setattr(module, "quick", lambda: {OVERFLOWS: 40})
    assert quick_examples.thinned(times(_took(tmp_path, OVERFLOWS, 60.0))) == {OVERFLOWS: 1}


def test_a_test_that_needs_more_examples_and_is_quick_draws_them(monkeypatch, tmp_path):
    for module in (suite, quick_examples):
        monkeypatch.setattr(module, "quick", lambda: {OVERFLOWS: 40})
    assert quick_examples.thinned(times(_took(tmp_path, OVERFLOWS, START + SLOW))) == {OVERFLOWS: 40}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seconds", "is not what pytest --junitxml writes"),
        (
            '<testsuites><testcase classname="a.test_b" name="test_c" time="1"/></testsuites>',
            "none of these suites' tests",
        ),
    ],
)
def test_times_of_something_else_are_an_error(tmp_path, text, problem):
    (tmp_path / "took.xml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=problem):
        times(tmp_path / "took.xml")


def _draw_a_fifth(monkeypatch):
    for module in (suite, quick_examples):
        monkeypatch.setattr(module, "quick", dict)


def _took(folder, test, seconds):
    """What pytest writes of a run of the test."""
    file, name = test.split(".py::")
    case = f'<testcase classname="conformance.{file}" name="{name}" time="{seconds}" />'
    (folder / "took.xml").write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>", encoding="utf-8")
    return folder / "took.xml"


def test_what_was_not_asked_for_stays_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "quick.json"
    rope = "test_rope.py::test_nan_stays_in_its_row_and_head"
    monkeypatch.setattr(quick_examples, "QUICK", file)
    monkeypatch.setattr(quick_examples, "quick", lambda: {rope: 9, OVERFLOWS: 8, "test_gone.py::test_gone": 3})
    quick_examples.write([Needed("SILU-02", {}, ())])
    assert json.loads(file.read_text(encoding="utf-8")) == {rope: 9}
