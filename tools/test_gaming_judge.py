"""What might be changed in the judge so that it finds nothing: whatever it is, it is found out and named."""

from __future__ import annotations

import ast
import copy
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from inferspec.conformance import strategies, suite, test_rope
from inferspec.conformance.bridge import hosted_subject
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.calls import Observation
from inferspec.conformance.inputs import engine as engine_inputs
from inferspec.conformance.inputs import rope as rope_inputs
from inferspec.conformance.judging import trial
from inferspec.conformance.plugin import Results
from inferspec.conformance.reporting import certificate
from inferspec.conformance.session import Session
from inferspec.conformance.strategies import Calls
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.trust import integrity
from inferspec.conformance.trust.canary import believed
from inferspec.conformance.trust.integrity import altered
from inferspec.conformance.trust.tampering import Watch, foreign
from inferspec.spec import contracts, numerics, rope, speculative
from inferspec.spec.contract import Answer, Contract, Operation, changed
from inferspec.tools.right_rope import RIGHT

BLIND = """
from inferspec.conformance.judging.trial import Trial
Trial.agrees = lambda self, call, *rest, **more: None
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_judge_that_was_made_blind_gives_no_verdict(certify, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "conftest.py": BLIND}
    run = certify(files, "--impl", "./rope.py", "-k", "offset", "-n", workers, suite="test_rope")
    assert run.code != 0
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.judging.trial.Trial.agrees"]
    assert run.certificate["verdict"] == "incomplete"
    assert "the kit was changed while it ran: inferspec.conformance.judging.trial.Trial.agrees" in run.text


FORGED = """
import json, pytest
def forged(value):
    return json.dumps({**json.loads(value), "state": "passed", "message": "", "diagnosis": [], "worst": 0.5}, sort_keys=True)
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    report.user_properties = [(name, forged(value)) for name, value in report.user_properties]
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_report_that_a_plugin_rewrote_gives_no_verdict(certify, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "forging.py": FORGED}
    run = certify(files, "--impl", "./rope.py", "-k", "strided", "-p", "forging", "-n", workers, suite="test_rope")
    assert run.certificate["verdict"] == "incomplete"
    assert "the report of test_rope.py::test_a_strided_x_is_read_like_its_copy" in run.certificate["kit"]["altered"]
    assert "failed" in run.states("RoPE").values()


LAX = """
import pytest
from inferspec.conformance.judging import trial
strict = trial.Trial.agrees
def lax(self, call, *rest, **more): return None
"""
FOR_A_WHILE = {
    "by a fixture, for each test": """
@pytest.fixture(autouse=True)
def patched(monkeypatch): monkeypatch.setattr(trial.Trial, "agrees", lax)
""",
    "until the end": """
trial.Trial.agrees = lax
@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(): trial.Trial.agrees = strict
""",
}


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("patch", FOR_A_WHILE.values(), ids=FOR_A_WHILE)
def test_a_judge_that_was_blind_for_a_while_gives_no_verdict(certify, patch, workers):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "patching.py": LAX + patch}
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-p", "patching", "-n", workers, suite="test_rope")
    assert run.code != 0
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.judging.trial.Trial.agrees"]


EMPTY = """
import dataclasses, pytest
@pytest.fixture
def subject(subject):
    return lambda test: subject(dataclasses.replace(test, function=lambda subject, **drawn: None))
"""


def test_another_test_by_the_name_of_the_kit_s_gives_no_verdict(certify):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "emptying.py": EMPTY}
    # A fixture takes the place of one that was there before.
    files["conftest.py"] = 'pytest_plugins = ["emptying"]'
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-n", "0", suite="test_rope")
    assert run.code != 0
    told = "the test in the place of test_rope.py::test_a_strided_x_is_read_like_its_copy"
    assert told in run.certificate["kit"]["altered"]


def test_of_a_test_that_ran_twice_the_worse_outcome_counts():
    results = Results()
    results.found += [json.dumps({"id": "a", "state": state}) for state in ("passed", "crashed", "passed")]
    assert results.outcomes() == {"a": {"id": "a", "state": "crashed"}}


