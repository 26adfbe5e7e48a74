"""What operators read about alarms is what the alarms are."""

from __future__ import annotations

import re

import pytest
from tests.laws.source import ROOT

from fairway.cli.main import app
from fairway.core.insight.alarm_readings import BASELINE_JOBS_MIN, DEAD_PER_SECOND_MIN
from fairway.core.insight.alarms import ALARMS, LOOKS_APART_SECONDS_MAX, TENANT_TIMES, Alarm
from fairway.services.insight import alarm_watch

THRESHOLDS = {alarm.name: alarm.threshold for alarm in ALARMS}

every_alarm = pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm.name)


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text("utf-8"))


@every_alarm
def test_every_alarm_has_its_row(alarm: Alarm) -> None:
    patience = f"{alarm.hold_seconds:g} s, {alarm.clear_seconds:g} s"
    row = f"| `{alarm.name}` | {alarm.severity} | {alarm.means} | {patience} | {alarm.runbook} |"
    assert row in words_of("OPERATING.md")


@every_alarm
def test_commands_that_help_are_understood(alarm: Alarm) -> None:
    for command in re.findall(r"`fairway ([^`]*)`", alarm.runbook):
        app.parse_args(command.split(), exit_on_error=False, print_error=False)


def test_thresholds_on_the_page_are_those_of_the_code() -> None:
    page = words_of("OPERATING.md")
    assert f"looks every {alarm_watch.REST_SECONDS:g} s" in page
    assert (
        f"jobs due for {THRESHOLDS['PROMOTER_LAG']:g} s;"
        f" {THRESHOLDS['DEAD_LETTER_RATE'] * 100:g} % of all ends dead, from"
        f" {DEAD_PER_SECOND_MIN:g} a second on; ten times a tenant's usual hour" in page
    )
    jobs = f"{BASELINE_JOBS_MIN * TENANT_TIMES:,.0f}".replace(",", " ")
    low, full = THRESHOLDS["DISK_LOW"] * 100, THRESHOLDS["DISK_NEARLY_FULL"] * 100
    assert f"from {jobs} jobs an hour on; {low:g} % and {full:g} % of the disk" in page
    assert THRESHOLDS["OLDEST_AGE_OVER_SLO"] == 1
    assert THRESHOLDS["OLDEST_AGE_FAR_OVER_SLO"] == TENANT_TIMES == 10, "ten times, in words"
    decision = words_of("decisions/0057-alarms-are-data.md")
    assert f"not seen for over {LOOKS_APART_SECONDS_MAX:g} s" in decision
    assert (
        f"below {BASELINE_JOBS_MIN:g} jobs an hour it counts as {BASELINE_JOBS_MIN:g}" in decision
    )
