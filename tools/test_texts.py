"""What a reader sees: failure texts and the summary, kept as snapshots (`pytest --snapshot-update` after a look)."""

from __future__ import annotations

import datetime

import pytest

from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.reporting import certificate
from inferspec.conformance.reporting.summary import lines
from inferspec.conformance.session import Session
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract
from inferspec.tools.faults import local_subject

ABOUT = Description(
    spec="my_pkg.adapter", name="my-kernels", version="0.3", origin="my_pkg/adapter.py", arrays="mlx", library="mlx 1.0"
)


def session() -> Session:
    return Session(HostedSubject("my_pkg.adapter"), ABOUT, Profile(), {}, {}, None, {}, 20.0, {})


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
