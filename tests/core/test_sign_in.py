"""Tokens of sessions: of one form, and what guards against forgery comes from them alone."""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.sign_in import csrf_token, is_csrf_token, is_token, token_hash

tokens = st.binary(min_size=32, max_size=32).map(
    lambda raw: urlsafe_b64encode(raw).decode().rstrip("=")
)


def test_what_is_made_has_the_form() -> None:
    assert is_token(secrets.token_urlsafe(32))


@pytest.mark.parametrize("text", ["", "a" * 42, "a" * 44, "é" * 43, "a" * 42 + "\n", "a b" * 15])
def test_what_is_no_token(text: str) -> None:
    assert not is_token(text)


@given(tokens, tokens)
def test_a_csrf_token_is_good_for_its_own_session_only(one: str, other: str) -> None:
    assert is_csrf_token(csrf_token(one), one)
    assert is_csrf_token(csrf_token(one), other) == (one == other)
    assert (token_hash(one) == token_hash(other)) == (one == other)
    assert one not in csrf_token(one)


@given(tokens, st.text())
def test_nothing_else_passes(token: str, shown: str) -> None:
    assert not is_csrf_token(shown, token)
    assert not is_csrf_token(token, token)
    assert not is_csrf_token(token_hash(token).hex(), token)
