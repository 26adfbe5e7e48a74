"""A node that does not answer costs a round little, and keeps nobody from being asked for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ownership.silent_nodes import (
    AGAIN_SECONDS,
    MISSES_MAX,
    REST_SECONDS,
    Miss,
    SilentNodes,
)

PARTS = range(8)
NODE_OF = {part: part % 2 for part in PARTS}
ANSWER_SECONDS = 0.7  # that a node which hangs takes


def round_over(silent: SilentNodes, hung: set[int], now: float) -> tuple[list[int], float]:
    """Ask all parts; answers which answered, and when it is over."""
    answered, began = [], now
    for part in silent.in_order(PARTS):
        if not silent.may_ask(part, began):
            continue
        if part in hung:
            asked, now = now, now + ANSWER_SECONDS
            silent.missed(part, asked, now, miss=Miss.LATE)
        else:
            silent.heard(part)
            answered.append(part)
    return answered, now


def test_a_node_that_hangs_costs_a_round_two_waits_and_then_one() -> None:
    silent, hung = SilentNodes(NODE_OF), {0, 2, 4, 6}
    answered, now = round_over(silent, hung, 10.0)
    assert (sorted(answered), round(now - 10.0, 3)) == ([1, 3, 5, 7], MISSES_MAX * ANSWER_SECONDS)
    assert all(silent.is_silent(part) == (part in hung) for part in PARTS)
    answered, later = round_over(silent, hung, now + AGAIN_SECONDS / 2)
    assert (sorted(answered), later) == ([1, 3, 5, 7], now + AGAIN_SECONDS / 2), "asked later"
    answered, over = round_over(silent, hung, now + AGAIN_SECONDS)
    assert round(over - now - AGAIN_SECONDS, 3) == ANSWER_SECONDS
    answered, _ = round_over(silent, set(), over + AGAIN_SECONDS)
    assert sorted(answered) == [*PARTS]
    assert not any(map(silent.is_silent, PARTS))


def test_a_node_that_cannot_be_reached_is_asked_once() -> None:
    silent = SilentNodes(NODE_OF)
    silent.missed(0, 9.0, 10.0, miss=Miss.AWAY)
    assert not silent.may_ask(2, 10.0)
    assert silent.may_ask(1, 10.0)
    assert silent.may_ask(2, 10.0 + AGAIN_SECONDS)


def test_a_part_that_uses_up_connections_rests_though_its_node_answers_others() -> None:
    """Each round would end with it: no server would say that it is there, or take a shard."""
    silent = SilentNodes(NODE_OF)
    for now in (10.0, 12.0):
        assert silent.may_ask(4, now), "once, it may be slow"
        silent.answers(0, now + 0.5)
        silent.missed(4, now, now + 1.2, miss=Miss.NOTHING)
        assert not silent.is_silent(4)
    assert [part for part in PARTS if not silent.may_ask(part, 13.3)] == [4]
    assert silent.may_ask(4, 13.2 + REST_SECONDS)
    silent.heard(4)
    assert silent.may_ask(4, 13.3)


@given(st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from(Miss)), max_size=9))
def test_a_node_that_answers_anybody_is_slow_and_not_silent(misses: list[tuple[int, Miss]]) -> None:
    """However late it is for us; one that could not be reached has gone since."""
    silent, asked, expected = SilentNodes(NODE_OF), 10.0, {0: 0, 1: 0}
    for node, miss in misses:
        silent.answers(0, asked + 0.5)
        expected[0] = 0
        silent.missed(node, asked, asked + 1.2, miss=miss)
        if miss is Miss.AWAY or (node and miss is Miss.NOTHING):
            expected[node] = MISSES_MAX
        elif node:
            expected[node] += 1
        for part, at in NODE_OF.items():
            assert silent.is_silent(part) == (expected[at] >= MISSES_MAX)
        asked += 1.2
    silent.answers(1, asked)
    assert not silent.is_silent(1), "heard of again"


@given(st.sets(st.sampled_from(PARTS), max_size=7), st.floats(0.1, 2.0))
def test_whoever_answers_is_asked_within_three_rounds(hung: set[int], rest: float) -> None:
    """Also beside parts of the same node that somebody holds: those come last."""
    silent, now, last = SilentNodes(NODE_OF), 100.0, dict.fromkeys(PARTS, 100.0)
    for _ in range(40):
        answered, now = round_over(silent, hung, now)
        last |= dict.fromkeys(answered, now)
        now += rest
        for part in set(PARTS) - hung:
            is_alone = not any(NODE_OF[other] == NODE_OF[part] for other in hung)
            longest = 2 * MISSES_MAX * ANSWER_SECONDS + rest  # of a round, with its rest
            bound = longest if is_alone else 3 * longest + AGAIN_SECONDS
            assert now - last[part] <= bound