def test_the_reports_of_a_lost_worker_count():
    report = SimpleNamespace(when="call", user_properties=[("inferspec", '{"id": "a", "state": "passed"}')])
    results = Results()
    results.pytest_runtest_logreport(report)
    assert results.forged() == {"the report of a"}
    results.lost = True
    assert results.forged() == set()
    assert results.outcomes()["a"]["state"] == "passed"


@pytest.mark.parametrize(
    ("told", "whose"),
    [
        ({"id": "a", "state": "passed"}, "a test"),
        ("passed", "a test"),
        ('"passed"', "a test"),
        ('{"id": "a", "state": "splendid"}', "a"),
        ('{"id": ["a"], "state": "passed"}', "['a']"),
    ],
)
def test_a_report_of_something_else_is_forged_and_tells_nothing(told, whose):
    results = Results()
    results.pytest_runtest_logreport(SimpleNamespace(when="call", user_properties=[("inferspec", told)]))
    assert results.forged() == {f"the report of {whose}"}
    assert results.outcomes() == {}


OPERATIONS = [operation.signature.operation for contract in contracts() for operation in contract.operations]


def test_a_judge_believes_no_wrong_answer():
    assert list(believed(OPERATIONS)) == []


def test_a_judge_whose_numpy_was_patched_is_found_out(monkeypatch):
    monkeypatch.setattr(np, "abs", lambda x: np.zeros(np.shape(x)))
    assert set(believed(OPERATIONS)) >= {"RoPE", "linear", "scaled_dot_product_attention", "KVCache", "Llama"}


def test_a_judge_whose_contract_was_patched_is_found_out(monkeypatch):
    lax = changed(
        rope.RoPE,
        "Lax",
        {"evaluate": lambda self, a, precision: Answer(np.zeros(a.x.shape), np.full(a.x.shape, np.inf))},
    )
    monkeypatch.setitem(vars(rope.CONTRACT), "operations", (lax,))
    assert list(believed(["RoPE"])) == ["RoPE"]


def test_a_session_that_was_patched_is_named(tmp_path):
    (tmp_path / "rope.py").write_text(RIGHT, encoding="utf-8")
    session = Session.opened(str(tmp_path / "rope.py"))
    assert session.altered() == []
    session.run = session.subject.call = lambda *given: None
    assert session.altered() == ["Session.run", "HostedSubject.call"]
    session.close()
    session.subject = LocalSubject({})
    assert session.altered() == ["Session.subject"]


def test_files_that_changed_while_a_run_went_on_are_named(monkeypatch, tmp_path):
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "rope.py").write_text("1")
    monkeypatch.setattr(integrity, "HERE", str(tmp_path))
    before = integrity.files()
    (tmp_path / "spec" / "rope.py").write_text("2")
    assert before.keys() == {"spec/rope.py"}
    assert integrity.files() != before


def test_a_run_whose_files_changed_gives_no_verdict(certify):
    summed = """
from inferspec.conformance.trust import integrity
sums = iter([{}, {"conformance/test_rope.py": "1"}])
integrity.files = lambda: next(sums)
"""
    files = {"rope.py": RIGHT, "summing.py": summed}
    run = certify(files, "--impl", "./rope.py", "-k", "strided", "-p", "summing", "-n", "0", suite="test_rope")
    assert "conformance/test_rope.py" in run.certificate["kit"]["altered"]


def altered_in(module):
    """What is altered of one module: to read all of the kit again takes a second."""
    return altered((module.__name__,))


def test_the_kit_as_it_is_installed_is_not_altered():
    assert altered() == []


JUDGING = [path for package in ("spec", "conformance") for path in Path(integrity.HERE, package).rglob("*.py")]


class WithoutBodies(ast.NodeTransformer):
    """Takes away what functions do, and texts that stand for themselves."""

    def visit_FunctionDef(self, node):
        node.body = [ast.Pass()]
        return node

    def visit_Expr(self, node):
        return None


class WithoutDecorations(ast.NodeTransformer):
    """Takes away what decorators of functions are given."""

    def visit_FunctionDef(self, node):
        node.decorator_list = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        return node


