"""What several requirements fail alike by is told once."""

from __future__ import annotations

import pytest

from inferspec.conformance.reporting.common_causes import FEWEST, causes
from inferspec.conformance.reporting.summary import lines

RANK = (
    "refuses what its envelope includes: ValueError: input of shape {} has no rank of 4 (at mine.py:7); if it does not"
)


def failed(number, message="out[0] = 2, oracle 1", *diagnosis, state="failed"):
    return {
        "id": f"X-{number:02}",
        "state": state,
        "failures": [{"message": message, "diagnosis": list(diagnosis)}],
    }


def told(*rows):
    return [(cause.text, cause.ids) for cause in causes(rows)]


def test_errors_of_one_line_are_one_cause_whatever_they_say():
    rows = [failed(n, RANK.format((n, 1)), state="overclaimed") for n in range(4)]
    (cause,) = causes(rows)
    assert str(cause) == (
        "4 requirements fail alike, by ValueError: input of shape (0, 1) has no rank of 4 (at mine.py:7): X-00, X-01, X-02, X-03"
    )


ADVISED = RANK + " support {}, say so: ENVELOPE = {{'x': {{'leading_dims': [{}]}}}}"


def test_what_most_of_a_cause_say_is_to_be_declared_is_told_with_it():
    rows = [failed(n, ADVISED.format(3, "leading_dims of ()", 1), state="overclaimed") for n in range(3)]
    rows.append(failed(3, ADVISED.format(3, "masks of 'bool'", 2), state="overclaimed"))
    assert "; if leading_dims of () are not to be supported: ENVELOPE = {'x': {'leading_dims': [1]}}" in str(
        causes(rows)[0]
    )


