"""Private variables, for the checker: behind `float sum;` comes

    ::msl::watched sum_watched(sum);

which says that nothing is in it yet, and an array, initialised or not, gets room around it that nobody may touch:

    typedef float part_as_private[4]; ::msl::zoned<part_as_private> part_zone; auto& part = part_zone.value; ::msl::watched …

Only what certainly is a declaration with plain types, in a block of its own, is rewritten: not constants, not members of
classes, not `int a[] = {…}`, and nothing directly in a `switch`, whose cases C++ does not let jump past objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from inferspec.tools.metalsim.declarations import Declaration
from inferspec.tools.metalsim.source import Edits, Source

_INTEGER_WORDS = {"unsigned", "signed", "long", "short", "int", "char"}
# What a statement begins with that is no declaration of such variables.
_OTHERS = {
    *("return", "break", "continue", "goto", "delete", "throw", "operator", "new", "sizeof", "this"),
    *("using", "typedef", "struct", "class", "union", "enum", "template", "friend", "namespace", "static_assert"),
    *("static", "extern", "constexpr", "const", "volatile", "auto", "decltype", "alignas", "void", "inline"),
    *("device", "constant", "threadgroup", "ray_data", "object_data", "threadgroup_imageblock"),
}


def rewrite(source: Source, declared: Iterable[Declaration], edits: Edits) -> None:
    """Have the checker watch the private variables of all functions."""
    for declaration in declared:
        if declaration.kind != "function" or declaration.body is None:
            continue
        head = source.tokens[declaration.start : declaration.head]
        if not any(token.text == "constexpr" for token in head):
            opening, closing = declaration.body
            _Body(source, edits).block(opening + 1, closing, declares=True)


class _Body:
    """The statements of a function."""

    def __init__(self, source: Source, edits: Edits) -> None:
        self.source, self.tokens, self.edits = source, source.tokens, edits

    def block(self, here: int, closing: int, declares: bool) -> None:
        """Go through a block's statements. declares: whether its own variables can be watched."""
        while here < closing:
            here = self.statement(here, closing, declares)

    def statement(self, here: int, closing: int, declares: bool) -> int:
        """Go through the statement at `here`; the index past it, or past the part of it that was understood."""
        tokens, partner, text = self.tokens, self.source.partner, self.tokens[here].text
        if text == "{":
            self.block(here + 1, partner[here], declares=True)
            return partner[here] + 1
        if text in ("if", "for", "while", "switch"):
            opening = here + 2 if tokens[here + 1].text == "constexpr" else here + 1
            past = partner[opening] + 1
            if text == "switch" and tokens[past].text == "{":
                self.block(past + 1, partner[past], declares=False)
                return partner[past] + 1
            return self.statement(past, closing, declares=False) if past < closing else closing
        if text in ("else", "do"):
            return self.statement(here + 1, closing, declares=False)
        if text in ("case", "default"):
            return self._past(here, closing, ":")
        if text == "[" and self.source.is_attribute(here):
            return partner[here] + 1
        if text == "_Pragma":
            return partner[here + 1] + 1
        past = self._past(here, closing, ";")
        if declares and tokens[past - 1].text == ";":
            self._watch(here, past - 1)
        return past

    def _past(self, here: int, closing: int, mark: str) -> int:
        while here < closing and self.tokens[here].text != mark:
            here = self.source.partner[here] if self.tokens[here].text in ("(", "[", "{") else here
            here += 1
        return min(here + 1, closing)

    def _watch(self, start: int, end: int) -> None:
        """Watch what the statement declares, if it is a declaration; its `;` is at `end`."""
        first = self._past_type(start, end)
        if first is None or first >= end or self.tokens[first].kind != "name":
            return
        declarators = self.source.split(first, end)
        names = [self._declarator(*declarator) for declarator in declarators]
        if names[0] is None:
            return
        if len(names) == 1 and names[0][1] > first + 1:
            self._watch_array(start, first, names[0][1], end)
            return
        watched = [
            self.tokens[begin].text
            for (begin, past), name in zip(declarators, names, strict=True)
            if name and name[1] == past
        ]
        self.edits.replace(end, end + 1, ";" + "".join(f" ::msl::watched {name}_watched({name});" for name in watched))

    def _past_type(self, here: int, end: int) -> int | None:
        tokens = self.tokens
        while tokens[here].text in ("thread", "typename"):
            here += 1
        if tokens[here].kind != "name" or tokens[here].text in _OTHERS:
            return None
        if tokens[here].text in _INTEGER_WORDS:
            while tokens[here].text in _INTEGER_WORDS:
                here += 1
            return here
        here += 1
        while here < end:
            if tokens[here].text == "::":
                here += 2
            elif tokens[here].text == "<":
                past = self.source.past_angle(here)
                if past == here + 1:
                    return None
                here = past
            else:
                break
        return here

    def _declarator(self, begin: int, past: int) -> tuple[int, int] | None:
        """Of a variable or array: its name, and the index past its bounds; None for what else it may be."""
        if self.tokens[begin].kind != "name":
            return None
        here = begin + 1
        while here < past and self.tokens[here].text == "[" and self.source.partner[here] > here + 1:
            here = self.source.partner[here] + 1
        return (begin, here) if here == past or self.tokens[here].text in ("=", "{") else None

    def _watch_array(self, start: int, name_index: int, past_bounds: int, end: int) -> None:
        tokens, edits = self.tokens, self.edits
        name = tokens[name_index].text
        zone = f"::msl::zoned<{name}_as_private> {name}_zone"
        named = f"auto& {name} = {name}_zone.value; ::msl::watched {name}_watched({name}_zone, {{}});"
        if past_bounds == end:
            edits.replace(end, end + 1, f"; {zone}; {named.format('false')}")
        else:
            value = past_bounds + 1 if tokens[past_bounds].text == "=" else past_bounds
            if tokens[value].text != "{":
                return
            if value > past_bounds:
                edits.replace(past_bounds, value, "")
            edits.insert(value, f"; {zone} = {{MSL_BEFORE ")
            edits.replace(end, end + 1, f" MSL_AFTER}}; {named.format('true')}")
        edits.insert(start, "typedef ")
        edits.replace(name_index, name_index + 1, f"{name}_as_private")
