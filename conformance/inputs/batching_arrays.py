"""Stories of batches whose arrays are views, are used again, or are read again later."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.batching_script import FEW, SEVERAL, Script, Sizes, needing, small
from inferspec.conformance.strategies import Pick


@needing(slots=FEW)
def in_all_views(pick: Pick, prompts: Sizes = small) -> Call:
    """Prompts, tokens and queries are views."""
    script = Script(pick, prompts)
    for _ in range(pick.size(1, min(script.slots, 2))):
        script.add()
        script.all_laid()
    for _ in range(pick.size(1, 2)):
        number = script.step()
        script.all_laid()
    if script.key_dim == script.value_dim:
        script.attend(number)
        script.all_laid()
    return script.call()


@needing(slots=FEW)
def overwritten(pick: Pick, prompts: Sizes = small) -> Call:
    """The caller uses its arrays again after each step."""
    script = Script(pick, prompts)
    script.fill()
    for number in range(1, len(script.steps) + 1):
        if pick.one_of(True, False):
            script.do("overwrite", step=number)
    for _ in range(pick.size(1, 3)):
        script.do("overwrite", step=script.step())
    script.step()
    return script.call()


@needing(slots=SEVERAL)
def kept_results(pick: Pick, prompts: Sizes = small) -> Call:
    """Earlier results are read again at the end."""
    script = Script(pick, prompts)
    script.add()
    for _ in range(pick.size(1, 3)):
        script.step()
        script.event()
    if script.active:
        script.add(slot=script.remove())
    script.step()
    for number in script.updates[:-1]:
        script.do("reread", step=number)
    return script.call()


@needing(slots=FEW)
def kept_whole(pick: Pick) -> Call:
    """All slots are taken by requests of one length, so that there is nothing to pad; what an update returned is read
    again when others have taken their places."""
    script = Script(pick)
    length = small(pick)
    for slot in range(script.slots):
        script.add(length, slot)
    for _ in range(pick.size(1, 2)):
        script.step()
    for slot in script.active[: pick.one_of(script.slots, 1)]:
        script.remove(slot)
        script.add(length, slot)
    script.step()
    for number in script.updates[:-1]:
        script.do("reread", step=number)
    return script.call()


@needing(slots=SEVERAL)
def kept_masks(pick: Pick) -> Call:
    """What an update returned is read again when other requests have had one as large, with the same lengths in other slots."""
    script = Script(pick)
    lengths, new = [small(pick) + slot for slot in range(script.slots)], pick.one_of(1, 2, 3)
    for turn in (lengths, lengths[::-1]):
        for slot, length in enumerate(turn):
            if slot in script.active:
                script.remove(slot)
            script.add(length, slot)
        script.step(new)
    script.do("reread", step=script.updates[0])
    return script.call()
