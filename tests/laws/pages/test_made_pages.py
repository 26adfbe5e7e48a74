"""Pages that are made from the code say what it says."""

from __future__ import annotations

import dataclasses

from tests.laws.pages import capacity_page, sdk_page, settings_page

import fairway
import fairway.sql
import fairway.testing
from fairway.runtime.settings import FOREIGN, PREFIX, Settings
from fairway.simulate import capacity

#: What tests, benches and our own processes say to each other is nobody's setting.
OURS = ("TEST_", "BENCH_", "PROPERTY_", "HOSTILE_", "DIE_", "LISTEN_", "READY_", "PROCESS_GROUP")


def test_the_page_of_settings_is_current() -> None:
    text = settings_page.PAGE.read_text("utf-8")
    assert text == settings_page.page(), "run `python -m tests.laws.pages.settings_page`"


def test_every_setting_says_what_it_means() -> None:
    told = dict(settings_page.meanings_of_fields())
    assert [one.name for one in dataclasses.fields(Settings) if not told.get(one.name)] == []
    by_hand = settings_page.PAGE.read_text("utf-8").partition(settings_page.MARK)[0]
    others = {name for name in FOREIGN if not name.startswith(OURS)}
    assert {name for name in others if f"`{PREFIX}{name}`" not in by_hand} == set()


def test_the_page_of_the_sdk_is_current() -> None:
    text = sdk_page.PAGE.read_text("utf-8")
    assert text == sdk_page.page(), "run `python -m tests.laws.pages.sdk_page`"


def test_the_sheet_of_capacity_is_current() -> None:
    text = capacity_page.PAGE.read_text("utf-8")
    assert text == capacity_page.page(), "run `python -m tests.laws.pages.capacity_page`"


def test_what_the_sheet_calls_measured_stands_on_the_page_of_sizes() -> None:
    sizes = (settings_page.PAGE.parent / "SIZING.md").read_text("utf-8")
    told = [
        f"server {capacity.SERVER_US:g}, PostgreSQL {capacity.POSTGRES_US:g},"
        f" worker {capacity.WORKER_US:g}",
        f"{capacity.ONE_BY_ONE_PER_SECOND:,.0f} with one job a request".replace(",", " "),
        f"{capacity.SMALL_ROW_KB:g} KB with its indexes; {capacity.SMALL_WAL_KB:g} KB of WAL",
        f"{capacity.ROW_KB:g} KB; {capacity.WAL_KB:g} KB of WAL",
        f"{capacity.KEY_KB:g} KB",
        f"{capacity.CONNECTIONS} a server",
    ]
    assert [one for one in told if one not in sizes] == []


def test_every_public_name_is_on_the_page_of_the_sdk() -> None:
    """Under a heading, or as an error, which says when it is raised."""
    assert [n for n in sdk_page.errors() if not issubclass(getattr(fairway, n), Exception)] == []
    grouped = [name for names in sdk_page.GROUPS.values() for name in names]
    assert sorted({*grouped, *sdk_page.errors()}) == sdk_page.PUBLIC.__all__
    assert sorted(sdk_page.TESTING) == sorted(fairway.testing.__all__)
    assert sorted(sdk_page.SQL) == sorted(fairway.sql.__all__)


def test_every_option_says_what_it_means() -> None:
    rows = [line for line in sdk_page.page().splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []
