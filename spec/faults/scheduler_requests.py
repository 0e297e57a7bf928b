"""Requests that are cancelled, their states, and what is refused."""

from __future__ import annotations

from inferspec.spec import scheduler as spec
from inferspec.spec.changes import scheduler as steps
from inferspec.spec.changes import scheduler_requests as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.linear import TIRED

VLLM = "https://github.com/vllm-project/vllm"
METAL = "https://github.com/vllm-project/vllm-metal/commit"
COURSE = "https://github.com/skyzh/tiny-llm/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm/commit"

_fault = named("scheduler")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "tidied-without-preempted",
        "when many have left the queue, preempted requests are lost with them",
        spec.SCHED_24,
        {"cancel": changes.tidied(changes.without_preempted)},
        TIRED,
    ),
    _fault(
        "tidied-out-of-order",
        "when many have left the queue, those who stay are in another order",
        spec.SCHED_17,
        {"cancel": changes.tidied(changes.turned_round)},
        TIRED,
    ),
    _fault(
        "running-not-cancelled",
        "a running request cannot be cancelled",
        spec.SCHED_30,
        {"cancel": changes.waiting_alone},
        "PROPERTIES CB2",
    ),
    _fault(
        "waiting-not-cancelled",
        "a waiting request cannot be cancelled",
        spec.SCHED_30,
        {"cancel": changes.running_alone},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-goes-on",
        "a cancelled request goes on",
        spec.SCHED_30,
        {"cancel": changes.state_alone},
        "PROPERTIES CB5",
    ),
    _fault(
        "cancelled-without-output",
        "cancelling drops the output",
        spec.SCHED_30,
        {"cancel": changes.output_dropped},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-twice-raises",
        "cancelling a finished request raises",
        spec.SCHED_30,
        {"check_known": changes.again_fails},
        "PROPERTIES CB2",
    ),
    _fault(
        "cancelled-keeps-blocks",
        "a cancelled request keeps its blocks",
        spec.SCHED_31,
        {"cancel": changes.leaks},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "cancelled-prompt-keeps-blocks",
        "a request that is cancelled in its prompt keeps its blocks",
        spec.SCHED_31,
        {"cancel": changes.leaks_prompts},
        f"{METAL}/bb14a36",
    ),
    _fault(
        "resurrected",
        "a request that was cancelled meanwhile gets its id and runs again",
        spec.SCHED_32,
        {"update": changes.resurrected},
        "PROPERTIES CB5",
    ),
    _fault(
        "shifted-ids",
        "after a cancelled request others get each other's ids",
        spec.SCHED_32,
        {"update": changes.shifted},
        f"{MLX_LM}/d9846d37",
    ),
    _fault(
        "cancelled-with-the-step",
        "all requests of a step end with one that was cancelled meanwhile",
        spec.SCHED_32,
        {"update": changes.all_or_none},
        "PROPERTIES CB2",
    ),
    _fault(
        "queue-of-the-step",
        "a request that came meanwhile is lost",
        spec.SCHED_33,
        {"schedule": changes.queue_of_the_step, "update": changes.queue_as_it_was},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "all-run",
        "a request that came meanwhile is called running",
        spec.SCHED_33,
        {"update": changes.all_run},
        "PROPERTIES CB2",
    ),
    _fault(
        "waiting-until-it-generates",
        "a request is called waiting while its prompt is computed",
        spec.SCHED_35,
        {"schedule": changes.waiting_until_it_generates},
        "the contract's signature",
    ),
    _fault(
        "waiting-again",
        "a preempted request is called waiting",
        spec.SCHED_35,
        {"preempt": changes.waiting_again},
        "the contract's signature",
    ),
    _fault(
        "stays-preempted",
        "a request that runs again is called preempted",
        spec.SCHED_35,
        {"admit": changes.stays_preempted},
        "the contract's signature",
    ),
    _fault(
        "finished-later",
        "a request is called finished one step late",
        spec.SCHED_35,
        {"update": changes.finished_later, "schedule": changes.finishes_the_late},
        "PROPERTIES CB5",
    ),
    _fault(
        "finished-added",
        "a finished request can be added again",
        spec.SCHED_37,
        {"check_new": changes.while_it_is_known},
        "PROPERTIES CB2",
    ),
    _fault(
        "queued-before-checks",
        "a request that is refused waits all the same",
        spec.SCHED_38,
        {"add": changes.queued_before_checks},
        f"{VLLM}/pull/11565; PROPERTIES X9",
    ),
    _fault(
        "state-before-checks",
        "a request that is refused as known is called waiting",
        spec.SCHED_38,
        {"add": changes.state_before_checks},
        "PROPERTIES X9",
    ),
    _fault(
        "strangers-added",
        "a refused cancel adds the request",
        spec.SCHED_38,
        {"cancel": changes.adds_strangers},
        "PROPERTIES X9",
    ),
    _fault(
        "void-after-refusal",
        "after an update that was refused the right one is refused too",
        spec.SCHED_42,
        {"update": changes.void_after_refusal},
        "PROPERTIES X9",
    ),
    _fault(
        "one-by-one",
        "an update that is refused has been taken in part",
        spec.SCHED_42,
        {"update": changes.one_by_one},
        "PROPERTIES X9",
    ),
    _fault(
        "extends-the-prompt",
        "the output is appended to the caller's tokens",
        spec.SCHED_43,
        {"generate": changes.extends_the_prompt},
        "PROPERTIES X6",
    ),
    _fault(
        "consumes-the-prompt",
        "the prompt is taken off the caller's tokens",
        spec.SCHED_43,
        {"take": changes.consumes},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "prompt-read-when-admitted",
        "a request's prompt is read when it is admitted, once more after each preemption",
        spec.SCHED_46,
        {"allocate": changes.read_when_admitted},
        "https://github.com/vllm-project/vllm/issues/50731",
    ),
    _fault(
        "prompt-read-for-each-chunk",
        "chunks are cut out of the caller's list",
        spec.SCHED_46,
        {"chunk": changes.read_for_each_chunk},
        "PROPERTIES X6",
    ),
    _fault(
        "one-queue-for-all",
        "schedulers share one queue",
        spec.SCHED_44,
        {"fresh": changes.one_queue_for_all},
        "PROPERTIES X7",
    ),
    _fault(
        "queue-of-the-newest",
        "the queue is the class's own, and emptied when a scheduler is made",
        spec.SCHED_44,
        {"fresh": changes.queue_emptied},
        "PROPERTIES X7",
    ),
    _fault(
        "heap-without-one",
        "who is cancelled is taken from the midst of a heap, which is not put in order",
        spec.SCHED_16,
        {"add": changes.pushed, "waiting": changes.popped, "cancel": changes.taken_from_the_heap},
        "https://github.com/vllm-project/vllm/pull/39495 (the heapify that is missing here)",
    ),
    _fault(
        "last-id-of-the-cancelled",
        "the last id of a cancelled request is cached, though it was not computed",
        spec.SCHED_29,
        {"cancel": changes.last_id_computed},
        "https://github.com/madroidmaq/mlx-omni-server/issues/92",
    ),
    _fault(
        "budget-by-an-estimate",
        "what was cached of a prompt when it came is not charged to the budget, though it is cached no more",
        spec.SCHED_09,
        {"add": changes.with_an_estimate, "count": changes.count_by_the_estimate},
        "https://github.com/NVIDIA/TensorRT-LLM/issues/13318",
    ),
    _fault(
        "limits-of-the-class",
        "limits are the class's own: those of the scheduler that was made last",
        spec.SCHED_44,
        {"fresh": changes.limits_of_the_class, "schedule": changes.within_the_class_s_limits},
        "PROPERTIES X7",
    ),
    _fault(
        "one-is-cancelled",
        "of several requests that are cancelled while the model computes the id of the last one alone is dropped",
        spec.SCHED_32,
        {"cancel": changes.last_cancelled_alone, "update": changes.drops_the_noted},
        "PROPERTIES CB2",
    ),
    _fault(
        "one-gives-back",
        "of several requests that are cancelled while the model computes the last one alone gives its blocks back",
        spec.SCHED_32,
        {
            "cancel": changes.last_kept_while_computed,
            "update": steps.updates_then_frees,
            "schedule": steps.frees_then_schedules,
        },
        "PROPERTIES CB2, PG4",
    ),
    _fault(
        "preempted-added",
        "a preempted request can be added again",
        spec.SCHED_37,
        {"check_new": changes.preempted_is_new},
        "PROPERTIES CB2",
    ),
    _fault(
        "refused-and-moved",
        "a preempted request that is refused loses its place",
        spec.SCHED_38,
        {"add": changes.refused_and_moved},
        "PROPERTIES X9",
    ),
    _fault(
        "entries-of-those-who-stay",
        "the entry of a request that was cancelled meanwhile may be missing",
        spec.SCHED_40,
        {"update": changes.of_those_who_stay},
        "PROPERTIES X9",
    ),
    _fault(
        "refusal-forgets-the-cancelled",
        "who was cancelled meanwhile gets its id by the update that follows a refused one",
        spec.SCHED_42,
        {"update": changes.refusal_forgets},
        "PROPERTIES X9, CB2",
    ),
    _fault(
        "step-of-the-class",
        "the last step is the class's own, so that another scheduler's step is in the way of its update",
        spec.SCHED_44,
        {"schedule": changes.step_of_the_class, "update": changes.of_the_class},
        "PROPERTIES X7",
    ),
)
