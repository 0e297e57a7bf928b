"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/detokenizer.py`."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.generation import (
    Detokenizer,
)


def opens(detokenizer: Callable[[Sequence[bytes]], Any]) -> Change:
    return {"open": lambda self, pieces: detokenizer(pieces)}


LEADS: Mapping[int, tuple[int, int, int]] = {
    **dict.fromkeys(range(0xC2, 0xE0), (2, 0x80, 0xBF)),
    **dict.fromkeys(range(0xE0, 0xF0), (3, 0x80, 0xBF)),
    **dict.fromkeys(range(0xF0, 0xF5), (4, 0x80, 0xBF)),
    0xE0: (3, 0xA0, 0xBF),
    0xED: (3, 0x80, 0x9F),
    0xF0: (4, 0x90, 0xBF),
    0xF4: (4, 0x80, 0x8F),
}
"""First byte of a character -> how many it has, and what the second may be (Unicode 16, table 3-7)."""


def by_hand(**leads: tuple[int, int, int] | None) -> type[Detokenizer]:
    """A decoder of one's own, which tells what is broken as soon as it can be known. leads: first bytes (``xE0``) that it
    reads otherwise, or not at all."""
    table = {**LEADS, **{int(lead[1:], 16): entry for lead, entry in leads.items()}}

    class ByHand(Detokenizer):
        def __init__(self, pieces: Sequence[bytes]) -> None:
            super().__init__(pieces)
            self.rest = b""

        def add(self, token: int) -> str:
            return self.text(self.pieces[token])

        def finish(self) -> str:
            return "\ufffd" * bool(self.rest)

        def text(self, data: bytes) -> str:
            out = ""
            for byte in data:
                if self.rest and not self.continues(byte):
                    out, self.rest = out + "\ufffd", b""
                if self.rest or table.get(byte):
                    self.rest += bytes([byte])
                else:
                    out += chr(byte) if byte < 0x80 else "\ufffd"
                if self.rest and len(self.rest) == self.entry()[0]:
                    out, self.rest = out + self.character(), b""
            return out

        def character(self) -> str:
            code = self.rest[0] & (0x7F >> len(self.rest))
            for byte in self.rest[1:]:
                code = code << 6 | byte & 0x3F
            return chr(min(code, 0x10FFFF))

        def entry(self) -> tuple[int, int, int]:
            return table[self.rest[0]] or (1, 0, 0)

        def continues(self, byte: int) -> bool:
            _, low, high = self.entry()
            return low <= byte <= high if len(self.rest) == 1 else 0x80 <= byte <= 0xBF

    return ByHand


class Alone(Detokenizer):
    def add(self, token: int) -> str:
        return self.pieces[token].decode("utf-8", "replace")

    def finish(self) -> str:
        return ""


class Dropping(Detokenizer):
    """Bytes that are no character by themselves are left out."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.decoder = codecs.getincrementaldecoder("utf-8")("ignore")


class FlushesTwice(Detokenizer):
    """Of three bytes the last makes a replacement character of its own."""

    def finish(self) -> str:
        held, _ = self.decoder.getstate()
        return super().finish() * (2 if len(held) == 3 else 1)


class KnownByTheFirstByte(Detokenizer):
    """What comes of an id is decoded once for each first byte and number of those that are held back."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.known: dict[tuple[int, bytes, int], tuple[str, tuple[bytes, int]]] = {}

    def add(self, token: int) -> str:
        held, _ = self.decoder.getstate()
        key = token, held[:1], len(held)
        if key not in self.known:
            text = super().add(token)
            self.known[key] = text, self.decoder.getstate()
        text, state = self.known[key]
        self.decoder.setstate(state)
        return text


def respelt(before: bytes, after: bytes) -> type[Detokenizer]:
    """Pieces are taken for entries of a vocabulary that spells some bytes otherwise."""

    class Respelt(Detokenizer):
        def __init__(self, pieces: Sequence[bytes]) -> None:
            super().__init__([piece.replace(before, after) for piece in pieces])

    return Respelt


class SkipsSpecial(Detokenizer):
    def add(self, token: int) -> str:
        piece = self.pieces[token]
        return "" if piece[:1] == b"<" and piece[-1:] == b">" else super().add(token)


