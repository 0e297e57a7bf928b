"""`--layout course`: generation and speculative decoding, as students write them."""

from __future__ import annotations

import pytest

from inferspec.conformance.reporting.certificate import BAD
from inferspec.tools.course_caches import OLDER_CACHE, OLDEST_CACHE, TEXT_CACHE
from inferspec.tools.course_package import BASICS, GENERATE, KV_CACHE, files

STARTER = """
def simple_generate(model, tokenizer, prompt, sampler):
    def _step(model, y):
        pass

def simple_generate_with_kv_cache(model, tokenizer, prompt):
    def _step(model, y, offset, kv_cache):
        pass
"""


def test_a_function_of_stubs_alone_is_a_stub(as_course):
    about = as_course(files(generate=STARTER, basics=BASICS)).description
    assert about.absent["generate"] == "simple_generate is a stub"


WITH_CACHE = """
import mlx.core as mx
from .kv_cache import TinyKvFullCache

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = mx.array(tokenizer.encode(prompt))
    while True:
        logits = model(tokens[None])[:, -1]
        token = mx.argmax(logits, -1) if sampler is None else sampler(logits - mx.logsumexp(logits, -1, keepdims=True))
        if token.item() == tokenizer.eos_token_id:
            return tokenizer.detokenizer.text
        tokenizer.detokenizer.add_token(token.item())
        tokens = mx.concatenate([tokens, token])

def simple_generate_with_kv_cache(model, tokenizer, prompt, max_tokens=3):
    caches, tokens, offset = [TinyKvFullCache() for _ in range(model.num_hidden_layers)], tokenizer.encode(prompt), 0
    for _ in range(max_tokens):
        token = mx.argmax(model(mx.array([tokens]), offset, caches)[:, -1], -1).item()
        offset, tokens = offset + len(tokens), [token]
        if token == tokenizer.eos_token_id:
            return
        tokenizer.detokenizer.add_token(token)
"""
UNBATCHED = """
def simple_generate(model, tokenizer, prompt, sampler):
    tokens, detokenizer = tokenizer._tokenizer.encode(prompt), tokenizer._detokenizer
    detokenizer.reset()
    while (token := sampler(model(tokens)[-1]).item()) not in tokenizer._eos_token_ids:
        tokens.append(token)
        detokenizer.add_token(token)
    detokenizer.finalize()
    return detokenizer.text
"""
OF_A_BATCHING_MODEL = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens, detokenizer = tokenizer.encode(prompt), tokenizer.detokenizer
    choose = sampler or (lambda logits: mx.argmax(logits, axis=-1))
    while (token := choose(model(tokens)[:, -1, :]).item()) != tokenizer.eos_token_id:
        tokens.append(token)
        detokenizer.add_token(token)
"""
GENERATIONS = {
    "a cache whose tokens are the second axis": {"generate": WITH_CACHE, "kv_cache": TEXT_CACHE},
    "a cache that is told the offset": {"generate": WITH_CACHE, "kv_cache": OLDEST_CACHE},
    "lists without a batch, and always a sampler": {"generate": UNBATCHED},
    "lists of which the model makes a batch": {"generate": OF_A_BATCHING_MODEL},
}


@pytest.mark.parametrize("modules", GENERATIONS.values(), ids=GENERATIONS)
def test_generation_is_taken_as_students_write_it(certify, modules):
    run = certify(
        files(**modules),
        "--impl",
        "student",
        "--layout",
        "course",
        "-k",
        "test_generation and (favours or refused or turn or sampler)",
    )
    bad = {row["id"]: row["failures"] for row in run.certificate["requirements"] if row["state"] in BAD}
    assert set(bad) <= {"GEN-22"}, bad
    assert {run.row(name)["state"] for name in ("GEN-11", "GEN-12")} == {"passed"}


def test_ids_are_the_same_with_a_cache_that_takes_no_sampler(judge):
    written = files(generate=WITH_CACHE, kv_cache=TEXT_CACHE)
    run = judge(written, "GEN-02")
    assert run.row("GEN-02")["state"] == "passed"


UNSIGNED = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = mx.array(tokenizer.encode(prompt))
    while True:
        token = (sampler or (lambda row: mx.argmax(row, axis=-1)))(model(tokens[None])[:, -1, :])
        if token == tokenizer.eos_token_id:
            break
        tokenizer.detokenizer.add_token(token.item())
        tokens = mx.concatenate([tokens, token])
"""


def test_ids_that_are_arrays_of_unsigned_numbers_may_be_compared_with_the_end(judge):
    run = judge(files(generate=UNSIGNED), "GEN-02")
    assert run.row("GEN-02")["state"] == "passed"


HANDS_OVER_THE_END = """
import mlx.core as mx

def simple_generate(model, tokenizer, prompt, sampler):
    tokens = tokenizer.encode(prompt)
    while True:
        token = (sampler or (lambda row: mx.argmax(row, axis=-1)))(model(mx.array([tokens]))[:, -1, :]).item()
        tokenizer.detokenizer.add_token(token)
        if token == tokenizer.eos_token_id:
            break
        tokens.append(token)
"""
ENDS = ("GEN-05", "GEN-06", "GEN-07", "GEN-08")


def test_the_end_may_be_handed_over_in_editions_that_do_not_say_that_it_is_not(judge):
    run = judge(files(generate=HANDS_OVER_THE_END), *ENDS)
    assert [run.row(name)["state"] for name in ENDS] == ["passed"] * 4
    since = judge(files(generate=HANDS_OVER_THE_END, week2_kernels=""), "GEN-06")
    assert since.row("GEN-06")["state"] == "failed"


