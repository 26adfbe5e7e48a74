"""Another server's health: whoever failed is left alone, and tried by one at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.peer_health import REST_FIRST_US, REST_MAX_US, PeerHealth

ANSWER_US = 1_500_000
STEPS = st.lists(st.tuples(st.integers(0, 3_000_000), st.booleans()), max_size=60)


@given(STEPS)
def test_a_server_that_fails_is_asked_ever_less_and_one_that_answers_at_once(
    steps: list[tuple[int, bool]],
) -> None:
    health, now_us, failures, rests_until_us = PeerHealth(), 0, 0, 0
    for pause_us, answers in steps:
        now_us += pause_us
        assert health.is_resting(now_us) is (failures > 0 and now_us < rests_until_us)
        if health.is_resting(now_us):
            continue
        health.ask(now_us, ANSWER_US)
        assert health.is_resting(now_us) is (failures > 0), "one trial at a time, and only then"
        if answers:
            health.answered()
            failures = 0
            assert not health.is_resting(now_us)
        else:
            health.failed(now_us, now_us)
            failures += 1
            rest_us = min(REST_FIRST_US * 2 ** (failures - 1), REST_MAX_US)
            rests_until_us = now_us + rest_us


def test_a_trial_that_is_never_answered_holds_nobody_back_for_ever() -> None:
    health = PeerHealth()
    health.failed(0, 0)
    health.ask(REST_FIRST_US, ANSWER_US)
    assert health.is_resting(REST_FIRST_US + ANSWER_US - 1)
    assert not health.is_resting(REST_FIRST_US + ANSWER_US)


def test_questions_that_fail_together_are_one_failure() -> None:
    health = PeerHealth()
    for number in range(4):
        health.failed(ANSWER_US + number, number)
    assert not health.is_resting(ANSWER_US + REST_FIRST_US)
