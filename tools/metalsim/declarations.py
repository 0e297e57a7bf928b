"""What a source declares at namespace and class scope: functions, classes, variables, and where each begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from .source import Source

Kind = Literal["function", "class", "namespace", "instantiation", "other"]

# Names before a parenthesis that is not a parameter list.
_NOT_PARAMETERS = {"alignas", "decltype", "__attribute__", "noexcept", "explicit", "sizeof", "__declspec"}


@dataclass(frozen=True)
class Declaration:
    """One declaration, by the indices of its tokens.

    start: its first token. head: past the last token before its body or ``;``. body: its braces, None without.
    end: past its last token. parameters: the parentheses of a function. scope: names of the namespaces and classes
    that it is in. klass: the opening brace of the class that it is in, None outside. kind: ``instantiation`` is an
    explicit one (``template`` without ``<``).
    """

    kind: Kind
    start: int
    head: int
    end: int
    body: tuple[int, int] | None
    parameters: tuple[int, int] | None
    scope: tuple[str, ...]
    klass: int | None

    @property
    def name_index(self) -> int | None:
        """The token of a function's name (the last word of it: ``)`` of ``operator()``)."""
        return self.parameters[0] - 1 if self.parameters else None


def declarations(source: Source) -> Iterator[Declaration]:
    """All declarations at namespace and class scope; those inside a namespace or class come after its own."""
    yield from _Scanner(source).scope(0, len(source.tokens), (), None)


def past_template(source: Source, start: int, end: int) -> int:
    """The index past the ``template <…>`` (one or more) that a declaration may start with."""
    tokens = source.tokens
    while start + 1 < end and tokens[start].text == "template" and tokens[start + 1].text == "<":
        start = source.past_angle(start + 1)
    return start


class _Scanner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens

    def scope(self, start: int, end: int, scope: tuple[str, ...], klass: int | None) -> Iterator[Declaration]:
        tokens, partner = self.tokens, self.source.partner
        here = start
        while here < end:
            text = tokens[here].text
            if text in ("(", "["):
                here = partner[here] + 1
            elif text == ";":
                if here > start:
                    yield self._declaration(start, here, None, here + 1, scope, klass)
                start = here = here + 1
            elif (
                text == ":"
                and klass is not None
                and here == start + 1
                and tokens[start].text.startswith(("pub", "priv", "prot"))
            ):
                start = here = here + 1
            elif text == "{":
                close = partner[here]
                kind = self._kind_of_braces(start, here)
                if kind is None:  # an initialiser or an enumeration: the declaration goes on
                    here = close + 1
                    continue
                past = close + 1
                if kind == "class":  # up to its `;`, with the variables that it may declare
                    while past < end and tokens[past].text != ";":
                        past += 1
                if past < end and tokens[past].text == ";":
                    past += 1
                yield self._declaration(start, here, (here, close), past, scope, klass, kind)
                if kind in ("namespace", "class"):
                    name = self._name_of_scope(start, here, kind)
                    yield from self.scope(here + 1, close, (*scope, name), here if kind == "class" else None)
                start = here = past
            else:
                here += 1

    def _declaration(
        self,
        start: int,
        head: int,
        body: tuple[int, int] | None,
        end: int,
        scope: tuple[str, ...],
        klass: int | None,
        kind: Kind = "other",
    ) -> Declaration:
        parameters = None
        if kind == "other" and self.tokens[start].text == "template" and self.tokens[start + 1].text != "<":
            kind = "instantiation"
        if kind in ("function", "other", "instantiation"):
            parameters = self._parameters(start, head)
            if kind == "other" and parameters:
                kind = "function"
        return Declaration(kind, start, head, end, body, parameters, scope, klass)

    def _kind_of_braces(self, start: int, brace: int) -> Kind | None:
        """What the braces at ``brace`` are the body of; None: of no declaration that matters here."""
        tokens = self.tokens
        first = self._past_attributes(past_template(self.source, start, brace), brace)
        words = [tokens[i].text for i in self._top_level(first, brace)]
        if not words:
            return None
        if words[0] == "namespace" or words[:2] == ["inline", "namespace"]:
            return "namespace"
        if words[0] == "extern" and brace == start + 2:
            return "namespace"
        if "enum" in words:
            return None
        parameters = self._parameters(start, brace)
        if parameters is None:
            keyword = next((i for i, word in enumerate(words) if word in ("struct", "class", "union")), None)
            return "class" if keyword is not None and "=" not in words[keyword:] else None
        after = [tokens[i].text for i in self._top_level(parameters[1] + 1, brace)]
        if "=" in after:
            return None
        if ":" in after and (tokens[brace - 1].kind == "name" or tokens[brace - 1].text == ">"):
            return None  # a member of a constructor's list: `: x{0}`
        return "function"

    def _parameters(self, start: int, end: int) -> tuple[int, int] | None:
        """The parentheses of a function's parameters."""
        tokens, partner = self.tokens, self.source.partner
        here = past_template(self.source, start, end)
        while here < end:
            text = tokens[here].text
            if text == "=" and tokens[here - 1].text != "operator":
                return None  # a variable's initialiser
            if text == "(" and self._may_hold_parameters(start, here):
                return (here, partner[here]) if here > start and self._names_function(here - 1) else None
            if text in ("(", "[", "{"):
                here = partner[here]
            elif text == "<":
                here = self.source.past_angle(here) - 1
            here += 1
        return None

    def _may_hold_parameters(self, start: int, parenthesis: int) -> bool:
        """Whether it is neither the one of `operator()` nor of a word that takes an expression."""
        previous = self.tokens[parenthesis - 1].text if parenthesis > start else ""
        if previous == "operator" and self.source.partner[parenthesis] == parenthesis + 1:
            return False
        return previous not in _NOT_PARAMETERS

    def _names_function(self, index: int) -> bool:
        token = self.tokens[index]
        if token.kind == "name" or token.text in (">", ")"):
            return True
        return any(self.tokens[i].text == "operator" for i in range(max(0, index - 2), index))

    def _top_level(self, start: int, end: int) -> Iterator[int]:
        """The tokens that no bracket encloses."""
        here = start
        while here < end:
            if self.tokens[here].text in ("(", "[", "{"):
                here = self.source.partner[here]
            elif self.tokens[here].text == "<":
                here = self.source.past_angle(here) - 1
            else:
                yield here
            here += 1

    def _past_attributes(self, start: int, end: int) -> int:
        while start < end and self.source.is_attribute(start):
            start = self.source.partner[start] + 1
        return start

    def _name_of_scope(self, start: int, brace: int, kind: Kind) -> str:
        words = ("namespace",) if kind == "namespace" else ("struct", "class", "union")
        here = next(
            (
                i
                for i in self._top_level(past_template(self.source, start, brace), brace)
                if self.tokens[i].text in words
            ),
            None,
        )
        if here is None:
            return ""
        names = [i for i in self._top_level(here + 1, brace) if self.tokens[i].kind == "name"]
        return self.tokens[names[0]].text if names else ""
