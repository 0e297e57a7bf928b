"""The model of a batch over pages is right: attention over each row's tokens, told here from the story by other means."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.spec.numerics import Precision, oracles_agree
from inferspec.spec.paged_kv import PagedBatch

PAGES, PAGE_SIZE, HEADS, RATIO, DIM = 12, 3, 2, 2, 4


def history(random, steps):
    """A random story of three caches, and for each attention in it the query and the tokens of its rows."""
    tokens = {number: np.zeros((2, HEADS, 0, DIM)) for number in range(3)}
    story, expected = [], []
    for _ in range(steps):
        number = int(random.integers(3))
        length = tokens[number].shape[2]
        match random.choice(["append", "append", "rewind", "release", "attend"]):
            case "append" if length < 9:
                new = random.normal(size=(2, HEADS, random.integers(1, 4), DIM)).astype(np.float32)
                story.append(("append", {"cache": number, "key": new[:1], "value": new[1:]}))
                tokens[number] = np.concatenate([tokens[number], new], axis=2)
            case "rewind" if length:
                n = int(random.integers(1, length + 1))
                story.append(("rewind", {"cache": number, "n": n}))
                tokens[number] = tokens[number][:, :, : length - n]
            case "attend":
                caches = [int(one) for one in random.permutation(3)[: random.integers(1, 4)]]
                shape = len(caches), HEADS * RATIO, random.integers(1, 5), DIM
                query = random.normal(size=shape).astype(np.float32)
                story.append(("attend", {"caches": caches, "query": query}))
                expected.append((len(story), query, [tokens[one] for one in caches]))
    return tuple(story), expected


def alone(query, row):
    """Causal attention H_q×L×D of one row over its tokens 2×H×S×D, one query at a time."""
    keys, values = np.repeat(row.astype(np.float64), RATIO, axis=1)
    result = np.zeros(query.shape)
    for i in range(query.shape[1]):
        seen = keys.shape[1] - query.shape[1] + i + 1
        if seen > 0:
            logits = (keys[:, :seen] @ query[:, i, :, None].astype(np.float64))[..., 0] / DIM**0.5
            weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
            result[:, i] = (weights[:, None] @ values[:, :seen])[:, 0] / weights.sum(axis=-1, keepdims=True)
    return result


@pytest.mark.parametrize("seed", range(30))
def test_attention_over_the_models_pages_is_that_over_the_tokens_of_each_row(seed):
    story, expected = history(np.random.default_rng(seed), 40)
    pool = {"num_pages": PAGES, "page_size": PAGE_SIZE, "num_kv_heads": HEADS, "head_dim": DIM, "dtype": "float32"}
    told = PagedBatch().told(PagedBatch().bind({**pool, "steps": story}), Precision.FLOAT32)
    assert expected
    assert not [part for part in told if part.endswith("refused")]
    for step, query, rows in expected:
        for number, row in enumerate(rows):
            assert oracles_agree(told[f"{step} attended"].value[number], alone(query[number], row), 1.0), (step, number)
