"""What the kill matrix tells of a fault."""

import html
import itertools
import json
import re

import pytest

from inferspec.conformance.reporting import power
from inferspec.conformance.suite import Profile
from inferspec.spec import contract
from inferspec.spec.contract import Arguments, Contract, Fault, Operation, changed
from inferspec.tools import faults
from inferspec.tools.cli import main
from inferspec.tools.faults import Acceptance, Kill, Matrix, kill
from inferspec.tools.faults import matrix as build
from inferspec.tools.faults_page import page
from inferspec.tools.pages import browser


def first_fault(component: str) -> str:
    return contract(component).faults[0].name


def test_a_fault_of_a_story_is_told_with_the_steps_of_its_smallest_failure():
    found = kill("block_manager", first_fault("block_manager"), Profile())
    assert found.killed
    assert found.diagnosed
    assert 2 <= found.steps <= 15


def test_a_fault_of_a_single_call_has_no_steps():
    found = kill("rms_norm", first_fault("rms_norm"), Profile(shrink=False, diagnose=False))
    assert found.killed
    assert found.steps == 0


def mistyped(*_: object) -> None:
    return undefined  # noqa: F821 - the slip


def endless(self: Operation, a: Arguments) -> None:
    return self.respond(a)


@pytest.mark.parametrize(("slip", "error"), [(mistyped, "NameError"), (endless, "RecursionError")])
def test_a_fault_that_cannot_run_does_not_count_as_rejected(slip, error, monkeypatch):
    def faulty(self: Contract, fault: Fault) -> type[Operation]:
        return changed(self.operation(fault.kills.name), fault.name, {"respond": slip})

    monkeypatch.setattr(Contract, "faulty", faulty)
    found = kill("rms_norm", first_fault("rms_norm"), Profile(shrink=False, diagnose=False))
    assert not found.killed
    assert found.slip.startswith(error)
    assert Matrix([found], [], [], []).problems() == [f"{found.fault} cannot run: {found.slip}"]


def test_what_is_aside_makes_no_other_sentence_red():
    profile = Profile(shrink=False, diagnose=False, thinned=0.25)
    assert not kill("batching", "batching-idle-causal", profile, everywhere=True).elsewhere


def test_a_test_that_draws_nothing_is_run_too_when_all_that_reject_a_fault_are_asked_for():
    profile = Profile(shrink=False, diagnose=False, thinned=0.1)
    (first,) = kill("sampling", "own-id-before", profile).tests
    assert first in kill("sampling", "own-id-before", profile, everywhere=True).tests


LATE = "sdpa-many-queries-read-past-query"
"""One that few of the tests of its requirement see."""


def test_the_test_that_rejected_a_fault_before_is_asked_first_and_shows_it_at_the_same_example(monkeypatch):
    profile = Profile(shrink=False, diagnose=False)
    monkeypatch.setattr(faults, "rejected_by", dict)
    searched = kill("attention", LATE, profile)
    monkeypatch.setattr(faults, "rejected_by", lambda: {LATE: searched.tests[0]})
    asked = kill("attention", LATE, profile)
    assert (asked.tests, asked.examples) == (searched.tests, searched.examples)
    assert asked.in_vain == 0 < faults.IN_VAIN < searched.in_vain


BLIND = "test_attention_arrays.py::test_an_expanded_mask_acts_like_its_copy"


@pytest.mark.parametrize("named", ["test_rope.py::test_gone", BLIND])
def test_a_fault_is_looked_for_elsewhere_where_the_test_that_is_asked_first_does_not_reject_it(named, monkeypatch):
    monkeypatch.setattr(faults, "rejected_by", lambda: {LATE: named})
    found = kill("attention", LATE, Profile(shrink=False, diagnose=False))
    assert found.killed
    assert named not in found.tests


def test_what_was_looked_for_in_vain_is_recorded_and_stays_so(monkeypatch, tmp_path):
    monkeypatch.setattr(power, "POWER", tmp_path / "power.json")
    monkeypatch.setattr(faults, "REJECTED_BY", tmp_path / "rejected_by.json")
    monkeypatch.setattr(faults, "rejected_by", lambda: {"known": "a", "moved": "a", "gone": "a"})
    kills = [
        Kill("known", "", "", ["a"]),
        Kill("moved", "", "", ["b"], in_vain=faults.IN_VAIN),
        Kill("soon", "", "", ["a"], in_vain=faults.IN_VAIN - 1),
        Kill("survives", "", "", in_vain=1000),
    ]
    faults.record(Matrix(kills, [], [], []))
    assert json.loads(faults.REJECTED_BY.read_text()) == {"known": "a", "moved": "b"}


