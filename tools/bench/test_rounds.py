"""Contenders in turns, on entries that only note when they were called."""

from __future__ import annotations

from inferspec.tools.bench.rounds import Entry, measure, rounds_of


def entries(log, *names, cost=0.01):
    def sample(name):
        log.append(name)
        return {"": 1.0}

    return [Entry(name, lambda name=name: sample(name), cost) for name in names]


def test_every_round_measures_each_contender_once():
    log = []
    found = measure(entries(log, "a", "b", "c"), 10, 100, seed=0)
    assert all(sorted(log[3 * k : 3 * k + 3]) == ["a", "b", "c"] for k in range(10))
    assert all(list(one.times[""]) == list(range(10)) for one in found.values())


def test_the_order_is_drawn_anew_in_every_round_and_by_the_seed():
    first, again, other = [], [], []
    for log, seed in ((first, 0), (again, 0), (other, 1)):
        measure(entries(log, "a", "b", "c"), 20, 100, seed)
    assert first == again != other
    assert len({tuple(first[3 * k : 3 * k + 3]) for k in range(20)}) == 6


def test_a_slow_contender_takes_part_in_rounds_that_are_spread_over_the_run():
    assert rounds_of(0.1, 20, 4) == list(range(20))
    assert rounds_of(1.0, 20, 5) == [0, 5, 10, 14, 19]
    assert rounds_of(1000.0, 20, 5) == [0, 10, 19]
    assert rounds_of(1000.0, 20, 5, least=1) == [0]
    assert rounds_of(1000.0, 2, 5) == [0, 1]


def test_one_that_breaks_drops_out_and_the_others_go_on():
    def breaks():
        raise ValueError("out of\nluck")

    log = []
    found = measure([Entry("broken", breaks, 0.01), *entries(log, "a")], 5, 100, seed=0)
    assert found["broken"].broke == "ValueError: out of luck"
    assert log == ["a"] * 5


def test_each_turn_is_told():
    told = []
    measure(entries([], "a", "b"), 3, 100, seed=0, told=told.append)
    assert sorted(told) == ["a"] * 3 + ["b"] * 3
