"""A package as a student of the tiny-llm course would hand it in, right in all that it does: the course's names, written
from their signatures, around the kit's own implementation."""

from __future__ import annotations

import importlib
import random

from inferspec.conformance.envelope import narrow
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.strategies import Pick
from inferspec.conformance.subject import Subject
from inferspec.conformance.tapes import LENGTH
from inferspec.spec import located

BASICS = """
from inferspec.impl import linear as own

def softmax(x, axis):
    return own.softmax(x, axis)

def linear(x, w, bias=None):
    return own.linear(x, w, bias)

def silu(x):
    return own.silu(x)
"""

ATTENTION = """
import mlx.core as mx
from inferspec.impl import attention as own
from inferspec.impl import flash_attention as flash
from inferspec.impl import paged_attention as paged

def scaled_dot_product_attention_simple(query, key, value, scale=None, mask=None):
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)

class SimpleMultiHeadAttention:
    def __init__(self, hidden_size: int, num_heads: int, wq, wk, wv, wo):
        self.own = own.MultiHeadAttention(hidden_size, num_heads, wq, wk, wv, wo)

    def __call__(self, query, key, value, mask=None):
        return self.own(query, key, value, mask)

def causal_mask(L: int, S: int, dtype: mx.Dtype) -> mx.array:
    return own.causal_mask(L, S, dtype)

def scaled_dot_product_attention_grouped(query, key, value, scale=None, mask=None):
    return own.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)

def flash_attention(query, key, value, scale=None, mask=None):
    return flash.flash_attention(query, key, value, scale=scale, mask=mask)

def paged_attention(query, key_pages, value_pages, block_table, context_lens, page_size, scale=None, mask=None):
    pools = key_pages, value_pages, block_table, context_lens
    return paged.paged_attention(query, *pools, page_size=page_size, scale=scale, mask=mask)
"""

POSITIONAL_ENCODING = """
from inferspec.impl import rope

class RoPE:
    def __init__(self, dims: int, seq_len: int, base: int = 10000, traditional: bool = False):
        self.own = rope.RoPE(dims, seq_len, base, traditional)

    def __call__(self, x, offset: list[slice] | slice | None = None):
        return self.own(x, offset)
"""

LAYER_NORM = """
from inferspec.impl import rms_norm

class RMSNorm:
    def __init__(self, dim: int, weight, eps: float = 1e-5):
        self.own = rms_norm.RMSNorm(dim, weight, eps)

    def __call__(self, x):
        return self.own(x)
"""

EMBEDDING = """
from inferspec.impl import embedding, quantization

class Embedding:
    def __init__(self, vocab_size: int, embedding_dim: int, weight):
        self.own = embedding.Embedding(vocab_size, embedding_dim, weight)

    def __call__(self, x):
        return self.own(x)

    def as_linear(self, x):
        return self.own.as_linear(x)

class QuantizedEmbedding(Embedding):
    def __init__(self, vocab_size: int, embedding_dim: int, weight):
        parts = weight.weight, weight.scales, weight.biases, weight.group_size, weight.bits
        self.own = quantization.QuantizedEmbedding(*parts)

    def __call__(self, x):
        return self.own(x)

    def as_linear(self, x):
        return self.own.as_linear(x)
"""

QUANTIZE = """
import mlx.core as mx
from inferspec.impl import quantization as own

def dequantize_linear(mx_layer):
    layer = mx_layer
    return own.dequantize(layer.weight, layer.scales, layer.biases, layer.group_size, layer.bits).astype(mx.bfloat16)

class QuantizedWeights:
    def __init__(self, scales, biases, group_size: int, bits: int, weight):
        self.scales, self.biases, self.weight = scales, biases, weight
        self.group_size, self.bits = group_size, bits

def quantized_matmul(scales, biases, group_size, bits, a, b, transpose_b=False):
    return own.quantized_matmul(a, b, scales, biases, group_size=group_size, bits=bits, transpose=transpose_b)

def quantized_linear(x, w: QuantizedWeights, bias=None):
    return own.QuantizedLinear(w.weight, w.scales, w.biases, w.group_size, w.bits, bias)(x)
"""

