"""Weights go where a constructor takes them, or into the layer once it is made."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.executor import Executor
from inferspec.spec.rms_norm import RMSNorm
from inferspec.tools.adapter_files import ONES, called, is_right, module, opened, refused

LAYERS = """
import mlx.core as mx
import mlx.nn as nn
from mlx.nn import {names}
"""


def test_what_a_layer_keeps_and_its_constructor_does_not_take_is_put_there(folder):
    module(folder, LAYERS.format(names="Embedding, RMSNorm"))
    adapter = load("mine")
    assert set(adapter.targets) == {"Embedding", "Embedding.as_linear", "RMSNorm"}
    weight, x = np.array([2, 0.5, -1, 3], np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    norm = {"dims": 4, "weight": weight, "eps": 1e-3, "x": x}
    assert is_right(called(adapter, "RMSNorm", **norm), RMSNorm(), **norm)
    table = {"vocab_size": 2, "dims": 4, "weight": x}
    np.testing.assert_array_equal(
        called(adapter, "Embedding", **table, tokens=np.array([1, 0, 1], np.int32)), x[[1, 0, 1]]
    )
    np.testing.assert_array_equal(called(adapter, "Embedding.as_linear", **table, x=x[:1]), x[:1] @ x.T)


@pytest.mark.parametrize("library", ["torch", "mlx"])
def test_a_layer_that_is_filled_once_it_is_made_is_of_the_dtype_of_its_weight(folder, library):
    if library == "torch":
        pytest.importorskip("torch")
    module(folder, f"from {library}.nn import RMSNorm")
    x = np.ones((2, 4), ml_dtypes.bfloat16)
    got = called(load("mine", kind_of_arrays=library), "RMSNorm", dims=4, weight=x[0], eps=1e-5, x=x)
    assert got.dtype == x.dtype


def test_a_layer_is_given_the_defaults_of_the_contract(folder):
    pytest.importorskip("torch")
    module(folder, "from torch.nn import RMSNorm")
    norm = {"dims": 4, "weight": ONES[0], "x": np.full((1, 4), 1e-3, np.float32)}
    assert is_right(called(load("mine"), "RMSNorm", **norm), RMSNorm(), **norm)


def test_a_weight_of_another_shape_is_not_put_into_a_layer(folder):
    module(folder, LAYERS.format(names="RMSNorm"))
    seen = Executor(load("mine").targets).call(
        "RMSNorm", {"dims": 4, "weight": ONES, "eps": 1e-5, "x": ONES}, {}, None, (), False
    )
    assert seen.raised == "ValueError"


def test_a_layer_that_has_no_weight_is_refused(folder):
    module(folder, "class RMSNorm:\n  def __init__(self, dim, eps=1e-6): ...\n  def __call__(self, x): return x\n")
    assert "RMSNorm neither takes weight nor has weight or scale or gamma or g" in refused("mine", opened)


def test_weights_are_not_given_for_sizes(folder):
    module(folder, LAYERS.format(names="MultiHeadAttention"))
    line = refused("mine")
    assert "does not take wq, wk, wv, wo" in line
    assert "filled once they are made" in line


@pytest.mark.parametrize(
    "parameters", ["w, eps=1e-5", "dims, w=None, eps=1e-5", "gamma, eps", "dims, gain, eps", "weight"]
)
def test_a_constructor_that_takes_a_weight_by_another_name_is_given_it(folder, parameters):
    module(folder, f"class RMSNorm:\n  def __init__(self, {parameters}): ...\n  def __call__(self, x): ...\n")
    target = load("mine").targets["RMSNorm"]
    assert target.init_names["weight"] in ("w", "gamma", "gain", "weight")
    assert not target.loaded


@pytest.mark.parametrize(
    "parameters", ["vocab_size, dims, vocab_table", "vocab_matrix", "vocabulary: np.ndarray", "n, d, size: 'mx.array'"]
)
def test_a_table_whose_name_speaks_of_sizes_is_no_size(folder, parameters):
    module(
        folder,
        f"import numpy as np\nclass Embedding:\n  def __init__(self, {parameters}): ...\n  def __call__(self, tokens): ...\n",
    )
    target = load("mine").targets["Embedding"]
    assert target.init_names["weight"] == parameters.partition(":")[0].split(", ")[-1]
    assert not target.loaded


@pytest.mark.parametrize("place", ["None", "types.SimpleNamespace(weight=np.zeros(4, np.float32))"])
def test_a_layer_s_weight_may_be_unset_or_that_of_a_layer_inside(folder, place):
    module(
        folder,
        f"""
        import types
        import numpy as np
        class RMSNorm:
            def __init__(self, dims, eps): self.weight = {place}
            def __call__(self, x): return getattr(self.weight, "weight", self.weight) * x
        """,
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(called(load("mine"), "RMSNorm", dims=4, weight=x[0], eps=1e-5, x=x), x[0] * x)