SILENT = """
def simple_generate(model, tokenizer, prompt, sampler):
    tokens = tokenizer.encode(prompt)
    while True:
        tokens.append(model(tokens)[-1].argmax().item() + 1)
        print(tokenizer.decode(tokens), end="")
"""


def test_ids_that_are_handed_to_nobody_do_not_hold_up_the_loading(as_course):
    assert "generate" in as_course(files(generate=SILENT)).description.offers


def test_ids_that_are_handed_to_nobody_are_no_hang(judge):
    run = judge(files(generate=SILENT), "GEN-02")
    assert run.row("GEN-02")["state"] == "failed"
    assert "no id is handed to the detokenizer" in run.row("GEN-02")["message"]


OF_A_WRONG_OFFSET = WITH_CACHE.replace("offset, tokens = offset + len(tokens), [token]", "offset, tokens = 5, [token]")


def test_an_offset_that_is_not_the_cache_s_is_a_failure_and_no_refusal(judge):
    written = files(generate=OF_A_WRONG_OFFSET, kv_cache=OLDER_CACHE)
    run = judge(written, "GEN-01")
    assert run.row("GEN-01")["state"] == "failed"
    assert "the offset is 5 where the cache holds" in run.row("GEN-01")["message"]


LAST_ROWS = WITH_CACHE.replace("offset, caches)[:, -1]", "offset, caches, logits_to_keep=1).reshape(1, -1)")


def test_a_model_gives_as_many_rows_of_logits_as_it_is_asked_for(judge):
    assert LAST_ROWS != WITH_CACHE
    run = judge(files(generate=LAST_ROWS, kv_cache=TEXT_CACHE), "GEN-01")
    assert run.row("GEN-01")["state"] == "passed"


NO_LAYERS = WITH_CACHE.replace("[TinyKvFullCache() for _ in range(model.num_hidden_layers)]", "[]")


def test_a_list_of_no_caches_is_filled_by_the_model(judge):
    assert NO_LAYERS != WITH_CACHE
    run = judge(files(generate=NO_LAYERS, kv_cache=TEXT_CACHE), "GEN-01")
    assert run.row("GEN-01")["state"] == "passed"


# speculative decoding


SPECULATIVE = ("SPEC-23", "SPEC-24", "SPEC-25", "SPEC-26", "SPEC-27", "SPEC-28", "SPEC-29", "SPEC-30", "SPEC-31",
               "SPEC-37", "SPEC-39", "SPEC-40", "SPEC-41", "SPEC-42", "SPEC-51", "SPEC-52", "SPEC-54")  # fmt: skip


def test_speculative_decoding_of_the_course_is_judged_by_its_sentences(judge):
    run = judge(files(generate=GENERATE), *SPECULATIVE, "SPEC-34", "SPEC-38", "SPEC-48")
    assert {name: run.row(name)["state"] for name in SPECULATIVE} == dict.fromkeys(SPECULATIVE, "passed")
    assert {run.row(name)["state"] for name in ("SPEC-34", "SPEC-38", "SPEC-48")} == {"outside_envelope"}


SPECULATIVE_MISTAKES = {
    "SPEC-23": ("last = wanted[kept]", "last = wanted[-1]"),
    "SPEC-26": ("if token == tokenizer.eos_token_id:\n                return text.text\n", "if False:\n                return text.text\n"),
    "SPEC-28": ("_rewind(caches, len(tokens))\n        _rewind(draft", "_rewind(caches, len(tokens) - (kept == 1))\n        _rewind(draft"),
    "SPEC-39": ("while len(drafts) < proposal_length:", "while len(drafts) < min(proposal_length, 2):"),
}  # fmt: skip


@pytest.mark.parametrize("requirement", SPECULATIVE_MISTAKES)
def test_speculative_decoding_that_is_wrong_is_red(judge, requirement):
    right, wrong = SPECULATIVE_MISTAKES[requirement]
    assert GENERATE.count(right) == 1
    run = judge(files(generate=GENERATE.replace(right, wrong)), requirement)
    assert run.row(requirement)["state"] == "failed"


def test_each_layer_has_to_be_rewound(judge):
    first = GENERATE.replace("for layer in caches:", "for layer in caches[:1]:")
    assert first != GENERATE
    assert judge(files(generate=first), "SPEC-23").row("SPEC-23")["state"] == "failed"


BY_HAND = (
    GENERATE.replace(", proposal_length: int = 4) -> str:\n", ") -> str:\n    proposal_length = 4\n")
    .replace(
        "caches, draft_caches = model.create_kv_cache(), draft_model.create_kv_cache()",
        "caches, draft_caches = ([TinyKvFullCache() for _ in range(one.num_hidden_layers)] for one in (model, draft_model))",
    )
    .replace("import mlx.core as mx\n", "import mlx.core as mx\nfrom .kv_cache import TinyKvFullCache\n")
)


def test_speculative_decoding_of_an_older_edition_makes_its_caches_and_has_its_own_number_of_drafts(judge):
    run = judge(files(generate=BY_HAND, kv_cache=KV_CACHE), "SPEC-23", "SPEC-28", "SPEC-29", "SPEC-39")
    assert {run.row(name)["state"] for name in ("SPEC-23", "SPEC-28", "SPEC-29")} == {"passed"}
    assert run.row("SPEC-39")["state"] == "outside_envelope"
