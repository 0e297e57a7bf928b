"""Mistakes in streaming detokenisation, and other honest ways to do it."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from inferspec.spec.contract import Arguments, Change, Fault, Operation, Variant
from inferspec.spec.generation import (
    TEXT_01,
    TEXT_02,
    TEXT_03,
    TEXT_04,
    TEXT_05,
    TEXT_06,
    TEXT_07,
    TEXT_08,
    Detokenizer,
)

MLX_LM = "https://github.com/ml-explore/mlx-lm"
TIRED = "the kind of slip that tired hands make"


def _opens(detokenizer: Callable[[Sequence[bytes]], Any]) -> Change:
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


def _by_hand(**leads: tuple[int, int, int] | None) -> type[Detokenizer]:
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


class _Alone(Detokenizer):
    def add(self, token: int) -> str:
        return self.pieces[token].decode("utf-8", "replace")

    def finish(self) -> str:
        return ""


class _Dropping(Detokenizer):
    """Bytes that are no character by themselves are left out."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.decoder = codecs.getincrementaldecoder("utf-8")("ignore")


def _respelt(before: bytes, after: bytes) -> type[Detokenizer]:
    """Pieces are taken for entries of a vocabulary that spells some bytes otherwise."""

    class Respelt(Detokenizer):
        def __init__(self, pieces: Sequence[bytes]) -> None:
            super().__init__([piece.replace(before, after) for piece in pieces])

    return Respelt


class _SkipsSpecial(Detokenizer):
    def add(self, token: int) -> str:
        piece = self.pieces[token]
        return "" if piece[:1] == b"<" and piece[-1:] == b">" else super().add(token)


class _Remembers(Detokenizer):
    """The text of an id is looked up where it came before."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.texts: dict[int, str] = {}

    def add(self, token: int) -> str:
        if token not in self.texts:
            self.texts[token] = super().add(token)
        return self.texts[token]


class _OnceInARow(Detokenizer):
    """An id that comes again at once is taken for a step that was repeated."""

    last = -1

    def add(self, token: int) -> str:
        before, self.last = self.last, token
        return "" if token == before else super().add(token)


class _Latin(Detokenizer):
    def add(self, token: int) -> str:
        return self.pieces[token].decode("latin-1")


class _Nul(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).replace("\x00", "\u0100")


class _NoMark(Detokenizer):
    """U+FEFF is taken for a byte order mark wherever it stands."""

    def add(self, token: int) -> str:
        return super().add(token).replace("\ufeff", "")


class _Sixteen(Detokenizer):
    """Bytes of an id are copied into a buffer of 16."""

    def add(self, token: int) -> str:
        return self.decoder.decode(self.pieces[token][:16])


class _Spaced(Detokenizer):
    """A space stands between the texts of ids."""

    started = False

    def add(self, token: int) -> str:
        text = super().add(token)
        space = " " if self.started and text else ""
        self.started = self.started or bool(text)
        return space + text


class _Buffered(Detokenizer):
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


class _WaitsForUtf8(_Buffered):
    """Decoding is strict, and what fails waits."""

    def seems_cut(self, text: str) -> bool:
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return True
        return False


class _HoldsTwo(_Buffered):
    """Only so many bytes are waited for as the shorter characters have."""

    def seems_cut(self, text: str) -> bool:
        return super().seems_cut(text) and len(self.data) < 2


class _StripsReplacements(_Buffered):
    def finish(self) -> str:
        return super().finish().rstrip("\ufffd")


class _NoReplacements(Detokenizer):
    """Any U+FFFD is taken for half a character and left out."""

    def add(self, token: int) -> str:
        return super().add(token).replace("\ufffd", "")


class _OneForEachByte(_Buffered):
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


class _NotFlushed(Detokenizer):
    def finish(self) -> str:
        return ""


class _AtTheEnd(_Buffered):
    def seems_cut(self, text: str) -> bool:
        return True


class _ByWords(_Buffered):
    """Texts come out when the next word begins."""

    def add(self, token: int) -> str:
        text = super().add(token)
        self.data += text.encode()[len(text[: text.rfind(" ")].encode()) if " " in text else 0 :]
        return text[: text.rfind(" ")] if " " in text else ""


class _Trims(Detokenizer):
    """The first space of all is taken off, as of a sentencepiece model's."""

    started = False

    def add(self, token: int) -> str:
        text = super().add(token)
        if text and not self.started:
            self.started = True
            return text.removeprefix(" ")
        return text


