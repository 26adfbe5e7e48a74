"""No private address is called: at registration, at delivery, nor by a name that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime

import pytest
from tests.core.webhooks.test_addresses import PRIVATE
from tests.services.webhooks.receiver import Receiver, receiving, reply

from fairway.core.errors import InvalidRequest
from fairway.core.ids import FIRST_SHARD, TenantId
from fairway.core.webhooks.addresses import AddressRules, parsed_networks
from fairway.core.webhooks.retries import Answer
from fairway.core.webhooks.signing import secret_text
from fairway.core.webhooks.webhook import Secrets, Webhook, WebhookKey, WebhookTerms
from fairway.runtime.clock import SystemClock
from fairway.runtime.pinned_http import REPLY_BYTES_MAX
from fairway.services.store_clock import StoreClock
from fairway.services.webhooks import sender
from fairway.services.webhooks.destinations import Destinations
from fairway.services.webhooks.sender import Sender
from fairway.store.webhooks.deliveries import DueDelivery

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ACME = TenantId(1)
HTTP_ONLY = AddressRules(allow_http=True)
HOME = AddressRules(allow_http=True, private_networks=parsed_networks("127.0.0.0/8"))


class Names:
    """A resolver whose answers are told beforehand, one after the other."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, name: str, owner: Hashable) -> Sequence[str]:
        self.asked.append(name)
        return self.answers.pop(0)


def webhook(url: str) -> Webhook:
    key = WebhookKey(FIRST_SHARD, ACME, "0b9c1f6e-5a1d-4c53-9a39-1d1f2d3c4b5a")
    terms = WebhookTerms(url, (), "", True)
    return Webhook(key, terms, Secrets(secret_text(b"x" * 32)), 0, 0, None, "", NOW, NOW)


async def sent(
    url: str, rules: AddressRules, names: Names, seconds: float = 20.0, *, may_wait: bool = True
) -> Answer:
    made = Sender(Destinations(rules, names), StoreClock(SystemClock()), call_seconds=seconds)
    calls = await made.send(webhook(url), [DueDelivery(1, "job.dead", b"{}", 0)], lambda: may_wait)
    (call,) = calls
    return call.answer


@pytest.mark.parametrize("number", PRIVATE)
async def test_a_name_that_leads_inside_is_refused_twice(number: str) -> None:
    names = Names(["93.184.216.34", number], [number], ["2606:4700::1111", number])
    places = Destinations(AddressRules(), names)
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="no address of the public internet"):
            await places.find("https://hooks.example/", ACME)
    answer = await sent("https://hooks.example/", AddressRules(), names)
    assert (answer.status, answer.error.startswith("Not sent")) == (None, True)


async def test_a_name_that_changes_after_it_was_checked_leads_nowhere() -> None:
    """Public when it is registered, ours when it is called."""
    async with receiving() as inside:
        names, url = Names(["93.184.216.34"], ["127.0.0.1"]), f"http://evil.example:{inside.port}/"
        found = await Destinations(HTTP_ONLY, names).find(url, ACME)
        assert found.numbers == ("93.184.216.34",)
        answer = await sent(url, HTTP_ONLY, names)
        assert "no address of the public internet" in answer.error
        assert "127.0.0.1" not in answer.error
        assert inside.connections == 0


async def test_a_call_goes_to_the_number_that_was_checked() -> None:
    """One lookup a turn; whoever connects asks no resolver, and the name is in the Host header."""
    async with receiving() as receiver:
        names = Names(["127.0.0.1"])
        answer = await sent(f"http://nowhere.invalid:{receiver.port}/x", HOME, names)
        assert (answer.status, names.asked) == (200, ["nowhere.invalid"])
        assert receiver.received[0].headers["host"] == f"nowhere.invalid:{receiver.port}"


async def test_a_second_number_is_tried_when_the_first_refuses() -> None:
    async with receiving() as receiver:
        names = Names(["127.0.0.2", "127.0.0.1"])
        answer = await sent(f"http://two.example:{receiver.port}/", HOME, names)
        assert answer.status == 200


@pytest.mark.parametrize("failure", [OSError("no such name"), TimeoutError()])
async def test_a_name_without_numbers_is_said_so(failure: OSError) -> None:
    async def lookup(name: str, owner: Hashable) -> Sequence[str]:
        raise failure

    with pytest.raises(InvalidRequest, match=r"resolved|no address"):
        await Destinations(HOME, lookup).find("https://nobody.example/", ACME)
    with pytest.raises(InvalidRequest, match="no address"):
        await Destinations(HOME, Names([])).find("https://nobody.example/", ACME)


async def test_no_redirect_is_followed() -> None:
    async with receiving() as inside:
        where = f"location: http://127.0.0.1:{inside.port}/"
        async with receiving(lambda received: reply(307, where)) as receiver:
            assert (await sent(receiver.url, HOME, Names())).status == 307
        assert inside.connections == 0


async def endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x: " + b"y" * 8000 + b"\r\n")
        await writer.drain()


async def endless_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
    while True:
        writer.write(b"y" * 8000)
        await writer.drain()


async def no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 smtp.example ESMTP\r\n")


async def early_hints(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + reply(204))


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize(
    ("raw", "status", "error"),
    [
        (endless_head, None, str(REPLY_BYTES_MAX)),
        (endless_body, 200, ""),
        (no_http, None, "not HTTP"),
        (early_hints, 204, ""),
        (shut, None, "closed it"),
    ],
)
async def test_whatever_a_receiver_says_ends(raw: object, status: int | None, error: str) -> None:
    async with receiving(raw=raw) as receiver:
        answer = await sent(receiver.url, HOME, Names())
        assert answer.status == status
        assert error in answer.error


async def test_a_call_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "QUICK_SECONDS", 0.05)
    async with receiving(lambda received: b"hang") as receiver:
        assert "within 0.1 s" in (await sent(receiver.url, HOME, Names(), 0.1)).error
        cut = await sent(receiver.url, HOME, Names(), 60.0, may_wait=False)
        assert "cut short" in cut.error


async def test_a_receiver_that_is_not_there_is_said_so() -> None:
    async with receiving() as receiver:
        url = receiver.url
    assert "refused the connection" in (await sent(url, HOME, Names())).error
    tls = url.replace("http:", "https:")
    async with receiving() as plain:
        wrong = tls.replace(str(receiver.port), str(plain.port))
        answer = await sent(wrong, HOME, Names(), 2.0)  # both may wait for the other's word
        assert answer.status is None


async def test_a_hanging_receiver_gets_one_call_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "QUICK_SECONDS", 0.05)
    async with receiving(lambda received: b"hang") as receiver:
        calls = Sender(Destinations(HOME, Names()), StoreClock(SystemClock()), call_seconds=60.0)
        due = [DueDelivery(n, "job.dead", b"{}", 0) for n in range(1, 9)]
        assert len(await calls.send(webhook(receiver.url), due, lambda: False)) == 1
        assert _count(receiver) == 1


def _count(receiver: Receiver) -> int:
    return len(receiver.received)
