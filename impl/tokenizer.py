"""Tokenizers of byte-level BPE models: text to ids, ids to text, and chat templates.

The library `tokenizers` does the work; here is what lies around it: where a model keeps its vocabulary (a folder's
`tokenizer.json`, or a GGUF file's metadata), which ids end a text, and how messages become a prompt. Needs the extra
`models`: ``pip install "inferspec[models]"``.

Source: Sennrich et al. 2016; GPT-2's byte alphabet; the GGUF specification; transformers' rendering of templates.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import mlx.core as mx

from inferspec.impl.detokenizer import StreamingDetokenizer
from inferspec.impl.loading import located

Message = Mapping[str, str]
"""``{"role": "user", "content": "…"}``"""

_CONTROL, _USER_DEFINED = 3, 4
"""Token types of GGUF: markup that no text shows, and further words."""

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS = {"qwen2": _WORDS % r"\p{N}", "llama-bpe": _WORDS % r"\p{N}{1,3}"}
"""Where GGUF's pre-tokenizers cut a text that have an expression of their own."""


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary with what belongs to it. Make one with `Tokenizer.load`.

    eos: ids that end a text; template: the chat template, or ""; specials: the texts that a template may speak of
    (``bos_token``, ``eos_token``, …); first: an id that begins every text, where the vocabulary does not say so itself.
    """

    vocabulary: Any
    eos: tuple[int, ...]
    template: str = ""
    specials: Mapping[str, str] = field(default_factory=dict)
    first: int | None = None

    @classmethod
    def load(cls, path: str | Path, revision: str | None = None) -> Tokenizer:
        """Return the tokenizer of a folder, a GGUF file or a hub repository (see `loading.located`).

        FileNotFoundError when it has none, ValueError when it is not byte-level BPE, ImportError without the extra
        `models`.
        """
        where = located(path, revision)
        return _of_gguf(where) if where.is_file() else _of_folder(where)

    def encode(self, text: str, *, whole: bool = True) -> list[int]:
        """Return the ids of a text. whole: with the ids that begin every text; a rendered template has its own."""
        ids = list(self.vocabulary.encode(text, add_special_tokens=whole).ids)
        return [self.first, *ids] if whole and self.first is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without markup."""
        stream = self.detokenizer()
        return "".join(stream.add(token) for token in ids) + stream.finish()

    def detokenizer(self, vocab_size: int = 0) -> StreamingDetokenizer:
        """Return a new stream of text. vocab_size: of the model, which may have more ids than words; they give ""."""
        pieces = self.pieces
        return StreamingDetokenizer(pieces + (b"",) * (vocab_size - len(pieces)))

    @functools.cached_property
    def pieces(self) -> tuple[bytes, ...]:
        """The bytes of each id; none for markup."""
        markup = {token for token, added in self.vocabulary.get_added_tokens_decoder().items() if added.special}
        words = {token: word for word, token in self.vocabulary.get_vocab(with_added_tokens=True).items()}
        return tuple(b"" if k in markup or k not in words else _bytes(words[k]) for k in range(max(words) + 1))

    def chat(self, messages: Sequence[Message]) -> str:
        """Render messages as the model was trained to read them, up to where its answer begins.

        ValueError when there is no template, or when it refuses the messages.
        """
        if not self.template:
            raise ValueError("the tokenizer has no chat template")
        from jinja2 import TemplateError

        try:
            return _compiled(self.template).render(messages=messages, add_generation_prompt=True, **self.specials)
        except TemplateError as error:
            raise ValueError(f"the chat template does not take these messages: {error}") from error


