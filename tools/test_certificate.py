"""What a certificate says follows from what ran, and an edited one is refused."""

from __future__ import annotations

import copy
import datetime
import json
import math
import os

import jsonschema
import pytest

from inferspec.conformance import suite
from inferspec.conformance.bridge.hosted_subject import CALL_LIMIT
from inferspec.conformance.reporting import certificate as certificates
from inferspec.conformance.reporting.certificate import (
    BAD,
    SCHEMA,
    STATES,
    all_requirements,
    digest,
    judge,
    problems,
    verdict_of,
    verdict_text,
)
from inferspec.conformance.reporting.summary import lines
from inferspec.conformance.reporting.waivers import Waiver
from inferspec.conformance.session import Session
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile
from inferspec.spec import COMPONENTS
from inferspec.spec.contract import Level

TODAY = datetime.date(2026, 11, 20)
MASK = [r for r in all_requirements() if r.name == "causal_mask"]
MUST = next(r for r in all_requirements() if r.id == "ROPE-03")
SHOULD = next(r for r in MASK if r.level is Level.SHOULD)
TESTS = {r: [t for t in suite.all_tests() if t.requirement == r] for r in (*MASK, MUST)}


def outcome(state="passed", **details):
    plain = {"examples": 40, "worst": 0.5, "precision": "float32", "message": "", "diagnosis": [], "features": {}}
    return {"state": state, **plain, **details}


def ran(*requirements, **others):
    """The outcomes of a run in which every test of these requirements passed, but for the others (id -> outcomes)."""
    results = {t.id: outcome() for r in requirements for t in TESTS[r]}
    for identity, outcomes in others.items():
        of = next(ts for r, ts in TESTS.items() if r.id == identity.replace("_", "-"))
        results |= {t.id: o for t, o in zip(of, outcomes, strict=False)}
    return results


def judged(results, offers=("causal_mask",), broken=(), waivers=(), **how):
    return judge(suite.all_tests(), results, offers, dict(broken), {w.requirement: w for w in waivers}, TODAY, **how)


def row(rows, requirement):
    return next(row for row in rows if row["id"] == requirement.id)


def certificate(results, **options):
    rows = judged(results, **options)
    about = Description("mine", "mine", "1", "mine.py", "numpy", "numpy 2", offers={"causal_mask": {}})
    return certificates.certificate(about, rows, {}, Profile(), ["--impl", "mine"], 2.0**-24, {}, bool(results))


def test_every_state_can_occur_in_a_row():
    several = [
        outcome(state) for state in ("failed", "overclaimed", "hung", "crashed", "waived", "outside_envelope", "passed")
    ]
    tests = len(TESTS[MASK[0]])
    found = {row(judged(ran(*MASK, CMASK_01=[o] * tests)), MASK[0])["state"] for o in several}
    found.add(row(judged(ran()), MASK[0])["state"])
    found.add(row(judged(ran()), MUST)["state"])
    assert found == set(STATES)


@pytest.mark.parametrize("first", STATES)
@pytest.mark.parametrize("second", STATES)
def test_a_requirement_is_as_bad_as_the_worst_of_its_tests(first, second):
    states = ["passed"] * (len(TESTS[MUST]) - 2) + [first, second]
    rows = judged(ran(ROPE_03=[outcome(s) for s in states]), offers=["RoPE"])
    assert row(rows, MUST)["state"] == max((s for s in states if s != "outside_envelope"), key=STATES.index)


def test_what_is_worse_than_unknown_is_bad():
    assert set(STATES[STATES.index("unknown") + 1 :]) == BAD


def test_a_test_that_did_not_run_leaves_its_requirement_unknown_and_the_run_incomplete():
    rows = judged(ran(*MASK, ROPE_03=[outcome()]), offers=["causal_mask", "RoPE"])
    assert row(rows, MUST)["state"] == "unknown"
    assert verdict_of(rows) == "incomplete"


def test_a_test_that_did_not_run_does_not_hide_a_failure_but_leaves_the_run_incomplete():
    results = ran(*MASK)
    results.pop(TESTS[MASK[0]][0].id)
    rows = judged(results | ran(CMASK_02=[outcome("failed")]))
    assert row(rows, MASK[1])["state"] == "failed"
    assert verdict_of(rows) == "incomplete"


