"""``inferspec bench``: what is measured, on contenders that drive the clock; and the whole command on the tiny model."""

import json

import pytest

from inferspec.tools import bench, cli
from inferspec.tools.bench import OURS, THEIRS, Contender, Rates, Spread


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


# Seconds are powers of two: the figures are exact.


def contender(clock, log, library, cached, prefill, decode, first=0):
    """One that takes so many seconds for a token of the prompt, and for each id after the first."""

    def run(prompt, count):
        log.append((library, cached, len(prompt), count))
        clock.now += prefill * len(prompt)
        for number in range(count):
            yield first + number
            clock.now += decode

    return Contender(library, cached, run)


@pytest.fixture
def clock():
    return Clock()


def four(clock, log):
    return [
        contender(clock, log, OURS, True, 1 / 64, 0.5),
        contender(clock, log, OURS, False, 1 / 64, 4.0),
        contender(clock, log, THEIRS, True, 1 / 32, 0.25),
        contender(clock, log, THEIRS, False, 1 / 32, 2.0, first=1),
    ]


def test_rates_are_of_their_own_tokens_and_their_own_time(clock):
    found = bench.measure(four(clock, []), range(50), tokens=9, repeats=3, clock=clock)
    assert [one.prefill for one in found] == [(64.0,) * 3] * 2 + [(32.0,) * 3] * 2
    assert [one.decode[0] for one in found] == [2.0, 0.25, 4.0, 0.5]


def test_contenders_take_turns_and_each_begins_a_round(clock):
    log, told = [], []
    bench.measure(four(clock, log), range(50), tokens=9, repeats=2, begun=told.append, clock=clock)
    warm, first, second = log[:4], log[4:8], log[8:]
    assert {(length, count) for *_, length, count in warm} == {(bench.WARM_PROMPT, bench.WARM_IDS)}
    assert [(library, cached) for library, cached, *_ in first] == [(w[0], w[1]) for w in warm]
    assert second == first[1:] + first[:1]
    assert {count for _, cached, _, count in first if not cached} == {bench.UNCACHED}
    assert {count for _, cached, _, count in first if cached} == {9}
    assert len(told) == 12


def test_ratios_are_of_medians(clock):
    found = bench.measure(four(clock, []), range(50), tokens=9, repeats=3, clock=clock)
    ratios = {what: (bench._ratio(a, b, "prefill"), bench._ratio(a, b, "decode")) for what, a, b in bench.ratios(found)}
    assert ratios == {
        "inferspec: cache / no cache": ("1", "8"),
        "mlx-lm: cache / no cache": ("1", "8"),
        "inferspec / mlx-lm, cache": ("2", "0.5"),
        "inferspec / mlx-lm, no cache": ("2", "0.5"),
    }


def test_a_spread_is_median_and_quartiles():
    assert Spread.of([4.0, 1.0, 2.0, 3.0, 100.0]) == Spread(3.0, 2.0, 4.0)
    assert str(Spread(3.0, 2.0, 4.0)) == "3 [2, 4]"


def test_other_ids_are_told(clock):
    same = contender(clock, [], OURS, True, 1, 1)
    found = [Rates(same, (1.0,), (1.0,), ids) for ids in ((1, 2, 3), (1, 2))]
    assert bench.agreement(found) == "all say the same ids, as far as they go (3)"
    found.append(Rates(contender(clock, [], THEIRS, True, 1, 1), (1.0,), (1.0,), (1, 4, 3)))
    assert bench.agreement(found) == "other ids than inferspec, cache: mlx-lm, cache from id 1"


@pytest.mark.parametrize("model", ["tiny-qwen3", "tiny-qwen3-4bit"])
def test_the_command_measures_both_libraries_with_the_same_weights(capsys, tmp_path, model):
    pytest.importorskip("mlx_lm")
    file = tmp_path / "bench.json"
    sizes = ["--prompt-tokens", "12", "--tokens", "6", "--repeats", "2"]
    assert cli.main(["bench", "--model", model, *sizes, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "all say the same ids" in out
    assert "inferspec / mlx-lm, no cache" in out
    written = json.loads(file.read_text())
    assert [(run["library"], run["cache"]) for run in written["runs"]] == [
        (OURS, True),
        (OURS, False),
        (THEIRS, True),
        (THEIRS, False),
    ]
    assert all(len(run["decode"]) == 2 and min(run["decode"]) > 0 for run in written["runs"])
    assert len(written["ratios"]) == 4


def test_without_mlx_lm_ours_is_measured_alone(capsys, monkeypatch):
    def missing(config, weights):
        raise ImportError("No module named 'mlx_lm'")

    monkeypatch.setattr(bench, "mlx_lm_model", missing)
    assert cli.main(["bench", "--model", "tiny-qwen3", "--prompt-tokens", "8", "--tokens", "3", "--repeats", "1"]) == 0
    assert "mlx-lm" not in capsys.readouterr().out


def test_the_plot_is_drawn(clock, tmp_path):
    pytest.importorskip("matplotlib")
    found = bench.measure(four(clock, []), range(50), tokens=9, repeats=3, clock=clock)
    bench.plot(tmp_path / "bench.png", "model", found)
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "--repeats is 0; it takes 1 or more"),
        (["--tokens", "1"], "--tokens is 1; it takes 2 or more"),
        (["--prompt-tokens", "1020"], "1052 tokens are more than the 1024 positions of the model"),
        (["--json", "/nowhere/x.json"], "/nowhere/x.json cannot be written: there is no folder /nowhere"),
        (["--model", "nowhere"], "nowhere is neither a folder"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert cli.main(["bench", "--model", "tiny-qwen3", *arguments]) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1


def test_a_plot_without_matplotlib_is_refused_before_the_work(capsys, monkeypatch, tmp_path):
    import builtins

    real = builtins.__import__

    def without(name, *more, **named):
        if name == "matplotlib":
            raise ImportError("No module named 'matplotlib'")
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["bench", "--model", "tiny-qwen3", "--plot", str(tmp_path / "x.png")]) == 2
    assert 'pip install "inferspec[bench]"' in capsys.readouterr().out
