"""Deliveries of webhooks, as receivers check them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairway import WebhookRefused, verify_webhook
from fairway.core.webhooks.signing import secret_text, signatures

SECRET, OTHER = secret_text(b"a" * 32), secret_text(b"b" * 32)
BODY = b'{"type":"job.dead","timestamp":"2026-01-31T12:00:00Z","data":{}}'


def headers(secret: str = SECRET, sent: int | None = None) -> dict[str, str]:
    sent = int(time.time()) if sent is None else sent
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(sent),
        "Webhook-Signature": signatures([secret], "msg_1", sent, BODY),
    }


def test_a_true_delivery_is_known() -> None:
    assert verify_webhook(SECRET, headers(), BODY)["type"] == "job.dead"
    assert verify_webhook([OTHER, SECRET], headers(), BODY)["type"] == "job.dead"


@pytest.mark.parametrize("secret", [None, "", [], [SECRET, None]])
def test_a_secret_that_is_not_there_is_said(secret: Any) -> None:
    with pytest.raises(ValueError, match="needs the webhook's secret"):
        verify_webhook(secret, headers(), BODY)


@pytest.mark.parametrize(
    "given",
    [
        {}, headers(OTHER), headers(sent=int(time.time()) - 3600),
        headers(sent=int(time.time()) + 3600), headers() | {"Webhook-Id": "msg_2"},
        headers() | {"Webhook-Timestamp": "now"}, headers() | {"Webhook-Signature": "v1,é"},
    ],
)  # fmt: skip
def test_others_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(WebhookRefused):
        verify_webhook(SECRET, given, BODY)
    with pytest.raises(WebhookRefused):
        verify_webhook(SECRET, headers(), BODY + b" ")
