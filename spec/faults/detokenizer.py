"""Mistakes in streaming detokenisation, and other honest ways to do it."""

from __future__ import annotations

from inferspec.spec.changes import detokenizer as changes
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.generation import (
    TEXT_01,
    TEXT_02,
    TEXT_03,
    TEXT_04,
    TEXT_05,
    TEXT_06,
    TEXT_07,
    TEXT_08,
)

MLX_LM = "https://github.com/ml-explore/mlx-lm"
TIRED = "the kind of slip that tired hands make"


TEXT_FAULTS: tuple[Fault, ...] = (
    Fault(
        "detokenizer-blocks",
        "ids are decoded in blocks of 256, and characters between two of them break",
        TEXT_01,
        changes.opens(changes.Blocks),
        TIRED,
    ),
    Fault(
        "detokenizer-first-2048",
        "of more than 2048 ids those past them are not decoded",
        TEXT_01,
        changes.opens(changes.FirstOnes),
        TIRED,
    ),
    Fault("detokenizer-ids-of-16-bits", "ids are kept in 16 bits", TEXT_01, changes.opens(changes.SixteenBits), TIRED),
    Fault(
        "detokenizer-nul",
        "a NUL is taken for no byte at all, and comes out as the letter that stands for it",
        TEXT_01,
        changes.opens(changes.Nul),
        "mlx-lm 0.32.2, BPEStreamingDetokenizer (a byte is looked up and tested for truth)",
    ),
    Fault(
        "detokenizer-no-mark",
        "U+FEFF inside a text is left out, as if it were a byte order mark",
        TEXT_01,
        changes.opens(changes.NoMark),
        TIRED,
    ),
    Fault("detokenizer-sixteen", "bytes of an id past 16 are lost", TEXT_01, changes.opens(changes.Sixteen), TIRED),
    Fault(
        "detokenizer-no-unseen",
        "characters that show nothing are left out, such as a soft hyphen and a space of no width",
        TEXT_01,
        changes.opens(changes.NoneUnseen),
        "https://github.com/spraakbanken/sparv/issues/14",
    ),
    Fault(
        "detokenizer-no-controls",
        "control characters beyond ASCII are left out",
        TEXT_01,
        changes.opens(changes.NoControls),
        "https://github.com/spraakbanken/sparv/issues/14",
    ),
    Fault("detokenizer-spaced", "a space stands between ids", TEXT_01, changes.opens(changes.Spaced), TIRED),
    Fault(
        "detokenizer-word-marks",
        "U+2581 is taken for a space, as SentencePiece has it",
        TEXT_01,
        changes.opens(changes.respelt("▁".encode(), b" ")),
        "mlx-lm, SPMStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-letters-for-bytes",
        "Ġ is taken for a space, as byte-level vocabularies have it",
        TEXT_01,
        changes.opens(changes.respelt("Ġ".encode(), b" ")),
        "mlx-lm, BPEStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-names-of-bytes",
        "the text <0x41> is taken for the byte 0x41",
        TEXT_01,
        changes.opens(changes.respelt(b"<0x41>", b"A")),
        "mlx-lm, SPMStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-skips-special",
        "texts in angle brackets are left out",
        TEXT_01,
        changes.opens(changes.SkipsSpecial),
        "skip_special_tokens of transformers",
    ),
    Fault("detokenizer-latin", "bytes are taken for characters", TEXT_01, changes.opens(changes.Latin), TIRED),
    Fault(
        "detokenizer-each-alone",
        "each id is decoded by itself",
        TEXT_02,
        changes.opens(changes.Alone),
        "mlx-lm, StreamingDetokenizer",
    ),
    Fault(
        "detokenizer-holds-two",
        "characters of three and four bytes are not waited for",
        TEXT_02,
        changes.opens(changes.HoldsTwo),
        TIRED,
    ),
    Fault(
        "detokenizer-all-waits-for-one",
        "broken bytes make all that follows wait",
        TEXT_05,
        changes.opens(changes.WaitsForUtf8),
        "https://github.com/Blaizzy/mlx-vlm/pull/1705 (strict decoding)",
    ),
    Fault(
        "detokenizer-drops-broken",
        "bytes that are no UTF-8 are left out",
        TEXT_03,
        changes.opens(changes.Dropping),
        TIRED,
    ),
    Fault(
        "detokenizer-no-replacements",
        "a real U+FFFD is left out",
        TEXT_03,
        changes.opens(changes.NoReplacements),
        TIRED,
    ),
    Fault(
        "detokenizer-one-for-each-byte",
        "a broken sequence gives a U+FFFD for each of its bytes",
        TEXT_03,
        changes.opens(changes.OneForEachByte),
        "Unicode 16, section 3.9, table 3-8",
    ),
    Fault(
        "detokenizer-not-flushed", "what was held back never comes", TEXT_04, changes.opens(changes.NotFlushed), TIRED
    ),
    Fault(
        "detokenizer-strips-the-end",
        "a cut-off character at the end is left out",
        TEXT_04,
        changes.opens(changes.StripsReplacements),
        "mlx-lm, NaiveStreamingDetokenizer (the same while it streams)",
    ),
    Fault(
        "detokenizer-all-at-the-end",
        "no text comes out before the end",
        TEXT_05,
        changes.opens(changes.AtTheEnd),
        TIRED,
    ),
    Fault(
        "detokenizer-by-words",
        "a word comes out when the next begins",
        TEXT_05,
        changes.opens(changes.ByWords),
        "transformers, TextStreamer",
    ),
    Fault(
        "detokenizer-holds-replacements",
        "a text that ends in a real U+FFFD is held back",
        TEXT_05,
        changes.opens(changes.Buffered),
        "mlx-lm, BPEStreamingDetokenizer",
    ),
    Fault(
        "detokenizer-remembers",
        "the text of an id is remembered from its first time",
        TEXT_02,
        changes.opens(changes.Remembers),
        TIRED,
    ),
    Fault(
        "detokenizer-once-in-a-row",
        "of equal ids in a row one comes out",
        TEXT_01,
        changes.opens(changes.OnceInARow),
        TIRED,
    ),
    Fault(
        "detokenizer-trims-the-first-space",
        "the first space of a text is lost",
        TEXT_06,
        changes.opens(changes.Trims),
        f"{MLX_LM}/pull/1754",
    ),
    Fault(
        "detokenizer-trims-the-start",
        "white space at the start of a text is lost",
        TEXT_06,
        changes.opens(changes.TrimsTheStart),
        TIRED,
    ),
    Fault(
        "detokenizer-cleans-up",
        "spaces before punctuation are lost",
        TEXT_06,
        changes.opens(changes.CleansUp),
        f"{MLX_LM}/pull/1347",
    ),
    Fault(
        "detokenizer-cleans-quotes",
        "spaces around an apostrophe are lost",
        TEXT_06,
        changes.opens(changes.CleansQuotes),
        "https://github.com/ml-explore/mlx-examples/pull/1024",
    ),
    Fault(
        "detokenizer-strips-each",
        "spaces at the ends of each text are lost",
        TEXT_06,
        changes.opens(changes.StripsEach),
        "https://github.com/CentML/flexible-inference-bench/pull/66 (spaces merge)",
        forms=(changes.opens(changes.StripsEachOfAll), changes.opens(changes.StripsTheStartOfEach)),
    ),
    Fault(
        "detokenizer-line-breaks",
        "line breaks are made uniform",
        TEXT_06,
        changes.opens(changes.PlainLineBreaks),
        TIRED,
    ),
    Fault(
        "detokenizer-separators",
        "U+2028 and U+2029 become line breaks",
        TEXT_06,
        changes.opens(changes.PlainSeparators),
        "https://github.com/modelscope/evalscope/pull/1642",
    ),
    Fault(
        "detokenizer-shared",
        "bytes that wait are shared by all streams",
        TEXT_07,
        changes.opens(changes.Shared),
        f"{MLX_LM}/commit/d9846d37",
    ),
    Fault(
        "detokenizer-overlong",
        "the second byte after E0 may be any",
        TEXT_03,
        changes.opens(changes.by_hand(xE0=(3, 0x80, 0xBF))),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-past-the-last",
        "the second byte after F4 may be any",
        TEXT_03,
        changes.opens(changes.by_hand(xF4=(4, 0x80, 0xBF))),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-last-plane-lost",
        "no character begins with F4",
        TEXT_02,
        changes.opens(changes.by_hand(xF4=None)),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-far-planes-lost",
        "no character begins with F3",
        TEXT_02,
        changes.opens(changes.by_hand(xF3=None)),
        "Unicode 16, table 3-7",
    ),
    Fault(
        "detokenizer-from-the-end",
        "negative ids count from the end of the table",
        TEXT_08,
        {"guard": changes.from_the_end},
        "PROPERTIES X9",
    ),
    Fault(
        "detokenizer-exclaims",
        "ids outside the table give an exclamation mark",
        TEXT_08,
        {"guard": changes.unguarded, "open": lambda self, pieces: changes.Clamped(pieces)},
        "mlx-lm, BPEStreamingDetokenizer",
    ),
)


TEXT_VARIANTS: tuple[Variant, ...] = (
    Variant(
        "detokenizer-from-all-bytes",
        "all bytes are decoded anew for each id",
        "StreamingDetokenizer",
        changes.opens(changes.FromAllBytes),
    ),
    Variant(
        "detokenizer-by-hand",
        "bytes are read one by one, and what is broken comes out at once",
        "StreamingDetokenizer",
        changes.opens(changes.by_hand()),
    ),
)