class SkipsBracketed(Detokenizer):
    def add(self, token: int) -> str:
        return "" if re.fullmatch(rb"\[[A-Z_]+\]", self.pieces[token]) else super().add(token)


class Unescapes(Detokenizer):
    """What stands for a line break in quotes becomes one."""

    def add(self, token: int) -> str:
        return super().add(token).replace("\\n", "\n")


class NoModifiers(Detokenizer):
    """What only changes how the character before it looks is left out."""

    def add(self, token: int) -> str:
        return re.sub("[\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]", "", super().add(token))


class LooksBack(Detokenizer):
    """Only the last six ids are decoded together: what a character began with before them is lost."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.held = 0

    def add(self, token: int) -> str:
        text = super().add(token)
        self.held = self.held + 1 if self.decoder.getstate()[0] and not text else 0
        if self.held < 6:
            return text
        self.held = 0
        rest = self.decoder.decode(b"", final=True)
        self.decoder.reset()
        return text + rest


class SentTwice(Detokenizer):
    """While a character is not complete, the text before it is out up to its last ideograph, or to its last space; what is out
    then counts as if it were not where the next text has its space earlier."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.open, self.sent = "", 0

    def add(self, token: int) -> str:
        text = super().add(token)
        self.open += text
        if not self.decoder.getstate()[0]:
            again, self.open, self.sent = self.open[self.sent :], "", 0
            return again if len(again) > len(text) else text
        ideograph = any("\u4e00" <= letter <= "\u9fff" for letter in self.open[-2:])
        self.sent = len(self.open) if ideograph else self.open.rfind(" ") + 1
        return text


class Remembers(Detokenizer):
    """The text of an id is looked up where it came before."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.texts: dict[int, str] = {}

    def add(self, token: int) -> str:
        if token not in self.texts:
            self.texts[token] = super().add(token)
        return self.texts[token]


class OnceInARow(Detokenizer):
    """An id that comes again at once is taken for a step that was repeated."""

    last = -1

    def add(self, token: int) -> str:
        before, self.last = self.last, token
        return "" if token == before else super().add(token)


class OnceInACharacter(Detokenizer):
    """The same while bytes are held back: of a byte that a character has twice in a row one is left."""

    last = -1

    def add(self, token: int) -> str:
        before, self.last = self.last, token
        return "" if token == before and self.decoder.getstate()[0] else super().add(token)


class BeginsAnewOnceRefused(Detokenizer):
    """What is held back is gone once an id was refused."""

    def add(self, token: int) -> str:
        if token >= len(self.pieces):
            self.decoder.reset()
        return super().add(token)


class BeginsAnewOnceRefusedTwice(Detokenizer):
    """What is held back is gone once two ids were refused one after the other."""

    refused = 0

    def add(self, token: int) -> str:
        self.refused = self.refused + 1 if token >= len(self.pieces) else 0
        if self.refused == 2:
            self.decoder.reset()
        return super().add(token)


class FlushesOnceRefused(Detokenizer):
    """What is held back is taken for cut off once an id was refused."""

    late = ""

    def add(self, token: int) -> str:
        if token >= len(self.pieces):
            self.late += super().finish()
        text = super().add(token)
        late, self.late = self.late, ""
        return late + text


class Cesu8(Detokenizer):
    """Two halves of a pair, each as if it were a character, are the character that UTF-16 has for them."""

    pair = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
    begun = re.compile(rb"(\xed([\xa0-\xaf]([\x80-\xbf](\xed([\xb0-\xbf])?)?)?)?)?\Z")
    rest = b""

    def add(self, token: int) -> str:
        data = self.pair.sub(self.joined, self.rest + self.pieces[token])
        whole = next(match.start() for match in self.begun.finditer(data))
        self.rest = data[whole:]
        return self.decoder.decode(data[:whole])

    def joined(self, match: re.Match[bytes]) -> bytes:
        halves = match[0].decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16").encode()

    def finish(self) -> str:
        return self.decoder.decode(self.rest, final=True)


class Latin(Detokenizer):
    def add(self, token: int) -> str:
        return self.pieces[token].decode("latin-1")


class Blocks(Detokenizer):
    """The ids are decoded in blocks of 256: what is cut between two is broken."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.count = 0

    def add(self, token: int) -> str:
        self.count += 1
        rest = self.finish() if self.count % 256 == 0 else ""
        if rest:
            self.decoder.reset()
        return rest + super().add(token)


