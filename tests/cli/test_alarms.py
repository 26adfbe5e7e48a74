"""`fairway alarms` and `fairway marks` against a real server."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.api.house import House
from tests.cli.program import Run

from fairway.services.platform import Platform
from fairway.store.insight import alarm_history
from fairway.store.insight.alarm_history import NewAlarm


def test_what_is_wrong_what_was_and_where_it_is_sent(house: House, run: Run) -> None:
    async def happen(platform: Platform) -> None:
        seen = "pool cli", "No worker serves it.", 3.0, 0.0, datetime(2026, 1, 31, tzinfo=UTC)
        new = NewAlarm("POOL_WITHOUT_WORKERS", "critical", *seen)
        async with platform.database.background() as connection:
            (line,) = await alarm_history.raise_alarms(connection, [new])
            ended = datetime(2026, 1, 31, 0, 5, tzinfo=UTC)
            await alarm_history.end_alarms(connection, [line.id], ended)

    house.inside(happen)
    assert run("alarms").status == 0
    told = run("alarms", "history", "--limit", "10").out
    assert "POOL_WITHOUT_WORKERS" in told
    assert "5 min" in told, "so long it lasted"
    id_, secret, _ = run("alarms", "webhooks", "add", "https://93.184.216.34/").out.splitlines()
    assert secret.startswith("secret: whsec_")
    assert id_ in run("alarms", "webhooks", "ls").out
    assert run("alarms", "webhooks", "rm", id_).out == f"Deleted: {id_}\n"
    assert run("marks", "add", "moved the database").out == "Marked: moved the database\n"
    assert "moved the database" in run("marks", "ls", "--since", "1h").out
    assert run("marks").out == run("marks", "ls").out