class _CleansUp(Detokenizer):
    """Spaces before punctuation are taken off."""

    def add(self, token: int) -> str:
        text = super().add(token)
        for before, after in ((" .", "."), (" ,", ","), (" 's", "'s")):
            text = text.replace(before, after)
        return text


class _StripsEach(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).strip(" ")


class _PlainLineBreaks(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token).replace("\r\n", "\n").replace("\r", "\n")


class _Shared(Detokenizer):
    """Bytes that wait are kept in one place, that of the stream which was opened last."""

    latest: ClassVar[list[Detokenizer]] = []

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__(pieces)
        self.latest[:] = [self]

    def add(self, token: int) -> str:
        return self.latest[0].decoder.decode(self.pieces[token])

    def finish(self) -> str:
        return self.latest[0].decoder.decode(b"", final=True)


def _from_the_end(self: Operation, a: Arguments) -> None:
    for token in (*a.tokens, *a.beside):
        if token >= len(a.pieces):
            raise ValueError(f"no id {token}")


class _Clamped(Detokenizer):
    def add(self, token: int) -> str:
        return super().add(token) if 0 <= token < len(self.pieces) else "!"


def _unguarded(self: Operation, a: Arguments) -> None:
    """Nothing is refused."""


TEXT_FAULTS: tuple[Fault, ...] = (
    Fault(
        "detokenizer-nul",
        "a NUL is taken for no byte at all, and comes out as the letter that stands for it",
        TEXT_01,
        _opens(_Nul),
        "mlx-lm 0.32.2, BPEStreamingDetokenizer (a byte is looked up and tested for truth)",
    ),
    Fault(
        "detokenizer-no-mark",
        "U+FEFF inside a text is left out, as if it were a byte order mark",
        TEXT_01,
        _opens(_NoMark),
        TIRED,
    ),
    Fault("detokenizer-sixteen", "bytes of an id past 16 are lost", TEXT_01, _opens(_Sixteen), TIRED),
    Fault("detokenizer-spaced", "a space stands between ids", TEXT_01, _opens(_Spaced), TIRED),
    Fault(
        "detokenizer-word-marks",
        "U+2581 is taken for a space, as SentencePiece has it",
        TEXT_01,
        _opens(_respelt("▁".encode(), b" ")),
        "mlx-lm, SPMStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-letters-for-bytes",
        "Ġ is taken for a space, as byte-level vocabularies have it",
        TEXT_01,
        _opens(_respelt("Ġ".encode(), b" ")),
        "mlx-lm, BPEStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-names-of-bytes",
        "the text <0x41> is taken for the byte 0x41",
        TEXT_01,
        _opens(_respelt(b"<0x41>", b"A")),
        "mlx-lm, SPMStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-skips-special",
        "texts in angle brackets are left out",
        TEXT_01,
        _opens(_SkipsSpecial),
        "skip_special_tokens of transformers",
    ),
    Fault("detokenizer-latin", "bytes are taken for characters", TEXT_01, _opens(_Latin), TIRED),
    Fault(
        "detokenizer-each-alone",
        "each id is decoded by itself",
        TEXT_02,
        _opens(_Alone),
        "mlx-lm, StreamingDetokenizer",
    ),
    Fault(
        "detokenizer-holds-two",
        "characters of three and four bytes are not waited for",
        TEXT_02,
        _opens(_HoldsTwo),
        TIRED,
    ),
    Fault(
        "detokenizer-all-waits-for-one",
        "broken bytes make all that follows wait",
        TEXT_05,
        _opens(_WaitsForUtf8),
        "https://github.com/Blaizzy/mlx-vlm/pull/1705 (strict decoding)",
    ),
    Fault("detokenizer-drops-broken", "bytes that are no UTF-8 are left out", TEXT_03, _opens(_Dropping), TIRED),
    Fault("detokenizer-no-replacements", "a real U+FFFD is left out", TEXT_03, _opens(_NoReplacements), TIRED),
    Fault(
        "detokenizer-one-for-each-byte",
        "a broken sequence gives a U+FFFD for each of its bytes",
        TEXT_03,
        _opens(_OneForEachByte),
        "Unicode 16, section 3.9, table 3-8",
    ),
    Fault("detokenizer-not-flushed", "what was held back never comes", TEXT_04, _opens(_NotFlushed), TIRED),
    Fault(
        "detokenizer-strips-the-end",
        "a cut-off character at the end is left out",
        TEXT_04,
        _opens(_StripsReplacements),
        "mlx-lm, NaiveStreamingDetokenizer (the same while it streams)",
    ),
    Fault("detokenizer-all-at-the-end", "no text comes out before the end", TEXT_05, _opens(_AtTheEnd), TIRED),
    Fault(
        "detokenizer-by-words",
        "a word comes out when the next begins",
        TEXT_05,
        _opens(_ByWords),
        "transformers, TextStreamer",
    ),
    Fault(
        "detokenizer-holds-replacements",
        "a text that ends in a real U+FFFD is held back",
        TEXT_05,
        _opens(_Buffered),
        "mlx-lm, BPEStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-remembers",
        "the text of an id is remembered from its first time",
        TEXT_02,
        _opens(_Remembers),
        TIRED,
    ),
    Fault("detokenizer-once-in-a-row", "of equal ids in a row one comes out", TEXT_01, _opens(_OnceInARow), TIRED),
    Fault(
        "detokenizer-trims-the-first-space",
        "the first space of a text is lost",
        TEXT_06,
        _opens(_Trims),
        f"{MLX_LM}/pull/1754",
    ),
    Fault(
        "detokenizer-cleans-up",
        "spaces before punctuation are lost",
        TEXT_06,
        _opens(_CleansUp),
        f"{MLX_LM}/pull/1347",
    ),
    Fault(
        "detokenizer-strips-each",
        "spaces at the ends of each text are lost",
        TEXT_06,
        _opens(_StripsEach),
        "https://github.com/CentML/flexible-inference-bench/pull/66 (spaces merge)",
    ),
    Fault("detokenizer-line-breaks", "line breaks are made uniform", TEXT_06, _opens(_PlainLineBreaks), TIRED),
    Fault(
        "detokenizer-shared",
        "bytes that wait are shared by all streams",
        TEXT_07,
        _opens(_Shared),
        f"{MLX_LM}/commit/d9846d37",
    ),
    Fault(
        "detokenizer-overlong",
        "the second byte after E0 may be any",
        TEXT_03,
        _opens(_by_hand(xE0=(3, 0x80, 0xBF))),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-past-the-last",
        "the second byte after F4 may be any",
        TEXT_03,
        _opens(_by_hand(xF4=(4, 0x80, 0xBF))),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-last-plane-lost",
        "no character begins with F4",
        TEXT_02,
        _opens(_by_hand(xF4=None)),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-far-planes-lost",
        "no character begins with F3",
        TEXT_02,
        _opens(_by_hand(xF3=None)),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-from-the-end",
        "negative ids count from the end of the table",
        TEXT_08,
        {"guard": _from_the_end},
        "PROPERTIES X9",
    ),
    Fault(
        "detokenizer-exclaims",
        "ids outside the table give an exclamation mark",
        TEXT_08,
        {"guard": _unguarded, "open": lambda self, pieces: _Clamped(pieces)},
        "mlx-lm, BPEStreamingDetokenizer",
    ),
)


class _FromAllBytes(Detokenizer):
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


TEXT_VARIANTS: tuple[Variant, ...] = (
    Variant(
        "detokenizer-from-all-bytes",
        "all bytes are decoded anew for each id",
        "StreamingDetokenizer",
        _opens(_FromAllBytes),
    ),
    Variant(
        "detokenizer-by-hand",
        "bytes are read one by one, and what is broken comes out at once",
        "StreamingDetokenizer",
        _opens(_by_hand()),
    ),
)
