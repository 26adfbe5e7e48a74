"""The history of alarms on a real store: one line each, told to receivers, kept over restarts."""

from __future__ import annotations

from standardwebhooks.webhooks import Webhook as Verifier
from tests.services.platform_room import kill, open_pair, owner_on, owns_all, stopped, until
from tests.services.webhooks.conftest import SETTINGS
from tests.services.webhooks.receiver import OK, receiving, reply
from tests.services.webhooks.steps import deliveries, hurry

from fairway.core.backpressure.connections import STAFF
from fairway.core.ids import Term
from fairway.core.insight.alarm_lines import AlarmLine
from fairway.core.insight.alarm_readings import AlarmReading
from fairway.core.insight.alarms import ALARMS, Raised
from fairway.core.webhooks.webhook import DeliveryState, Webhook, WebhookTerms
from fairway.services.insight.alarm_ledger import SHARD, AlarmLedger
from fairway.services.platform import Platform
from fairway.store.insight import alarm_history

BY_NAME = {alarm.name: alarm for alarm in ALARMS}


def raised(name: str = "CIRCUIT_OPEN", subject: str = "platform") -> Raised:
    return Raised(BY_NAME[name], subject, 1_769_860_800_000, AlarmReading(1.0, "One is open."))


def ledger_of(platform: Platform) -> AlarmLedger:
    wake = platform.wakeups.of("webhook calls")
    return AlarmLedger(platform.database, platform.dispatcher, platform.store_clock, wake)


async def begun(platform: Platform) -> AlarmLedger:
    """One that writes, in place of the server's own."""
    await platform.loops["alarms"].stop()
    ledger = ledger_of(platform)
    await ledger.take_over()
    return ledger


async def lines(platform: Platform) -> list[AlarmLine]:
    return await platform.alarms.history(1 << 60, 100)


async def sent_to(platform: Platform, url: str, *kinds: str) -> Webhook:
    return await platform.outbound.webhooks.add(STAFF, WebhookTerms(url, kinds, "", True))


async def test_an_alarm_is_one_line_and_one_message_each_way(database_url: str) -> None:
    answers = [reply(500), OK, OK]
    async with (
        owner_on(database_url, SETTINGS) as platform,
        receiving(lambda received: answers.pop(0)) as receiver,
        receiving() as only_ends,
    ):
        hook = await sent_to(platform, receiver.url)
        await sent_to(platform, only_ends.url, "alarm.ended")
        ledger = await begun(platform)
        for _ in range(3):
            await ledger.write([raised()])
        (line,) = await lines(platform)
        assert (line.key, line.ended_at) == (("CIRCUIT_OPEN", "platform"), None)
        await until(lambda: len(receiver.received) == 1)

        async def is_waiting() -> bool:
            waiting = await deliveries(platform, hook.key, DeliveryState.WAITING)
            return [one.attempts for one in waiting] == [1]

        await until(is_waiting)  # for another try: the first was refused
        await hurry(platform)
        await until(lambda: len(receiver.received) == 2)

        again = ledger_of(platform)  # as after a restart
        (known,) = await again.take_over()
        assert (known.key, known.since_ms) == (raised().key, raised().since_ms)
        await again.write([known])
        assert len(await lines(platform)) == 1, "neither ended nor raised again"
        await again.write([])
        (ended,) = await lines(platform)
        assert ended.ended_at is not None
        await until(lambda: len(receiver.received) == 3)
        first, second, last = receiver.received
        assert first.id == second.id != last.id
        for one in receiver.received:
            Verifier(hook.secrets.present).verify(one.body, one.headers)
        assert receiver.kinds() == ["alarm.raised", "alarm.raised", "alarm.ended"]
        assert first.message["data"]["runbook"] == BY_NAME["CIRCUIT_OPEN"].runbook
        assert first.message["data"]["id"] == last.message["data"]["id"]
        await until(lambda: only_ends.kinds() == ["alarm.ended"])


async def test_who_was_replaced_writes_nothing(database_url: str) -> None:
    async with owner_on(database_url, SETTINGS) as platform:
        ledger = await begun(platform)
        term = platform.dispatcher.term_of(SHARD)
        assert term is not None
        ledger._term = Term(term - 1)  # it has not heard of it yet
        await ledger.write([raised()])
        assert await lines(platform) == []
        await ledger.take_over()
        many = [raised("POOL_WITHOUT_WORKERS", f"pool {number}") for number in range(50)]
        for _ in range(3):
            await ledger.write(many)
        assert len(await lines(platform)) == 50, "a few at a time"
        async with platform.database.background() as connection:
            now = platform.store_clock.now()
            assert not await alarm_history.forget_alarms(connection, now, 0, 100), "none is over"
            open_lines = await alarm_history.open_alarms(connection, 100)
            await alarm_history.end_alarms(connection, [one.id for one in open_lines], now)
            since = min(line.raised_at for line in open_lines)
            gone = [await alarm_history.forget_alarms(connection, since, 10, 30) for _ in "ab"]
        assert gone == [30, 10], "so many at once"
        left = [one.subject for one in await lines(platform)]
        assert left == [one.subject for one in open_lines[:-11:-1]], "the newest stay"


async def test_of_two_servers_one_writes_and_the_next_goes_on(database_url: str) -> None:
    first, second = await open_pair(database_url, SETTINGS)
    try:
        for platform in (first, second):
            await platform.loops["alarms"].stop()
        owner, other = ledger_of(first), ledger_of(second)
        for ledger in (owner, other):
            await ledger.take_over()
            await ledger.write([raised()])
        assert len(await lines(second)) == 1
        await kill(first)
        await until(lambda: owns_all(second))
        (known,) = await other.take_over()
        assert known.key == raised().key
        await other.write([known])
        await other.write([])
        (line,) = await lines(second)
        assert line.ended_at is not None
    finally:
        await stopped(second)
