"""``inferspec bench ops``: its cases, its judge, and the whole command on tiny shapes."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

from inferspec.spec.numerics import Precision, round_to
from inferspec.tools import cli
from inferspec.tools.bench import ops, ops_command, peers, process, session
from inferspec.tools.bench.cases import OPS, Case, parsed
from inferspec.tools.bench.judge import Judge
from inferspec.tools.bench.machine import Limits, bandwidth, cache_bytes
from inferspec.tools.bench.ops import mlx as mlx_ops
from inferspec.tools.bench.peers import AGAIN, OURS
from inferspec.tools.bench.result import schema
from inferspec.tools.bench.shapes import SHAPES, cases

TINY = cases(["tiny"], ["float32", "bfloat16"], [])
SMALL = [case for case in TINY if dict(case.sizes).get("M", 1) < 128]
NORM = "rms_norm:R=4,D=64"


class Here:
    """Does tasks in this process, where a test can change what contenders do."""

    def do(self, task, *arguments):
        return task(*arguments)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(session, "Process", lambda name, environment: Here())


def bench(*arguments, file=None):
    written = ["--json", str(file)] if file else []
    return cli.main(["bench", "ops", "--rounds", "4", "--warm", *arguments, *written])


def test_the_presets_have_every_operation():
    for name in SHAPES:
        assert {case.op for case in cases([name], ["float32"], [])} == set(OPS)


@pytest.mark.parametrize("place", ["ours", "mlx"])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_every_operation_of_ours_and_of_mlx_keeps_the_contract(case, place):
    found = ops.prepare(case, 0, {"it": place}, 0, 1)["it"]
    assert found.error == ""
    assert Judge(case, 0).verdict(found.output).accepted
    assert ops.sample("it", 2) > 0


@pytest.mark.parametrize("place", ["torch", "transformers"])
def test_operations_of_torch_keep_the_contract(place):
    pytest.importorskip(place)
    for case in SMALL:
        found = ops.prepare(case, 0, {"it": place}, 0, 1)["it"]
        assert found.error == "", case.name
        assert found.output is None or Judge(case, 0).verdict(found.output).accepted, case.name


def test_ours_computes_in_float32_whatever_the_dtype():
    for case in SMALL:
        output = ops.prepare(case, 0, {"it": "ours"}, 0, 1)["it"].output
        assert Judge(case, 0).verdict(output).precision == Precision.FLOAT32, case.name


CASE = Case("linear", (("M", 2), ("K", 64), ("N", 8)), "float32")


def right(case=CASE):
    oracle, arguments, _ = case.judged(case.arguments(0))
    return round_to(oracle.evaluate(arguments, Precision.FLOAT32).value, case.dtype)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (lambda y: y * np.float32(1.001), "times the budget of class native"),
        (lambda y: y[:, :4], r"its shape is \(2, 4\), not \(2, 8\)"),
        (lambda y: y.astype(np.float64), "its dtype is float64, not float32"),
        (lambda y: np.where(np.arange(8) == 3, np.nan, y).astype(np.float32), "inf times the budget"),
    ],
)
def test_what_is_not_the_oracles_answer_is_refused(output, reason):
    import re

    assert Judge(CASE, 0).verdict(right()).accepted
    verdict = Judge(CASE, 0).verdict(output(right()))
    assert not verdict.accepted
    assert re.search(reason, verdict.reason)


def test_a_head_is_judged_by_rows_of_all_of_it():
    case = Case("quantized_head", (("M", 1), ("E", 32), ("V", 5000), ("G", 32)), "float32")
    output = ops.prepare(case, 0, {"it": "ours"}, 0, 1)["it"].output
    assert Judge(case, 0).verdict(output).accepted
    assert not Judge(case, 0).verdict(np.roll(output, 1, axis=-1)).accepted


def test_a_wrong_contender_is_refused_and_not_timed(here, known_limits, monkeypatch, tmp_path, capsys):
    def without_its_root(a, put):
        x, weight = put(a.x), put(a.weight)
        return lambda: x * weight

    monkeypatch.setattr(mlx_ops, "CONTENDERS", {"rms_norm": without_its_root})
    file = tmp_path / "x.json"
    assert bench("--shapes", NORM, "--dtypes", "float32", "--peers", "mlx", file=file) == 0
    assert "refused: " in capsys.readouterr().out
    found = {one["name"]: one for one in json.loads(file.read_text())["cases"][0]["contenders"]}
    assert found["mlx"]["state"] == "refused"
    assert found["mlx"]["worst"] > 1000
    assert found["mlx"]["times"] == {}
    assert len(found[OURS]["times"]) == 4


def test_a_refused_contender_is_timed_on_request_and_stays_marked(here, known_limits, monkeypatch, tmp_path, capsys):
    def plus_one(a, put):
        x = put(a.x)
        return lambda: x + 1

    monkeypatch.setattr(mlx_ops, "CONTENDERS", {"rms_norm": plus_one})
    file = tmp_path / "x.json"
    arguments = ["--shapes", NORM, "--dtypes", "float32", "--peers", "mlx", "--time-refused"]
    assert bench(*arguments, file=file) == 0
    assert "refused: " in capsys.readouterr().out
    found = json.loads(file.read_text())["cases"][0]["contenders"][-1]
    assert (found["state"], len(found["times"])) == ("refused", 4)


def test_one_that_fails_is_named_with_its_error(here, known_limits, monkeypatch, tmp_path):
    def fails(a, put):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(mlx_ops, "CONTENDERS", {"rms_norm": fails})
    file = tmp_path / "x.json"
    assert bench("--shapes", NORM, "--dtypes", "float32", "--peers", "mlx", file=file) == 0
    found = json.loads(file.read_text())["cases"][0]["contenders"][-1]
    assert (found["state"], found["message"]) == ("failed", "RuntimeError: no such kernel")


def test_the_command_measures_in_processes_and_writes_what_the_schema_says(known_limits, tmp_path, capsys):
    file = tmp_path / "x.json"
    arguments = ["--shapes", NORM, "--shapes", "linear:M=1,K=64,N=32", "--dtypes", "bfloat16", "--peers", "mlx"]
    assert bench(*arguments, file=file) == 0
    out = capsys.readouterr().out
    assert "noise: inferspec against itself" in out
    body = json.loads(file.read_text())
    jsonschema.validate(body, schema())
    assert [case["name"] for case in body["cases"]] == ["linear M=1 K=64 N=32 bfloat16", "rms_norm R=4 D=64 bfloat16"]
    for case in body["cases"]:
        names = [one["name"] for one in case["contenders"] if one["state"] == "timed"]
        assert names[:2] == [OURS, AGAIN]
        assert names[-1] == "mlx"
        assert case["again"]["rounds"] == 4
    assert body["command"][:2] == ["bench", "ops"]
    assert body["settings"]["dtypes"] == "bfloat16"


def test_the_words_of_a_result_give_its_settings_again():
    arguments = [
        "bench",
        "ops",
        "--shapes",
        NORM,
        "--dtypes",
        "float16",
        "--rounds",
        "3",
        "--warm",
        "--ours-path",
        "mlx",
    ]
    options = cli._parser().parse_args(arguments)
    again = cli._parser().parse_args(session.words(options))
    assert session.settings(again) == session.settings(options)


def test_peers_that_are_missing_are_named_with_what_installs_them(here, known_limits, monkeypatch, capsys):
    real = peers.find_spec
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name in ("torch", "transformers") else real(name))
    assert bench("--shapes", NORM, "--dtypes", "float32", "--peers", "mlx,torch,transformers") == 0
    out = capsys.readouterr().out
    assert "torch is missing: pip install torch" in out
    assert "transformers is missing: pip install torch transformers" in out


def test_a_way_of_ours_is_a_contender_in_an_environment_of_its_own():
    chosen, _ = peers.chosen([], ["mlx", "avx2"], ops_command.PEERS)
    ways = {peer.name: (peer.environment, peer.host) for peer in chosen}
    assert ways["inferspec, mlx path"] == ({"INFERSPEC_CPU": "off"}, "inferspec, mlx path")
    assert ways["inferspec, avx2"] == ({"INFERSPEC_CPU": "avx2"}, "inferspec, avx2")
    assert ways[OURS] == ({}, OURS)


def test_a_process_has_the_threads_it_was_given_and_its_end_is_told():
    import os

    with process.Process("it", {**process.threads_environment(3), "INFERSPEC_CPU": "off"}) as one:
        assert one.do(os.getenv, "OMP_NUM_THREADS") == "3"
        assert one.do(os.getenv, "INFERSPEC_CPU") == "off"
        assert one.do(os.getpid) != os.getpid()
        with pytest.raises(process.Crashed, match="the process of it died"):
            one.do(os._exit, 1)
    assert os.getenv("INFERSPEC_CPU") != "off"


def test_arguments_are_copied_until_they_do_not_fit_into_the_cache():
    made = []

    def make(a, put):
        made.append(put(a.x))
        return lambda: made[0]

    from types import SimpleNamespace

    from inferspec.conformance.bridge.arrays import arrays

    ops._copies(make, SimpleNamespace(x=np.zeros(1000, np.float32)), arrays("numpy"), 40_000)
    assert len(made) == 10
    assert len({x.ctypes.data for x in made}) == 10


def test_costs_are_what_the_sizes_say():
    assert Case("linear", (("M", 2), ("K", 3), ("N", 5)), "float32").cost == (4 * (6 + 15 + 10), 60)
    packed = Case("quantized_matmul", (("M", 1), ("K", 128), ("N", 10), ("G", 64)), "bfloat16")
    assert packed.cost == (2 * 138 + 640 + 10 * 2 * 2 * 2, 2560)
    attention = Case("flash_attention", (("Q", 2), ("H", 1), ("L", 4), ("D", 8)), "float32")
    assert attention.cost == (4 * (2 * 2 * 4 * 8 + 2 * 4 * 8), 4 * 2 * 10 * 8)


def test_the_bound_is_the_limit_that_takes_longer():
    limits = Limits(100.0, {"float32": 10.0}, 1)
    assert limits.bound(1000, 50, "float32") == ("bandwidth", 10.0)
    assert limits.bound(100, 50, "bfloat16") == ("arithmetic", 5.0)


def test_the_machine_reads_at_some_bandwidth():
    assert cache_bytes() >= 2**20
    assert 1e8 < bandwidth(2, 2**24) < 1e13


def test_the_plot_is_drawn(here, known_limits, tmp_path):
    pytest.importorskip("matplotlib")
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (
            bench("--shapes", NORM, "--dtypes", "float32", "--peers", "mlx", "--plot", str(tmp_path / f"x{suffix}"))
            == 0
        )
        assert (tmp_path / f"x{suffix}").read_bytes().startswith(magic)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shapes", "huge"], "--shapes is 'huge'; it takes tiny, smollm2-135m, qwen3-0.6b, or op:LETTER=SIZE,…"),
        (["--shapes", "conv:M=1"], "--shapes names the operation 'conv'"),
        (["--shapes", "linear:M=1,K=2"], "--shapes 'linear:M=1,K=2' has no N"),
        (["--shapes", "linear:M=0,K=2,N=2"], "has 'M=0'; linear takes M=…,K=…,N=…, each 1 or more"),
        (["--shapes", "quantized_matmul:M=1,K=96,N=8,G=64"], "G is 64; it takes 32, 64 or 128, and divides the inputs"),
        (["--shapes", "decode_attention:Q=3,H=2,S=8,D=8"], "Q is 3; it takes a multiple of H, 2"),
        (["--shapes", "rope:L=1,H=1,D=5,S=0"], "has 'S=0'"),
        (["--shapes", "rope:L=1,H=1,D=5,S=1"], "D is 5; it takes an even number"),
        (["--dtypes", "int8"], "--dtypes names 'int8'; it takes float32, float16, bfloat16"),
        (["--only", "gemm"], "--only names 'gemm'"),
        (["--shapes", NORM, "--only", "rope"], "--only leaves nothing of --shapes: rope"),
        (["--peers", "jax"], "--peers names 'jax'; it takes mlx, mlx-lm, torch, transformers"),
        (["--ours-path", "sse"], "--ours-path is 'sse'; it takes avx512, avx2, neon, portable, mlx"),
        (["--rounds", "0"], "--rounds is 0; it takes 1 or more"),
        (["--threads", "0"], "--threads is 0; it takes 1 or more"),
        (["--plot", "x.bmp"], "--plot is x.bmp; it takes a name that ends in .png, .svg or .pdf"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert cli.main(["bench", "ops", *arguments]) == 2
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
    assert cli.main(["bench", "ops", "--plot", str(tmp_path / "x.png")]) == 2
    assert 'pip install "inferspec[bench]"' in capsys.readouterr().out


def test_a_shape_in_full_is_the_case_that_it_says():
    assert parsed("rope:D=8,L=2,H=4,S=5", "float16") == Case(
        "rope", (("L", 2), ("H", 4), ("D", 8), ("S", 5)), "float16"
    )
