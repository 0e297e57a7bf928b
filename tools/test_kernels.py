"""``inferspec kernels``: exit code 0 for clean, 1 for findings, 2 for what cannot be run; what it says, and where it points."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from inferspec import compiler
from inferspec.tools import kernels, metalsim
from inferspec.tools.cli import main
from inferspec.tools.kernels import cases, commands, device
from inferspec.tools.kernels.job import SCHEDULES
from inferspec.tools.metalsim.lint import clang

PREAMBLE = "#include <metal_stdlib>\nusing namespace metal;\n"
REVERSE = (
    PREAMBLE
    + """kernel void reverse_row(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  BARRIER
  out[t] = tile[63 - t];
}
"""
)
RIGHT = REVERSE.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup);")
RACING = REVERSE.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_none);")
WRITE, READ = 5, 7
LAUNCH = "x=float32[64] out=float32[64] threads=64 threadgroup=64"

MODULE = """
import mlx.core as mx

SOURCE = '''
  uint i = thread_position_in_grid.x;
  INDEX
'''

def double(x):
    kernel = mx.fast.metal_kernel(name="double", input_names=["x"], output_names=["out"], source=SOURCE)
    return kernel(inputs=[x], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])[0]

def untouched(x):
    return x + 1
"""
GOOD = MODULE.replace("INDEX", "out[i] = 2 * x[i];")
BAD = MODULE.replace("INDEX", "out[i] = x[i] + x[i + 1];")


@pytest.fixture(autouse=True)
def _compiler(cxx: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def cxx() -> str:
    try:
        return compiler.compiler()
    except metalsim.NoCompiler as error:
        pytest.skip(str(error))


def check(*arguments: str, schedules: str = "forward", lint: bool = False) -> tuple[int, dict]:
    """The command's exit code, and the result that it wrote, if it did."""
    result = Path("result.json")
    result.unlink(missing_ok=True)
    code = main(
        [
            "kernels",
            "check",
            *arguments,
            "--schedules",
            schedules,
            "--json",
            str(result),
            "--lint" if lint else "--no-lint",
        ]
    )
    return code, json.loads(result.read_text()) if result.exists() else {}


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_a_right_metal_file_is_clean_in_every_schedule(capsys):
    code, result = check(write("right.metal", RIGHT), "--shapes", LAUNCH, schedules=",".join(SCHEDULES))
    assert code == 0
    assert result["schedules"] == list(SCHEDULES)
    (kernel,) = result["kernels"]
    assert (kernel["kernel"], kernel["launches"], kernel["findings"], kernel["harmless"]) == ("reverse_row", 3, [], [])
    assert kernel["instances"] == {
        "reverse_row": {"x=float32[64] out=float32[64] threads=64,1,1 threadgroup=64,1,1": 3}
    }
    assert "1 kernel clean: 3 launches in 3 schedules" in capsys.readouterr().out


def test_a_race_is_told_with_both_lines_in_terminal_json_and_page(capsys):
    code, result = check(write("racing.metal", RACING), "--shapes", LAUNCH, "--html", "page.html")
    assert code == 1
    (kernel,) = result["kernels"]
    (race,) = kernel["findings"]
    assert race["finding"] == "data race"
    assert race["memory"] == "threadgroup tile"
    assert {(place["file"], place["line"], place["what"]) for place in race["places"]} == {
        ("racing.metal", WRITE, "writes"),
        ("racing.metal", READ, "reads"),
    }
    assert race["count"] > 0
    told = capsys.readouterr().out
    assert f"racing.metal:{WRITE} writes" in told
    assert f"racing.metal:{READ} reads" in told
    page = Path("page.html").read_text(encoding="utf-8")
    for line in (WRITE, READ):
        assert f'id="racing.metal-{line}" class="bad"' in page
    assert f'id="racing.metal-{WRITE - 1}" class=""' in page
    assert "tile[t] = x[t];" in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page


