"""What is said of a run: doubts come before aims, and every aim counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.rig.verdict import Verdict, judge

aims = st.lists(st.sampled_from([True, False, None]))


@given(aims, st.lists(st.text(min_size=1), min_size=1))
def test_whatever_is_doubted_is_not_judged(holds: list[bool | None], doubts: list[str]) -> None:
    assert judge(holds, doubts) is Verdict.UNJUDGED


@given(aims)
def test_all_aims_must_hold(holds: list[bool | None]) -> None:
    assert judge(holds, []) is (Verdict.NOT_HELD if False in holds else Verdict.HELD)


def test_each_verdict_has_an_exit_status_of_its_own() -> None:
    assert [(one.words, one.value) for one in Verdict] == [
        ("held", 0),
        ("did not hold", 1),
        ("unjudged", 3),
    ]
