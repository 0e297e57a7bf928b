"""Does a scheduler keep the contract where requests are cancelled, and where requests and updates are to be refused?"""

from inferspec.conformance.inputs.scheduler_leavers import (
    cancelled,
    in_flight,
    left_by_twins,
    left_in_flight,
    passers_by,
)
from inferspec.conformance.inputs.scheduler_pools import resumed
from inferspec.conformance.inputs.scheduler_refusals import (
    added_again,
    mended,
    preempted_again,
    senseless,
    steps_of_half_prompts,
    strangers,
    too_long,
    wrong_updates,
    wrong_updates_of_the_cancelled,
)
from inferspec.conformance.properties.common import all_refused, refuses_step
from inferspec.conformance.properties.scheduler import keeps, keeps_beyond
from inferspec.conformance.suite import requirement
from inferspec.spec import scheduler as spec
from inferspec.spec.scheduling_histories import MUST, Check

# cancelling


@requirement(spec.SCHED_30, call=left_by_twins(), share=0.2)
def test_of_requests_that_ask_for_the_same_the_one_meant_is_cancelled(subject, call):
    keeps(subject, call, *MUST)


@requirement(spec.SCHED_30, call=cancelled(), share=0.7)
def test_requests_can_be_cancelled_in_any_state(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.PROGRESS)


@requirement(spec.SCHED_47, call=cancelled(), share=0.4)
def test_who_is_finished_can_be_cancelled(subject, call):
    keeps(subject, call, Check.GONE)


@requirement(spec.SCHED_31, call=cancelled(), share=0.4)
def test_a_cancelled_request_gives_its_blocks_back(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_31, call=resumed(), share=0.4)
def test_blocks_come_back_however_requests_end(subject, call):
    keeps(subject, call, Check.FREE)


@requirement(spec.SCHED_32, call=in_flight(), share=0.7)
def test_what_is_cancelled_in_flight_stays_cancelled(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.FREE, Check.PROGRESS)


@requirement(spec.SCHED_32, call=left_in_flight(), share=0.2)
def test_several_that_are_cancelled_in_one_step_stay_cancelled(subject, call):
    keeps(subject, call, Check.STOP, Check.OVER, Check.OUTPUT, Check.TOLD, Check.FREE, Check.PROGRESS)


@requirement(spec.SCHED_33, call=in_flight(), share=0.7)
def test_what_is_added_in_flight_waits(subject, call):
    keeps(subject, call, Check.STATE, Check.TOLD, Check.OUTPUT, Check.ORDER, Check.PROGRESS)


@requirement(spec.SCHED_34, story=strangers(), share=0.15)
def test_a_stranger_is_not_cancelled(subject, story):
    refuses_step(subject, story)


# misuse


@requirement(spec.SCHED_36, story=senseless(), share=0.2)
def test_senseless_requests_are_refused(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, story=added_again(), share=0.4)
def test_a_request_is_added_once(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, story=preempted_again(), share=0.2)
def test_a_preempted_request_is_not_added_again(subject, story):
    refuses_step(subject, story)


@requirement(spec.SCHED_37, call=passers_by(), share=0.15)
def test_a_new_request_is_not_taken_for_one_that_is_gone(subject, call):
    keeps(subject, call, Check.RAISED)


@requirement(spec.SCHED_38, story=too_long(), share=0.3)
def test_a_refused_request_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=senseless(), share=0.3)
def test_a_senseless_request_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=added_again(), share=0.5)
def test_a_second_add_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=preempted_again(), share=0.2)
def test_a_second_add_of_who_was_preempted_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=strangers(), share=0.15)
def test_a_refused_cancel_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=mended(), share=0.1)
def test_a_refused_request_can_be_mended_and_added(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=too_long(again=True), share=0.1)
def test_a_request_that_is_tried_again_and_again_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=added_again(again=True), share=0.1)
def test_a_request_that_is_added_again_and_again_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_38, story=strangers(again=True), share=0.08)
def test_a_cancel_that_is_tried_again_and_again_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_39, story=wrong_updates(ways=("another step",)), share=0.4)
def test_another_step_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_39, story=steps_of_half_prompts(), share=0.08)
def test_a_step_that_chooses_no_id_is_not_taken_twice(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_40, story=wrong_updates(ways=("too few", "too many")), share=0.4)
def test_another_number_of_entries_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_40, story=wrong_updates_of_the_cancelled(ways=("too few",)), share=0.2)
def test_an_update_without_the_entry_of_who_was_cancelled_is_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_41, story=wrong_updates(ways=("an id", "no id")), share=0.6)
def test_ids_where_none_belong_are_refused(subject, story):
    refuses_where_it_can_be_done(subject, story)


@requirement(spec.SCHED_42, story=wrong_updates(), share=1.0)
def test_a_refused_update_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_42, story=wrong_updates(again=True), share=0.15)
def test_an_update_that_is_tried_again_and_again_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


@requirement(spec.SCHED_42, story=wrong_updates_of_the_cancelled(), share=0.2)
def test_a_refused_update_of_who_was_cancelled_changes_nothing(subject, story):
    keeps_after_refusal(subject, story)


def refuses_where_it_can_be_done(subject, story):
    """The step is refused, unless the scheduler left nothing to do it with."""
    call, bad = story
    short = call.having(steps=call.arguments["steps"][:bad])
    if f"{bad} absent" not in subject.answered(short).results:
        refuses_step(subject, story)


def _right_at_once(step):
    """A request that is put right after it was refused asks for what can be done from the beginning."""
    name, given = step
    asked = {name: given[name] for name in ("tokens", "max_tokens")} if name == "add_mended" else {}
    return ("add", {**asked, "priority": 0, "eos": ()}) if asked else step


def keeps_after_refusal(subject, story):
    """The step, or each of several, changes nothing of the story. Whether it is refused at all is another requirement's matter."""
    call, bad = story
    if all_refused(subject, story):
        tried, nothing = {bad} if isinstance(bad, int) else {*bad}, ("pass_by", {"times": 0})
        steps = enumerate(call.arguments["steps"], 1)
        without = tuple(nothing if number in tried else _right_at_once(step) for number, step in steps)
        keeps_beyond(subject, call, call.having(steps=without), *MUST)
