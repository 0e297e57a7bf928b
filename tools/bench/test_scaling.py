"""``inferspec bench scaling``: points, their memory, prefix hits, and the whole command on very few of them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jsonschema
import pytest

from inferspec.tools import cli
from inferspec.tools.bench import random_model
from inferspec.tools.bench.scaling import command, report
from inferspec.tools.bench.scaling.point import PAGE, Found, Point, measured
from inferspec.tools.bench.shapes import SHAPES
from inferspec.tools.generate import Unusable


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return random_model.write(SHAPES["tiny"], tmp_path_factory.mktemp("tiny"), 0)


def test_a_point_is_measured_in_a_process_of_its_own(source):
    found = command.in_a_process(Point(str(source), 2, 32, 3), 1)
    assert found.prefill > 0
    assert found.decode > 0
    assert found.peak > found.base > 2**20
    # Keys and values of two heads of 64 in four layers, two bytes each.
    assert found.pool == 2 * 3 * PAGE * 4 * 2 * 2 * 64 * 2


@pytest.mark.parametrize("shared", [0, 16, 32, 64])
def test_requests_hit_the_whole_pages_that_the_first_has_computed(source, shared):
    found = measured(Point(str(source), 2, 64, 2, shared))
    # Of a prompt that is all there, the last page is computed again.
    assert found.hit_rate == (48 / 128 if shared == 64 else shared / 128)


def test_a_point_that_fails_is_told_with_its_last_line(tmp_path):
    with pytest.raises(Unusable, match="batch 1, context 32: FileNotFoundError"):
        command.in_a_process(Point(str(tmp_path / "nowhere"), 1, 32, 2), 1)


def options(**more):
    given = {"at_batch": 1, "at_context": 64, "grid": False, "tokens": 4, "seed": 0, "model": None, "shape": None}
    return SimpleNamespace(**{**given, **more})


def test_points_are_two_lines_and_prompts_that_share_more_and_more():
    points = command.planned(options(), "x", [1, 2, 4], [32, 64])
    assert [(p.batch, p.context, p.shared) for p in points] == [
        (1, 64, 0),
        (2, 64, 0),
        (4, 64, 0),
        (1, 32, 0),
        (4, 64, 16),
        (4, 64, 32),
        (4, 64, 48),
        (4, 64, 64),
    ]


def test_a_grid_is_every_batch_with_every_context():
    points = [p for p in command.planned(options(grid=True), "x", [1, 2], [32, 64]) if not p.shared]
    assert {(p.batch, p.context) for p in points} == {(1, 32), (1, 64), (2, 32), (2, 64)}


def test_laws_are_of_the_points_along_their_line():
    points = command.planned(options(seed=0), "x", [1, 2, 4, 8], [32, 64, 128])
    found = {
        p: [
            Found(p.batch * p.context**2 * x, p.batch * x, 0.0, 0, 1000 * p.batch * (p.context + 4), 1)
            for x in (0.99, 1, 1.01)
        ]
        for p in points
    }
    chosen = options(threads=1, repeats=3, parser=None)
    laws = {
        (law["name"], law["of"]): law["fit"] for law in report.figures(chosen, points, found, {1: 1.0, 2: 1.0})["laws"]
    }
    assert round(laws["decode, seconds of a step", "batch"]["exponent"], 2) == 1
    assert laws["decode, tokens per second", "batch"]["words"] == "not at all"
    assert laws["decode, seconds of a step", "context"]["words"] == "not at all"
    assert laws["prefill, seconds of a prompt", "context"]["words"] == "with the square"
    assert laws["memory, peak above the model's", "tokens held"]["words"] == "linearly"


def test_the_command_writes_what_the_schema_says_and_draws(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(command, "SHARES", (0.5,))
    monkeypatch.setattr(command, "POOLS", (64, 128, 256))
    file, plot = tmp_path / "s.json", tmp_path / "s.svg"
    sizes = ["--batches", "1,2", "--contexts", "16,32", "--at-context", "32", "--tokens", "2", "--repeats", "1"]
    assert cli.main(["bench", "scaling", *sizes, "--json", str(file), "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert "what grows how" in out
    body = json.loads(file.read_text())
    jsonschema.validate(body, json.loads(report.SCHEMA.read_text()))
    assert [(p["batch"], p["context"]) for p in body["points"] if not p["shared"]] == [(1, 32), (2, 32), (1, 16)]
    assert body["prefix"][-1]["hit_rate"] == body["prefix"][-1]["expected"] == 0.25
    assert "<svg" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batches", "1,zero"], "--batches has 'zero'; it takes numbers of 1 or more, with commas"),
        (["--contexts", "0"], "--contexts has '0'"),
        (["--contexts", ","], "--contexts is empty"),
        (["--contexts", "20000"], "--contexts has 20000, with --tokens 16; the model has 16384 positions"),
        (["--repeats", "0"], "--repeats is 0; it takes 1 or more"),
        (["--tokens", "1"], "--tokens is 1; it takes 2 or more"),
        (["--shape", "gpt-2"], "--shape is 'gpt-2'"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert cli.main(["bench", "scaling", *arguments]) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1
