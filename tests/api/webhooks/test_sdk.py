"""Webhooks by the SDK, against a real server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.api.house import House

from fairway import App, Conflict, NotFound


def test_a_life_of_webhooks(house: House) -> None:
    _, key = house.new_tenant()
    hooks = App("shop", url=house.url, api_key=key).webhooks
    new = hooks.add("https://93.184.216.34/hook", ["circuit.*"], description="pager")
    assert new.secret.startswith("whsec_")
    assert not hooks.change(new.id, enabled=False).enabled
    assert [one.id for one in hooks.all()] == [new.id]
    assert hooks.get(new.id).description == "pager"
    assert hooks.rotate(new.id, "1h").secret != new.secret
    with pytest.raises(Conflict, match="switched off"):
        hooks.test(new.id)
    sent = house.waiting_test(new.id)
    assert [one.id for one in hooks.deliveries(new.id, "waiting")] == [sent]
    assert hooks.replay(new.id, sent).state == "waiting"
    assert hooks.replay_since(new.id, datetime(2026, 1, 1, tzinfo=UTC)).replayed == 0
    hooks.delete(new.id)
    with pytest.raises(NotFound):
        hooks.get(new.id)