KV_CACHE = """
from inferspec.impl import batching, kv_cache

class TinyKvCache:
    def rewind(self, n: int):
        pass

class TinyKvFullCache(TinyKvCache):
    def __init__(self):
        self.own = kv_cache.KVCache()

    @property
    def offset(self):
        return self.own.offset

    def update_and_fetch(self, key, value, mask_length=None, mask=None):
        return *self.own.update_and_fetch(key, value), self.offset, mask

    def rewind(self, n: int):
        self.own.rewind(n)

class BatchingKvCache(TinyKvCache):
    def __init__(self, max_active_requests: int, max_seq_len: int):
        self.own = batching.BatchingKVCache(max_active_requests, max_seq_len)

    def update_and_fetch(self, keys, values, mask_length=None, mask=None):
        keys, values, mask = self.own.update_and_fetch(keys, values, mask_length)
        return keys, values, None, mask

    def add_request(self, prefilled: TinyKvCache, id: int):
        self.own.add(prefilled.own, id)

    def remove_request(self, id: int):
        self.own.remove(id)
"""

PAGED_KV_CACHE = """
import mlx.core as mx
from .kv_cache import TinyKvCache

class TinyKvPagedPool:
    def __init__(self, page_size: int = 128):
        self.page_size, self.num_pages = page_size, 0
        self.free_pages = []
        self.key_pages = self.value_pages = None

    @property
    def num_free_pages(self):
        return len(self.free_pages)

    def allocate_page(self):
        if not self.free_pages:
            self.free_pages.append(self.num_pages)
            self.num_pages += 1
        return self.free_pages.pop()

    def free_page(self, page_id: int):
        if page_id in self.free_pages or not 0 <= page_id < self.num_pages:
            raise ValueError(f"page {page_id} is not in use")
        self.free_pages.append(page_id)

    def write(self, page_id, start, key, value):
        self.key_pages = self._written(self.key_pages, page_id, start, key)
        self.value_pages = self._written(self.value_pages, page_id, start, value)

    def _written(self, pages, page_id, start, x):
        grown = mx.zeros((self.num_pages, x.shape[1], self.page_size, x.shape[3]), x.dtype)
        if pages is not None:
            grown[: len(pages)] = pages
        grown[page_id, :, start : start + x.shape[2]] = x[0]
        return grown

class TinyKvPagedCache(TinyKvCache):
    def __init__(self, pool: TinyKvPagedPool):
        self.pool, self.page_ids, self.offset = pool, [], 0

    @property
    def page_lens(self):
        size = self.pool.page_size
        return [min(size, self.offset - size * n) for n in range(len(self.page_ids))]

    def update_and_fetch(self, key, value, mask_length=None, mask=None):
        for t in range(key.shape[2]):
            slot = self.offset % self.pool.page_size
            if not slot:
                self.page_ids.append(self.pool.allocate_page())
            self.pool.write(self.page_ids[-1], slot, key[:, :, t : t + 1], value[:, :, t : t + 1])
            self.offset += 1
        return *self.gather_dense(), self.offset, mask

    def gather_dense(self):
        pools = self.pool.key_pages, self.pool.value_pages
        joined = [mx.concatenate([pages[page][None] for page in self.page_ids], axis=2) for pages in pools]
        return tuple(x[:, :, : self.offset] for x in joined)

    def block_table(self, max_pages=None):
        rest = (max_pages or len(self.page_ids)) - len(self.page_ids)
        return mx.array([self.page_ids + [-1] * rest], mx.int32)

    def context_lens(self):
        return mx.array([self.offset], mx.int32)

    def rewind(self, n: int):
        if not 0 <= n <= self.offset:
            raise ValueError(f"n is {n} of {self.offset}")
        self.offset -= n
        while len(self.page_ids) > -(-self.offset // self.pool.page_size):
            self.pool.free_page(self.page_ids.pop())

    def release(self):
        self.rewind(self.offset)
"""