def test_launches_may_stand_in_the_file(capsys):
    assert check(write("right.metal", f"// launch: {LAUNCH}\n{RIGHT}"))[0] == 0
    assert check(write("bare.metal", RIGHT))[0] == 2
    assert "--shapes" in capsys.readouterr().out


def test_the_body_of_a_function_is_launched_with_inputs_and_outputs():
    body = "uint i = thread_position_in_grid.x;\nout[i] = T(factor) * x[i] + x[i + 1];\n"
    line = "x=float16[40] factor=2 -> out=float16[40] template=T:float16 threads=40 threadgroup=32"
    code, result = check(write("body.metal", body), "--shapes", line)
    assert code == 1
    (kernel,) = result["kernels"]
    assert kernel["kernel"] == "body"
    assert [(found["finding"], found["places"][0]["line"]) for found in kernel["findings"]] == [("out of bounds", 2)]


def test_what_is_harmless_is_listed_apart_and_changes_no_exit_code(capsys):
    same = PREAMBLE + "kernel void any(device const float* x, device float* out) {\n  out[0] = 1.0f;\n}\n"
    code, result = check(
        write("same.metal", same), "--shapes", "x=float32[64] out=float32[1] threads=64 threadgroup=64"
    )
    assert code == 0
    (kernel,) = result["kernels"]
    assert kernel["findings"] == []
    assert [found["finding"] for found in kernel["harmless"]] == ["race of equal values"]
    assert "harmless" in capsys.readouterr().out


def test_a_modules_functions_are_called_with_shapes():
    write("doubling.py", BAD)
    code, result = check("doubling", "--shapes", "double(x=float32[3,40])", "--shapes", "double(float16[7])")
    assert code == 1
    (kernel,) = result["kernels"]
    assert kernel["kernel"] == "double"
    assert len(kernel["instances"]) == 2
    (found,) = kernel["findings"]
    assert (found["finding"], found["memory"]) == ("out of bounds", "buffer x")
    assert [(place["file"], place["line"]) for place in found["places"]] == [("double.metal", 3)]


def test_a_modules_own_tests_drive_its_kernels(capsys):
    write("doubling.py", GOOD)
    write(
        "test_doubling.py",
        "import doubling, mlx.core as mx\n\n\ndef test_it():\n    assert doubling.double(mx.ones(5)).tolist() == [2] * 5\n",
    )
    code, result = check("doubling")
    assert code == 0
    assert [(kernel["kernel"], kernel["launches"]) for kernel in result["kernels"]] == [("double", 1)]
    assert result["notes"] == []


def test_failing_tests_are_told_and_no_run_of_theirs_is_clean(capsys):
    failing = "\n\ndef test_it():\n    assert double(mx.ones(2)).tolist() == [3, 3], 'not thrice'\n"
    write("test_doubling.py", GOOD + failing)
    code, result = check("test_doubling.py", "--html", "page.html")
    assert code == 2
    assert (result["clean"], result["complete"]) == (False, False)
    (note,) = result["notes"]
    assert note.startswith(
        "forward: 1 of its tests failed, 0 passed:\n  test_doubling.py::test_it: AssertionError: not thrice"
    )
    said = capsys.readouterr().out
    assert f"failed: {note}" in said
    assert "no finding in 1 kernel: 1 launch in 1 schedule" in said
    assert "test_it: AssertionError" in Path("page.html").read_text(encoding="utf-8")


def test_findings_come_before_failing_tests():
    write("test_doubling.py", BAD + "\n\ndef test_it():\n    assert double(mx.ones(8)).tolist() == [3] * 8\n")
    code, result = check("test_doubling.py")
    assert (code, result["complete"]) == (1, False)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("raise RuntimeError('own error')", "RuntimeError: own error"),
        ("import sys; sys.exit(3)", "ended with 3"),
        ("import os; os._exit(4)", "ended with 4"),
    ],
)
def test_a_script_that_does_not_come_to_its_end_is_not_clean(end, told, capsys):
    write("script.py", f"{GOOD}\ndouble(mx.ones(8))\n{end}\n")
    code, result = check("script.py")
    assert code == 2
    assert (result["clean"], result["complete"]) == (False, False)
    assert [kernel["launches"] for kernel in result["kernels"]] == [1]
    said = capsys.readouterr().out
    assert "double" in said
    assert told in said
    assert "no finding in 1 kernel" in said


