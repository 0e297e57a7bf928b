"""Does a generator serve one request after the other, read its arguments as they come, and pass errors on?"""

import numpy as np

from inferspec.conformance.inputs.generation import (
    ENOUGH,
    LARGE,
    generate_calls,
    paired_calls,
    paired_conversations,
    paired_ends,
)
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.properties.common import depends_on_arguments_alone, keeps_arguments, refuses
from inferspec.conformance.strategies import among, in_views
from inferspec.conformance.suite import requirement
from inferspec.spec import generation as spec

# one after the other


@requirement(spec.GEN_14, call=generate_calls(limits=(5, 4, 8, 11), untils=(None, 1, 3), seen=("ahead",)))
def test_ids_come_out_while_the_model_goes_on(subject, call):
    ahead = subject.parts(call)["ahead"]
    if (ahead > 1).any():
        late = int(np.argmax(ahead > 1))
        raise Nonconformance(f"when id {late} comes out the model is {int(ahead[late])} steps past it", call)


@requirement(spec.GEN_15, call=generate_calls(limits=(5, 1, 4, 8, 11), untils=(None, 1, 3), seen=("ahead",)))
def test_an_id_comes_out_before_the_next_step(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_16, call=generate_calls(limits=(4, 0, 1, 3, 8), seen=("reached", "drawn")))
def test_no_step_follows_the_last_id(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_16, call=generate_calls(stops=[1, 2, 3], stop_at=(0, 1, 2, 3), seen=("reached", "drawn")), share=0.5
)
def test_no_step_follows_the_end_of_sequence(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_16, call=generate_calls(untils=(1, 2, 0), limits=(4, 5), seen=("reached",)), share=0.5)
def test_no_step_follows_the_closing(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_17, call=paired_calls(orders=("turns",)))
def test_two_requests_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_17, call=paired_conversations(orders=("turns",)), share=0.15)
def test_two_requests_of_long_prompts_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_17, call=paired_conversations(orders=("turns",), lengths=(600, 300)), share=0.05)
def test_two_requests_of_hundreds_of_tokens_in_turn_do_not_mix(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_17, call=paired_calls(orders=("turns",), untils=(1, 2)), share=0.5)
def test_closing_one_request_leaves_the_other_alone(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_17, call=paired_ends(orders=("turns",), stops=[1]), share=0.5)
def test_what_ends_one_request_does_not_end_another(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_18, call=paired_calls(orders=("after",)))
def test_a_second_request_starts_afresh(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_18, call=paired_conversations(orders=("after",)), share=0.15)
def test_a_second_request_of_a_long_prompt_starts_afresh(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_18, call=paired_conversations(orders=("after",), lengths=(600, 300)), share=0.05)
def test_a_second_request_of_hundreds_of_tokens_starts_afresh(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_18, call=paired_ends(orders=("after",), stops=[1]), share=0.5)
def test_what_ended_a_request_does_not_end_the_next(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_18, call=paired_calls(orders=("after",), untils=(0, 1, 2, 3)), share=0.5)
def test_a_second_request_starts_afresh_after_an_early_end(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_18,
    call=paired_calls(orders=("after",), limits=(3, 4)),
    left=among([1, 0, 2]),
    who=among(["model", "sampler"]),
    share=0.2,
)
def test_a_second_request_starts_afresh_after_one_that_failed(subject, call, left, who):
    # Before the last id, of which there may be few: what does not fail in the first request would in the second.
    left, who = min(left, call.arguments["max_tokens"] - 1), who if call.arguments.get("sampler") else "model"
    fails = {"who": who, "left": left, "error": "RuntimeError"}
    subject.agrees(call.having(fails=fails, eos=(), seen=("beside",)))


@requirement(spec.GEN_19, call=generate_calls(lengths=(3, 1, 5, 16, 33), limits=(3, 1)))
def test_tokens_may_be_a_list_or_an_array(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_19,
    call=generate_calls(
        prompts=["array"],
        token_dtypes=["uint32"],
        vocabularies=LARGE[5:6],
        lengths=(9, 17),
        limits=(1,),
        stops=[0],
        samplers=["none"],
    ),
    share=0.04,
)
def test_large_ids_of_an_unsigned_array_are_read_as_they_are(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_19, call=in_views(generate_calls(prompts=["array"], lengths=(3, 1, 5, 16, 33), limits=(3, 1))))
def test_tokens_may_be_a_strided_view(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_20, call=generate_calls(prompts=["array"]), share=0.5)
def test_the_array_of_tokens_is_not_changed(subject, call):
    keeps_arguments(subject, call)


@requirement(spec.GEN_20, call=generate_calls(prompts=["list"], seen=("prompt",)), share=0.5)
def test_the_list_of_tokens_is_not_changed(subject, call):
    subject.agrees(call)


@requirement(spec.GEN_21, call=generate_calls(), share=0.5)
def test_another_prompt_in_between_changes_nothing(subject, call):
    tokens = call.arguments["tokens"]
    other = tokens[::-1].copy() if isinstance(tokens, np.ndarray) else tokens[::-1]
    depends_on_arguments_alone(subject, call, call.having(tokens=other, max_tokens=3))


@requirement(spec.GEN_21, call=generate_calls(), share=0.5)
def test_another_model_in_between_changes_nothing(subject, call):
    model = {**call.arguments["model"], "salt": 5}
    depends_on_arguments_alone(subject, call, call.having(model=model))


