"""`--metal`: what a subject's kernels run on, what the certificate says of it, and what is said where it cannot be."""

from __future__ import annotations

import mlx.core as mx
import pytest

from inferspec.compiler import NoCompiler, compiler

KERNEL = '''
import mlx.core as mx

ENVELOPE = {"rms_norm": {"features": 64}}
SOURCE = """
  const uint width = x_shape[1];
  const auto row = x + thread_position_in_grid.x * width;
  float sum = 0.0f;
  for (uint i = 0; i < width; i++) {
    sum += static_cast<float>(row[i]) * static_cast<float>(row[i]);
  }
  const float inverse = metal::precise::rsqrt(sum / width + eps);
  for (uint i = 0; i < width; i++) {
    const T quotient = static_cast<T>(static_cast<float>(row[i]) * inverse);
    out[thread_position_in_grid.x * width + i] = static_cast<T>(static_cast<float>(quotient) * static_cast<float>(weight[i]));
  }
"""
kernel = mx.fast.metal_kernel("norm", ["x", "weight", "eps"], ["out"], SOURCE)


def rms_norm(x, weight, eps=1e-5):
    if not x.size:
        return x
    rows = x.reshape(-1, x.shape[-1])
    (out,) = kernel(
        inputs=[rows, weight, mx.array(eps)], template=[("T", x.dtype)], grid=(len(rows), 1, 1), threadgroup=(32, 1, 1),
        output_shapes=[rows.shape], output_dtypes=[x.dtype],
    )
    return out.reshape(x.shape)
'''
MLX = """
import mlx.core as mx

def rms_norm(x, weight, eps=1e-5):
    return mx.fast.rms_norm(x, weight, eps)
"""
NUMPY = """
import numpy as np

def silu(x):
    return (x / (1 + np.exp(-x.astype(np.float32)))).astype(x.dtype)
"""
NORM = ("-k", "test_rows_are_divided_by_their_root_mean_square")


def _compiler_missing() -> str:
    try:
        compiler()
    except NoCompiler as error:
        return str(error)
    return ""


simulated = pytest.mark.skipif(bool(_compiler_missing()), reason=_compiler_missing())


@simulated
def test_a_kernel_is_certified_in_the_simulator_and_the_certificate_says_so(certify):
    run = certify({"norm.py": KERNEL}, "--impl", "./norm.py", "--metal", "sim", *NORM, suite="test_rms_norm")
    assert run.code == pytest.ExitCode.OK, run.text
    assert "1 passed" in run.text
    assert run.certificate["subject"]["kernel_path"] == "metalsim"
    assert "kernel path: metalsim" in run.text


@simulated
def test_a_kernel_that_is_being_compiled_does_not_hang(certify):
    run = certify(
        {"norm.py": KERNEL},
        "--impl",
        "./norm.py",
        "--metal",
        "sim",
        "--call-limit",
        "0.001",
        *NORM,
        suite="test_rms_norm",
    )
    assert run.code == pytest.ExitCode.OK, run.text


@simulated
def test_a_wrong_kernel_fails_and_its_rerun_line_names_the_simulator(certify):
    wrong = KERNEL.replace("sum / width", "sum")
    run = certify({"norm.py": wrong}, "--impl", "./norm.py", "--metal", "sim", *NORM, suite="test_rms_norm")
    assert run.code == pytest.ExitCode.TESTS_FAILED
    assert run.states("RMSNorm") == {"RMS-01": "failed"}
    assert "--impl ./norm.py --metal sim --profile" in run.text


@simulated
@pytest.mark.skipif(mx.metal.is_available(), reason="there is Metal")
@pytest.mark.parametrize(("text", "path"), [(MLX, "mlx"), (NUMPY, "none")])
def test_a_subject_without_kernels_is_not_certified_on_the_simulator(certify, text, path):
    run = certify({"norm.py": text}, "--impl", "./norm.py", "--metal", "sim", "-k", "test_nothing_at_all")
    assert run.certificate["subject"]["kernel_path"] == path


@pytest.mark.skipif(mx.metal.is_available(), reason="there is Metal")
def test_native_kernels_take_metal(certify):
    said = certify({"norm.py": MLX}, "--impl", "./norm.py", "--metal", "native").complaint()
    assert "--metal native takes a Mac" in said


@pytest.mark.skipif(mx.metal.is_available(), reason="there is Metal")
def test_the_kit_s_kernels_say_what_they_need(certify):
    said = certify({}, "--impl", "inferspec.impl.kernels").complaint()
    assert "inferspec.impl.kernels cannot run here: the kernels need a Mac with Metal" in said


def test_the_simulator_says_what_it_needs(certify, monkeypatch):
    monkeypatch.setenv("METALSIM_CXX", "no-such-compiler")
    said = certify({"norm.py": KERNEL}, "--impl", "./norm.py", "--metal", "sim").complaint()
    assert "--metal sim: the simulator cannot be used: a C++ compiler is needed" in said


def test_an_unknown_mode_is_refused(certify):
    said = certify({"norm.py": MLX}, "--impl", "./norm.py", "--metal", "cuda").complaint()
    assert "--metal cuda: it takes auto, native, sim, off" in said
