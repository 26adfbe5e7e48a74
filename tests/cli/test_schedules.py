"""`fairway schedules` against a real server: make, look, pause, run now, sync an app's own."""

from __future__ import annotations

from pathlib import Path

from tests.api.house import House
from tests.cli.program import Ended, fairway

PROGRAM = """
from fairway import App

app = App("shop")

@app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon", name="daily")
@app.job
def report() -> None: ...
"""


def test_a_life_of_schedules(house: House, tmp_path: Path) -> None:
    _, key = house.new_tenant()

    def say(*words: str) -> Ended:
        return fairway(
            tmp_path, "schedules", *words, FAIRWAY_URL=house.url, FAIRWAY_API_KEY=key, TZ="UTC"
        )

    assert "No schedules." in say("list").out
    tried = say("put", "nightly", "--type", "clean", "--cron", "0 3 * * *", "--dry-run")
    assert "At 03:00 every day (UTC)" in tried.out
    assert "No schedules." in say("list").out
    assert say("put", "nightly", "--type", "clean", "--cron", "0 3 * * *").status == 0
    refused = say("put", "never", "--type", "clean", "--cron", "0 0 31 2 *")
    assert refused.status == 1
    assert "no cron expression" in refused.err
    (tmp_path / "shop.py").write_text(PROGRAM)
    assert "made daily" in say("sync", "shop.py:app").out
    assert "updated daily" in say("sync", "shop.py:app").out
    listed = say("list").out
    assert "nightly" in listed
    assert "At 09:00 on Monday through Friday (Europe/Lisbon)" in listed
    assert "Paused" in say("pause", "daily").out
    assert "paused" in say("list").out
    assert say("resume", "daily").status == 0
    job = say("trigger", "nightly").out.strip()
    (run,) = [line.split() for line in say("runs", "nightly").out.splitlines() if job in line]
    assert run[-3:] == ["fired", "queued", "trigger"]
    made = say(
        "backfill", "nightly", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-03T00:00:00Z"
    )
    assert "2 runs made" in made.out
    assert say("delete", "nightly").status == 0
    (tmp_path / "shop.py").write_text('from fairway import App\n\napp = App("shop")\n')
    assert "deleted daily" in say("sync", "shop.py:app", "--prune").out
    assert "No schedules." in say("list").out