SAMPLER = """
import mlx.core as mx
from inferspec.impl.sampling import Sampler

def make_sampler(temp: float, top_p: float | None, top_k: int | None):
    own = Sampler(temp, top_k, 1.0 if top_p is None else top_p)

    def sample(logprobs):
        return own(logprobs, mx.random.uniform(shape=logprobs.shape[:-1]))

    return sample
"""

GENERATE = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler) -> None:
    def _step(model, y):
        logits = model(y[None])[0, -1:]
        return mx.argmax(logits, axis=-1) if sampler is None else sampler(logits)

    tokens = mx.array(tokenizer.encode(prompt, add_special_tokens=False))
    while (token := _step(model, tokens)).item() != tokenizer.eos_token_id:
        tokenizer.detokenizer.add_token(token.item())
        print(tokenizer.detokenizer.last_segment, end="")
        tokens = mx.concatenate([tokens, token])

def simple_generate_with_kv_cache(model, tokenizer, prompt) -> str:
    caches, offset = model.create_kv_cache(), 0
    tokens = mx.array(tokenizer.encode(prompt, add_special_tokens=False))
    while True:
        token = mx.argmax(model(tokens[None], offset, caches)[0, -1:], axis=-1)
        offset += tokens.size
        if token.item() == tokenizer.eos_token_id:
            return tokenizer.detokenizer.text
        tokenizer.detokenizer.add_token(token.item())
        tokens = token

def speculative_generate(draft_model, model, draft_tokenizer, tokenizer, prompt, proposal_length: int = 4) -> str:
    if proposal_length < 0:
        raise ValueError("proposal_length is negative")
    if tokenizer.get_vocab() != draft_tokenizer.get_vocab():
        raise ValueError("the tokenizers have different vocabularies")

    def _step(model, tokens, caches, kept):
        logits = model(mx.array([tokens], mx.int32), caches[0].offset, caches, logits_to_keep=kept)
        return mx.argmax(logits[0, -kept:], axis=-1).tolist()

    def _rewind(caches, length):
        for layer in caches:
            if layer.offset > length:
                layer.rewind(layer.offset - length)

    tokens, text = tokenizer.encode(prompt, add_special_tokens=False), tokenizer.detokenizer
    if not tokens:
        raise ValueError("the prompt is empty")
    caches, draft_caches = model.create_kv_cache(), draft_model.create_kv_cache()
    (last,) = _step(model, tokens, caches, 1)
    while last != tokenizer.eos_token_id:
        tokens.append(last)
        drafts = []
        while len(drafts) < proposal_length:
            drafts += _step(draft_model, (tokens + drafts)[draft_caches[0].offset :], draft_caches, 1)
        wanted = _step(model, [last, *drafts], caches, len(drafts) + 1)
        kept = next((n for n, pair in enumerate(zip(drafts, wanted)) if pair[0] != pair[1]), len(drafts))
        text.add_token(last)
        for token in drafts[:kept]:
            if token == tokenizer.eos_token_id:
                return text.text
            tokens.append(token)
            text.add_token(token)
        last = wanted[kept]
        _rewind(caches, len(tokens))
        _rewind(draft_caches, len(tokens))
    return text.text
"""

QWEN3_WEEK1 = """
from inferspec.impl import mlp, qwen3

LINEARS = [f"self_attn.{x}_proj" for x in "qkvo"] + [f"mlp.{x}_proj" for x in ("gate", "up", "down")]
NORMS = ["self_attn.q_norm", "self_attn.k_norm", "input_layernorm", "post_attention_layernorm"]

class Qwen3MLP:
    def __init__(self, dim: int, hidden_dim: int, w_gate, w_up, w_down):
        self.own = mlp.SwiGLU(dim, hidden_dim, w_gate, w_up, w_down)

    def __call__(self, x):
        return self.own(x)

