"""The pipe between keeper and runner: frames arrive whole, however the bytes come."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from fairway.worker.pipe import _LENGTH, LARGE_BYTES, Ended, Hearing, Pipe, Words

SIZES = st.sampled_from([0, 1, 1000, LARGE_BYTES - 200, LARGE_BYTES, 3 * LARGE_BYTES])


def words(number: int, size: int) -> Words:
    result = Raw(b'"' + b"x" * size + b'"')
    return Words(ended=[Ended(job=str(number), epoch=1, kind="succeeded", ran_us=1, result=result)])


@given(st.lists(SIZES, min_size=1, max_size=6), st.data())
def test_any_cut_of_the_bytes_gives_the_same_messages(
    sizes: list[int], data: st.DataObject
) -> None:
    sent = [words(number, size) for number, size in enumerate(sizes)]
    texts = [msgspec.json.encode(one) for one in sent]
    stream = b"".join(_LENGTH.pack(len(text)) + text for text in texts)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    ends = [end for end, _ in zip(_frame_ends(texts), range(3), strict=False)]
    heard: list[Words] = []
    pipe = Pipe(Words, Hearing(heard.append, lambda: None, _never))
    for start, end in pairwise(sorted({0, len(stream), *cuts, *ends})):
        pipe.data_received(stream[start:end])
    assert heard == sent


def _never(text: bytes, error: Exception) -> None:
    raise AssertionError(error)


def _frame_ends(texts: list[bytes]) -> list[int]:
    found, end = [], 0
    for text in texts:
        end += _LENGTH.size + len(text)
        found.append(end)
    return found