def test_a_script_that_exits_with_0_is_clean():
    write("script.py", f"{GOOD}\ndouble(mx.ones(8))\nimport sys; sys.exit(0)\n")
    assert check("script.py")[0] == 0


@pytest.mark.parametrize("option", ["--html", "--json"])
@pytest.mark.parametrize("path", ["no/such/folder/result", "."])
def test_where_nothing_can_be_written_nothing_is_run(option, path, capsys):
    write("script.py", f"{GOOD}\nopen('ran', 'w').close()\n")
    with pytest.raises(SystemExit) as caught:
        main(["kernels", "check", "script.py", option, path])
    assert caught.value.code == 2
    assert f"argument {option}: {path} cannot be written: " in capsys.readouterr().err
    assert not Path("ran").exists()


def test_reports_that_a_test_takes_itself_are_its_own(capsys):
    write("doubling.py", BAD)
    test = """
        import doubling, mlx.core as mx
        from inferspec.tools import metalsim

        def test_it_is_broken():
            found = []
            with metalsim.settings(mode="check", on_report=found.append, on_launch=print):
                doubling.double(mx.ones(8))
            assert [report.finding.value for report in found] == ["out of bounds"]
    """
    write("test_doubling.py", textwrap.dedent(test))
    code, result = check("doubling")
    assert code == 0
    assert result["notes"] == []
    assert [kernel["reports_taken_by_the_target"] for kernel in result["kernels"]] == [1]
    assert "1 report was taken by the target's own code" in capsys.readouterr().out


def test_a_script_that_takes_its_process_with_it_loses_no_finding():
    write("script.py", f"{BAD}\ndouble(mx.ones(8))\nimport os\nos._exit(7)\n")
    code, result = check("script.py")
    assert code == 1
    assert [found["finding"] for kernel in result["kernels"] for found in kernel["findings"]] == ["out of bounds"]
    assert any("ended with 7" in note for note in result["notes"])


