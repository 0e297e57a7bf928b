"""The model of a batch is right: what it shows is each request alone, told here from the story by other means."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.batch_decoder import VOCABULARY, codes, favoured
from inferspec.spec.batching import BatchingKVCache, attended, shown
from inferspec.spec.numerics import Precision, oracles_agree

SLOTS, HEADS, DIM = 3, 2, 4


def history(random, steps):
    """A random story of a batch, each update with a query, and for each query what every slot has by then."""
    story, expected, rows = [], [], [None] * SLOTS
    for _ in range(steps):
        slot = int(random.integers(SLOTS))
        match random.choice(["change", "update", "update"]):
            case "change" if rows[slot] is None:
                key, value = random.normal(size=(2, 1, HEADS, random.integers(0, 9), DIM))
                story.append(("add", {"key": key, "value": value, "slot": slot, "stale": 0}))
                rows[slot] = key[0], value[0]
            case "change":
                story.append(("remove", {"slot": slot}))
                rows[slot] = None
            case _:
                length = int(random.integers(1, 4))
                key, value = random.normal(size=(2, SLOTS, HEADS, length, DIM))
                key[[row is None for row in rows]] = np.nan
                story.append(("update_and_fetch", {"key": key, "value": value, "mask_length": length}))
                rows = [
                    None
                    if row is None
                    else tuple(np.concatenate([old, x[slot]], axis=1) for old, x in zip(row, (key, value), strict=True))
                    for slot, row in enumerate(rows)
                ]
                query = random.normal(size=(SLOTS, 2 * HEADS, length, DIM))
                story.append(("attend", {"query": query, "step": len(story)}))
                expected.append((len(story), query, list(rows)))
    return tuple(story), expected


def alone(query, row):
    """Attention of one request by itself, causal; zeros for none."""
    if row is None:
        return np.zeros(query.shape)
    core = ScaledDotProductAttention()
    a = core.bind({"query": query, "key": row[0], "value": row[1], "mask": "causal"})
    return core.evaluate(a, Precision.FLOAT32).value


@pytest.mark.parametrize("seed", range(30))
def test_attention_over_the_models_batch_is_that_of_each_request_alone(seed):
    story, expected = history(np.random.default_rng(seed), 24)
    told = BatchingKVCache().told(BatchingKVCache().bind({"max_requests": SLOTS, "max_len": 99, "steps": story}))
    assert expected
    assert not [part for part in told if part.endswith("refused")]
    for step, query, rows in expected:
        for slot, row in enumerate(rows):
            assert oracles_agree(told[f"{step} attended"].value[slot], alone(query[slot], row), 1.0), (step, slot)


def pair(*lengths, columns):
    """Keys, values and bool mask of one query for requests of these lengths."""
    keys, values = np.arange(2.0 * len(lengths) * columns * 2).reshape(2, len(lengths), 1, columns, 2) + 1
    mask = np.arange(columns) >= columns - np.array(lengths)[:, None, None, None]
    return keys, values, mask


def test_neither_spare_columns_nor_hidden_numbers_show():
    tight = pair(3, 1, 0, columns=3)
    keys, values = (np.pad(x, ((0, 0), (0, 0), (2, 0), (0, 0))) for x in tight[:2])
    mask = np.pad(tight[2], ((0, 0), (0, 0), (0, 0), (2, 0)))
    keys[1, 0, 1] = values[2, 0, 4] = 77
    first, second = shown(*tight), shown(keys, values, mask)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert first["keys"].shape == (3, 1, 3, 2)
    assert not first["keys"][2].any()


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min])
def test_an_additive_mask_shows_what_a_bool_one_does(hidden):
    keys, values, mask = (x if x.dtype == bool else x.astype(np.float32) for x in pair(3, 1, columns=4))
    additive = np.where(mask, 0, hidden).astype(np.float32)
    first, second = shown(keys, values, mask), shown(keys, values, additive)
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_hidden_must_be_finite(poison, which):
    batch = pair(3, 1, columns=3)
    batch[which][1, 0, 0] = poison
    assert shown(*batch)["finite"] == 0
    batch = pair(3, 1, columns=3)
    batch[which][1, 0, 2] = poison
    assert shown(*batch)["finite"] == 1


def test_what_idle_slots_see_is_counted_and_shown_nowhere_else():
    hidden, seen = pair(3, 0, columns=3), pair(3, 2, columns=3)
    first, second = (shown(*batch[:2], mask, idle=[1]) for batch, mask in ((hidden, hidden[2]), (hidden, seen[2])))
    assert (first.pop("seen_by_idle"), second.pop("seen_by_idle")) == (0, 2)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_shapes_that_do_not_fit_stay_as_they_are():
    keys, values, mask = pair(3, 1, columns=3)
    assert shown(keys, values, mask[:, 0])["mask"].shape == (2, 1, 3)
    assert shown(keys, values[:, :, :2], mask)["values"].shape == (2, 1, 2, 2)


def test_attention_of_an_empty_batch_is_zeros():
    keys, values, mask = pair(0, 0, columns=0)
    assert not attended(np.ones((2, 2, 1, 2)), keys, values, mask).value.any()


LIKE = (HEADS, DIM, DIM + 1, "bfloat16")


def decoded(tokens, count):
    """The ids that the toy decoder gives a request by itself after its prompt, one after the other."""
    tokens = list(tokens)
    for _ in range(count):
        keys, values = codes(np.array([tokens]), [0], LIKE)
        tokens += favoured(keys, values, np.ones((1, 1, 1, len(tokens)), bool))[0].tolist()
    return tokens[-count:]


@pytest.mark.parametrize("seed", range(10))
def test_the_models_batch_decodes_every_request_as_if_it_were_alone(seed):
    random = np.random.default_rng(seed)
    story, prompts = [], [None] * SLOTS
    for _ in range(30):
        slot = int(random.integers(SLOTS))
        match random.choice(["change", "decode", "decode"]):
            case "change" if prompts[slot] is None:
                prompts[slot] = random.integers(0, VOCABULARY, random.integers(1, 9)).tolist()
                story.append(("begin", {"tokens": prompts[slot], "slot": slot, "like": LIKE}))
            case "change":
                story.append(("remove", {"slot": slot}))
                prompts[slot] = None
            case _:
                story.append(("decode", {"tokens": [[0]] * SLOTS, "like": LIKE}))
    told = BatchingKVCache().told(BatchingKVCache().bind({"max_requests": SLOTS, "max_len": 99, "steps": tuple(story)}))
    served = {}
    for number, (method, given) in enumerate(story, 1):
        match method:
            case "begin":
                served[given["slot"]] = given["tokens"], []
            case "remove":
                prompt, out = served.pop(given["slot"])
                assert not out or out == decoded(prompt, len(out))
            case "decode":
                for slot, favourite in enumerate(told[f"{number} favoured"].value[:, 0]):
                    assert (slot in served) == (favourite >= 0)
                    if slot in served:
                        served[slot][1].append(favourite)
    for prompt, out in served.values():
        assert not out or out == decoded(prompt, len(out))


def test_every_token_and_position_has_a_code_of_its_own_that_every_dtype_holds():
    tokens, positions = np.arange(VOCABULARY)[:, None], np.arange(120)
    for dtype in ("float32", "float16", "bfloat16"):
        pairs = [codes(np.broadcast_to(tokens, (VOCABULARY, 1)), [p] * VOCABULARY, (1, 2, 2, dtype)) for p in positions]
        for kind in range(2):
            rows = np.concatenate([np.asarray(pair[kind], np.float64).reshape(VOCABULARY, 2) for pair in pairs])
            assert len(np.unique(rows, axis=0)) == len(rows)


def test_a_query_that_sees_nothing_favours_nothing():
    keys, values = codes(np.array([[3, 4]]), [0], LIKE)
    assert favoured(keys, values, np.zeros((1, 1, 2, 2), bool)).tolist() == [[-1, -1]]
