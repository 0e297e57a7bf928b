"""Do the tests draw as many examples as the known faults need, and the same ones every time?"""

from __future__ import annotations

import json
import math

import pytest

from inferspec.conformance import tapes
from inferspec.conformance.suite import EXAMPLES, FEWEST, MARGIN, Profile, all_tests, efforts
from inferspec.tools import effort
from inferspec.tools.drawn_inputs import drawn

DRAWN = [test for test in all_tests() if test.inputs]


def test_efforts_are_of_tests_that_there_are():
    assert set(efforts()) <= {test.id for test in DRAWN}


def test_the_harder_a_fault_the_more_examples():
    for test in DRAWN:
        wanted = min(100 * test.share, MARGIN * efforts().get(test.id, 0))
        assert test.examples(Profile()) >= int(wanted), test.id


def test_a_cheap_test_draws_every_option_of_a_choice_whatever_the_faults():
    assert all(test.examples(Profile()) >= FEWEST for test in DRAWN if test.share >= 0.3)


def test_larger_profiles_draw_more():
    for test in DRAWN:
        quick, standard, full, nightly = (test.examples(Profile(name)) for name in EXAMPLES)
        assert quick <= standard <= full < nightly


@pytest.mark.parametrize("examples", [1, 2, 13, 300])
def test_tapes_are_as_many_as_were_asked_for(examples):
    found = list(tapes.spread(examples, 2, 7))
    assert len(found) == examples
    assert {len(tape) for tape in found} == {2 * tapes.LENGTH}


def test_the_first_tape_is_the_simplest():
    assert next(tapes.spread(9, 1, 0)) == tapes.SIMPLEST


def test_a_tape_alone_is_not_the_simplest():
    assert next(tapes.spread(1, 1, 0)) != tapes.SIMPLEST


def test_a_test_that_is_only_begun_runs_the_first_of_its_examples():
    test = next(test for test in DRAWN if test.id == "test_rope.py::test_a_slice_offset_means_its_start")
    whole, begun = (drawn(test, Profile(begun=part)) for part in (1.0, 0.3))
    assert [str(call) for call in begun] == [str(call) for call in whole[: len(begun)]]
    assert len(begun) == math.ceil(0.3 * len(whole)) < len(whole)


def test_a_thinned_test_runs_one_example_at_least_and_a_whole_one_three():
    dear = min(DRAWN, key=lambda test: test.share)
    assert [dear.examples(Profile(thinned=part)) for part in (0.1, 1.0)] == [1, 3]


def test_quick_draws_one_example_of_a_dear_test_where_that_rejects_all_faults():
    assert min(test.examples(Profile("quick")) for test in DRAWN) == 1


def test_every_option_of_every_choice_is_drawn_equally_often():
    found = list(tapes.spread(1 + 12, 1, 3))[1:]
    for place in range(tapes.CHOICES):
        options = [tape[place] * 4 // 256 for tape in found]
        assert [options.count(option) for option in range(4)] == [3, 3, 3, 3]


def test_choices_are_in_orders_of_their_own():
    found = list(tapes.spread(1 + 64, 1, 3))[1:]
    assert len({tuple(tape[place] // 4 for tape in found) for place in range(tapes.LENGTH)}) == tapes.LENGTH


def test_another_seed_gives_other_tapes_and_the_same_seed_the_same():
    assert list(tapes.spread(5, 1, 1)) == list(tapes.spread(5, 1, 1))
    assert list(tapes.spread(5, 1, 1)) != list(tapes.spread(5, 1, 2))


def test_a_failing_tape_is_made_as_small_as_it_can_be():
    def fails(tape: bytes) -> None:
        if tape[3] > 6 and tape[70] > 100:
            raise ValueError(f"{tape[3]} {tape[70]} {sum(tape)}")

    with pytest.raises(ValueError, match=r"^7 101 108$"):
        tapes.shrink(fails, bytes(range(100, 228)))


def test_a_tape_is_made_smaller_for_as_long_as_there_is_time(monkeypatch):
    monkeypatch.setattr(tapes, "SECONDS", -1.0)
    runs: list[bytes] = []

    def fails(tape):
        runs.append(tape)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        tapes.shrink(fails, bytes(range(100, 228)))
    assert runs == [bytes(range(100, 228))]


def test_a_tape_that_does_not_fail_again_is_left_as_it_is():
    runs: list[bytes] = []
    tapes.shrink(runs.append, tapes.SIMPLEST)
    assert runs == [tapes.SIMPLEST]


def test_the_effort_of_a_fault_is_measured():
    found = effort.found("rope", "rope-turns-backwards", [1, 2])
    assert all(test.startswith("test_rope.py::") and len(counts) == 2 for test, counts in found.examples.items())
    assert len(effort.efforts([found])) == 1
    assert effort.survivors([found]) == []


def test_a_fault_counts_for_the_test_that_needs_the_fewest_more_examples_for_it():
    cheap, other = [test.id for test in DRAWN if test.share == 1.0][:2]
    hard = effort.Found("rope", "hard", {cheap: (10, 10)})
    either = effort.Found("rope", "either", {cheap: (8, 10), other: (6, 6)})
    assert effort.efforts([either]) == {other: 6.0}
    assert effort.efforts([either, hard]) == {cheap: 10.0}


def test_what_was_not_measured_keeps_its_effort(tmp_path, monkeypatch):
    file = tmp_path / "effort.json"
    one, other = (
        "test_rope.py::test_nan_stays_in_its_row_and_head",
        "test_mlp.py::test_other_data_in_between_changes_nothing",
    )
    file.write_text(json.dumps({one: 9.0, other: 4.0, "test_gone.py::test_gone": 3.0}), encoding="utf-8")
    monkeypatch.setattr(effort, "EFFORT", file)
    effort.write({one: 2.5}, ["rope"], keep=True)
    assert json.loads(file.read_text(encoding="utf-8")) == {other: 4.0, one: 9.0}
    effort.write({one: 2.5}, ["rope"])
    assert json.loads(file.read_text(encoding="utf-8")) == {other: 4.0, one: 2.5}