def test_what_half_of_a_cause_say_is_to_be_declared_is_not_told_with_it():
    rows = [failed(n, ADVISED.format(3, f"lengths of {n // 2}", n // 2), state="overclaimed") for n in range(4)]
    assert "ENVELOPE" not in str(causes(rows)[0])


def test_errors_of_other_lines_and_types_are_other_causes():
    raised = [("Value", 7), ("Value", 8), ("Value", 9), ("Type", 7), ("Key", 7)]
    rows = [failed(n, f"raises: {kind}Error: no (at mine.py:{line})") for n, (kind, line) in enumerate(raised)]
    assert told(*rows) == []


def test_a_fault_that_explains_several_requirements_is_one_cause():
    rows = [
        failed(1, "wrong", "top-left", "shifted"),
        failed(2, "wrong", "shifted"),
        failed(3, "wrong", "shifted", "other"),
    ]
    assert told(*rows) == [("as shifted would", ("X-01", "X-02", "X-03"))]


NATIVE = 'out[0] = 1, oracle 2; it meets class native: declare PRECISION = {{"{}": "native"}}'


def test_results_that_meet_the_other_class_are_one_cause_whatever_they_are_of():
    rows = [failed(n, NATIVE.format("rope" if n < 3 else "mlp")) for n in range(5)]
    (cause,) = causes(rows)
    assert cause.ids == tuple(row["id"] for row in rows)
    assert 'declare PRECISION = {"mlp": "native", "rope": "native"}' in cause.text


def test_what_a_declaration_would_not_mend_is_not_under_it():
    rows = [failed(n, NATIVE.format("rope")) for n in range(3)]
    rows.append(failed(3, NATIVE.format("rope")))
    rows[-1]["failures"].append({"message": "out[0] = nan, oracle 2", "diagnosis": []})
    (cause,) = causes(rows)
    assert cause.ids == ("X-00", "X-01", "X-02")


def test_a_step_of_a_story_that_raises_is_a_cause_by_its_words():
    said = "step {}, step(): refused should not be there (step {}: KeyError: 'layer {}'; step 9: KeyError: 'x')"
    (cause,) = causes([failed(n, said.format(n, n, n)) for n in range(3)])
    assert (cause.text, len(cause.ids)) == ("by KeyError: 'layer 0'", 3)


def test_few_of_many_requirements_are_named():
    (cause,) = causes([failed(n, "wrong", "wide") for n in range(20)])
    assert str(cause).endswith("X-10, X-11 and 8 more")


def test_a_requirement_is_told_by_its_widest_cause_alone():
    rows = [failed(n, "wrong", "wide", *["narrow"] * (n < 3)) for n in range(6)]
    assert told(*rows) == [("as wide would", tuple(f"X-{n:02}" for n in range(6)))]


def test_few_that_fail_alike_and_what_is_met_or_waived_are_not_told():
    few = [failed(n, "wrong", "fault") for n in range(FEWEST - 1)]
    assert told(*few, failed(7, "wrong", "fault", state="waived"), failed(8)) == []


def test_a_long_error_is_cut():
    (cause,) = causes([failed(n, f"raises: ValueError: {'long ' * 99} (at mine.py:7)") for n in range(3)])
    assert len(cause.text) < 200
    assert cause.text.endswith("… (at mine.py:7)")


# what a reader begins with


def row(number, **others):
    about = {"component": "rope", "name": "RoPE", "level": "MUST", "aspect": "value", "text": f"sentence {number}"}
    ran = {"tests": [], "ran": [], "examples": 1, "worst": 1.0, "precision": "native", "message": "", "diagnosis": []}
    return {**about, **ran, **failed(number, **others)}


def summary(*rows, verdict="nonconformant", altered=()):
    kit = {"power": None, "altered": [*altered]}
    subject = {"name": "mine", "unclaimed": {}, "kernel_path": "none"}
    precision = {"matmul": "float32", "measured": {"rope": "native"}}
    found = {"requirements": rows, "kit": kit, "subject": subject, "precision": precision, "verdict": verdict}
    return [line for line, _ in lines(found)]


def test_what_fails_alike_comes_first_with_all_that_it_shows_in():
    told = summary(*[row(n, message=RANK.format(n), state="overclaimed") for n in range(3)], row(3))
    assert told[0].startswith("3 requirements fail alike, by ValueError")
    assert told[1:4] == [f"  X-{n:02} overclaimed: sentence {n}" for n in range(3)]
    assert told[4].startswith("rope ")
    assert told[5:7] == ["  3 unmet as told above", "  X-03 failed: sentence 3"]


def test_what_a_declaration_alone_would_mend_is_said_with_the_verdict():
    told = summary(*[row(n, message=NATIVE.format("rope")) for n in range(3)])
    assert any("all of it is within class native" in line for line in told)
    told = summary(*[row(n, message=NATIVE.format("rope")) for n in range(3)], row(3))
    assert not any("all of it is within class native" in line for line in told)


UNRUN = "requirements have tests that did not run"


@pytest.mark.parametrize(
    ("ran", "altered", "said"),
    [
        ([], [], [f"  1 {UNRUN}; only a whole run gives a verdict"]),
        (
            [],
            ["numpy.abs"],
            ["  the kit was changed while it ran: numpy.abs", f"  1 {UNRUN}; only a whole run gives a verdict"],
        ),
        (["a"], ["numpy.abs"], ["  the kit was changed while it ran: numpy.abs"]),
        (["a"], [*"bcdefgh"], ["  the kit was changed while it ran: b, c, d, e, f and 2 more"]),
    ],
)
def test_what_stands_between_a_run_and_a_verdict_is_said_and_nothing_of_none(ran, altered, said):
    told = summary(row(0, state="passed") | {"tests": ["a"], "ran": ran}, verdict="incomplete", altered=altered)
    assert told[told.index("verdict: incomplete") + 1 :] == said


def test_a_component_tells_its_worst_error_where_it_has_one():
    exact, rounded = (summary(row(0, state="passed") | {"worst": worst})[0] for worst in (0.0, 0.25))
    assert exact.endswith("  [1 examples]")
    assert rounded.endswith("  [1 examples, worst error 0.25 of its budget, class native]")
