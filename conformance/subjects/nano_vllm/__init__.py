"""A block manager and a scheduler written from the nano-vLLM post alone, beside the kit's own: another design of both.

A block knows its owners and its content; a sequence owns its table; the free blocks are queues; content is known by a
cumulative hash. Where the post's code, as it is printed, breaks the contract, this one does not: a table is freed once,
an allocation takes all its blocks or none, a block is known once it was computed, admission counts the blocks that are
left, what can never run is refused. `tools/test_nano_vllm.py` puts those mistakes back, one by one.
"""

NAME = "nano_vllm"
VERSION = "1"
ARRAYS = "numpy"
WAIVERS = "nano_vllm.toml"
ENVELOPE = {"scheduler": {"ends": ["kept"]}}