def test_of_a_suite_read_without_what_its_decorators_are_given_all_else_is_there():
    for path in Path(integrity.HERE, "conformance").glob("test_*.py"):
        data = path.read_bytes()
        whole, read = WithoutDecorations().visit(ast.parse(data)), ast.parse(integrity.undecorated(data))
        assert ast.dump(whole) == ast.dump(read), path
        places = [[node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)] for tree in (whole, read)]
        assert places[0] == places[1], path


def test_of_a_file_read_without_what_its_functions_do_all_else_is_there():
    for path in JUDGING:
        data = path.read_bytes()
        whole, head = (WithoutBodies().visit(ast.parse(text)) for text in (data, integrity.without_bodies(data)))
        assert ast.dump(whole) == ast.dump(head), path


TOLD_OTHERWISE = """
import os
from inferspec.conformance import strategies
if "PYTEST_XDIST_WORKER" in os.environ:
    strategies.Pick.one_of = lambda self, *choices: choices[0]
def pytest_configure_node(node):
    for told in node.workerinput["inferspec"].values():
        if isinstance(told, dict) and any(isinstance(value, bytes) for value in told.values()):
            shortest = min(told.values(), key=len)
            told.update(dict.fromkeys(told, shortest))
"""


def test_no_plugin_where_a_run_began_can_tell_its_workers_what_is_written_in_the_kit_s_files(certify):
    files = {"rope.py": "def rope(x, offset=None, base=10000): return x.copy()", "telling.py": TOLD_OTHERWISE}
    run = certify(files, "--impl", "./rope.py", "-k", "strided_x", "-p", "telling", "-n", "1", suite="test_rope")
    assert run.certificate["kit"]["altered"] == ["inferspec.conformance.strategies.Pick.one_of"]


CHANGED = (
    (numerics, "f64"),
    (certificate, "digest"),
    (rope.RoPE, "evaluate"),
    (numerics, "MODEL_LOGITS"),
    (trial, "within"),
    (suite, "EXAMPLES"),
    (suite, "FURTHER"),
    (Contract, "faults"),
    (Observation, "results"),
    (suite, "efforts"),
    (rope_inputs, "rope_calls"),
    (engine_inputs, "crowds"),
    (suite.Test, "shrinks"),
    (Operation, "plain"),
    (trial, "np"),
    (trial, "dataclass"),
    (test_rope, "test_a_strided_x_is_read_like_its_copy"),
)


def test_what_was_changed_in_the_kit_is_named_and_nothing_else(monkeypatch):
    for owner, attribute in CHANGED:
        monkeypatch.setattr(owner, attribute, len)
    names = {
        owner: owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        for owner, _ in CHANGED
    }
    assert sorted(altered()) == sorted(f"{names[owner]}.{attribute}" for owner, attribute in CHANGED)


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [(trial, "within"), (trial.Trial, "agrees"), (trial.Trial, "__getattribute__"), (trial, "max"), (np, "abs")],
)
def test_what_moves_between_two_looks_is_named(monkeypatch, owner, attribute):
    watch = Watch()
    assert watch.moved() == []
    monkeypatch.setattr(owner, attribute, lambda *given: 0, raising=False)
    name = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    assert watch.moved() == [f"{name}.{attribute}"]
    assert watch.moved() == []


def test_what_moves_in_a_suite_is_named_when_its_own_tests_run(monkeypatch):
    watch = Watch()
    monkeypatch.setattr(test_rope, "abs", len, raising=False)
    assert watch.moved("inferspec.conformance.test_linear") == []
    assert watch.moved(test_rope.__name__) == [f"{test_rope.__name__}.abs"]
    assert watch.moved() == []


def test_no_suite_uses_what_is_of_another():
    """Nobody looks at the names of other suites while a test runs."""
    for name in suite.suites():
        of = {
            getattr(value, "__module__", None) for value in vars(sys.modules[f"inferspec.conformance.{name}"]).values()
        }
        assert {one for one in of if str(one).startswith("inferspec.conformance.test_")} <= {
            f"inferspec.conformance.{name}"
        }


def test_a_name_that_python_or_a_lazy_package_binds_later_is_no_move(monkeypatch):
    watch = Watch()
    monkeypatch.setattr(trial, "__warningregistry__", {}, raising=False)
    monkeypatch.setattr(np, "lazy", ModuleType("numpy.lazy"), raising=False)
    monkeypatch.setattr(rope.RoPE, "stream", np.random.default_rng(0), raising=False)
    assert watch.moved() == []


