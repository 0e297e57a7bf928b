"""What the contracts cannot see of passes out of MLX: that both paths share caches, and which one is taken when."""

import threading

import mlx.core as mx
import numpy as np
import pytest

from inferspec.golden import models
from inferspec.impl import native, test_engine
from inferspec.impl.engine import Engine
from inferspec.impl.generation import generate
from inferspec.impl.kv_cache import KVCache, StaticKVCache
from inferspec.impl.loading import load
from inferspec.impl.quantization import quantize

pytestmark = pytest.mark.usefixtures("cpu_kernels")

TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])


@pytest.fixture
def model():
    return test_engine.model(0)


@pytest.fixture(scope="module")
def trained():
    return load(models.weights_of("tiny-qwen3"))


@pytest.fixture
def passes(monkeypatch):
    """How many rows of logits each native pass computes."""
    rows = []
    run = native.Program.run
    monkeypatch.setattr(
        native.Program, "run", lambda self, batch, *rest: rows.append(len(batch.rows)) or run(self, batch, *rest)
    )
    return rows


def off(monkeypatch):
    monkeypatch.setenv("INFERSPEC_CPU", "off")


def test_a_call_is_one_pass_and_prefill_computes_no_logits(model, passes):
    cache = model.make_cache()
    model.prefill(TOKENS[:, :5], cache)
    model(TOKENS[:, 5:], cache)
    assert passes == [0, 6]


def test_a_cache_goes_from_one_path_to_the_other_and_back(trained, monkeypatch):
    prompt = models.read("tiny-qwen3").prompts[0]
    cache, fed, said = trained.make_cache(), mx.array(prompt.ids)[None], []
    for number in range(12):
        with monkeypatch.context() as patch:
            if number % 2:
                off(patch)
            token = int(mx.argmax(trained(fed, cache)[0, -1]))
        said.append(token)
        fed = mx.array([[token]])
    assert said == list(prompt.greedy[:12])


@pytest.mark.parametrize("make", [KVCache, lambda: StaticKVCache(300)], ids=["growing", "static"])
def test_a_state_keeps_its_values_whatever_passes_follow(model, make):
    cache = [make() for _ in model.layers]
    model(TOKENS, cache)
    states = [layer.state for layer in cache]
    before = [np.array(x) for state in states for x in state]
    for layer in cache:
        layer.rewind(5)
    model(TOKENS[:, ::-1], cache)
    model(mx.zeros((2, 60), mx.int32), cache)
    after = [np.array(x) for state in states for x in state]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


def test_what_follows_a_rewind_or_a_restored_state_is_as_if_nothing_had_been_between(model):
    cache, other = model.make_cache(), model.make_cache()
    model(TOKENS, cache)
    for layer, one in zip(cache, other, strict=True):
        layer.rewind(3)
        one.restore(layer.state)
    model.prefill(TOKENS, other)
    wanted = model(TOKENS, None)[:, 5:]
    again = model(TOKENS[:, 5:], cache)
    assert mx.array_equal(mx.argmax(again, -1), mx.argmax(wanted, -1))
    assert other[0].offset == 5 + 8
    assert mx.array_equal(cache[1].state[0][:, :, :5], other[1].state[0][:, :, :5])


def test_a_cache_that_grows_keeps_what_it_holds(model):
    cache, ids = model.make_cache(), mx.array(np.arange(90)[None] % 37)
    model.prefill(ids, cache)
    first = np.array(cache[1].state[0])
    cache[1].STEP = cache[0].STEP = 64
    model.prefill(ids[:, :6], cache)
    assert np.array_equal(np.array(cache[1].state[0])[:, :, :90], first)
    assert cache[0].offset == 96


def test_a_refused_call_changes_no_layer(model):
    cache = [StaticKVCache(9), StaticKVCache(9)]
    model(TOKENS, cache)
    with pytest.raises(ValueError, match="2 tokens after 8 make 10; this cache takes 9"):
        model(TOKENS[:, :2], cache)
    with pytest.raises(ValueError, match="tokens range from 0 to 37; they take 0 … 36"):
        model(mx.array([[0], [37]]), cache)
    with pytest.raises(ValueError, match=r"key is \(1, 2, 1, 16\); this cache takes 2×2×L×16"):
        model(TOKENS[:1, :1], cache)
    with pytest.raises(TypeError, match=r"tokens are mlx\.core\.float32"):
        model(TOKENS.astype(mx.float32), cache)
    with pytest.raises(ValueError, match="offset is 0 for 97 tokens; positions end at max_positions = 96"):
        model(mx.zeros((1, 97), mx.int32))
    assert [layer.offset for layer in cache] == [8, 8]


