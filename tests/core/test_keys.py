"""API keys: composed and read back; typos, guesses and other texts are refused at sight."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.keys import SCOPES, ApiKey
from fairway.runtime.random_ids import new_api_key

secrets = st.text(string.ascii_letters + string.digits + "_-", min_size=20, max_size=43)
ids = st.text("0123456789abcdef", min_size=8, max_size=8)


@given(st.sampled_from(SCOPES), ids, secrets)
def test_what_is_composed_is_read_back(scope: str, key_id: str, secret: str) -> None:
    key = ApiKey.compose(scope, key_id, secret)
    assert ApiKey.parse(key.text) == key
    assert (key.scope, key.id) == (scope, key_id)


@given(st.sampled_from(SCOPES), ids, secrets, st.data())
def test_one_wrong_character_is_refused(
    scope: str, key_id: str, secret: str, data: st.DataObject
) -> None:
    text = ApiKey.compose(scope, key_id, secret).text
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from(string.ascii_letters + string.digits))
    typo = text[:place] + letter + text[place + 1 :]
    assert (ApiKey.parse(typo) is None) == (typo != text)


@given(st.text(max_size=80))
def test_other_texts_are_no_keys(text: str) -> None:
    assert ApiKey.parse(text) is None


@pytest.mark.parametrize("text", ["", "fw", "fw_tenant_a_b", "fw_root_a_b_c", "fw_tenant_ä_b_c"])
def test_odd_texts_are_no_keys(text: str) -> None:
    assert ApiKey.parse(text) is None


def test_only_the_hash_of_the_secret_is_needed_to_check_it() -> None:
    key, other = new_api_key("tenant"), new_api_key("tenant")
    assert key.matches(key.secret_hash)
    assert not key.matches(other.secret_hash)
    assert key.secret.encode() not in key.secret_hash
    assert len(key.secret) >= 40
