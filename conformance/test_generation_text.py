"""Does an implementation of streaming detokenisation keep the contract?"""

from inferspec.conformance.inputs.generation import (
    JOINED,
    LONG_WORDS,
    OUTSIDE,
    PAST,
    PLANES,
    SAME_ENDS,
    SPELLINGS,
    UNSEEN,
    bytes_alone,
    first_byte_calls,
    text_calls,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import listed, refuses
from inferspec.conformance.strategies import among
from inferspec.conformance.suite import requirement
from inferspec.spec import generation as spec

plain_text = text_calls(leading_spaces=[False], control_characters=[False])


@requirement(spec.TEXT_01, call=text_calls(leading_spaces=[False]))
def test_the_texts_joined_are_the_decoded_ids(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=text_calls(leading_spaces=[False], repeats=(40, 200, 1000)), share=0.2)
def test_hundreds_of_ids_are_decoded(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=text_calls(leading_spaces=[False], others=(140_000, 300)), share=0.03)
def test_ids_of_large_tables_are_decoded(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=text_calls(leading_spaces=[False], again=True), share=0.5)
def test_ids_may_come_again_and_again(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=text_calls(leading_spaces=[False], texts=SPELLINGS, whole=True), share=0.3)
def test_what_vocabularies_spell_otherwise_stays_as_it_is(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=plain_text(texts=LONG_WORDS, whole=True), share=0.1)
def test_ids_of_hundreds_of_bytes_are_decoded(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=plain_text(texts=UNSEEN), share=0.3)
def test_characters_that_show_nothing_come_out(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_01, call=plain_text(texts=JOINED), share=0.4)
def test_characters_that_are_one_to_a_reader_come_out_once(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=plain_text(texts=("é", "ß", "à", "€", "\u200d", "🙂", "𝄞", "a"), again=True), share=0.5)
def test_characters_may_have_ids_in_common(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=plain_text(texts=("日本", "🙂", "é", "€", "𝄞", "a", "👩‍👩‍👧")))
def test_characters_split_over_ids_come_out_whole(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=plain_text(texts=PLANES), share=0.5)
def test_characters_of_every_plane_come_out_whole(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=first_byte_calls(), share=0.1)
def test_the_first_and_last_character_of_every_first_byte_come_out_whole(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=bytes_alone(), share=0.2)
def test_characters_of_bytes_that_are_ids_come_out_whole(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_02, call=bytes_alone(texts=SAME_ENDS), share=0.1)
def test_characters_that_begin_and_end_alike_are_told_apart(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_03, call=plain_text(broken=OUTSIDE), share=0.5)
def test_bytes_that_look_like_characters_give_replacement_characters(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_03, call=first_byte_calls(broken=True), share=0.1)
def test_what_lies_just_outside_the_characters_of_a_first_byte_gives_replacement_characters(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_03, call=plain_text(broken=PAST), share=0.5)
def test_bytes_past_utf8_and_characters_that_are_cut_off_give_replacement_characters(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_03, call=plain_text(broken=True, replacements=True))
def test_broken_bytes_give_replacement_characters(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_03, call=plain_text(replacements=True), share=0.5)
def test_real_replacement_characters_stay(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_04, call=plain_text(cut=True))
def test_a_text_cut_inside_a_character_ends_in_a_replacement(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_04, call=plain_text(cut=("🙂", "𝄞", "€", "\U00040000")), share=0.2)
def test_a_text_that_lacks_the_last_byte_of_four_ends_in_one_replacement(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_05, call=plain_text(broken=True, replacements=True, seen=("shown",)))
def test_characters_come_out_as_soon_as_they_are_complete(subject, call):
    """What is broken may be told sooner than by the oracle, which waits for bytes that can change nothing."""
    shown, wanted = subject.parts(call)["shown"], subject.answer(call)["shown"].value
    if shown.shape != wanted.shape or (shown < wanted).any():
        raise Nonconformance(f"characters out after each id: {listed(shown)}, not {listed(wanted)}", call)


@requirement(spec.TEXT_05, call=plain_text(seen=("shown",)), share=0.5)
def test_ordinary_text_comes_out_as_soon_as_it_is_complete(subject, call):
    subject.agrees(call)


@requirement(
    spec.TEXT_06,
    call=text_calls(
        control_characters=[False],
        texts=(" ", "a", "  ", " ,", ".", "\n", "\r\n", " 's", " ' ", "\t", "\u00a0", "\u2028", "\u2029"),
    ),
)
def test_spaces_and_line_breaks_stay_where_they_are(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_06, call=plain_text(), share=0.1)
def test_an_id_without_bytes_may_be_the_first(subject, call):
    pieces, tokens = call.arguments["pieces"], call.arguments["tokens"]
    subject.agrees(call.having(tokens=(pieces.index(b""), *tokens)))


@requirement(spec.TEXT_07, call=plain_text(beside=True, seen=("text", "beside")))
def test_two_streams_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.TEXT_08, call=plain_text(), past=among([0, 7]), share=0.5)
def test_an_id_past_the_table_is_refused(subject, call, past):
    refuses(subject, call.having(tokens=(*call.arguments["tokens"], len(call.arguments["pieces"]) + past)))


@requirement(spec.TEXT_08, call=plain_text(), share=0.5)
def test_a_negative_id_is_refused(subject, call):
    refuses(subject, call.having(tokens=(-1, *call.arguments["tokens"])))


@requirement(spec.TEXT_09, call=plain_text(texts=("€", "🙂", "é", "𝄞", "a")), share=0.3)
def test_a_refused_id_changes_nothing(subject, call):
    tokens = call.arguments["tokens"]
    tries, stray = divmod(call.seed, len(tokens))
    # Who takes the id fails TEXT-08 and refuses nothing.
    if subject.observe(call.having(tokens=(*tokens[:stray], len(call.arguments["pieces"])))).raised:
        subject.agrees(call.having(stray=stray, tries=1 + tries % 3))
