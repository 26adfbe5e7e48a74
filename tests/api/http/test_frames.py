"""Frames come whole however they are cut, and none is too large."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.api.http.frames import FRAME_BYTES_MAX, HEAD, Frame, FrameReader, frame_text

FRAMES = st.lists(
    st.builds(Frame, st.integers(0, 2**32 - 1), st.integers(0, 599), st.binary(max_size=40)),
    max_size=6,
)


@given(FRAMES, st.lists(st.integers(0, 300), max_size=8))
def test_they_come_whole_wherever_they_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    text = b"".join(map(frame_text, frames))
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    reader = FrameReader()
    found = [one for start, end in pairwise(places) for one in reader.feed(text[start:end])]
    assert found == frames


def test_one_that_is_too_large_is_refused_before_it_comes() -> None:
    whole = frame_text(Frame(1, 0, b"x"))
    reader = FrameReader()
    coming = reader.feed(whole + HEAD.pack(FRAME_BYTES_MAX + 1, 2, 0))
    assert next(coming) == Frame(1, 0, b"x")
    with pytest.raises(ValueError, match="a frame of"):
        next(coming)
