"""What the contract of the metrics cannot see: the timer, on a clock that the test drives, and the texts of refusals."""

from __future__ import annotations

import time

import pytest

from inferspec.impl.metrics import RequestTimer, aggregate_metrics, request_metrics


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_the_timer_stamps_the_arrival_and_every_token() -> None:
    clock = Clock(100.0)
    timer = RequestTimer(clock)
    for seconds in (2.0, 0.5, 0.25, 0.0):
        clock.now += seconds
        timer.token()
    clock.now += 60.0
    metrics = timer.metrics()
    assert metrics == (2.0, 0.25, [0.5, 0.25, 0.0], 2.75)
    assert metrics.ttft + sum(metrics.itl) == metrics.e2el


def test_a_long_prefill_is_all_in_ttft() -> None:
    clock = Clock()
    timer = RequestTimer(clock)
    for _ in range(5):  # chunks of the prompt
        clock.now += 1.0
    timer.token()
    assert timer.metrics() == (5.0, None, [], 5.0)


def test_timers_of_concurrent_requests_keep_apart() -> None:
    clock = Clock()
    first = RequestTimer(clock)
    clock.now = 1.0
    second = RequestTimer(clock)
    for now, timer in ((2.0, first), (3.0, second), (5.0, first), (5.5, second)):
        clock.now = now
        timer.token()
    assert first.metrics() == (2.0, 3.0, [3.0], 5.0)
    assert second.metrics() == (2.0, 2.5, [2.5], 4.5)


def test_metrics_can_be_asked_for_at_any_time() -> None:
    clock = Clock()
    timer = RequestTimer(clock)
    assert timer.metrics() == (None, None, [], None)
    clock.now = 1.0
    timer.token()
    before = timer.metrics()
    clock.now = 2.0
    timer.token()
    assert before == (1.0, None, [], 1.0)
    assert timer.metrics() == (1.0, 1.0, [1.0], 2.0)


def test_the_clock_is_a_monotonic_one_unless_given() -> None:
    timer = RequestTimer()
    timer.token()
    assert timer.arrival <= timer.token_times[0] <= time.perf_counter()


def test_refusals_say_what_they_got() -> None:
    with pytest.raises(ValueError, match=r"a token at 1\.0 comes after one \(or the arrival\) at 2\.0"):
        request_metrics(2.0, [1.0])
    with pytest.raises(ValueError, match="a time is nan"):
        request_metrics(0.0, [float("nan")])
    with pytest.raises(ValueError, match=r"are of \[1, 1, 1, 2\] requests"):
        aggregate_metrics([0.0], [[1.0]], [3], [0, 0])
    with pytest.raises(ValueError, match="cached_tokens is 4; of a prompt of 3 it takes 0 … 3"):
        aggregate_metrics([0.0], [[1.0]], [3], [4])


def test_tokens_may_come_from_a_generator() -> None:
    assert request_metrics(1, (1 + n for n in range(3))).itl == [1.0, 1.0]
