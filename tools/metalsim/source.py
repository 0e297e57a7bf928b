"""A light scanner for Metal source: tokens, matched brackets, line markers, and edits that keep both.

Metal Shading Language is C++ with a few more words. Turning it into plain C++ needs no parser, only to know which
words are code (not strings, comments or directives), which brackets belong together, and from which file and line a
word came. Every pass of the rewriting works on that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# One alternative for each kind of token. `>` is never joined with what follows (`>>` closes two templates), `<<` is (it
# opens none). A directive takes its whole line, continued lines too.
_TOKEN = re.compile(
    r"""
      (?P<directive> ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)* )
    | (?P<comment>   //[^\n]* | /\*.*?\*/ )
    | (?P<string>    R"(?P<delimiter>[^()\s\\]*)\(.*?\)(?P=delimiter)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<name>      [A-Za-z_]\w* )
    | (?P<number>    \.?\d(?:[eEpP][+-]|['\w.])* )
    | (?P<mark>      ::|->|<<=|<<|<=|>=|==|!=|&&|\|\||\+\+|--|\.\.\.|[-+*/%&|^]=|[^\s\w] )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_LINE_MARKER = re.compile(r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"((?:\\.|[^"\\])*)")?')
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A word of the source. kind: ``name``, ``number``, ``string`` (characters too) or ``mark``."""

    kind: str
    text: str
    start: int
    end: int


class Place(NamedTuple):
    """A file, as the source's own line markers name it, and a line of it, from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Unbalanced(ValueError):
    """A bracket without its other half."""

    def __init__(self, bracket: str, place: Place) -> None:
        super().__init__(f"'{bracket}' has no counterpart")
        self.place = place


@dataclass
class Source:
    """Source text with its tokens.

    text: what was scanned. name: the file's name before any line marker. tokens: all but comments and directives.
    partner: index of a bracket's token -> index of its other half, for ( ) [ ] { }, both ways.
    """

    text: str
    name: str = "<source>"
    tokens: list[Token] = field(default_factory=list, init=False)
    partner: dict[int, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        # Where a file or line starts anew: offset of a line's start, the file, and the number of that line less the
        # lines of the text before it.
        self._starts: list[int] = [0]
        self._files: list[tuple[str, int]] = [(self.name, 1)]
        self._lines = [0, *(m.end() for m in re.finditer("\n", self.text))]
        open_brackets: list[int] = []
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup or ""
            if kind == "delimiter":  # a raw string's: the group that closed last is the string all the same
                kind = "string"
            if kind == "directive":
                self._marker(match)
            elif kind != "comment":
                self.tokens.append(Token(kind, match.group(), match.start(), match.end()))
                if kind == "mark":
                    self._pair(open_brackets)
        if open_brackets:
            raise Unbalanced(self.tokens[open_brackets[-1]].text, self.place(open_brackets[-1]))

    def _marker(self, match: re.Match[str]) -> None:
        marker = _LINE_MARKER.match(match.group())
        if not marker:
            return
        following = bisect_right(self._lines, match.start())  # the index of the line after the directive's
        file = marker.group(2) if marker.group(2) is not None else self._files[-1][0]
        self._starts.append(match.end())
        self._files.append((file.replace('\\"', '"').replace("\\\\", "\\"), int(marker.group(1)) - following))

    def _pair(self, open_brackets: list[int]) -> None:
        index = len(self.tokens) - 1
        bracket = self.tokens[index].text
        if bracket in _CLOSING:
            open_brackets.append(index)
        elif bracket in (")", "]", "}"):
            if not open_brackets:
                raise Unbalanced(bracket, self.place(index))
            opening = open_brackets.pop()
            if _CLOSING[self.tokens[opening].text] != bracket:  # more often the opening one is left alone
                raise Unbalanced(self.tokens[opening].text, self.place(opening))
            self.partner[opening], self.partner[index] = index, opening

    def place(self, index: int) -> Place:
        """Where the token ``index`` came from."""
        offset = self.tokens[index].start if index < len(self.tokens) else len(self.text)
        file, shift = self._files[bisect_right(self._starts, offset) - 1]
        return Place(file, bisect_right(self._lines, offset) - 1 + shift)

    def words(self, start: int, end: int) -> str:
        """The tokens from ``start`` up to ``end`` (left out), one space between each two."""
        return " ".join(token.text for token in self.tokens[start:end])

    def is_attribute(self, index: int) -> bool:
        """Whether ``[[`` starts at the token ``index``."""
        tokens = self.tokens
        return (
            tokens[index].text == "["
            and index + 1 < len(tokens)
            and tokens[index + 1].text == "["
            and tokens[index + 1].start == tokens[index].end
            and self.partner[index + 1] + 1 == self.partner[index]
        )

    def attributes(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The ``[[…]]`` among the tokens from ``start`` up to ``end``: index of the first token and past the last."""
        index = start
        while index < end:
            if self.tokens[index].text == "[" and self.is_attribute(index):
                yield index, self.partner[index] + 1
                index = self.partner[index]
            index += 1

    def past_angle(self, index: int) -> int:
        """The index past the ``>`` that closes the ``<`` at ``index``; ``index + 1`` if none does: a comparison, or
        ``operator<``."""
        if index and self.tokens[index - 1].text == "operator":
            return index + 1
        depth, here = 0, index
        while here < len(self.tokens):
            text = self.tokens[here].text
            if text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return here + 1
            elif text in _CLOSING:
                here = self.partner[here]
            elif text in (";", "}", ")", "]"):
                break
            here += 1
        return index + 1

    def before_angle(self, index: int) -> int:
        """The index before the ``<`` that the ``>`` at ``index`` closes; ``index - 1`` if it closes none."""
        depth, here = 0, index
        while here >= 0:
            text = self.tokens[here].text
            if text == ">":
                depth += 1
            elif text == "<":
                depth -= 1
                if depth == 0:
                    return here - 1
            elif text in (")", "]"):
                here = self.partner[here]
            elif text in (";", "{", "}", "(", "["):
                break
            here -= 1
        return index - 1

    def split(self, start: int, end: int, separator: str = ",") -> list[tuple[int, int]]:
        """The parts of a list: the token ranges between separators that no bracket, ``<>`` included, encloses."""
        parts, first, here = [], start, start
        while here < end:
            text = self.tokens[here].text
            if text in _CLOSING:
                here = self.partner[here]
            elif text == "<":
                here = self.past_angle(here) - 1
            elif text == separator:
                parts.append((first, here))
                first = here + 1
            here += 1
        if first < end:
            parts.append((first, end))
        return parts


class Edits:
    """Replacements in a source, made in one go. Newlines and directives of what is taken out stay, so that lines keep
    their numbers; an edit inside a piece that another edit takes out is dropped."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._edits: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, text: str = "") -> None:
        """Put ``text`` for the tokens from ``start`` up to ``end`` (left out)."""
        tokens = self.source.tokens
        self._edits.append((tokens[start].start, tokens[end - 1].end, text))

    def insert(self, index: int, text: str) -> None:
        """Put ``text`` before the token ``index``."""
        self._edits.append((self.source.tokens[index].start,) * 2 + (text,))

    def apply(self) -> str:
        """The text with all edits made."""
        text, pieces, position = self.source.text, [], 0
        # At one place: what is put in comes first, then the longest piece that is taken out.
        for start, end, new in sorted(self._edits, key=lambda edit: (edit[0], edit[0] < edit[1], -edit[1])):
            if start < position:
                continue
            pieces += [text[position:start], new, _skeleton(text[start:end])]
            position = end
        return "".join([*pieces, text[position:]])


def _skeleton(text: str) -> str:
    """What of a removed piece keeps the lines after it in place: its newlines and directives."""
    if "\n" not in text:
        return ""
    return "\n".join(line if line.lstrip().startswith("#") else "" for line in text.split("\n"))
