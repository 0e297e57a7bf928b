"""What a reader sees: failure texts and the summary, kept as snapshots (`pytest --snapshot-update` after a look)."""

from __future__ import annotations

import dataclasses
import datetime
import shlex

import pytest

from inferspec.conformance.bridge.hosted_subject import CALL_LIMIT, HostedSubject
from inferspec.conformance.judging.trial import Outcome, Trial
from inferspec.conformance.plugin import OPTIONS
from inferspec.conformance.reporting import certificate
from inferspec.conformance.reporting.summary import lines
from inferspec.conformance.session import Session
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile, address, all_tests
from inferspec.spec import contract
from inferspec.tools.faults import local_subject

ABOUT = Description(
    spec="my_pkg.adapter", name="my-kernels", version="0.3", origin="my_pkg/adapter.py", arrays="mlx", library="mlx 1.0"
)


def session() -> Session:
    return Session(HostedSubject("my_pkg.adapter"), ABOUT, Profile(), {}, {}, {}, None, {}, CALL_LIMIT, {})


def failing(component: str, fault_name: str):
    """The first test of the fault's requirement that rejects it, with its outcome."""
    kit = contract(component)
    fault = next(fault for fault in kit.faults if fault.name == fault_name)
    subject = local_subject(kit, fault.kills.name, kit.faulty(fault))
    for test in all_tests():
        if test.requirement == fault.kills:
            trial = Trial(subject, test.requirement)
            test.run(trial, Profile())
            if trial.outcome.state == "failed":
                return test, trial.outcome
    raise AssertionError(f"{fault_name} survives")


@pytest.mark.parametrize(
    ("component", "fault"),
    [
        ("attention", "sdpa-causal-top-left"),
        ("attention", "sdpa-float32-result"),
        ("rms_norm", "rms-product-in-float32"),
        ("rope", "rope-offset-plus-one"),
    ],
)
def test_a_failure_tells_what_where_and_what_it_looks_like(component, fault, snapshot):
    test, outcome = failing(component, fault)
    assert session().failure_text(test, outcome, f"conformance/{test.id}") == snapshot


def test_a_failure_is_rerun_as_it_was_found_by_what_a_shell_takes():
    about = dataclasses.replace(ABOUT, spec="./my kernels/rope.py")
    subject = HostedSubject(about.spec, layout="course", metal="off")
    replaced = {"silu": "mine:silu"}
    found = Session(subject, about, Profile("full", 7), {}, {}, {}, None, {}, 120.0, replaced)
    test = all_tests()[0]
    line = found.failure_text(test, Outcome("failed"), test.id).splitlines()[-1]
    words = shlex.split(line.partition("rerun: ")[2])
    assert words[:4] == ["pytest", *address(test.id).split(), "--impl"]
    assert words[4:] == [
        "./my kernels/rope.py",
        *("--layout", "course", "--with", "silu=mine:silu", "--metal", "off"),
        *("--call-limit", "120", "--profile", "full", "--draw-seed", "7", "-n", "0"),
    ]


def test_a_limit_of_calls_that_nobody_gave_is_not_told():
    test = all_tests()[0]
    assert "--call-limit" not in session().failure_text(test, Outcome("failed"), test.id)
    assert OPTIONS["--call-limit"]["help"].endswith(f"default {CALL_LIMIT:g}")


def test_the_summary_groups_by_component_and_ends_with_the_verdict(snapshot):
    test, outcome = failing("attention", "sdpa-causal-top-left")
    record = session().record(outcome)
    passed = {"state": "passed", "examples": 40, "worst": 0.5, "precision": "float32", "message": "", "diagnosis": []}
    results = {
        t.id: {"id": t.id, **passed} for t in all_tests() if t.requirement.name == "scaled_dot_product_attention"
    }
    results[test.id] = {"id": test.id, **record}
    offers = {"scaled_dot_product_attention": {"narrowed": {}}}
    rows = certificate.judge(all_tests(), results, offers, {}, {}, datetime.date(2026, 1, 1))
    result = certificate.certificate(ABOUT, rows, {}, Profile(), [], None, {}, complete=True)
    result["kit"]["power"] = None
    assert "\n".join(line for line, _ in lines(result)) == snapshot
