"""What holds a limit here: said as it is, and a group of its own where the kernel lends one."""

from __future__ import annotations

import os

import pytest

from fairway.core.run.process_limits import RunLimits
from fairway.worker.limits.enforcement_level import EACH, NOTHING, WATCHED, EnforcementLevel

LIMITS = {"memory", "cpu", "file_size", "open_files", "processes"}


@pytest.mark.parametrize("is_measurable", [True, False])
def test_every_limit_says_what_holds_it(*, is_measurable: bool) -> None:
    words = EnforcementLevel([], is_measurable=is_measurable, is_linux=True).words()
    assert words.keys() == LIMITS
    assert words["file_size"] == words["open_files"] == EACH
    for name in ("memory", "cpu"):
        assert (WATCHED in words[name]) == is_measurable
        assert EACH in words[name]


def test_a_limit_that_nothing_holds_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's processes are not counted by the kernel's limit for a user."""
    levels = EnforcementLevel([], is_measurable=False, is_linux=True)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert levels.words()["processes"] == NOTHING
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert levels.words()["processes"] == "rlimit of the user"


def test_without_a_home_there_is_no_room() -> None:
    levels = EnforcementLevel([], is_measurable=True, is_linux=True)
    assert levels.room_for(RunLimits(memory_bytes=1 << 30)) is None
    assert EnforcementLevel.find(None).words().keys() == LIMITS