def test_a_broken_module_fails_its_requirements():
    rows = judged(ran(*MASK), broken={"RoPE": "pkg.rope did not import"})
    assert (row(rows, MUST)["state"], row(rows, MUST)["message"]) == ("failed", "pkg.rope did not import")
    assert verdict_of(rows) == "nonconformant"


def test_the_worst_error_is_a_share_of_budgets_of_one_class():
    outcomes = [outcome(worst=0.9), outcome(worst=0.3, precision="native")]
    outcomes += [outcome(worst=0.8) for _ in TESTS[MUST][2:]]
    assert row(judged(ran(ROPE_03=outcomes), offers=["RoPE"]), MUST)["worst"] == 0.3


def test_a_run_is_conformant_when_all_that_is_claimed_passed():
    assert verdict_of(judged(ran(*MASK))) == "conformant"


@pytest.mark.parametrize("state", sorted(BAD))
def test_only_a_must_makes_a_run_nonconformant(state):
    assert verdict_of(judged(ran(*MASK, CMASK_01=[outcome(state)]))) == "nonconformant"
    lenient = certificate(ran(*MASK, **{SHOULD.id.replace("-", "_"): [outcome(state)]}))
    assert lenient["verdict"] == "conformant"
    assert verdict_text(lenient) == "conformant with 1 SHOULD unmet"


@pytest.mark.parametrize("state", ["unknown", "not_claimed", "outside_envelope"])
def test_a_run_that_showed_nothing_is_never_conformant(state):
    rows = [{**row, "state": state, "tests": [], "ran": []} for row in judged(ran(*MASK))]
    assert verdict_of(rows) == "incomplete"
    assert verdict_of(judged({}, offers=[]), complete=False) == "incomplete"


def test_a_row_sums_up_its_tests():
    outcomes = [
        outcome(examples=10, worst=0.25),
        outcome("failed", examples=5, worst=7.0, message="off", diagnosis=["b", "a"]),
    ]
    outcomes += [outcome(precision="native", diagnosis=["c"]) for _ in TESTS[MUST][2:]]
    found = row(judged(ran(ROPE_03=outcomes), offers=["RoPE"]), MUST)
    assert (found["examples"], found["worst"], found["precision"]) == (15 + 40 * len(TESTS[MUST][2:]), 7.0, "native")
    assert (found["message"], found["diagnosis"], len(found["failures"])) == ("off", ["b", "a"], 1)


# Written, read and checked again


def sealed(body):
    """The certificate with the digest of what it says now."""
    return {**body, "digest": digest(body)}


def changed(change, seal=False):
    body = copy.deepcopy(certificate(ran(*MASK, CMASK_01=[outcome("failed")])))
    change(body)
    return sealed(body) if seal else body


def test_a_certificate_as_it_is_made_is_sound_after_a_round_trip(tmp_path):
    body = certificate(ran(*MASK, CMASK_01=[outcome("failed")]))
    certificates.write(body, tmp_path / "new" / "certificate.json")
    assert problems(json.loads((tmp_path / "new" / "certificate.json").read_text())) == []
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["certificate.json"]


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    certificates.write({"a": 1}, tmp_path / "pipe")
    assert json.loads(os.read(reader, 100)) == {"a": 1}
    assert (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def first_mask_row(body):
    return next(row for row in body["requirements"] if row["id"] == MASK[0].id)


@pytest.mark.parametrize("seal", [False, True])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(verdict="conformant"), "the verdict 'conformant' does not follow from its rows"),
        (
            lambda c: first_mask_row(c).update(state="passed"),
            "the verdict 'nonconformant' does not follow from its rows",
        ),
        (lambda c: first_mask_row(c).update(level="SHOULD"), "these rows are not requirements of this kit: CMASK-01"),
        (lambda c: c["requirements"].remove(first_mask_row(c)), "requirements are missing: CMASK-01"),
        (lambda c: c["kit"].update(requirements="0" * 64), "it certifies another list of requirements"),
        (lambda c: c.update(verdict="perfect"), "verdict: 'perfect' is not one of"),
        (lambda c: c.update(signature="x"), "Additional properties are not allowed"),
        (lambda c: first_mask_row(c).update(state="fine"), "'fine' is not one of"),
    ],
)
def test_an_edited_certificate_is_refused_even_with_a_new_digest(change, says, seal):
    found = problems(changed(change, seal))
    assert any(says in problem for problem in found), found