def test_a_strangers_function_beneath_the_kit_is_named(monkeypatch):
    assert foreign() == []
    monkeypatch.setattr(copy, "deepcopy", lambda outcome: outcome)
    assert foreign() == ["copy.deepcopy"]


def test_a_strangers_function_around_ours_is_named(monkeypatch):
    def certain(self):
        return not original.fget(self)

    original = vars(Calls)["asked"]
    monkeypatch.setattr(Calls, "asked", property(certain))
    assert altered_in(strategies) == ["inferspec.conformance.strategies.Calls.asked"]


def test_inputs_of_somebody_else_are_named(monkeypatch):
    monkeypatch.setattr(rope_inputs, "rope_calls", Calls(lambda pick: None))
    assert altered_in(rope_inputs) == ["inferspec.conformance.inputs.rope.rope_calls"]


def test_a_function_of_ours_that_holds_itself_is_no_end(monkeypatch):
    # In the place of another of ours: nothing of what it holds is what the file has there.
    again = kit_function_that_holds_itself()
    monkeypatch.setattr(Calls, "asked", property(again))
    assert altered_in(strategies) == ["inferspec.conformance.strategies.Calls.asked"]


def kit_function_that_holds_itself():
    """A closure that is one of its own cells, from a file of the kit's."""
    found = {}
    source = "def outer():\n    def inner(self):\n        return inner\n    return inner\n"
    exec(compile(source, str(Path(suite.__file__).with_name("made.py")), "exec"), found)
    return found["outer"]()


@pytest.mark.parametrize(
    ("module", "owner", "name"),
    [
        (trial, trial.Trial, "value"),
        (hosted_subject, HostedSubject, "_receive"),
        (hosted_subject, HostedSubject, "description"),
        (speculative, speculative, "joint"),
    ],
)
def test_another_function_in_the_place_of_one_with_an_assert_is_named(monkeypatch, module, owner, name):
    monkeypatch.setattr(owner, name, lambda *given: None)
    of = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    assert altered_in(module) == [f"{of}.{name}"]


def test_a_kit_whose_asserts_pytest_has_rewritten_is_not_altered(certify):
    files = {"rope.py": RIGHT, "rewriting.py": "import pytest\npytest.register_assert_rewrite('inferspec')\n"}
    run = certify(files, "--impl", "./rope.py", "-k", "strided", "-p", "rewriting", "-n", "0", suite="test_rope")
    assert not run.certificate["kit"]["altered"]


def test_the_function_of_a_test_is_looked_at(monkeypatch):
    test = test_rope.test_a_strided_x_is_read_like_its_copy.conformance
    original = test.function
    object.__setattr__(test, "function", lambda subject, **drawn: None)
    try:
        assert altered_in(test_rope) == ["inferspec.conformance.test_rope.test_a_strided_x_is_read_like_its_copy"]
    finally:
        object.__setattr__(test, "function", original)


@pytest.mark.parametrize(("owner", "name"), [(trial.Trial, "__getattribute__"), (trial.Outcome, "further")])
def test_a_method_that_was_added_is_named(monkeypatch, owner, name):
    monkeypatch.setattr(owner, name, lambda self, name: object.__getattribute__(self, name), raising=False)
    assert altered_in(trial) == [f"inferspec.conformance.judging.trial.{owner.__name__}.{name}"]


def test_a_name_in_the_place_of_one_of_pythons_is_named(monkeypatch):
    monkeypatch.setattr(trial, "max", lambda *given: 0.0, raising=False)
    assert altered_in(trial) == ["inferspec.conformance.judging.trial.max"]


def test_a_default_that_was_changed_is_named(monkeypatch):
    monkeypatch.setattr(certificate.verdict_of, "__defaults__", (False,))
    assert altered_in(certificate) == ["inferspec.conformance.reporting.certificate.verdict_of"]


def test_a_table_that_was_changed_is_named(monkeypatch):
    monkeypatch.setitem(suite.EXAMPLES, "standard", 1)
    assert altered_in(suite) == ["inferspec.conformance.suite.EXAMPLES"]
