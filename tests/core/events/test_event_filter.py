"""Which events a filter lets through: as said, for any event and any filter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.errors import InvalidRequest
from fairway.core.events.event import Event
from fairway.core.events.event_filter import KINDS_MAX, EventFilter, parse_kinds
from fairway.core.events.kinds import KINDS, NOTICES, OF_JOBS

NOW = datetime(2026, 1, 31, tzinfo=UTC)
NOUNS = sorted({kind.partition(".")[0] for kind in KINDS})
types = st.sampled_from(["email.send", "report.build", "short"])
jobs = st.sampled_from(["a", "b", "c"])
kinds = st.sampled_from([*KINDS, *(f"{noun}.*" for noun in NOUNS), "*"])
events = st.builds(
    Event,
    st.integers(1, 9),
    st.just(NOW),
    st.sampled_from([*KINDS]),
    st.none() | jobs,
    types,
    st.just({}),
)
filters = st.builds(
    EventFilter,
    st.lists(kinds, max_size=3).map(tuple),
    st.lists(types, max_size=2).map(tuple),
    st.none() | jobs,
)


def is_meant(kind: str, pattern: str) -> bool:
    """As people read it: every part is equal, or a star."""
    if pattern == "*":
        return True
    (noun, verb), (wanted_noun, wanted_verb) = kind.split("."), pattern.split(".")
    return noun == wanted_noun and wanted_verb in (verb, "*")


@given(events, filters)
def test_what_is_let_through_meets_all_that_was_said(event: Event, wanted: EventFilter) -> None:
    meets = [
        not wanted.kinds or any(is_meant(event.kind, one) for one in wanted.kinds),
        not wanted.types or event.subject in wanted.types,
        wanted.job is None or event.job == wanted.job,
    ]
    assert wanted.matches(event) is all(meets)
    assert wanted.matches(event) or not wanted.is_open


@given(st.lists(kinds, max_size=6))
def test_kinds_are_read_as_they_are_written(wanted: list[str]) -> None:
    parsed = parse_kinds(" , ".join(wanted))
    assert parsed == tuple(dict.fromkeys(wanted))
    assert parse_kinds(",".join(parsed)) == parsed


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        parsed = parse_kinds(text)
    except InvalidRequest:
        assert any(part not in KINDS for part in parts)
    else:
        assert parsed == tuple(dict.fromkeys(parts))


@pytest.mark.parametrize(
    ("text", "hint"),
    [("job.succeded", "job.succeeded"), ("circuit.open", "circuit.opened"), ("jobs.*", "job.*")],
)
def test_an_unknown_kind_is_refused_with_near_ones(text: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=hint.replace(".", r"\.").replace("*", r"\*")):
        parse_kinds(text)


def test_a_filter_is_short() -> None:
    with pytest.raises(InvalidRequest, match="more than there are"):
        parse_kinds(",".join(f"job.{n}" for n in range(KINDS_MAX + 1)))
    with pytest.raises(InvalidRequest) as refused:
        parse_kinds("x" * 100_000)
    assert len(refused.value.message) < 300


def test_every_kind_is_a_noun_and_a_verb_with_a_sentence() -> None:
    assert {*OF_JOBS} & {*NOTICES} == set()
    for kind, sentence in KINDS.items():
        noun, verb = kind.split(".")
        assert noun.isalpha()
        assert verb.isalpha()
        assert sentence.endswith(".")
