"""When a run is not believed."""

from __future__ import annotations

from fairway.rig.validity import complaints


def test_a_generator_on_time_has_nothing_to_answer_for() -> None:
    assert complaints([0.001] * 1000, 1000) == []


def test_a_generator_behind_its_plan_makes_the_run_invalid() -> None:
    (why,) = complaints([0.001] * 900 + [0.2] * 100, 1000)
    assert "fell behind" in why
    assert "200 ms" in why


def test_requests_that_were_never_sent_make_the_run_invalid() -> None:
    (why,) = complaints([0.001] * 900, 1000)
    assert "100 of 1000" in why