@requirement(spec.GEN_22, call=generate_calls(limits=(3, 0, 1)), share=0.5)
def test_an_empty_prompt_is_refused(subject, call):
    refuses(subject, call.having(tokens=call.arguments["tokens"][:0]))


@requirement(spec.GEN_22, call=generate_calls(limits=(3, 1), seen=("refused", "calls")), share=0.3)
def test_an_empty_prompt_is_refused_before_the_model_is_called(subject, call):
    empty = call.having(tokens=call.arguments["tokens"][:0])
    subject.expects(empty, {"refused": np.ones(1), "calls": np.zeros(1)})


@requirement(spec.GEN_23, call=generate_calls(), limit=among([-1, -2, -100]), share=0.5)
def test_a_negative_limit_is_refused(subject, call, limit):
    refuses(subject, call.having(max_tokens=limit))


@requirement(spec.GEN_23, call=generate_calls(seen=("refused", "calls")), limit=among([-1, -5]), share=0.3)
def test_a_negative_limit_is_refused_before_the_model_is_called(subject, call, limit):
    subject.expects(call.having(max_tokens=limit), {"refused": np.ones(1), "calls": np.zeros(1)})


@requirement(spec.GEN_24, call=generate_calls(limits=(3, 2, 5), seen=("whole",)))
def test_ids_are_python_integers(subject, call):
    subject.agrees(call)


@requirement(
    spec.GEN_25, call=generate_calls(prompts=["array"], lengths=(3, 2, 4)), rows=among([False, True]), share=0.5
)
def test_a_batch_of_prompts_is_refused(subject, call, rows):
    tokens = call.arguments["tokens"]
    refuses(subject, call.having(tokens=np.stack([tokens, tokens]) if rows else tokens[None]))


# the caller, and what goes wrong


@requirement(
    spec.GEN_26,
    call=generate_calls(limits=(5, 3, 8), seen=("raised",)),
    left=among([0, 1, 2]),
    error=among(["RuntimeError", "ValueError", "IndexError", "KeyError"]),
    share=0.3,
)
def test_what_the_model_raises_passes_to_the_caller(subject, call, left, error):
    fails = {"who": "model", "left": left, "error": error}
    subject.expects(call.having(fails=fails), {"raised": np.ones(1)})


@requirement(
    spec.GEN_26,
    call=generate_calls(limits=(5, 3, 8), samplers=["int", "array"], seen=("raised",)),
    left=among([0, 1, 2]),
    error=among(["RuntimeError", "ValueError", "IndexError", "KeyError"]),
    share=0.35,
)
def test_what_the_sampler_raises_passes_to_the_caller(subject, call, left, error):
    fails = {"who": "sampler", "left": left, "error": error}
    subject.expects(call.having(fails=fails), {"raised": np.ones(1)})


@requirement(
    spec.GEN_30,
    call=generate_calls(limits=(5, 3), samplers=["int", "array"], seen=("raised",)),
    who=among(["sampler", "model"]),
    left=among([0, 1, 2]),
    share=0.1,
)
def test_a_stop_iteration_of_sampler_or_model_is_no_end(subject, call, who, left):
    fails = {"who": who, "left": left, "error": "StopIteration"}
    subject.expects(call.having(fails=fails), {"raised": np.ones(1)})


@requirement(
    spec.GEN_26,
    call=generate_calls(limits=(5, 3), lengths=(300, 129, 600), samplers=["none"], seen=("raised",)),
    left=among([0, 1, 2]),
    share=0.1,
)
def test_what_the_model_raises_at_a_long_prompt_passes_to_the_caller(subject, call, left):
    fails = {"who": "model", "left": left, "error": "RuntimeError"}
    subject.expects(call.having(fails=fails), {"raised": np.ones(1)})


@requirement(
    spec.GEN_27,
    call=generate_calls(caches=[True], stops=[0, 1], stop_at=(1, 2), untils=(None, 0, 1, 3), seen=("alive",)),
    share=0.2,
)
def test_the_cache_is_let_go_at_the_end(subject, call):
    held = int(subject.parts(call)["alive"][0])
    if held:
        raise Nonconformance(f"{held} caches are still held", call)


@requirement(
    spec.GEN_27,
    call=generate_calls(caches=[True], stops=[0], samplers=["int", "array"], limits=(5, 3, 8), seen=("alive",)),
    left=among([1, 0, 2]),
    who=among(["model", "sampler"]),
    share=0.1,
)
def test_the_cache_is_let_go_when_the_ids_end_by_an_error(subject, call, left, who):
    subject.expects(call.having(fails={"who": who, "left": left, "error": "RuntimeError"}), {"alive": np.zeros(1)})


@requirement(spec.GEN_28, call=generate_calls(limits=(5, 3, 8), vocabularies=ENOUGH), share=0.3)
def test_the_caller_may_change_its_tokens_once_an_id_is_out(subject, call):
    subject.agrees(call.having(overwrite=True))


@requirement(
    spec.GEN_29, call=generate_calls(stops=[1, 2, 3], stop_at=(2, 1, 3), limits=(5, 8), vocabularies=ENOUGH), share=0.2
)
def test_the_caller_may_change_its_ends_once_an_id_is_out(subject, call):
    subject.agrees(call.having(overwrite="ends"))


@requirement(spec.GEN_31, call=generate_calls(limits=(5, 3, 8)), share=0.1)
def test_another_thread_than_that_of_loading_gets_the_same_ids(subject, call):
    subject.agrees(call.in_another_thread())
