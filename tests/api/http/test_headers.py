"""Headers with a meaning: read as their drafts say, and nothing that somebody sends breaks them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Scope

from fairway.api.http.headers import (
    KEY_LENGTH_MAX,
    WAIT_MAX_SECONDS,
    etag,
    header,
    idempotency_key,
    known_versions,
    rate_limit,
    retry_after,
    wait_seconds,
)
from fairway.core.backpressure.rate_limit import Quota
from fairway.core.errors import InvalidRequest


def asked(*headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "headers": list(headers)}


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"wait=7", 7),
        (b"respond-async, wait=7", 7),
        (b"respond-async;wait=7", 7),
        (b"wait=600", WAIT_MAX_SECONDS),
        (b"wait=99999", WAIT_MAX_SECONDS),
        (b"wait=0", 0),
        (b"await=7", 0),
        (b"wait=-7", 0),
        (b"wait=", 0),
        (b"", 0),
    ],
)
def test_how_long_somebody_would_wait(value: bytes, seconds: int) -> None:
    assert wait_seconds(asked((b"prefer", value))) == seconds


def test_of_several_with_one_name_the_first_counts() -> None:
    scope = asked((b"prefer", b"wait=1"), (b"prefer", b"wait=2"), (b"host", b"here"))
    assert wait_seconds(scope) == 1
    assert header(scope, b"host") == b"here"
    assert header(scope, b"absent") is None
    assert wait_seconds(asked()) == 0


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'"a b"', "a b"),
        (b"a-b", "a-b"),
        (b'  "x"  ', "x"),
        (b'"', '"'),
        (b"k" * KEY_LENGTH_MAX, "k" * KEY_LENGTH_MAX),
    ],
)
def test_a_key_is_taken_quoted_or_not(value: bytes, key: str) -> None:
    assert idempotency_key(asked((b"idempotency-key", value))) == key
    assert idempotency_key(asked()) is None


@pytest.mark.parametrize("value", [b"", b'""', b"k" * (KEY_LENGTH_MAX + 1), b"\xe9", b"a\x01b"])
def test_a_key_that_is_none_is_refused_by_name(value: bytes) -> None:
    with pytest.raises(InvalidRequest) as told:
        idempotency_key(asked((b"idempotency-key", value)))
    assert (told.value.code, told.value.field) == ("INVALID_HEADER", "Idempotency-Key")


@given(st.binary())
def test_whatever_is_sent_is_a_key_or_refused(value: bytes) -> None:
    try:
        key = idempotency_key(asked((b"idempotency-key", value)))
    except InvalidRequest:
        return
    assert key is not None
    assert 1 <= len(key) <= KEY_LENGTH_MAX
    assert key.isascii()
    assert key.isprintable()


@given(st.lists(st.text("abc.019", min_size=1), min_size=1, max_size=4), st.booleans())
def test_versions_that_we_gave_out_are_known_again(versions: list[str], is_weak: bool) -> None:
    tags = [etag(one).removeprefix(b"" if is_weak else b"W/") for one in versions]
    assert known_versions(asked((b"if-none-match", b", ".join(tags)))) == versions
    assert known_versions(asked((b"if-none-match", b"*"))) == ["*"]
    assert known_versions(asked()) == []


@given(st.floats(0, 10_000))
def test_who_comes_back_when_told_to_is_not_too_early(seconds: float) -> None:
    name, value = retry_after(seconds)
    assert name == b"retry-after"
    assert max(seconds, 1) <= int(value) < seconds + 2


def test_what_is_left_is_told_in_jobs() -> None:
    quota = Quota(burst=10, window_seconds=2, left=3, full_in_seconds=1)
    assert dict(rate_limit(quota)) == {
        b"ratelimit-policy": b'"jobs";q=10;w=2',
        b"ratelimit": b'"jobs";r=3;t=1',
    }
