"""What the judge of schedulers leaves open: a block that was computed may be exchanged for its copy, and taken by others."""

from inferspec.spec.contract import Arguments
from inferspec.spec.scheduling_histories import Check, complaints

GIVEN = {"max_tokens": 1, "priority": 0, "eos": ()}
WAITING, RUNNING = 0, 1


def prefill(request, start, token, blocks):
    """A chunk of one token of a prompt, as a story tells it."""
    samples = int(start == 1)
    return [request, start, samples, 0, 1, token, len(blocks), *blocks]


def history(*last, first=5):
    """What is wrong where two requests compute a token each, in the blocks 0 and 1, and the second waits a step in which a third
    writes into block 1.

    last: the blocks of the second request after that; first: the token that it computed, which is 5 of the other."""
    steps = (
        ("add", {"tokens": (5, 6), **GIVEN}),
        ("add", {"tokens": (first, 6), **GIVEN}),
        ("step", {}),
        ("add", {"tokens": (7, 8), **GIVEN}),
        ("step", {}),
        ("step", {}),
    )
    told = {
        "1": {"states": [WAITING], "free": 5},
        "2": {"states": [WAITING] * 2, "free": 5},
        "3": {"chunks": prefill(1, 0, 5, [0]) + prefill(2, 0, first, [1]), "states": [RUNNING] * 2, "free": 3},
        "4": {"states": [RUNNING, RUNNING, WAITING], "free": 3},
        "5": {"chunks": prefill(4, 0, 7, [1]), "states": [RUNNING] * 3, "free": 3},
        "6": {"chunks": prefill(2, 1, 6, list(last)), "states": [RUNNING] * 3, "free": 2},
    }
    parts = {f"{step} {name}": value for step, seen in told.items() for name, value in seen.items()}
    between = {f"{step} between": told[step]["states"] for step in ("3", "5", "6")}
    sizes = {"num_blocks": 5, "block_size": 1, "max_requests": 8, "max_prefill_tokens": 2}
    a = Arguments(**sizes, prefix_caching=True, together=False, ends="dropped", steps=steps)
    return [complaint.check for complaint in complaints(a, parts | between)]


def test_a_block_whose_copy_lies_elsewhere_may_be_given_to_others():
    found = history(0, 3)
    assert Check.APART not in found
    assert Check.GHOST not in found


def test_who_goes_on_with_a_block_that_others_wrote_into_is_found():
    assert Check.GHOST in history(1, 3)


def test_a_block_without_a_copy_is_its_request_s_alone():
    assert Check.APART in history(0, 3, first=9)
