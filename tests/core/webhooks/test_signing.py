"""Signatures, as somebody else's program checks them; and ids without a dot."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from fairway.core.webhooks.signing import is_signed, secret_bytes, secret_text, signatures
from fairway.core.webhooks.webhook import Secrets, delivery_id, number_of

HOOK = "0b9c1f6e-5a1d-4c53-9a39-1d1f2d3c4b5a"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHANCE = st.binary(min_size=24, max_size=64)


@given(st.lists(CHANCE, min_size=1, max_size=2, unique=True), st.text())
def test_another_programs_verifier_accepts_each_secret(chances: list[bytes], text: str) -> None:
    secrets, body = [secret_text(one) for one in chances], text.encode()
    message, timestamp = delivery_id(HOOK, 7), int(time.time())
    signed = signatures(secrets, message, timestamp, body)
    headers = {"webhook-id": message, "webhook-timestamp": str(timestamp)}
    for secret in secrets:
        headers["webhook-signature"] = signed
        Verifier(secret).verify(body, headers, json_parse=False)
        assert is_signed(signed, [secret], message, timestamp, body)
        with pytest.raises(WebhookVerificationError):
            Verifier(secret).verify(body + b" ", headers, json_parse=False)
        assert not is_signed(signed, [secret], message, timestamp, body + b" ")
        assert not is_signed(signed, [secret], message, timestamp + 1, body)


@pytest.mark.parametrize("wrong", ["", "v1,", "v1,AAAA", "v2,x y z", "v1;é"])
def test_a_wrong_signature_is_none(wrong: str) -> None:
    assert not is_signed(wrong, [secret_text(b"a" * 32)], "msg_1", 1, b"{}")


def test_a_secret_is_a_prefix_and_base64() -> None:
    assert secret_bytes(secret_text(b"x" * 32)) == b"x" * 32
    with pytest.raises(ValueError, match="whsec_"):
        secret_bytes("whsec_?")


def test_secrets_are_in_no_text() -> None:
    secrets = Secrets("whsec_new", "whsec_old", NOW + timedelta(hours=1))
    assert "whsec" not in f"{secrets} {secrets!r} {[secrets]}"
    assert secrets.in_force(NOW) == ("whsec_new", "whsec_old")
    assert secrets.in_force(NOW + timedelta(hours=1)) == ("whsec_new",)


@given(st.integers(-(10**17), 10**17).filter(bool))
def test_a_delivery_is_known_by_its_id(number: int) -> None:
    text = delivery_id(HOOK, number)
    assert "." not in text
    assert number_of(text, HOOK) == number
    assert number_of(text, HOOK.replace("0b", "1b")) is None


@pytest.mark.parametrize("text", ["", "msg_", "msg_1_2", f"msg_{HOOK}_1", "msg_" + "0" * 32 + "_0"])
def test_what_is_no_id_is_none(text: str) -> None:
    assert number_of(text, HOOK) is None
