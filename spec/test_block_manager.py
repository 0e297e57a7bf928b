"""What the judge of block managers leaves open: of two copies either may be the one that is known."""

from inferspec.spec import contract
from inferspec.spec.block_histories import Check, complaints

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


def told(operation, steps=STEPS):
    """The story of four blocks of a token each, and what it gives."""
    given = {"num_blocks": 4, "block_size": 1, "prefix_caching": True, "colliding": False, "steps": steps}
    story = operation.bind(given)
    return story, operation.told(story)


def judged(operation):
    """How many tokens the last step hits, and what is wrong with the story."""
    story, parts = told(operation)
    return int(parts["9 table 9"][0]), complaints(story, parts)


def variant(name):
    block_manager = contract("block_manager")
    return block_manager.variant(next(one for one in block_manager.variants if one.name == f"block-manager-{name}"))()


def test_who_knows_the_later_copy_may_forget_when_that_one_is_taken():
    assert judged(variant("latest-copy")) == (0, [])


def test_who_knows_the_first_copy_hits_it_still():
    assert judged(contract("block_manager").operation("BlockManager")()) == (1, [])


JOINED = (
    ("allocate", {"tokens": (42,)}),
    ("allocate", {"tokens": (42,)}),
    ("mark_computed", {"table": 1, "n": 1}),
    ("mark_computed", {"table": 2, "n": 1}),
    ("free", {"table": 1}),
    ("free", {"table": 2}),
    ("allocate", {"tokens": (42, 31)}),
)
"""A block and its copy are computed and given back, and the tokens asked for."""


def test_who_gives_a_table_the_copy_of_its_block_has_the_other_block_free():
    story, parts = told(variant("joins-copies"), JOINED)
    assert (list(parts["3 table 2"]), list(parts["4 table 2"]), int(parts["4 free"])) == ([0, 1, 1], [0, 1, 0], 3)
    assert complaints(story, parts) == []


def test_a_block_that_its_table_left_for_a_copy_is_known_no_more():
    story, parts = told(variant("joins-copies"), JOINED)
    parts["7 table 7"][2] = 1
    assert [complaint.check for complaint in complaints(story, parts)] == [Check.SOUND]


def test_a_table_does_not_leave_its_block_for_what_is_yet_to_be_computed():
    story, parts = told(variant("joins-copies"), (*JOINED[:2], JOINED[3], *JOINED[2:3], *JOINED[4:]))
    parts["3 table 2"][2] = 0
    assert Check.STAYS in [complaint.check for complaint in complaints(story, parts)]


def test_a_free_copy_that_a_table_is_given_is_not_free_any_more():
    other = ("allocate", {"tokens": (7,)})
    late = (*JOINED[:3], ("free", {"table": 1}), other, ("mark_computed", {"table": 5, "n": 1}), ("free", {"table": 5}))
    filling = (("mark_computed", {"table": 2, "n": 1}), ("allocate", {"tokens": (1, 2, 3)}))
    story, parts = told(variant("joins-copies"), (*late, *filling))
    assert list(parts["8 table 2"]) == [0, 1, 0]
    assert complaints(story, parts) == []


def test_tables_that_come_and_go_are_told_before_a_mark_gives_them_copies():
    story, parts = told(variant("joins-copies"), (("pass_by", {"groups": [[(42, 31), (42, 8)]]}),))
    assert [list(parts[f"1 table {k}"]) for k in (-1, -2)] == [[0, 2, 0, 1], [0, 2, 2, 3]]
    assert complaints(story, parts) == []
