"""vLLM: the KVCacheManager and the Scheduler of its engine's core, without a model. ``pip install vllm`` first."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

import torch
from vllm.config import CacheConfig, DeviceConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler as Core
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from inferspec import golden

NAME = "vllm"
VERSION = version("vllm")
ARRAYS = "torch"
WAIVERS = "vllm.toml"
# Its engine ends when its model raises. Blocks are known once their step is scheduled: its keys are written first.
ENVELOPE = {"scheduler": {"void_steps": [False], "chunks": ["together"], "ends": ["kept"]}}

LONGEST = 1 << 20
"""Tokens of a request; what limits it here is the pool."""

init_none_hash(sha256)
_names = map(str, itertools.count())


class Table:
    """A request of vLLM's in the role of a table. home: None once it was freed."""

    def __init__(self, home: BlockManager | None, request: Request, num_cached_tokens: int) -> None:
        self.home, self.request, self.num_cached_tokens = home, request, num_cached_tokens

    @property
    def block_ids(self) -> list[int]:
        assert self.home
        return self.home.block_ids(self.request)

    @property
    def num_tokens(self) -> int:
        return int(self.request.num_tokens)


class BlockManager:
    """``KVCacheManager``. A block of its own, the null block, comes on top; it is block 0, and the pool begins at 1."""

    def __init__(self, num_blocks: int, block_size: int, prefix_caching: bool = True) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"num_blocks is {num_blocks} and block_size {block_size}; neither may be below 1")
        self.num_blocks, self.block_size = num_blocks, block_size
        self.hasher = get_request_block_hasher(block_size, sha256) if prefix_caching else None
        self.config = _cache_config(num_blocks + 1, block_size)
        self.manager = KVCacheManager(
            self.config, LONGEST, block_size, hash_block_size=block_size, enable_caching=prefix_caching
        )

    @property
    def num_free(self) -> int:
        return int(self.manager.block_pool.get_num_free_blocks())

    def block_ids(self, request: Request) -> list[int]:
        (ids,) = self.manager.get_block_ids(request.request_id)
        return [block - 1 for block in ids]

    def allocate(self, tokens: Sequence[int]) -> Table:
        request = _request(tokens, self.hasher, max_tokens=LONGEST)
        blocks, cached, _ = self.manager.get_computed_blocks(request)
        self._take(request, len(tokens) - cached, cached, blocks)
        return Table(self, request, cached)

    def append(self, table: Table, tokens: Sequence[int]) -> None:
        self._check(table)
        if tokens:
            self._take(table.request, len(tokens))
            table.request.append_output_token_ids([int(token) for token in tokens])
            table.request.num_computed_tokens = table.request.num_tokens

    def mark_computed(self, table: Table, n: int) -> None:
        self._check(table)
        if not 0 <= n <= table.num_tokens:
            raise ValueError(f"n is {n}; the table has {table.num_tokens} tokens")
        if self.hasher:
            self.manager.cache_blocks(table.request, n)

    def free(self, table: Table) -> None:
        self._check(table)
        self.manager.free(table.request)
        table.home = None

    def _take(self, request: Request, count: int, cached: int = 0, blocks: Any = None) -> None:
        if self.manager.allocate_slots(request, count, cached, blocks, delay_cache_blocks=True) is None:
            raise ValueError(f"{count} tokens find no room in {self.num_free} free blocks of {self.block_size}")
        request.num_computed_tokens = request.num_tokens

    def _check(self, table: Table) -> None:
        if table.home is not self:
            raise ValueError("the table was freed" if table.home is None else "the table is of another manager")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Tokens of a request that a step computes. name: vLLM's of the request."""

    request: Any
    name: str
    start: int
    tokens: tuple[int, ...]
    block_ids: tuple[int, ...]
    samples: bool


@dataclass(frozen=True, eq=False)
class Step:
    """What ``schedule`` gave, and the same in the words of the contract."""

    output: Any
    prefills: tuple[Chunk, ...]
    decodes: tuple[Chunk, ...]
    preempted: tuple[Any, ...]

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self.prefills + self.decodes


