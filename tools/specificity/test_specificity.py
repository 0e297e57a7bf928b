"""False alarms: what counts as one, and that a right implementation gives none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from inferspec.conformance.reporting.certificate import STALE
from inferspec.tools import cli
from inferspec.tools.specificity import commands, rounds
from inferspec.tools.specificity.rounds import Round, Work, judged, written

ROW = {"id": "ROPE-01", "examples": 5, "message": "", "failures": []}


def row(state: str, message: str = "") -> dict:
    return {**ROW, "state": state, "failures": [{"message": message}] if message else []}


def test_a_failure_that_no_waiver_knows_is_an_alarm():
    found = judged("torch", 3, [row("failed", "out[0] = 1"), {**row("waived"), "id": "ROPE-02"}])
    assert found == Round("torch", 3, judged=2, examples=10, alarms={"ROPE-01": "failed: out[0] = 1"})


def test_what_a_subject_is_known_to_fail_is_a_finding_and_no_alarm():
    found = judged("torch", 3, [row("failed", "out[0] = 1"), {**row("failed"), "id": "ROPE-02"}], {"ROPE-01": "why"})
    assert found.findings == ("ROPE-01",)
    assert list(found.alarms) == ["ROPE-02"]


def test_a_waived_failure_that_a_seed_does_not_show_is_no_alarm():
    assert not judged("torch", 3, [row("failed") | {"message": f"{STALE} (https://example.org): remove it"}]).alarms


def test_a_test_that_breaks_in_a_whole_run_is_an_alarm():
    assert list(judged("torch", 3, [row("unknown")], whole=True).alarms) == ["ROPE-01"]


def test_the_findings_of_a_registered_subject_lie_in_its_waiver_file():
    assert not rounds._findings("impl", "cpu")
    assert list(rounds._findings("nano_vllm", "cpu")) == ["SCHED-14"]


@pytest.mark.parametrize("state", ["not_claimed", "outside_envelope", "unknown"])
def test_what_was_not_judged_does_not_count(state):
    assert judged("torch", 0, [row(state)]).judged == 0


def test_an_honest_variant_raises_no_alarm(tmp_path, capsys):
    file = tmp_path / "rounds.json"
    options = ["--seeds", "2", "--profile", "quick", "--thinned", "0.03", "--who", "variants", "--only", "metrics"]
    assert cli.main(["specificity", *options, "-n", "1", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert {one["seed"] for one in found} == {1, 2}
    assert all(one["judged"] and not one["alarms"] for one in found)
    assert "0 false alarms" in capsys.readouterr().out


def test_a_subject_that_does_not_run_is_no_success(monkeypatch, capsys):
    monkeypatch.setattr(commands, "_run", lambda *_: [Round("torch", 1, unjudged="torch is not installed")])
    assert cli.main(["specificity", "--seeds", "1", "--who", "torch"]) == 1
    assert "torch, seed 1, did not run: torch is not installed" in capsys.readouterr().out


def test_an_alarm_is_told_with_its_seed(monkeypatch, capsys):
    monkeypatch.setattr(commands, "_run", lambda *_: [Round("torch", 7, 4, 40, {"ROPE-01": "failed: no"})])
    assert cli.main(["specificity", "--seeds", "1", "--who", "torch"]) == 1
    out = capsys.readouterr().out
    assert "torch, seed 7: ROPE-01: failed: no" in out
    assert "1 false alarms in 4 verdicts (25.00%)" in out


def test_what_was_judged_before_an_interruption_is_kept(monkeypatch, tmp_path):
    def interrupted(*_):
        yield Round("torch", 7, 4, 40)
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_run", interrupted)
    file = tmp_path / "rounds.json"
    with pytest.raises(KeyboardInterrupt):
        cli.main(["specificity", "--seeds", "2", "--who", "torch", "--json", str(file)])
    assert [one["seed"] for one in json.loads(file.read_text())] == [7]


def test_a_subject_is_certified_as_a_user_would(tmp_path):
    found = Work("nano_vllm", 1, "quick", 1.0, ("metrics",))()
    assert found.unjudged == ""
    assert found.judged == 0  # it offers a block manager and a scheduler, no metrics


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "ropes"], "--only ropes"),
        (["--seeds", "0"], "--seeds is a number"),
        (["--thinned", "0"], "--thinned"),
    ],
)
def test_bad_options_are_refused(options, says, capsys):
    assert cli.main(["specificity", *options]) == 2
    assert says in capsys.readouterr().out


EXTENT = "profile nightly"
NIGHT = ["specificity", "--who", "torch", "--who", "impl", "--seeds", "2"]
"""Four rounds."""


def parts(folder: Path, *of: Round) -> list[str]:
    """A file for each round."""
    files = [folder / f"{number}.json" for number in range(len(of))]
    for file, one in zip(files, of, strict=True):
        file.write_text(written([one]), encoding="utf-8")
    return [str(file) for file in files]


def night(**alarms: str) -> list[Round]:
    return [Round(who, seed, 4, 40, alarms, extent=EXTENT) for who in ("torch", "impl") for seed in (1, 2)]


def test_the_parts_of_a_night_make_one_verdict(tmp_path, capsys):
    assert cli.main([*NIGHT, "--join", *parts(tmp_path, *night())]) == 0
    out = capsys.readouterr().out
    assert "0 false alarms in 16 verdicts (0.00%) and 160 examples: 2 seeds, profile nightly" in out


def test_an_alarm_of_a_part_is_one_of_the_whole(tmp_path, capsys):
    last = Round("impl", 2, 4, 40, {"ROPE-01": "failed: no"}, ("ROPE-02",), extent=EXTENT)
    assert cli.main([*NIGHT, "--join", *parts(tmp_path, *night()[:3], last)]) == 1
    assert "impl, seed 2: ROPE-01: failed: no" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda night: night[:3], "1 rounds are missing, the first: impl, seed 2"),
        (lambda night: [*night, night[0]], "too often, or not asked for, the first: torch, seed 1"),
        (lambda night: [*night, Round("torch", 3, extent=EXTENT)], "not asked for, the first: torch, seed 3"),
        (lambda night: [*night[:3], replace(night[3], extent="profile quick")], "1 rounds are missing"),
    ],
)
def test_parts_that_are_not_the_whole_are_refused(change, says, tmp_path, capsys):
    assert cli.main([*NIGHT, "--join", *parts(tmp_path, *change(night()))]) == 2
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '[{"who": "torch"}]', "null", written([replace(Round("torch", 1), judged="4")])]
)
def test_a_file_that_has_no_rounds_is_refused(text, tmp_path, capsys):
    (tmp_path / "rounds.json").write_text(text, encoding="utf-8")
    assert cli.main([*NIGHT, "--join", str(tmp_path / "rounds.json")]) == 2
    assert capsys.readouterr().out.strip()


def test_rounds_say_what_was_drawn_of_what():
    assert Work("rope/variant", 1, "nightly", 0.1, ("rope",)).extent == (
        "profile nightly, 0.1 of its examples for variants, rope alone"
    )
    assert Work("torch", 1, "quick", 1.0, ()).extent == "profile quick"