class FirstOnes(Detokenizer):
    """A buffer of 2048 ids takes no more."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.count = 0

    def add(self, token: int) -> str:
        self.count += 1
        return super().add(token) if self.count <= 2048 else ""


class SixteenBits(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token % 2**16)


class Nul(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).replace("\x00", "\u0100")


class NoMark(Detokenizer):
    """U+FEFF is taken for a byte order mark wherever it stands."""

    def add(self, token: int) -> str:
        return super().add(token).replace("\ufeff", "")


class NoSpaceAfterCut(by_hand()):  # type: ignore[misc]
    """The space that shows that a character is cut off is taken for its end."""

    def text(self, data: bytes) -> str:
        out = ""
        for byte in data:
            cut = bool(self.rest) and not self.continues(byte)
            text = super().text(bytes([byte]))
            out += text[:-1] if cut and byte == ord(" ") else text
        return out


class NoneUnseen(Detokenizer):
    """Format characters are left out."""

    def add(self, token: int) -> str:
        return re.sub("[\u00ad\u200b\u2060\u202a-\u202e]", "", super().add(token))


class NoControls(Detokenizer):
    """Control characters beyond ASCII are left out."""

    def add(self, token: int) -> str:
        return re.sub("[\x80-\x9f]", "", super().add(token))


class Sixteen(Detokenizer):
    """Bytes of an id are copied into a buffer of 16."""

    def add(self, token: int) -> str:
        return self.decoder.decode(self.pieces[token][:16])


class BufferOf128(Detokenizer):
    """Bytes of an id are copied into a buffer of 128."""

    def add(self, token: int) -> str:
        return self.decoder.decode(self.pieces[token][:128])


class SpaceFirst(Detokenizer):
    """An id without bytes before all others, as one that begins a text, is a space."""

    started = False

    def add(self, token: int) -> str:
        first, self.started = not self.started, True
        return " " if first and not self.pieces[token] else super().add(token)


class Spaced(Detokenizer):
    """A space stands between the texts of ids."""

    started = False

    def add(self, token: int) -> str:
        text = super().add(token)
        space = " " if self.started and text else ""
        self.started = self.started or bool(text)
        return space + text


class Buffered(Detokenizer):
    """All bytes so far that are not out yet are decoded anew, unless the text seems cut."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.data = b""

    def add(self, token: int) -> str:
        self.data += self.pieces[token]
        text = self.data.decode("utf-8", "replace")
        if self.seems_cut(text):
            return ""
        self.data = b""
        return text

    def seems_cut(self, text: str) -> bool:
        return text.endswith("\ufffd")

    def finish(self) -> str:
        return self.data.decode("utf-8", "replace")


class WaitsForUtf8(Buffered):
    """Decoding is strict, and what fails waits."""

    def seems_cut(self, text: str) -> bool:
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return True
        return False


class LineBreaksFlush(Buffered):
    """A line break before what seems cut ends a piece of text: what begins behind it is lost."""

    def add(self, token: int) -> str:
        text = super().add(token)
        shown = self.data.decode("utf-8", "replace").removesuffix("\ufffd")
        if text or not shown.endswith("\n"):
            return text
        self.data = b""
        return shown


def joins(together: Callable[[str, str], bool]) -> type[Detokenizer]:
    """What is out is compared with what is to come out by what a reader takes for one character: one that the next id goes on
    with comes out again. together: whether a character and the one behind it are one to a reader."""

    class Joins(Detokenizer):
        last = ""

        def add(self, token: int) -> str:
            text = super().add(token)
            before, self.last = self.last, text[-1:] or self.last
            return before + text if before and text and together(before, text[0]) else text

    return Joins


JOINED: Mapping[str, tuple[str, Callable[[str, str], bool]]] = {
    "combined": ("a mark that joins it", lambda before, char: bool(unicodedata.combining(char))),
    "syllable": ("a vowel or final of its Hangul syllable", lambda before, char: "\u1160" <= char <= "\u11ff"),
    "conjunct": ("the consonant that a virama joins to it", lambda before, char: unicodedata.combining(before) == 9),
    "flag": ("a letter of the tag of its flag", lambda before, char: "\U000e0020" <= char <= "\U000e007f"),
    "keycap": ("the frame of a key around it", lambda before, char: unicodedata.category(char) == "Me"),
    "variant": ("a selector of its variant", lambda before, char: "\U000e0100" <= char <= "\U000e01ef"),
}
"""What is one character to a reader -> what the next id begins with, and whether two characters are one so."""