class Scheduler:
    """``vllm.v1.core.sched.scheduler.Scheduler`` by priority, on the blocks of a `BlockManager`."""

    def __init__(self, block_manager: BlockManager, max_requests: int, max_prefill_tokens: int) -> None:
        if max_requests < 1 or max_prefill_tokens < 1:
            raise ValueError(
                f"max_requests is {max_requests} and max_prefill_tokens {max_prefill_tokens}; neither may be below 1"
            )
        self.block_manager = block_manager
        size = block_manager.block_size
        self.core = Core(ENGINE, block_manager.config, _NoGrammar(), size)
        self.core.kv_cache_manager = block_manager.manager
        self.core.max_num_running_reqs = self.core.max_num_active_reqs = max_requests
        self.core.max_num_scheduled_tokens = max_prefill_tokens
        self.core.max_model_len = LONGEST
        self.asked: dict[str, Any] = {}
        """Requests that are not finished, by vLLM's name for them."""
        self.generating: set[str] = set()
        self.step: Step | None = None
        self.arrivals = itertools.count()

    def add(self, request: Any) -> None:
        """Asked for what all blocks together could not hold, vLLM would preempt it for ever: who asks has to look."""
        slots = self.block_manager.num_blocks * self.block_manager.block_size
        count = len(request.tokens)
        if request.state is not None:
            raise ValueError("the request was added before")
        if not count or request.max_tokens < 1 or count + request.max_tokens - 1 > slots:
            raise ValueError(f"{count} tokens and max_tokens {request.max_tokens}, in blocks of {slots} slots")
        own = _request(
            request.tokens,
            self.block_manager.hasher,
            max_tokens=request.max_tokens,
            stops=request.eos,
            priority=-request.priority,
            arrival_time=float(next(self.arrivals)),
        )
        self.core.add_request(own)
        self.asked[own.request_id] = request
        self._tell_states()

    def schedule(self) -> Step:
        output = self.core.schedule()
        cached = output.scheduled_cached_reqs
        starts = {one.req_id: one.num_computed_tokens for one in output.scheduled_new_reqs}
        starts |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        preempted = tuple(output.preempted_req_ids or ())
        self.generating.difference_update(preempted)
        chunks = [self._chunk(name, starts[name], count) for name, count in output.num_scheduled_tokens.items()]
        self.step = Step(
            output,
            tuple(chunk for chunk in chunks if chunk.name not in self.generating),
            tuple(chunk for chunk in chunks if chunk.name in self.generating),
            tuple(self.asked[name] for name in preempted),
        )
        self._tell_states()
        return self.step

    def update(self, step: Step, tokens: Sequence[int | None]) -> list[Any]:
        if step is not self.step or [token is not None for token in tokens] != [one.samples for one in step.chunks]:
            raise ValueError("an id for each chunk of the last step that samples is needed, and None for each other")
        self.step = None
        names = [chunk.name for chunk in step.chunks]
        sampled = [[] if token is None else [int(token)] for token in tokens]
        owns = {name: self.core.requests[name] for name in names if name in self.core.requests}
        places = {name: index for index, name in enumerate(names)}
        told = self.core.update_from_output(step.output, ModelRunnerOutput(names, places, sampled))
        for one in told[0].outputs if told else ():
            self.generating.add(one.request_id)
            self.asked[one.request_id].output += one.new_token_ids
        self._tell_states()
        return [self._forget(name) for name, own in owns.items() if own.is_finished()]

    def cancel(self, request: Any) -> None:
        name = next((name for name, known in self.asked.items() if known is request), None)
        if name is not None:
            self.core.finish_requests(name, RequestStatus.FINISHED_ABORTED)
            self._forget(name)
        elif request.state is None:
            raise ValueError("the request was never added")

    def _chunk(self, name: str, start: int, count: int) -> Chunk:
        own, end = self.core.requests[name], start + count
        ids = tuple(self.block_manager.block_ids(own))
        return Chunk(self.asked[name], name, start, tuple(own.all_token_ids[start:end]), ids, end == own.num_tokens)

    def _tell_states(self) -> None:
        for name, own in self.core.requests.items():
            self.asked[name].state = own.status

    def _forget(self, name: str) -> Any:
        request = self.asked.pop(name)
        request.state = "FINISHED"
        self.generating.discard(name)
        return request


class _NoGrammar:
    """The part of vLLM's structured outputs that its scheduler asks about every request."""

    def accept_tokens(self, request: Request, tokens: list[int]) -> bool:
        return True


def _request(
    tokens: Iterable[int], hasher: Any, *, max_tokens: int, stops: Iterable[int] = (), **given: Any
) -> Request:
    params = SamplingParams(max_tokens=max_tokens, stop_token_ids=[int(token) for token in stops])
    return Request(next(_names), [int(token) for token in tokens], params, None, block_hasher=hasher, **given)


def _cache_config(num_blocks: int, block_size: int) -> KVCacheConfig:
    layer = FullAttentionSpec(block_size=block_size, num_kv_heads=1, head_size=1, dtype=torch.float32)
    return KVCacheConfig(num_blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], layer)])


def _engine_config() -> VllmConfig:
    """Of the smallest model at hand: a scheduler asks it for little more than its kind. What differs is set later."""
    model = ModelConfig(str(golden.ROOT / "models" / "tiny-qwen3"), skip_tokenizer_init=True, dtype="float32")
    limits = SchedulerConfig(
        max_model_len=model.max_model_len,
        max_num_batched_tokens=model.max_model_len,
        is_encoder_decoder=False,
        policy="priority",
        async_scheduling=False,
    )
    cache = CacheConfig()
    cache.num_gpu_blocks = 1
    device = DeviceConfig("cpu")
    return VllmConfig(model_config=model, cache_config=cache, scheduler_config=limits, device_config=device)


ENGINE = _engine_config()
"""Made here: vLLM starts a process to look at a model, which on a slow machine takes longer than a call may."""
