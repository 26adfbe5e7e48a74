"""Server-sent events, however the pieces fall."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairway.sdk.http.sse import Event, EventParser

STREAM = (
    ": hello\n\nretry: 1000\n\n"
    'id: 1\nevent: started\ndata: {"a": 1}\n\n'
    "id: 2\r\ndata: first\r\ndata: second\r\n\r\n"
    "data:bare\r\r"
    "event: nothing\n\n"
    'data: "line\u2028separator"\n\n'
)
EVENTS = [
    Event("started", {"a": 1}, "1"),
    Event("message", "first\nsecond", "2"),
    Event("message", "bare", "2"),
    Event("message", "line\u2028separator", "2"),
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = EventParser()
    pieces = [STREAM[a:b] for a, b in pairwise(places)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS


def test_the_id_of_an_unfinished_event_is_not_resumed_from() -> None:
    parser = EventParser()
    assert list(parser.feed("id: 1\ndata: a\n\nid: 2\ndata: half")) == [Event("message", "a", "1")]
    parser.forget_partial()
    assert parser.last_id == "1"
    assert list(parser.feed("data: b\n\n")) == [Event("message", "b", "1")]


def test_an_id_without_an_event_says_how_far_the_server_is() -> None:
    parser = EventParser()
    assert list(parser.feed("retry: 2000\nid: 7\n\n: ping\nid: 9\n\nid: 12\n")) == []
    assert parser.last_id == "9"
    parser.forget_partial()
    assert list(parser.feed("data: b\n\n")) == [Event("message", "b", "9")]
