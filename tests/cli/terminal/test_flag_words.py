"""A refusal names the flag that was typed."""

from __future__ import annotations

import pytest

from fairway.cli.terminal.flag_words import in_flags, typed_flags
from fairway.core.errors import InvalidRequest


@pytest.mark.parametrize(
    ("message", "field", "typed", "told"),
    [
        ("limit is a number.", "limit", "--limit 0", "--limit is a number."),
        ("There is no state.", "/filter/state", "--state=x", "--state: There is no state."),
        ("This is over.", "/delay_seconds", "--delay 1h", "--delay: This is over."),
        ("This is over.", "/wait_seconds", "--wait 2d", "--wait: This is over."),
        ("Too many.", "/per_second", "--per-second 0", "--per-second: Too many."),
        ("Too many.", "/per_second", "", "per_second: Too many."),
        ("Ask with suspend=true.", "", "--yes", "Ask with --suspend."),
        ("Nothing is there.", "", "--type a", "Nothing is there."),
    ],
)
def test_a_refusal_names_the_flag(message: str, field: str, typed: str, told: str) -> None:
    error = in_flags(InvalidRequest(message, field=field), typed_flags(typed.split()))
    assert (str(error), error.message) == (told, told)