class HoldsTwo(Buffered):
    """Only so many bytes are waited for as the shorter characters have."""

    def seems_cut(self, text: str) -> bool:
        return super().seems_cut(text) and len(self.data) < 2


class StripsReplacements(Buffered):
    def finish(self) -> str:
        return super().finish().rstrip("\ufffd")


class NoReplacements(Detokenizer):
    """Any U+FFFD is taken for half a character and left out."""

    def add(self, token: int) -> str:
        return super().add(token).replace("\ufffd", "")


class OneForEachByte(Buffered):
    """A broken sequence gives one U+FFFD for each of its bytes."""

    def add(self, token: int) -> str:
        self.data += self.pieces[token]
        return ""

    def finish(self) -> str:
        text = ""
        decoded = self.data.decode("utf-8", "surrogateescape")
        for character in decoded:
            text += "\ufffd" if 0xDC80 <= ord(character) <= 0xDCFF else character
        return text


class NotFlushed(Detokenizer):
    def finish(self) -> str:
        return ""


class AtTheEnd(Buffered):
    def seems_cut(self, text: str) -> bool:
        return True


class ByWords(Buffered):
    """Texts come out when the next word begins."""

    def add(self, token: int) -> str:
        text = super().add(token)
        self.data += text.encode()[len(text[: text.rfind(" ")].encode()) if " " in text else 0 :]
        return text[: text.rfind(" ")] if " " in text else ""


class Trims(Detokenizer):
    """The first space of all is taken off, as of a sentencepiece model's."""

    started = False

    def add(self, token: int) -> str:
        text = super().add(token)
        if text and not self.started:
            self.started = True
            return text.removeprefix(" ")
        return text


class TrimsTheStart(Detokenizer):
    """White space is taken off until there is something else."""

    started = False

    def add(self, token: int) -> str:
        text = super().add(token)
        text = text if self.started else text.lstrip()
        self.started = self.started or bool(text)
        return text


class CleansUp(Detokenizer):
    """Spaces before punctuation are taken off."""

    def add(self, token: int) -> str:
        text = super().add(token)
        for before, after in ((" .", "."), (" ,", ","), (" 's", "'s")):
            text = text.replace(before, after)
        return text


class CleansQuotes(Detokenizer):
    """Spaces around an apostrophe are taken off."""

    def add(self, token: int) -> str:
        return super().add(token).replace(" ' ", "'")


class StripsEach(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).strip(" ")


class StripsEachOfAll(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).strip()


class StripsTheStartOfEach(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).lstrip()


class PlainLineBreaks(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).replace("\r\n", "\n").replace("\r", "\n")


class PlainSeparators(Detokenizer):
    """Whatever ends a line for `str.splitlines` becomes a line break."""

    def add(self, token: int) -> str:
        return re.sub("[\u2028\u2029]", "\n", super().add(token))


class Shared(Detokenizer):
    """Bytes that wait are kept in one place, that of the stream which was opened last."""

    latest: ClassVar[list[Detokenizer]] = []

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.latest[:] = [self]

    def add(self, token: int) -> str:
        return self.latest[0].decoder.decode(self.pieces[token])

    def finish(self) -> str:
        return self.latest[0].decoder.decode(b"", final=True)


def from_the_end(self: Operation, a: Arguments) -> None:
    for token in (*a.tokens, *a.beside):
        if token >= len(a.pieces):
            raise ValueError(f"no id {token}")


class Clamped(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token) if 0 <= token < len(self.pieces) else "!"


def unguarded(self: Operation, a: Arguments) -> None:
    """Nothing is refused."""


class FromAllBytes(Detokenizer):
    """All bytes are decoded anew each time; what is new of the text up to its last whole character comes out."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.data, self.out = b"", 0

    def add(self, token: int) -> str:
        self.data += self.pieces[token]
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(self.data)
        new, self.out = text[self.out :], len(text)
        return new

    def finish(self) -> str:
        return self.data.decode("utf-8", "replace")[self.out :]