def own_model(mlx_model):
    weights = {}

    def take(name, place, parts):
        for step in name.removeprefix("model.").split(".") if name.startswith("model.layers") else ():
            place = place[int(step)] if step.isdecimal() else getattr(place, step)
        weights.update({f"{name}.{part}": getattr(place, part) for part in parts})

    packed = ("weight", "scales", "biases")
    model = mlx_model.model
    take("model.embed_tokens", model.embed_tokens, packed)
    take("model.norm", model.norm, ("weight",))
    for n in range(len(model.layers)):
        for name in LINEARS:
            take(f"model.layers.{n}.{name}", model, packed)
        for name in NORMS:
            take(f"model.layers.{n}.{name}", model, ("weight",))
    if not mlx_model.args.tie_word_embeddings:
        take("lm_head", mlx_model.lm_head, packed)
    return qwen3.Qwen3(vars(mlx_model.args), weights)

class Qwen3ModelWeek1:
    def __init__(self, mlx_model):
        self.own = own_model(mlx_model)

    def __call__(self, inputs):
        return self.own(inputs)
"""

QWEN3_WEEK2 = """
from .qwen3_week1 import own_model
from .kv_cache import TinyKvFullCache

class Qwen3ModelWeek2:
    def __init__(self, mlx_model, enable_flash_attn: bool = False):
        self.own = own_model(mlx_model)

    def __call__(self, inputs, offset, cache):
        assert all(layer.offset == (offset if isinstance(offset, int) else offset[0]) for layer in cache)
        return self.own(inputs, [layer.own for layer in cache])
"""

QWEN2_WEEK1 = """
import mlx.core as mx
from inferspec.impl import llama

def own_model(mlx_model):
    model, args, weights = mlx_model.model, mlx_model.args, {}

    def take(name, layer, *more):
        weights.update({f"{name}.{part}": getattr(layer, part) for part in ("weight", *more)})

    packed = ("scales", "biases")
    take("model.embed_tokens", model.embed_tokens, *packed)
    take("model.norm", model.norm)
    for n, block in enumerate(model.layers):
        name, attention = f"model.layers.{n}", block.self_attn
        take(f"{name}.self_attn.q_proj", attention.q_proj, *packed, "bias")
        take(f"{name}.self_attn.k_proj", attention.k_proj, *packed, "bias")
        take(f"{name}.self_attn.v_proj", attention.v_proj, *packed, "bias")
        take(f"{name}.self_attn.o_proj", attention.o_proj, *packed)
        weights[f"{name}.self_attn.o_proj.bias"] = mx.zeros(args.hidden_size, mx.float16)
        for part in ("gate_proj", "up_proj", "down_proj"):
            take(f"{name}.mlp.{part}", getattr(block.mlp, part), *packed)
        take(f"{name}.input_layernorm", block.input_layernorm)
        take(f"{name}.post_attention_layernorm", block.post_attention_layernorm)
    if not args.tie_word_embeddings:
        take("lm_head", mlx_model.lm_head, *packed)
    return llama.Llama({**vars(args), "attention_bias": True}, weights)

class Qwen2ModelWeek1:
    def __init__(self, mlx_model):
        self.own = own_model(mlx_model)

    def __call__(self, inputs):
        return self.own(inputs)
"""

WEEK2_KERNELS = """
import mlx.core as mx
from inferspec.impl import attention, mlp, rms_norm, rope

class FastRMSNorm:
    def __init__(self, dim: int, weight, eps: float = 1e-5):
        self.weight, self.eps = weight, eps

    def __call__(self, x):
        y = x.astype(mx.float32)
        y = y * mx.rsqrt(mx.mean(y * y, axis=-1, keepdims=True) + self.eps) * self.weight.astype(mx.float32)
        return y.astype(x.dtype)

class FastRoPE:
    def __init__(self, dims: int, seq_len: int, base: int = 10000, traditional: bool = False):
        self.own = rope.RoPE(dims, seq_len, base, traditional)

    def __call__(self, x, offset: int | list[int] | mx.array = 0):
        if isinstance(offset, list):
            offset = [slice(start, start + x.shape[1]) for start in offset]
        return self.own(x, offset)

def swiglu(gate, up):
    y = gate.astype(mx.float32)
    return (y / (1 + mx.exp(-y)) * up.astype(mx.float32)).astype(gate.dtype)

