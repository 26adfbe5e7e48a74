"""Workers without spare interpreters: each takes a fifth of a second, and few tests need one."""

from __future__ import annotations

import pytest

from fairway.worker.runners import spares


@pytest.fixture(autouse=True)
def no_spares(monkeypatch: pytest.MonkeyPatch) -> None:
    """test_spares.py, which is about them, has as many as there are."""
    monkeypatch.setattr(spares, "SPARES", 0)
