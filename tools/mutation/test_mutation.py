"""Mutation: what is changed, what is left out, what becomes of it, and how it is told."""

from __future__ import annotations

import ast
import gc
import json
import re

import pytest

from inferspec.conformance.suite import Profile, Test
from inferspec.spec import COMPONENTS
from inferspec.tools import cli
from inferspec.tools.mutation import budgets, equivalents, mutants, operators, results, running, scope
from inferspec.tools.mutation.mutants import Mutant
from inferspec.tools.mutation.page import page
from inferspec.tools.mutation.results import Results
from inferspec.tools.mutation.running import JUDGE, SUBJECT, Fate, Reach
from inferspec.tools.pages import browser

FEW = Profile(shrink=False, diagnose=False, thinned=0.1)
ROOT = "RMSNorm.root: mean_square + eps → mean_square - eps"
SQUARES = "test_rms_norm.py::test_rows_are_divided_by_their_root_mean_square"


def mutant(key: str) -> Mutant:
    module = key.partition(".")[0]
    return next(one for one in mutants.population(module).mutants if one.key == key)


def changed(source: str) -> set[str]:
    """What the operators make of an expression or statement, as text."""
    return {ast.unparse(change.after) for node in ast.walk(ast.parse(source)) for change in operators.changes(node)}


def fate(how: str = "survived", key: str = f"rms_norm.{ROOT}") -> Fate:
    return Fate(mutant(key), how, test=SQUARES if how != "survived" else "")


# The changes


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a + b", {"a - b", "a", "b"}),
        ("a - b", {"a + b", "a"}),
        ("a // b", {"a % b"}),
        ("-x", {"x"}),
        ("x[:n]", {"n + 1"}),
        ("range(n)", {"n + 1"}),
        ("x.sum(axis=-1)", {"-2", "2"}),
        ("a < b", {"a <= b"}),
        ("a == b", {"a != b"}),
        ("np.minimum(a, b)", {"np.maximum(a, b)"}),
        ("f(a, b)", {"f(b, a)"}),
        ("np.where(m, a, b)", {"np.where(m, b, a)"}),
        ("a and b", {"a or b"}),
        ("x if c else y", {"not c"}),
        ("True", {"False"}),
        ("f'{a} b' + c", set()),
        ("isinstance(a, b)", set()),
    ],
)
def test_an_expression_is_changed_in_every_way_that_the_operators_know(source, expected):
    assert changed(source) == expected


def test_mutants_have_names_of_their_own_and_the_source_is_whole_again_after_each():
    population = mutants.population("kv_cache").mutants
    assert len({one.key for one in population}) == len(population)
    before = ast.dump(budgets.trees()["kv_cache"])
    for one in population:
        with mutants.applied(one) as tree:
            assert ast.dump(tree) != before
    assert ast.dump(budgets.trees()["kv_cache"]) == before


# What is left out


def test_every_module_of_the_contracts_is_mutated_or_has_a_reason_not_to_be():
    files = {file.stem for file in scope.SPEC.glob("*.py") if not file.name.startswith("test_")}
    assert files == {*COMPONENTS, *scope.HELPERS, *scope.UNMUTATED}


def test_what_is_left_out_by_name_is_there():
    for module, names in (*scope.JUDGING.items(), *scope.DECLARED.items()):
        there = scope.functions(scope.tree(module))
        assert all(any(one == name or one.startswith(f"{name}.") for one in there) for name in names), module


def test_what_flows_into_a_budget_alone_is_left_out():
    source = """
def evaluate(self, a, precision):
    value = a.x + a.y
    size = abs(a.x) + 1
    budget = size * 2
    if precision:
        budget = budget + 3
    return Answer(value, budget)
"""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    left_out = {node.lineno for node in budgets.budget_nodes(function) if isinstance(node, ast.stmt)}
    assert left_out == {4, 5, 6, 7}


def test_what_a_matrix_says_beside_its_values_is_left_out():
    source = """
def matrix(self, codes, steps):
    found: Any = abs(codes * steps)
    return Matrix(codes * steps, found, True)
"""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    left_out = {ast.unparse(node) for node in budgets.budget_nodes(function)}
    assert {"found: Any = abs(codes * steps)", "found", "True"} <= left_out
    assert not any("Matrix" in part for part in left_out)


def test_guards_sentences_and_budgets_are_counted_and_not_mutated():
    found = mutants.population("rms_norm")
    assert set(found.left_out) == {"declaration", "validation", "budget", "judge"}
    assert set(found.left_out) <= set(scope.RULES)
    assert not any("guard" in one.function or "statistics_error" in one.function for one in found.mutants)


# What becomes of them


def test_a_mutant_is_killed_by_a_test_that_gets_there():
    found = running.judge((mutant(f"rms_norm.{ROOT}"), [Reach("rms_norm", SQUARES, SUBJECT, 1.0)], FEW))
    assert (found.how, found.test) == ("killed", SQUARES)