def all_not_claimed(body):
    for one in body["requirements"]:
        one.update(state="not_claimed" if one["state"] == "passed" else one["state"], examples=0)
    body["precision"]["measured"] = {}


FAILED = {"test": TESTS[MASK[0]][0].id, "state": "failed", "message": "", "diagnosis": []}
FORGED = [
    (lambda c: c["requirements"].append(first_mask_row(c)), "a requirement has more than one row"),
    (lambda c: first_mask_row(c).update(component="rope"), "these rows are not requirements of this kit: CMASK-01"),
    (lambda c: first_mask_row(c).update(failures=[FAILED]), "these rows say more than their failures: CMASK-01"),
    (lambda c: first_mask_row(c).update(examples=0), "these rows passed without an example: CMASK-01"),
    (all_not_claimed, "these rows are not claimed although the subject offers them: CMASK-01"),
    (lambda c: c["subject"].update(offers=[]), "these rows are of operations that the subject does not offer: CMASK-"),
    (lambda c: c["precision"].update(measured={}), "the measured precision does not follow from its rows"),
    (lambda c: c["precision"].update(measured={"attention": "native"}), "the measured precision does not follow"),
    (lambda c: first_mask_row(c).update(worst=math.nan), "have a worst error that is no number: CMASK-01"),
    (lambda c: first_mask_row(c).update(worst=math.inf), "have a worst error that is no number: CMASK-01"),
    (lambda c: first_mask_row(c).update(worst=-1.0), "-1.0 is less than the minimum"),
    (lambda c: c.update(date="yesterday"), "a date cannot be read"),
    (lambda c: c["environment"].update(libraries=[]), "environment/libraries: [] is not of type 'object'"),
    (lambda c: c["environment"].update(system=5), "environment/system: 5 is not of type 'string'"),
    (lambda c: c["subject"].update(name=5), "subject/name: 5 is not of type 'string'"),
    (lambda c: c["precision"].update(declared={"rope": "float8"}), "'float8' is not one of"),
    (lambda c: first_mask_row(c).update(failures=[FAILED | {"message": None}]), "None is not of type 'string'"),
]


@pytest.mark.parametrize(("change", "says"), FORGED)
def test_what_no_run_can_have_found_is_refused(change, says):
    body = certificate(ran(*MASK))
    assert problems(body) == []
    change(body)
    assert any(says in problem for problem in problems(sealed(body))), problems(sealed(body))


def test_a_row_waived_after_its_waiver_expired_is_refused():
    body = certificate(ran(*MASK, CMASK_01=[outcome("waived")]), waivers=[waiver(MASK[0])])
    body["date"] = TODAY.isoformat() + "T12:00:00+00:00"
    entry = {"requirement": "CMASK-01", "scope": {}, "reason": "known", "issue": "https://example.org/1"}
    body["waivers"] = [{**entry, "expires": "2026-11-20"}]
    assert problems(sealed(body)) == []
    body["waivers"][0]["expires"] = "2026-11-19"
    assert problems(sealed(body)) == ["these rows are waived by a waiver that had expired: CMASK-01"]


@pytest.mark.parametrize("thing", [None, [], "conformant", {}])
def test_what_is_no_certificate_is_refused(thing):
    assert problems(thing)


def test_a_certificate_without_a_digest_is_refused():
    assert problems(changed(lambda c: c.pop("digest"))) == ["certificate: 'digest' is a required property"]


def test_any_edit_at_all_shows_in_the_digest():
    edited = problems(changed(lambda c: c["subject"].update(version="2")))
    assert edited == ["the digest does not match: the certificate was changed after it was written"]
    assert not problems(changed(lambda c: c["subject"].update(version="2"), seal=True))


# Waivers in rows


def waiver(requirement, days=30):
    return Waiver(requirement.id, {}, "known", "https://example.org/1", TODAY + datetime.timedelta(days))


def test_a_waived_requirement_does_not_make_a_run_nonconformant():
    body = certificate(ran(*MASK, CMASK_01=[outcome("waived")]), waivers=[waiver(MASK[0])])
    assert verdict_text(body) == "conformant with 1 waiver"


