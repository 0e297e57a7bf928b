"""Two runs compared: a planted regression is found, and noise, a slower machine and another kind of run are not one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from inferspec.tools import cli
from inferspec.tools.bench import compare
from inferspec.tools.bench.peers import AGAIN, OURS
from inferspec.tools.bench.result import read, write
from inferspec.tools.generate import Unusable


def times(seconds, seed, spread=0.05):
    return {
        k: float(x) for k, x in enumerate(seconds * np.exp(spread * np.random.default_rng(seed).standard_normal(20)))
    }


def run(result, ours=1.0, mlx=3.0, seed=0, **more):
    """One case of each of three sizes."""
    cases = {}
    for number, name in enumerate(("small", "middle", "large")):
        at = 100 * seed + 10 * number
        cases[name] = {
            OURS: times(ours, at),
            AGAIN: times(ours, at + 1),
            "mlx": times(mlx, at + 2),
            "torch": times(2, at + 3),
        }
    return result(cases, **more)


def test_a_contender_that_takes_twice_as_long_is_a_regression(result):
    found = compare.compared(run(result), run(result, ours=2.0, seed=1))
    assert [(one.case, one.contender) for one in found.regressions] == [(c, OURS) for c in ("small", "middle", "large")]
    assert all(1.8 < one.ratio.value < 2.2 for one in found.regressions)


@pytest.mark.parametrize("seed", range(1, 11))
def test_noise_is_no_regression(result, seed):
    assert compare.compared(run(result), run(result, seed=seed)).regressions == []


def test_a_machine_that_is_ten_times_slower_is_no_regression(result):
    slower = run(result, ours=10.0, mlx=30.0, seed=1)
    for case in slower.cases:
        torch = case.of("torch")
        torch.times = {k: 10 * x for k, x in torch.times.items()}
    assert compare.compared(run(result), slower).regressions == []


def test_a_gain_is_no_regression(result):
    found = compare.compared(run(result), run(result, ours=0.5, seed=1))
    assert found.regressions == []
    assert sum(one.faster for one in found.changes) == 3


def test_the_reference_is_the_first_library_that_both_have_or_the_one_asked_for(result):
    before, after = run(result), run(result, seed=1)
    assert {one.reference for one in compare.compared(before, after).changes} == {"mlx"}
    assert {one.reference for one in compare.compared(before, after, "torch").changes} == {"torch"}
    for case in after.cases:
        case.contenders = [one for one in case.contenders if one.name != "mlx"]
    assert {one.reference for one in compare.compared(before, after).changes} == {"torch"}


def test_cases_that_only_one_run_has_are_named(result):
    before, after = run(result), run(result, seed=1)
    del before.cases[0], after.cases[2]
    assert compare.compared(before, after).left_out == {
        "small": "the old run does not have it",
        "large": "the new run does not have it",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "model"}, "one is a run of `bench ops`, the other of `bench model`"),
        ({"threads": 2}, "the runs had 1 and 2 threads"),
    ],
)
def test_runs_of_different_kinds_cannot_be_compared(result, change, message):
    with pytest.raises(Unusable, match=message):
        compare.compared(run(result), run(result, **change))


def test_without_another_library_nothing_can_be_compared(result):
    alone = result({"small": {OURS: times(1, 0)}})
    with pytest.raises(Unusable, match="no time of another library in both runs"):
        compare.compared(alone, alone)


@pytest.fixture
def files(result, tmp_path):
    """Old, new and slower runs as files."""
    found = {"old": run(result), "new": run(result, seed=1), "slower": run(result, ours=2.0, seed=2)}
    for name, one in found.items():
        write(one, tmp_path / f"{name}.json")
    return {name: str(tmp_path / f"{name}.json") for name in found}


def test_the_command_tells_a_regression_by_its_exit_code(files, capsys):
    assert cli.main(["bench", "--compare", files["old"], files["new"]]) == 0
    assert "nothing is slower beyond the noise" in capsys.readouterr().out
    assert cli.main(["bench", "--compare", files["old"], files["slower"]]) == 1
    assert "3 slower than before, beyond the noise: inferspec: small" in " ".join(capsys.readouterr().out.split())


def test_with_one_file_what_it_measured_is_measured_again(files, capsys, monkeypatch, result):
    asked = []

    def again(options, console):
        asked.append(options.rounds)
        return run(result, ours=2.0, seed=3)

    monkeypatch.setitem(__import__("inferspec.tools.bench.command", fromlist=["RUNS"]).RUNS, "ops", again)
    assert cli.main(["bench", "--compare", files["old"]]) == 1
    assert asked == [20]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("{}", "is no result of `inferspec bench` (format 1): it: 'format' is a required property\n"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(tmp_path, capsys, text, message):
    file = tmp_path / "x.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert cli.main(["bench", "--compare", str(file), str(file)]) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1


def test_three_files_are_too_many(files, capsys):
    assert cli.main(["bench", "--compare", *files.values()]) == 2
    assert "--compare takes one or two files, and got 3" in capsys.readouterr().out


def test_a_result_comes_back_as_it_was_written(files, result, tmp_path):
    written = run(result)
    assert read(tmp_path / "old.json") == written
    body = json.loads((tmp_path / "old.json").read_text(encoding="utf-8"))
    assert body["cases"][0]["noise"] >= 1
    assert body["cases"][0]["contenders"][2]["ours_is_faster"]["low"] > 2.5