class Foreign:
    """A cache of somebody else's: concatenated, and nothing more than the protocol asks for."""

    def __init__(self) -> None:
        self.pair = None

    @property
    def offset(self) -> int:
        return 0 if self.pair is None else self.pair[0].shape[2]

    def update_and_fetch(self, key, value):
        new = (key, value)
        pairs = zip(self.pair or new, new, strict=True)
        self.pair = new if self.pair is None else tuple(mx.concatenate(pair, axis=2) for pair in pairs)
        return self.pair


def test_caches_of_others_and_layers_of_different_lengths_take_mlx(model, passes):
    foreign = [Foreign() for _ in model.layers]
    model(TOKENS[:, :5], foreign)
    uneven = model.make_cache()
    uneven[0].update_and_fetch(mx.zeros((2, 2, 1, 16)), mx.zeros((2, 2, 1, 16)))
    model(TOKENS, uneven)
    model(TOKENS[:, :0])
    assert passes == []
    assert foreign[1].offset == 5


def test_weights_of_bits_that_the_kernels_do_not_unpack_take_mlx(passes):
    dense = test_engine.model(0, hidden_size=32)
    config = test_engine.CONFIG | {"hidden_size": 32, "quantization": {"group_size": 32, "bits": 2}}
    weights = {
        f"model.embed_tokens.{part}": x
        for part, x in zip(("weight", "scales", "biases"), quantize(dense.embed_tokens.weight, 32, 2), strict=True)
    }
    plain = {name: x for name, x in test_engine.tensors(0, config).items() if "embed" not in name}
    assert type(dense)(config, plain | weights)(TOKENS).shape == (2, 8, 37)
    assert passes == []


def test_a_model_of_weights_that_are_differentiated_takes_mlx(passes):
    config, name = test_engine.CONFIG, "model.layers.1.mlp.up_proj.weight"
    tensors = test_engine.tensors(0, config)

    def loss(weight):
        return test_engine.Qwen3(config, tensors | {name: weight})(TOKENS).square().mean()

    assert mx.abs(mx.grad(loss)(tensors[name])).max() > 0
    assert passes == []


@pytest.mark.parametrize("transformation", [mx.compile, mx.vmap])
def test_a_transformed_model_is_refused_because_ids_are_looked_at(model, transformation):
    with pytest.raises(ValueError, match="not allowed"):
        transformation(lambda tokens: model(tokens))(TOKENS if transformation is mx.compile else TOKENS[None])


def test_threads_change_no_bit(model, monkeypatch):
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("INFERSPEC_THREADS", threads)
        found.append(model(mx.array(np.arange(80).reshape(2, 40) % 37)))
    assert all(mx.array_equal(found[0], x) for x in found)


def test_models_in_several_python_threads_do_not_meet():
    ones = [test_engine.model(seed) for seed in range(3)]
    alone = [np.array(one(TOKENS)) for one in ones]
    wrong = []

    def work(number):
        for _ in range(20):
            if not np.array_equal(np.array(ones[number](TOKENS)), alone[number]):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=[number]) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_pages_that_were_given_out_keep_their_values(model):
    engine = Engine(model, num_pages=8, page_size=4)
    engine.add_request([1, 2, 3, 4, 5], 6)
    engine.step()
    pool = engine._target.pools[1]
    pages, gathered = pool.key_pages, pool.read([0, 1], 5)[0]
    before = np.array(pages)
    engine.run()
    assert np.array_equal(before, np.array(pages))
    assert np.array_equal(np.array(gathered)[0, :, :4], before[0])
    assert not np.array_equal(before, np.array(pool.key_pages))


def test_the_engine_says_what_generate_says_on_either_path(model, monkeypatch, passes):
    def served():
        engine = Engine(model, num_pages=24, page_size=4, max_requests=3, max_prefill_tokens=5)
        for prompt in test_engine.PROMPTS:
            engine.add_request(prompt, 9)
        return list(engine.run().values())

    native_outputs = served()
    assert passes
    off(monkeypatch)
    assert native_outputs == served() == [list(generate(model, prompt, max_tokens=9)) for prompt in test_engine.PROMPTS]


def test_a_native_pass_is_taken_where_mlx_compiles_nothing(model, passes):
    """As in the processes that subjects run in."""
    mx.disable_compile()
    try:
        model(TOKENS)
    finally:
        mx.enable_compile()
    assert passes == [TOKENS.size]