def test_a_script_runs_for_a_module():
    write("doubling.py", GOOD)
    write(
        "script.py",
        "import sys, doubling, mlx.core as mx\nassert __name__ == '__main__'\ndoubling.double(mx.ones(8))\n",
    )
    assert check("doubling", "--script", "script.py")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["doubling", "--shapes", "untouched(float32[4])"], "doubling launched no Metal kernel"),
        (["doubling"], "doubling has no tests beside it"),
        (["doubling", "--shapes", "halve(float32[4])"], "doubling has no halve"),
        (["doubling", "--shapes", "float32[4]"], "it takes a call"),
        (["doubling", "--shapes", "double(x=float33[4])"], "x is float33[4]"),
        (["no_such_module"], "there is no module no_such_module"),
        (["notes.txt"], "notes.txt is no dotted module, Python file or .metal file"),
        (["missing.metal", "--shapes", LAUNCH], "there is no such file"),
        (["right.metal", "--shapes", "x=float32[64] threads=64"], "threadgroup= is missing"),
        (["right.metal", "--shapes", "other x=float32[64] threads=64 threadgroup=64"], "has no kernel 'other'"),
        (["right.metal", "--script", "script.py"], "--script is for Python"),
        (["doubling", "--tests", "nowhere"], "--tests nowhere"),
        (["doubling", "--script", "a.py", "--shapes", "double(float32[4])"], "run in one way"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_run_is_told_in_a_line(arguments, told, capsys):
    write("doubling.py", GOOD)
    write("right.metal", RIGHT)
    write("notes.txt", "")
    code, result = check(*arguments)
    assert code == 2
    assert result == {}
    said = capsys.readouterr().out.strip()
    assert told in said
    assert "Traceback" not in said


def test_an_unknown_schedule_is_bad_usage(capsys):
    assert check(write("right.metal", RIGHT), "--shapes", LAUNCH, schedules="sideways")[0] == 2
    assert "forward, reverse, random" in capsys.readouterr().out


def test_without_a_compiler_it_says_how_to_get_one(monkeypatch, capsys):
    monkeypatch.setenv("METALSIM_CXX", "/nowhere/c++")
    assert check(write("right.metal", RIGHT), "--shapes", LAUNCH)[0] == 2
    assert "C++ compiler" in capsys.readouterr().out


def test_an_endless_kernel_is_a_finding():
    endless = (
        PREAMBLE
        + "kernel void wait(device const uint* x, device uint* out) {\n  while (x[0] == 0u);\n  out[0] = 1u;\n}\n"
    )
    line = "x=uint32[1](0) out=uint32[1] threads=1 threadgroup=1"
    code, result = check(write("endless.metal", endless), "--shapes", line, "--timeout", "0.5")
    assert code == 1
    assert [found["finding"] for found in result["kernels"][0]["findings"]] == ["does not end"]


MISUSED = RIGHT.replace("out[t] =", "device float* row = (device float*)tile;\n  out[t] =")


@pytest.mark.skipif(clang() is None, reason="clang++ is not there")
def test_misuse_of_address_spaces_is_told_at_its_line(capsys):
    code, result = check(write("misused.metal", MISUSED), "--shapes", LAUNCH, "--html", "page.html", lint=True)
    assert code == 1
    assert result["address_spaces"] == "checked"
    (kernel,) = result["kernels"]
    assert kernel["findings"] == []
    assert [(misuse["file"], misuse["line"]) for misuse in kernel["address_spaces"]] == [("misused.metal", READ)]
    assert f"misused.metal:{READ}" in capsys.readouterr().out
    assert f'id="misused.metal-{READ}" class="bad"' in Path("page.html").read_text(encoding="utf-8")


def test_without_clang_the_lint_is_left_out_and_told_so(monkeypatch, capsys):
    monkeypatch.setattr(commands, "clang", lambda: None)
    file = write("misused.metal", MISUSED)
    assert main(["kernels", "check", file, "--shapes", LAUNCH, "--schedules", "forward"]) == 0
    assert "address spaces not checked" in capsys.readouterr().out
    assert check(file, "--shapes", LAUNCH, lint=True)[0] == 2
    assert "clang++" in capsys.readouterr().out


def test_costs_stand_side_by_side(capsys):
    once = (
        PREAMBLE
        + "kernel void once(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {\n  out[i] = x[i];\n}\n"
    )
    twice = once.replace("void once", "void twice").replace("= x[i]", "= x[i] + x[63 - i]")
    files = [
        write(f"{name}.metal", f"// launch: {LAUNCH}\n{text}") for name, text in (("once", once), ("twice", twice))
    ]
    assert main(["kernels", "cost", *files, "--json", "cost.json"]) == 0
    first, second = json.loads(Path("cost.json").read_text())
    assert (first["kernel"], first["device_bytes_read"], first["device_bytes_written"]) == ("once", 256, 256)
    assert (second["kernel"], second["device_bytes_read"], second["device_bytes_written"]) == ("twice", 512, 256)
    assert [row["least_bytes"] for row in (first, second)] == [512, 512]
    assert [row["ratio"] for row in (first, second)] == [1.0, 1.5]
    told = capsys.readouterr().out
    assert "once.metal: once" in told
    assert "1.50" in told


def test_costs_of_launches_alike_are_told_once():
    write("doubling.py", GOOD)
    calls = [option for _ in range(3) for option in ("--shapes", "double(float32[40])")]
    assert main(["kernels", "cost", "doubling", *calls, "--json", "cost.json"]) == 0
    (row,) = json.loads(Path("cost.json").read_text())
    assert (row["launches"], row["device_bytes_read"]) == (3, 160)


def test_of_several_targets_each_takes_the_launches_of_its_kind():
    write("doubling.py", GOOD)
    write("right.metal", RIGHT)
    shapes = ["--shapes", "double(float32[40])", "--shapes", LAUNCH]
    assert main(["kernels", "cost", "doubling", "right.metal", *shapes, "--json", "cost.json"]) == 0
    rows = json.loads(Path("cost.json").read_text())
    assert [(row["target"], row["kernel"]) for row in rows] == [("doubling", "double"), ("right.metal", "reverse_row")]


@pytest.mark.skipif(metalsim.mlx_headers() is None, reason="MLX's Metal headers are not installed")
def test_kernels_of_mlx_are_there_to_compare_with():
    files = sorted((Path(kernels.__file__).parent / "mlx").glob("*.metal"))
    assert main(["kernels", "cost", *map(str, files), "--json", "cost.json"]) == 0
    rows = {row["kernel"].partition("<")[0]: row for row in json.loads(Path("cost.json").read_text())}
    assert set(rows) == {"sdpa_vector", "attention", "affine_qmv_fast", "affine_qmm_t"}
    # Queries, keys, values and result of 2 bytes, and some arguments.
    assert 0 <= rows["sdpa_vector"]["least_bytes"] - 2 * (2 * 8 * 64 + 2 * 2 * 512 * 64) < 100
    assert rows["attention"]["matrix_multiply_accumulates"] > 0


def test_run_on_device_takes_a_mac(capsys, monkeypatch):
    monkeypatch.setattr(device, "native", lambda: False)
    assert main(["kernels", "run-on-device"]) == 2
    assert len(capsys.readouterr().out.strip().splitlines()) == 1


def test_run_on_device_tells_agreement_and_difference(monkeypatch):
    """With the simulator in the device's place; the second time it answers wrongly."""
    monkeypatch.setattr(device, "native", lambda: True)
    chosen = [case for case in cases.cases() if case.operation == "RMSNorm"][:1]
    monkeypatch.setattr(device, "cases", lambda: chosen)
    with metalsim.installed():
        assert main(["kernels", "run-on-device", "--json", "device.json"]) == 0
        evidence = json.loads(Path("device.json").read_text())
        assert evidence["agrees"]
        assert [call["dtype"] for call in evidence["calls"]] == ["float32", "float16", "bfloat16"]
        assert all(0 < call["native"] <= 1 and call["apart"] == 0 for call in evidence["calls"])
        assert "rms_norm.metal" in evidence["sources"]

        right = device.result
        off = lambda *call, simulated: right(*call, simulated=simulated) * (1.0 if simulated else 1.1)  # noqa: E731
        monkeypatch.setattr(device, "result", off)
        assert main(["kernels", "run-on-device", "--json", "device.json"]) == 1
    evidence = json.loads(Path("device.json").read_text())
    assert not evidence["agrees"]
    assert all(call["native"] > 1 > call["simulated"] for call in evidence["calls"])


def test_cases_reach_every_kernel_of_the_kit():
    from inferspec.impl.kernels.metal import FOLDER

    launched: set[str] = set()
    taken = {"attention", "common"}  # headers
    names = sorted((path.stem for path in FOLDER.glob("*.metal")), key=len, reverse=True)
    with (
        metalsim.installed(),
        metalsim.settings(
            on_launch=lambda launch, _: launched.add(next(n for n in names if f"_{n}_" in launch.kernel))
        ),
    ):
        for case in cases.cases():
            device.result(device._operation(case.operation)(), case.arguments("float32"), simulated=True)
    assert launched == set(names) - taken


def test_cases_are_finite_where_they_are_read():
    for case in cases.cases():
        arrays = [value for value in case.arguments("float32").values() if isinstance(value, np.ndarray)]
        assert arrays
        assert all(array.size for array in arrays)