@pytest.mark.parametrize("state", ["waived", "failed", "passed"])
def test_an_expired_waiver_fails_its_requirement(state):
    rows = judged(ran(*MASK, CMASK_01=[outcome(state)]), waivers=[waiver(MASK[0], -1)])
    assert "its waiver expired on 2026-11-19" in row(rows, MASK[0])["message"]
    assert verdict_of(rows) == "nonconformant"


def test_a_waiver_holds_on_its_last_day():
    assert verdict_of(judged(ran(*MASK, CMASK_01=[outcome("waived")]), waivers=[waiver(MASK[0], 0)])) == "conformant"


def test_a_run_of_which_all_is_waived_shows_nothing():
    results = {test: outcome("waived") for test in ran(*MASK)}
    assert verdict_of(judged(results, waivers=[waiver(r) for r in MASK])) == "incomplete"


@pytest.mark.parametrize("requirement", [MASK[0], SHOULD])
def test_a_waived_requirement_that_passes_fails_the_run(requirement):
    rows = judged(ran(*MASK), waivers=[waiver(requirement)])
    assert "passes although it is waived" in row(rows, requirement)["message"]
    assert verdict_of(rows) == "nonconformant"


def test_a_run_that_asks_little_keeps_a_waiver_that_it_does_not_need():
    rows = judged(ran(*MASK), waivers=[waiver(MASK[0])], thorough=False)
    assert row(rows, MASK[0])["state"] == "waived"
    assert "holds on the few examples" in row(rows, MASK[0])["message"]
    assert verdict_of(rows) == "conformant"


@pytest.mark.parametrize(("profile", "state"), [("quick", "waived"), ("standard", "failed"), ("nightly", "failed")])
def test_of_all_profiles_quick_alone_asks_too_little_to_do_without_a_waiver(profile, state):
    about = Description("mine", "mine", "1", "mine.py", "numpy", "numpy 2", offers={"causal_mask": {}})
    known = {MASK[0].id: waiver(MASK[0], days=365_000)}
    session = Session(None, about, Profile(profile), known, {}, {}, None, {}, CALL_LIMIT, {})
    assert row(session.conclude(ran(*MASK), [], [])["requirements"], MASK[0])["state"] == state


@pytest.mark.parametrize(
    ("days", "state", "told"),
    [(1, "passed", "passes although it is waived"), (-1, "failed", "its waiver expired on 2026-11-19")],
)
def test_the_summary_tells_what_is_wrong_with_a_waiver(days, state, told):
    body = certificate(ran(*MASK, CMASK_01=[outcome(state)]), waivers=[waiver(MASK[0], days)])
    (line,) = [text for text, _ in lines(body) if text.startswith("  CMASK-01 ")]
    assert told in line


@pytest.mark.parametrize(("outside", "told"), [(len(MASK) // 2 + 1, True), (len(MASK) // 2, False)])
def test_a_choice_that_leaves_most_of_a_component_untested_is_told(outside, told):
    narrow = {
        r.id.replace("-", "_"): [outcome("outside_envelope", message="the usual is missing")] * len(TESTS[r])
        for r in MASK[:outside]
    }
    # Those of what is not offered do not count.
    text = f"  most of it is untested, {outside} of {len(MASK)} requirements: the usual is missing"
    shown = [line for line, _ in lines(certificate(ran(*MASK, **narrow)))]
    assert (text in shown) is told


def test_components_that_are_not_claimed_or_not_run_share_a_line_each():
    shown = [line for line, _ in lines(certificate(ran(*MASK)))]
    first = [line.partition(" ")[0] for line in shown]
    assert first.count("attention") == 1
    assert not {"linear", "flash_attention", "rope"} & set(first)
    (untouched,) = (line for line in shown if line.startswith("not claimed: "))
    assert untouched.removeprefix("not claimed: ").split(", ") == [name for name in COMPONENTS if name != "attention"]


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({"CMASK_03": [outcome("failed")]}, "  not met: 1 of aspect dtype; no value is wrong"),
        (
            {"CMASK_01": [outcome("failed")], "CMASK_03": [outcome("failed")]},
            "  not met: 1 of aspect value, 1 of aspect dtype",
        ),
    ],
)
def test_what_is_no_value_hides_no_right_values(others, text):
    shown = [line for line, _ in lines(certificate(ran(*MASK, **others)))]
    assert text in shown
    assert any(line.startswith("  CMASK-03 (dtype) failed: ") for line in shown)
