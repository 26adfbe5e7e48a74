"""Pages that are made from the code say what it says."""

from __future__ import annotations

import dataclasses

from tests.laws.pages import sdk_page, settings_page

import fairway
import fairway.sql
import fairway.testing
from fairway.runtime.settings import FOREIGN, PREFIX, Settings

#: What tests, benches and our own processes say to each other is nobody's setting.
OURS = ("TEST_", "BENCH_", "PROPERTY_", "HOSTILE_", "DIE_", "LISTEN_", "READY_")


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