def scaled_dot_product_attention(query, key, value, scale: float, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)

def decode_attention_custom(query, key, value, scale: float, mask=None):
    if query.shape[-2] > 8 or key.shape[-2] > 256:
        raise ValueError("a schedule for decoding")
    return attention.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
"""

QUANTIZE_WEEK2 = """
import mlx.core as mx
from inferspec.impl import quantization as own

class QuantizedWeights:
    def __init__(
        self, scales, biases, group_size: int, bits: int, weight,
        use_simdgroup_matmul=False, use_simdgroup_matvec=True, use_split_k_matmul=False,
    ):
        self.scales, self.biases, self.weight = scales, biases, weight
        self.group_size, self.bits = group_size, bits
        self.simd, self.split = use_simdgroup_matmul, use_split_k_matmul

def dequantize_weights(weight, scales, biases, group_size, bits):
    return own.dequantize(weight, scales, biases, group_size, bits)

def quantized_matmul(
    scales, biases, group_size, bits, a, b, transpose_b=False, use_simdgroup=False, use_split_k=False
):
    return own.quantized_matmul(a, b, scales, biases, group_size=group_size, bits=bits, transpose=transpose_b)

def quantized_linear(x, w: QuantizedWeights, bias=None):
    parts = w.scales, w.biases, w.group_size, w.bits, x, w.weight, True
    return quantized_matmul(*parts, use_simdgroup=w.simd, use_split_k=w.split) + (0 if bias is None else bias)
"""

QWEN2_WEEK2 = QWEN3_WEEK2.replace("qwen3", "qwen2").replace("Qwen3", "Qwen2")

INIT = """
from .attention import *
from .basics import *
from .embedding import *
from .kv_cache import *
from .layer_norm import *
from .paged_kv_cache import *
from .positional_encoding import *
from .quantize import *
from .qwen3_week1 import Qwen3ModelWeek1
from .qwen3_week2 import Qwen3ModelWeek2
from .sampler import *
"""

RIGHT = {
    "__init__": INIT,
    "attention": ATTENTION,
    "basics": BASICS,
    "embedding": EMBEDDING,
    "generate": GENERATE,
    "kv_cache": KV_CACHE,
    "layer_norm": LAYER_NORM,
    "paged_kv_cache": PAGED_KV_CACHE,
    "positional_encoding": POSITIONAL_ENCODING,
    "quantize": QUANTIZE,
    "qwen2_week1": QWEN2_WEEK1,
    "qwen2_week2": QWEN2_WEEK2,
    "qwen3_week1": QWEN3_WEEK1,
    "qwen3_week2": QWEN3_WEEK2,
    "sampler": SAMPLER,
}
"""Module -> its text; models of an older edition beside those of today."""

WEEK_2 = {"basics": BASICS, "quantize": QUANTIZE_WEEK2, "week2_kernels": WEEK2_KERNELS}
"""What week 2 of the newest edition writes anew, and what that takes of week 1."""


def package(name: str, **modules: str) -> dict[str, str]:
    """The files of the package, with some of its modules replaced or added."""
    return {f"{name}/{module}.py": text for module, text in {**RIGHT, **modules}.items()}


def files(**modules: str) -> dict[str, str]:
    """Modules of a package `student` that has no others."""
    return {f"student/{module}.py": text for module, text in modules.items()}


def problem(subject: Subject, name: str, times: int = 6) -> str:
    """What the widest calls of an operation find, "" where all agree with the oracle."""
    contract, _ = located(name)
    ordinary = importlib.import_module(f"inferspec.conformance.inputs.{contract.component}").ORDINARY[name]
    requirement = next(r for r in contract.requirements if r.name == name)
    tapes = random.Random(1)
    for _ in range(times):
        trial = Trial(subject, requirement)
        try:
            call = ordinary.build(Pick(tapes.randbytes(LENGTH), narrow(trial.envelope, ordinary.asked)))
            trial.begin()
            trial.agrees(call)
        except Nonconformance as error:
            return f"{error} {call}"
    return ""