def test_the_mean_of_steps_is_that_of_stories():
    kills = [Kill(str(steps), "", "", steps=steps) for steps in (0, 4, 7)]
    assert Matrix(kills, [], [], []).mean_steps == 5.5
    assert Matrix(kills[:1], [], [], []).mean_steps == 0


# The page of the matrix


ROPE = "rope-turns-backwards"


def matrix(**others) -> Matrix:
    fault = next(one for one in contract("rope").faults if one.name == ROPE)
    test = "test_rope.py::test_x"
    found = {"tests": [test], "examples": 90, "limit": 100, "seconds": 1.5, **others}
    accepted = Acceptance(contract("rope").variants[0].name, "rope", 3, 30, 0.5)
    return Matrix([Kill(ROPE, "rope", fault.kills.id, **found)], [accepted], [], [], "standard, seed 0")


def test_a_fault_is_told_with_the_example_that_showed_it_first():
    found = kill("rms_norm", first_fault("rms_norm"), Profile(shrink=True, diagnose=False, thinned=0.3))
    assert 1 <= found.examples <= found.limit


def test_the_page_tells_what_a_fault_gets_wrong_and_what_rejects_it():
    source = page(matrix())
    assert next(one for one in contract("rope").faults if one.name == ROPE).text in html.unescape(source)
    for text in (ROPE, "rejected by test_x", "example 90 of 100", "1 of 1 faults rejected", "1 of 1 honest variants"):
        assert text in source


def test_a_fault_near_the_limit_is_listed_and_marked():
    assert 'circle class="near"' in page(matrix())
    assert "The last to be found" in page(matrix())
    assert 'circle class="far"' in page(matrix(examples=3))
    assert "The last to be found" not in page(matrix(examples=3))


def test_a_survivor_is_a_problem_on_the_page():
    source = page(matrix(tests=[]))
    assert "survives every test of ROPE" in source
    assert 'class="card bad"' in source


def test_documented_bugs_are_linked_and_nothing_is_loaded():
    documented = next(one for one in contract("rope").faults if "https://" in one.source or "#" in one.source)
    found = matrix()
    found.kills[0].fault, found.kills[0].requirement = documented.name, documented.kills.id
    source = page(found)
    assert 'href="https://' in source
    assert " src=" not in source
    assert "<link" not in source


def test_a_matrix_is_read_back_and_shown(tmp_path, capsys):
    (tmp_path / "kills.json").write_text(json.dumps(matrix().as_json()), encoding="utf-8")
    assert main(["faults", "--read", str(tmp_path / "kills.json"), "--report", str(tmp_path / "out")]) == 0
    assert "1 of 1 faults rejected" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "faults.json").read_text()) == matrix().as_json()
    assert main(["faults", "--read", str(tmp_path / "kills.json"), "--report", str(tmp_path / "my.html")]) == 0
    assert (tmp_path / "my.html").read_text(encoding="utf-8") == page(matrix())


@pytest.mark.parametrize(
    ("content", "says"),
    [("{}", "is not what `inferspec faults --json` writes"), (None, "is of another kit: this one has no gone")],
)
def test_what_is_no_matrix_of_this_kit_is_refused(content, says, tmp_path, capsys):
    strange = matrix()
    strange.kills[0].fault = "gone"
    (tmp_path / "kills.json").write_text(content or json.dumps(strange.as_json()), encoding="utf-8")
    assert main(["faults", "--read", str(tmp_path / "kills.json")]) == 2
    assert says in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("option", [["--only", "rope"], ["--read", "x.json"]])
def test_only_a_run_of_the_whole_matrix_is_recorded(option, capsys):
    assert main(["faults", "--record", *option]) == 2
    assert "--record takes a run of the whole matrix" in capsys.readouterr().out


def test_every_requirement_has_a_fault_and_a_test():
    found = build([])
    assert found.bare == []
    assert found.untested == []


def test_names_under_a_plot_stand_apart_on_narrow_screens():
    (plot,) = re.findall(r'<svg class="narrow".*?</svg>', page(matrix()), re.DOTALL)
    ends = []
    for x, anchor, label in re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="(middle|end)">(.*?)</text>', plot):
        width = 7 * len(label)
        ends.append((float(x) - width / (2 if anchor == "middle" else 1), width))
    assert len(ends) == 4
    assert all(left + width < right for (left, width), (right, _) in itertools.pairwise(ends))


@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [400, 900, 1300])
def test_the_page_fits_its_width_in_a_browser(tmp_path, width):
    file = tmp_path / "page.html"
    file.write_text(page(matrix()).replace("<details ", "<details open "), encoding="utf-8")
    assert browser.fits(file, width)