@functools.lru_cache(maxsize=8)
def _compiled(template: str) -> Any:
    """A template in the sandbox that transformers uses: it comes with the weights, so it is not to be trusted."""
    from jinja2 import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def as_json(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = as_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return environment.from_string(template)


def _of_folder(folder: Path) -> Tokenizer:
    import tokenizers

    file = folder / "tokenizer.json"
    if not file.exists():
        raise FileNotFoundError(f"{folder} has no tokenizer.json")
    vocabulary = tokenizers.Tokenizer.from_file(str(file))
    if '"ByteLevel"' not in str(json.loads(file.read_text(encoding="utf-8")).get("decoder")).replace("'", '"'):
        raise ValueError(f"{file} is not byte-level BPE, which is what is read here")
    settings = _json(folder / "tokenizer_config.json")
    specials = {name: _word(settings.get(name)) for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
    ends: list[int] = []
    for record in (_json(folder / "generation_config.json"), _json(folder / "config.json")):
        value = record.get("eos_token_id")
        ends += value if isinstance(value, list) else [] if value is None else [value]
    if (end := vocabulary.token_to_id(specials["eos_token"])) is not None:
        ends.append(end)
    return Tokenizer(vocabulary, tuple(dict.fromkeys(ends)), _template(folder, settings), specials)


def _template(folder: Path, settings: Mapping[str, Any]) -> str:
    """The chat template: a file of its own, or a setting, which may be a list of named ones."""
    if (file := folder / "chat_template.jinja").exists():
        return file.read_text(encoding="utf-8")
    found = settings.get("chat_template") or ""
    if isinstance(found, list):
        return next((one["template"] for one in found if one["name"] == "default"), "")
    return found


def _of_gguf(file: Path) -> Tokenizer:
    loaded = mx.load(str(file), return_metadata=True)
    assert isinstance(loaded, tuple)
    metadata = loaded[1]
    said: dict[str, Any] = {
        key.removeprefix("tokenizer.ggml."): value.tolist() if isinstance(value, mx.array) else value
        for key, value in metadata.items()
    }
    if "tokens" not in said:
        raise FileNotFoundError(f"{file} has no vocabulary")
    if said.get("model") != "gpt2":
        raise ValueError(f"{file}: its tokenizer is {said.get('model')!r}; byte-level BPE (gpt2) is what is read here")
    words = said["tokens"]
    vocabulary = _byte_level(said, file)
    ends = (said.get(key) for key in ("eos_token_id", "eot_token_id", "eom_token_id"))
    marks = {name: said.get(f"{key}_token_id") for name, key in _MARKS.items()}
    specials = {name: "" if token is None else words[token] for name, token in marks.items()}
    first = said["bos_token_id"] if said.get("add_bos_token") else None
    eos = tuple(dict.fromkeys(token for token in ends if token is not None))
    return Tokenizer(vocabulary, eos, said.get("tokenizer.chat_template", ""), specials, first)


_MARKS = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}


def _byte_level(said: Mapping[str, Any], file: Path) -> Any:
    """The vocabulary of a GGUF file, cut as its pre-tokenizer says."""
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
    from tokenizers import Tokenizer as Vocabulary

    words, kind = said["tokens"], said.get("pre", "default")
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in said["merges"])]
    ids = {word: token for token, word in enumerate(words)}
    vocabulary = Vocabulary(models.BPE(vocab=ids, merges=merges, ignore_merges=kind == "llama-bpe"))
    if kind in ("gpt-2", "default"):
        vocabulary.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif kind == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        vocabulary.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    elif kind in _SPLITS:
        split = pre_tokenizers.Split(Regex(_SPLITS[kind]), "isolated")
        letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        vocabulary.pre_tokenizer = pre_tokenizers.Sequence([split, letters])
        if kind == "qwen2":
            vocabulary.normalizer = normalizers.NFC()
    else:
        taken = ", ".join(("gpt-2", "smollm", *_SPLITS))
        raise ValueError(f"{file}: its pre-tokenizer is {kind!r}; it takes {taken}")
    vocabulary.decoder = decoders.ByteLevel()
    types = said.get("token_type", ())
    for types_of, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        marks = [words[token] for token, of in enumerate(types) if of == types_of]
        vocabulary.add_tokens([AddedToken(word, special=special, normalized=False) for word in marks])
    return vocabulary


@functools.cache
def _alphabet() -> dict[str, int]:
    """GPT-2's letter of each byte: itself where it is printable, else one from 256 on, in order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}


def _bytes(word: str) -> bytes:
    """What a word of the vocabulary stands for; an added one may be plain text."""
    alphabet = _alphabet()
    return bytes(alphabet[letter] for letter in word) if all(letter in alphabet for letter in word) else word.encode()


def _word(value: Any) -> str:
    """A special token of a `tokenizer_config.json`: a text, an object with one, or nothing."""
    return value.get("content", "") if isinstance(value, dict) else value or ""


def _json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
