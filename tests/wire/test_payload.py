"""The look at a payload: the quick way never lets in what the careful way refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.errors import InvalidRequest
from fairway.wire.payload import (
    DEPTH_MAX,
    check_carefully,
    check_payload,
    is_plain,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def refusal(text: bytes) -> InvalidRequest | None:
    try:
        check_carefully(text)
    except InvalidRequest as error:
        return error
    return None


@given(VALUES, st.booleans(), st.booleans())
def test_plain_text_passes_the_careful_way_too(value: Any, compact: bool, ascii_: bool) -> None:
    separators = (",", ":") if compact else None
    dumped = json.dumps(value, separators=separators, ensure_ascii=ascii_)
    text = dumped.encode(errors="surrogatepass")
    if is_plain(text):
        assert refusal(text) is None


@given(VALUES)
def test_what_passes_comes_back_the_same(value: Any) -> None:
    text = json.dumps(value).encode()
    if refusal(text) is None:
        assert json.loads(text.decode()) == value


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_depth_is_counted_exactly(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = opening * DEPTH_MAX + closing * DEPTH_MAX
    text = deep if opening == b"[" else deep.replace(b":}", b":1}", 1)
    assert refusal(text) is None
    deeper = refusal(b"[" + text + b"]")
    assert deeper is not None
    assert "deeper than 64" in deeper.message


def test_brackets_in_strings_are_no_depth() -> None:
    text = json.dumps({"text": "[{" * 1000}).encode()
    assert refusal(text) is None


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (b'{"a":[1,{"b":"\\u0000"}]}', "/a/1/b"),
        (b'{"":{"":1,"":2}}', "//"),
        (b'[{"a":1,"b":2,"b":3}]', "/0/b"),
        (b'{"a":NaN}', "/a"),
        (b'{"a":99999999999999999999}', "/a"),
        (b'["\\udc00"]', "/0"),
        (b'{"' + b"k" * 2000 + b'":1e999}', "/" + "k" * 511),
    ],
)
def test_the_place_is_named(text: bytes, pointer: str) -> None:
    found = refusal(text)
    assert found is not None
    assert found.field == pointer
    found.message.encode()


def test_size_is_looked_at_before_anything_else() -> None:
    with pytest.raises(InvalidRequest, match="has 11 bytes; at most 10") as caught:
        check_payload(b"{" * 11, 10)
    assert caught.value.code == "PAYLOAD_TOO_LARGE"
