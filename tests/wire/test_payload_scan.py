"""Looking at a text piece by piece finds what looking at all of it finds, wherever it is cut."""

from __future__ import annotations

import json
import time
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.wire.test_payload import VALUES, refusal

from fairway.core.errors import InvalidRequest
from fairway.wire import payload_scan
from fairway.wire.payload import DEPTH_MAX, is_plain
from fairway.wire.payload_scan import PayloadScan, in_pieces

MB = 1 << 20
#: Bits of JSON, good and bad, that make more mistakes than random bytes do.
BITS = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', '"b":', "1", "-", "0", "01", "1.5", "1e5", "1e999",
     "99999999999999999999", "18446744073709551615", "true", "fals", "null", "NaN", "\\u0000",
     '"\\u0061":', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\udc00"', "\\", " ", "\n",
     "é", "\x01", "\x7f"]
)  # fmt: skip
TEXTS = st.lists(BITS, max_size=12).map("".join).map(str.encode)


def flaw(text: bytes, cuts: list[int] = [], *, is_object: bool = False) -> str | None:  # noqa: B006  # never changed
    scan = PayloadScan(is_object=is_object)
    try:
        for start, end in pairwise(sorted({0, len(text), *cuts})):
            scan.feed(text[start:end])
        scan.finish()
    except InvalidRequest as error:
        return error.message
    return None


def dumped(value: Any, compact: bool, ascii_: bool) -> bytes:
    separators = (",", ":") if compact else None
    text = json.dumps(value, separators=separators, ensure_ascii=ascii_)
    return text.encode(errors="surrogatepass")


@given(VALUES, st.booleans(), st.booleans(), st.data())
def test_it_judges_as_the_careful_way_does(
    value: Any, compact: bool, ascii_: bool, data: st.DataObject
) -> None:
    text = dumped(value, compact, ascii_)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    assert (flaw(text, cuts) is None) == (refusal(text) is None)


@given(TEXTS, st.data())
@example(b'{"a":1,"\\u0061":2}', None)
@example(b'["\\ud83d\\ude00"]', None)
def test_it_refuses_what_the_careful_way_refuses(text: bytes, data: st.DataObject | None) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6)) if data else [*range(20)]
    cuts = [cut for cut in cuts if cut <= len(text)]
    assert (flaw(text, cuts) is None) == (refusal(text) is None), (flaw(text, cuts), refusal(text))


@given(st.binary(max_size=12), st.data())
def test_bytes_that_are_no_text(noise: bytes, data: st.DataObject) -> None:
    text = b'{"a":"' + noise + b'"}'
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    assert (flaw(text, cuts) is None) == (refusal(text) is None)


@given(VALUES)
def test_it_lets_in_whatever_is_plain(value: Any) -> None:
    text = dumped(value, True, True)
    if is_plain(text):
        assert flaw(text) is None


@pytest.mark.parametrize("text", [b"[1]", b'"a"', b"1", b"null", b""])
def test_a_payload_is_an_object(text: bytes) -> None:
    assert flaw(text, is_object=True) is not None


@pytest.mark.parametrize("depth", [DEPTH_MAX, DEPTH_MAX + 1])
def test_it_goes_as_deep_as_the_careful_way(depth: int) -> None:
    text = b"[" * depth + b"]" * depth
    assert (flaw(text) is None) == (refusal(text) is None) == (depth == DEPTH_MAX)


def test_the_place_is_told_by_byte() -> None:
    assert flaw(b'{"a": 1e999}', [3, 8]) == (
        "A number is too large for a double; send it as a string (at byte 6)."
    )


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_scan, "STEPS_MAX", 1000)
    assert flaw(b"[" + b"1," * 100_000 + b"1]") is None  # a run of values is no work
    assert "more values" in str(flaw(b"[" + b"[]," * 1000 + b"1]"))


def test_a_key_that_never_ends_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_scan, "TOKEN_BYTES_MAX", 1000)
    assert "more than 1000 bytes" in str(flaw(b'{"' + b"k" * 2000, [10]))
    assert "more than 1000 bytes" in str(flaw(b"[" + b"1" * 2000, [10]))


def test_names_are_told_apart_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_scan, "NAMES_BYTES_MAX", 20_000)
    many = b"{" + b",".join(b'"%d":0' % number for number in range(500)) + b"}"
    assert "more keys" in str(flaw(many))
    short = b'{"a":1,"b":2}'
    assert flaw(b"[" + b",".join([short] * 5000) + b"]") is None  # those of closed ones are gone


def test_what_is_held_does_not_grow_with_the_text() -> None:
    body = b'{"text":"' + b"x" * (16 * MB) + b'","list":[' + b'"a",' * MB + b"1]}"
    scan = PayloadScan()
    tracemalloc.start()
    for piece in in_pieces(body):
        scan.feed(piece)
    scan.finish()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < MB


@pytest.mark.parametrize(
    "unit", [b'"' + b"\\n" * 30_000 + b'",', b" ", b'"a\\n",', b"[],", b"1e1,"]
)
def test_no_piece_takes_long(unit: bytes) -> None:
    """Nor twice as long when it is twice as long: nothing is tried again and again.

    The best of three: a machine that stands still is charged to whoever ran.
    """
    assert min(_longest_piece(unit) for _ in range(3)) < 1.0  # some 50 ms on a machine of its own


def _longest_piece(unit: bytes) -> float:
    scan = PayloadScan(is_object=False)
    scan.feed(b"[")
    longest = 0.0
    for piece in in_pieces(unit * (MB // len(unit))):
        began = time.thread_time()
        scan.feed(piece)
        longest = max(longest, time.thread_time() - began)
    return longest