def test_a_mutant_that_plays_the_judge_rejects_the_honest_subject():
    found = running.judge((mutant(f"rms_norm.{ROOT}"), [Reach("rms_norm", SQUARES, JUDGE, 1.0)], FEW))
    assert (found.how, found.role) == ("killed", JUDGE)


def test_a_judge_that_does_not_give_a_golden_any_more_is_killed_by_it():
    key, golden = "transformer._in_order: 1 → 2", "test_golden_models.py::test_golden_chunks_of_llama"
    found = running.judge((mutant(key), [Reach("llama", golden, JUDGE, 1.0)], FEW))
    assert (found.how, found.test) == ("killed", golden)


def test_an_equivalent_mutant_survives():
    key = "rms_norm.RMSNorm.finish: self.scaled(quotient, self.gain(a), a) → self.scaled(self.gain(a), quotient, a)"
    assert key in equivalents.reasons()
    assert not running.judge((mutant(key), [Reach("rms_norm", SQUARES, SUBJECT, 1.0)], FEW)).killed


def test_a_mutant_that_no_test_gets_to_is_told_apart():
    assert running.judge((mutant(f"rms_norm.{ROOT}"), [], FEW)).how == "unreached"


def endless(*_: object) -> None:
    while True:
        pass


def endless_finalizer(*_: object) -> None:
    """What is raised in a callback of the collector is lost, and the test would go on."""
    gc.callbacks.append(endless)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(endless)
    endless()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("run", [endless, endless_finalizer])
def test_a_mutant_that_does_not_end_is_killed_by_the_clock(run, monkeypatch):
    monkeypatch.setattr(Test, "run", run)
    monkeypatch.setattr(running, "PATIENCE", 0.05)
    assert running.judge((mutant(f"rms_norm.{ROOT}"), [Reach("rms_norm", SQUARES, SUBJECT, 1.0)], FEW)).how == "hung"


def test_the_true_oracle_is_followed_and_accepted_in_both_roles():
    found = running.follow(("embedding", "embedding", Profile(thinned=0.01)))
    assert {reach.role for reaches in found.values() for reach in reaches} == {SUBJECT, JUDGE}
    assert ("embedding", "Embedding.evaluate") in found


# What is told


def test_no_reason_is_of_a_mutant_that_is_no_more():
    assert equivalents.stale() == []
    assert all(len(reason) > 10 for reason in equivalents.reasons().values())


def test_the_score_leaves_out_what_is_equivalent():
    key = "rms_norm.RMSNorm.finish: self.scaled(quotient, self.gain(a), a) → self.scaled(self.gain(a), quotient, a)"
    found = Results([fate("killed"), fate(key=key)], {}, 2)
    assert (found.score, len(found.equivalent), found.survivors) == (1.0, 1, [])
    assert Results([fate()], {}, 1).score == 0.0


def test_results_are_read_back_and_joined_and_the_last_counts(tmp_path):
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, how in zip(files, ("survived", "killed"), strict=True):
        file.write_text(json.dumps(Results([fate(how)], {"text": 1}, 1).as_json()), encoding="utf-8")
    assert len(results.read(files[0]).survivors) == 1
    assert results.joined(files).survivors == []
    assert len(results.joined(files[::-1]).survivors) == 1


def test_what_is_no_result_is_refused(tmp_path, capsys):
    (tmp_path / "other.json").write_text("{}")
    assert cli.main(["mutate", "--join", str(tmp_path / "other.json")]) == 2
    assert "is not what `inferspec mutate --json` writes" in capsys.readouterr().out


def test_mutants_are_listed_with_what_is_left_out(capsys):
    assert cli.main(["mutate", "--list", "--only", "embedding"]) == 0
    out = capsys.readouterr().out
    assert "spec/embedding.py:" in out
    assert "by the rule “budget”" in out
    key = re.findall(r"^spec/embedding.py:\d+  (.*)  \([a-z ]+\)$", out, re.MULTILINE)[0]
    assert key in {one.key for one in mutants.population("embedding").mutants}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "ropes"], "--only ropes"),
        (["--sample", "0"], "--sample is a number"),
        (["--thinned", "2"], "--thinned is a share"),
        (["--key", "rope.nothing"], "no mutant has this name"),
    ],
)
def test_bad_options_are_refused(options, says, capsys):
    assert cli.main(["mutate", *options]) == 2
    assert says in capsys.readouterr().out


def test_a_page_shows_survivors_in_their_source():
    source = page(Results([fate()], {"budget": 7}, 9))
    assert '<span class="line">' in source
    assert "return np.sqrt(mean_square + eps)" in source
    assert "0.0% killed" in source
    assert not any(word in source for word in ("http://", "https://", " src="))


@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [400, 1300])
def test_a_page_fits_its_width_in_a_browser(tmp_path, width):
    file = tmp_path / "page.html"
    file.write_text(page(Results([fate()], {"budget": 7}, 9)), encoding="utf-8")
    assert browser.fits(file, width)
