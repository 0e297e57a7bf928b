"""What the judge of block managers leaves open: of two copies either may be the one that is known."""

from inferspec.spec import contract
from inferspec.spec.block_histories import complaints

STEPS = (
    ("allocate", {"tokens": (42,)}),
    ("allocate", {"tokens": (42,)}),
    ("mark_computed", {"table": 1, "n": 1}),
    ("allocate", {"tokens": (42, 31)}),
    ("mark_computed", {"table": 2, "n": 1}),
    ("free", {"table": 2}),
    ("allocate", {"tokens": (3, 4)}),
    ("free", {"table": 7}),
    ("allocate", {"tokens": (42, 31)}),
)
"""A block is hit, its copy is computed, given back and taken; then the block is asked for."""


def judged(operation):
    """How many tokens the last step hits, and what is wrong with the story."""
    told = operation.bind(
        {"num_blocks": 4, "block_size": 1, "prefix_caching": True, "colliding": False, "steps": STEPS}
    )
    parts = operation.told(told)
    return int(parts["9 table 9"][0]), complaints(told, parts)


def test_who_knows_the_later_copy_may_forget_when_that_one_is_taken():
    block_manager = contract("block_manager")
    latest = next(one for one in block_manager.variants if one.name == "block-manager-latest-copy")
    assert judged(block_manager.variant(latest)()) == (0, [])


def test_who_knows_the_first_copy_hits_it_still():
    assert judged(contract("block_manager").operation("BlockManager")()) == (1, [])
