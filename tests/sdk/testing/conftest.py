"""What the sample jobs noted in one test is nothing to the next."""

from __future__ import annotations

import pytest
from tests.sdk.sample_jobs import tried


@pytest.fixture(autouse=True)
def _forget() -> None:
    tried.clear()
