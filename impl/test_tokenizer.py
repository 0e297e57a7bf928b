"""Tokenizers against the ids that transformers gave to the goldens' prompts, and what surrounds a vocabulary."""

import json

import pytest

from inferspec.golden import models
from inferspec.impl.tokenizer import Tokenizer

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")

TINY = "tiny-qwen3"


def loaded(name):
    try:
        return Tokenizer.load(models.weights_of(name))
    except models.NotInstalled as error:
        pytest.skip(str(error))


def copied(tmp_path, **settings):
    """A folder with the tiny tokenizer, and what a tokenizer_config.json says."""
    source = models.weights_of(TINY)
    (tmp_path / "tokenizer.json").write_bytes((source / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    return tmp_path


@pytest.mark.parametrize("name", models.names())
def test_prompts_have_the_ids_that_transformers_gives_them(name):
    tokenizer = loaded(name)
    for prompt in models.read(name).prompts:
        text = tokenizer.chat(prompt.chat) if prompt.chat else prompt.text
        assert text == prompt.text
        assert tokenizer.encode(text, whole=not prompt.chat) == list(prompt.ids), prompt.name


@pytest.mark.parametrize("name", models.names())
def test_any_text_comes_back_as_it_was(name):
    tokenizer = loaded(name)
    text = " Übergröße,  日本 🙂👩‍👩‍👧\r\n\tx = 12345.6e7;\x00 end "
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_markup_is_read_and_not_shown():
    tokenizer = loaded(TINY)
    ids = tokenizer.encode("<|im_start|>user\nRuth<|im_end|>")
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.decode(ids) == "user\nRuth"


def test_the_ends_are_those_of_all_settings(tmp_path):
    folder = copied(tmp_path, eos_token={"content": "<|im_end|>"})
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 7}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 7]}))
    assert Tokenizer.load(folder).eos == (5, 7, 2)


def test_ids_that_the_model_has_and_the_vocabulary_has_not_give_nothing():
    stream = loaded(TINY).detokenizer(vocab_size=600)
    assert stream.add(599) == ""
    with pytest.raises(ValueError, match="token is 600; it takes 0 … 599"):
        stream.add(600)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}", "<s>hi"),
        ("{% for m in messages %}{% if loop.index > 0 %}{% break %}{% endif %}{% endfor %}{{ messages | tojson }}",
         '[{"role": "user", "content": "hi"}]'),
        ([{"name": "tools", "template": "x"}, {"name": "default", "template": "{{ messages[0].role }}"}], "user"),
    ],
)  # fmt: skip
def test_templates_are_rendered_as_transformers_does(tmp_path, template, text):
    tokenizer = Tokenizer.load(copied(tmp_path, chat_template=template, bos_token="<s>"))
    assert tokenizer.chat([{"role": "user", "content": "hi"}]) == text


def test_a_template_of_its_own_file_goes_first(tmp_path):
    folder = copied(tmp_path, chat_template="setting")
    (folder / "chat_template.jinja").write_text("file")
    assert Tokenizer.load(folder).chat([]) == "file"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("", "the tokenizer has no chat template"),
        ("{{ raise_exception('no system') }}", "does not take these messages: no system"),
        ("{{ messages.append(1) }}", "does not take these messages"),
        ("{{ ''.__class__.__mro__ }}", "does not take these messages"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(tmp_path, template, message):
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(copied(tmp_path, chat_template=template)).chat([{"role": "user", "content": "hi"}])


def test_a_folder_without_a_vocabulary_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        Tokenizer.load(tmp_path)


def test_a_vocabulary_that_is_not_byte_level_is_refused(tmp_path):
    from tokenizers import Tokenizer as Vocabulary
    from tokenizers import models as kinds

    Vocabulary(kinds.WordLevel({"a": 0}, "a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="not byte-level BPE"):
        Tokenizer.load(tmp_path)
