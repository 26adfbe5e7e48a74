"""`fairway usage`, `prices` and `spend-cap`: money and time with every digit that counts."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from tests.cli.program import Run, sentence

from fairway.cli.billing import _micros, spend_cap
from fairway.core.billing.money import exact
from fairway.core.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "millionths"), [("0", 0), ("5", 5_000_000), ("0.000025", 25), (".5", 500_000)]
)
def test_money_is_read_and_written_by_whole_numbers(text: str, millionths: int) -> None:
    assert _micros(text, "x") == millionths
    assert exact(millionths).lstrip("0") == text.lstrip("0") or exact(millionths) == text


@pytest.mark.parametrize("text", ["", ".", "-1", "1e3", "0.0000001", "1,5", "٣"])
def test_what_is_no_money(text: str) -> None:
    with pytest.raises(InvalidRequest):
        _micros(text, "x")


def test_usage_in_its_forms(run: Run, acme: tuple[str, str]) -> None:
    assert run("usage").out == "Nothing was used in that time.\n"
    assert run("usage", "--csv", "--tenant", acme[0]).out.startswith("period,pool,type,jobs")
    month = f"{datetime.now(UTC):%Y-%m}"
    assert run("usage", "--statement", month).out.startswith(f"{acme[0]}, {month} (open): 0")


def test_prices_and_caps(run: Run, acme: tuple[str, str]) -> None:
    added = run("prices", "slot_second=0.000025", "pool=medium", "valid_from=2900-01-01T00:00:00Z")
    assert added.out.strip().endswith("0.000025 a slot-second in the pool medium, 0 a month.")
    assert "medium-2900010100" in run("prices").out
    taken = run("prices", "--drop", "medium-2900010100").out
    assert taken == "Taken back: medium-2900010100\n"
    assert "slot_second" in sentence(run("prices", "colour=red"))
    capped = json.loads(run("spend-cap", acme[0], "12.5", "--json").out)
    assert (capped["cap_micros"], capped["cap"]) == (12_500_000, "12.5")
    lines = dict(line.split(maxsplit=1) for line in run("spend-cap", acme[0]).out.splitlines())
    assert lines["cap"] == "12.5"
    assert [name for name in lines if name.endswith("_micros")] == []
    changes = run("audit", "--subject", acme[0], "--action", "set spend cap").out
    assert "cap – → 12.5" in changes
    assert run("spend-cap", acme[0], "--none").status == 0


@pytest.mark.parametrize(
    ("tenant", "cap", "grace_seconds", "none", "part"),
    [
        ("acme", None, 60, False, "--grace-seconds goes with a cap"),
        ("acme", "50", None, True, "say either that, or a cap"),
        ("acme", None, 60, True, "say either that, or a cap"),
        (None, None, None, True, "Say whose"),
    ],
)
def test_words_of_a_cap_that_mean_nothing_together_are_refused(
    tenant: str | None, cap: str | None, grace_seconds: int | None, none: bool, part: str
) -> None:
    with pytest.raises(InvalidRequest, match=part):
        spend_cap(tenant, cap, grace_seconds=grace_seconds, none=none)
