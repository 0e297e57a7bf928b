"""The error bounds hold for the errors that they bound, and are not much larger."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from inferspec.spec.numerics import (
    DTYPES,
    Precision,
    arithmetic_unit,
    dot,
    f64,
    is_float,
    is_sharp,
    largest,
    matmul_class,
    numpy_dtype,
    operations,
    round_to,
    rounding,
    unit_roundoff,
    weights_growth,
    within,
)

FLOAT32 = unit_roundoff("float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_unit_roundoffs_and_ranges_are_those_of_the_dtype(dtype):
    about = ml_dtypes.finfo(numpy_dtype(dtype))
    assert unit_roundoff(dtype) == float(about.eps) / 2
    assert largest(dtype) == float(about.max)
    assert is_float(numpy_dtype(dtype))
    assert arithmetic_unit(Precision.NATIVE, dtype) == unit_roundoff(dtype)
    assert arithmetic_unit(Precision.FLOAT32, dtype) == FLOAT32


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_underflow_may_cost_is_the_smallest_number_that_gpus_keep(dtype):
    about = ml_dtypes.finfo(numpy_dtype(dtype))
    kept = about.smallest_subnormal if dtype == "float16" else about.smallest_normal
    assert rounding(np.zeros(()), dtype) == float(kept)


def spread(dtype: str) -> np.ndarray:
    """Numbers of every size that the dtype has, subnormal ones and some beside the middle of two neighbours too."""
    random = np.random.default_rng(0)
    about = ml_dtypes.finfo(numpy_dtype(dtype))
    low, high = np.log2(float(about.smallest_subnormal)) - 2, np.log2(largest(dtype)) - 1
    sizes = 2.0 ** random.uniform(low, high, 20000)
    exact = f64(round_to(sizes, dtype))
    with np.errstate(invalid="ignore"):
        middle = (exact + f64(np.nextafter(exact.astype(numpy_dtype(dtype)), numpy_dtype(dtype).type(np.inf)))) / 2
    return np.concatenate([sizes, -sizes, middle, [0.0]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_rounding_keeps_its_bound_for_numbers_of_every_size(dtype):
    values = spread(dtype)
    error = np.abs(f64(round_to(values, dtype)) - values)
    assert within(error, rounding(values, dtype)).all()
    normal = np.abs(values) >= float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_normal)
    assert (error[normal] / rounding(values, dtype)[normal]).max() > 0.9


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_subnormal_that_is_flushed_to_zero_keeps_the_bound(dtype):
    values = spread(dtype)
    small = values[np.abs(values) < float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_normal)]
    assert small.size
    assert within(np.abs(small), rounding(small, dtype)).all()


def in_order(terms):
    return np.cumsum(terms, dtype=np.float32)[-1]


ORDERS = {
    "in order": in_order,
    "backwards": lambda terms: in_order(terms[::-1]),
    "smallest first": lambda terms: in_order(terms[np.argsort(np.abs(terms))]),
    "largest first": lambda terms: in_order(terms[np.argsort(-np.abs(terms))]),
    "pairwise": lambda terms: np.sum(terms, dtype=np.float32),
    "in blocks": lambda terms: in_order(
        np.array([in_order(block) for block in np.array_split(terms, 7) if block.size])
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("terms", [1, 2, 33, 1000, 9000])
@pytest.mark.parametrize("amplitude", [1.0, 1e6])
def test_a_float32_dot_product_keeps_its_bound_in_any_order(order, terms, amplitude):
    random = np.random.default_rng(terms)
    for _ in range(5):
        x, y = (random.normal(size=terms).astype(np.float32) * np.float32(amplitude) for _ in range(2))
        error = abs(float(ORDERS[order](x * y)) - float(f64(x) @ f64(y)))
        assert within(np.array(error), dot(np.abs(f64(x)) @ np.abs(f64(y)), terms, FLOAT32))


def test_the_bound_of_a_dot_product_is_reached_but_for_its_constant():
    """Terms that all round the same way: 1 and then halves of its last place, each just large enough to be lost."""
    terms = np.full(1000, FLOAT32, np.float32)
    terms[0] = 1
    error = float(f64(terms).sum() - float(in_order(terms)))
    assert 0.9 < error / dot(f64(terms).sum(), 1000, FLOAT32) <= 1


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_successive_roundings_keep_their_bound(count):
    random = np.random.default_rng(count)
    exact = random.uniform(1, 2, 2000).astype(np.float32)
    factors = random.uniform(0.5, 2, (count, 2000)).astype(np.float32)
    rounded, product = exact, f64(exact)
    for factor in factors:
        rounded, product = rounded * factor, product * f64(factor)
    assert within(np.abs(f64(rounded) / product - 1), np.full(2000, operations(FLOAT32, count))).all()


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("keys", [1, 2, 7, 100])
def test_softmax_weights_never_grow_beyond_their_bound(size, keys):
    random = np.random.default_rng(keys)
    logits = random.normal(size=(50, keys)) * random.choice([0.1, 1, 10], (50, 1))
    errors = random.uniform(0, size, (50, keys))
    bound = weights_growth(softmax(logits), errors)
    for signs in (random.uniform(-1, 1, (20, 50, keys)), random.choice([-1, 1], (20, 50, keys)), *worst_signs(keys)):
        growth = softmax(logits + signs * errors) / softmax(logits) - 1
        assert within(np.abs(growth), bound + operations(unit_roundoff("float64"), 50 + keys)).all()


def worst_signs(keys):
    """One weight raised and all others lowered, for each weight."""
    return [2.0 * np.eye(keys)[:, None, :] - 1]


@pytest.mark.parametrize("keys", [2, 7, 100])
def test_the_bound_of_softmax_weights_is_not_much_larger_than_the_worst_growth(keys):
    random = np.random.default_rng(keys)
    logits, errors = random.normal(size=(50, keys)), np.full((50, keys), FLOAT32 * 1000)
    weights = softmax(logits)
    growths = softmax(logits + worst_signs(keys)[0] * errors) / weights - 1
    worst = np.stack([growths[j, :, j] for j in range(keys)], axis=-1)
    small = weights <= 0.5
    assert (weights_growth(weights, errors)[small] <= 4 * worst[small]).all()


def test_an_error_at_its_budget_is_within_and_one_beyond_it_is_not():
    budget = np.array([1.0, 0.0, np.inf])
    assert within(budget, budget).all()
    assert not within(budget[:2] * 1.001 + FLOAT32, budget[:2]).any()
    assert not within(np.array([np.nan, np.inf]), np.array([1.0, 1.0])).any()


def test_an_answer_is_sharp_only_when_it_is_large_beside_its_budget():
    assert is_sharp(np.array([100.0, -100.0]), np.ones(2))
    assert not is_sharp(np.array([99.0, 1.0]), np.ones(2))


@pytest.mark.parametrize(("dtype", "name"), [("float32", "float32"), ("float16", "tf32"), ("bfloat16", "lower")])
def test_the_precision_of_a_product_is_told_from_its_error(dtype, name):
    random = np.random.default_rng(0)
    x, y = (round_to(random.normal(size=(64, 64)), "float32") for _ in range(2))
    product = f64(round_to(f64(x), dtype)) @ f64(round_to(f64(y), dtype))
    exact, magnitude = f64(x) @ f64(y), np.abs(f64(x)) @ np.abs(f64(y))
    measured = f64(round_to(product, "float32"))
    assert matmul_class(float((np.abs(measured - exact) / magnitude).max())) == name
