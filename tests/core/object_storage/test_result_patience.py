"""How long a result waits for object storage: the longer it ran, within bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.object_storage.result_patience import patience_seconds


@given(ran_us=st.integers(min_value=0, max_value=10**13))
def test_patience_is_bounded_and_grows_with_the_run(ran_us: int) -> None:
    seconds = patience_seconds(ran_us)
    assert 30.0 <= seconds <= 3600.0
    assert seconds <= patience_seconds(ran_us + 1_000_000)
    assert patience_seconds(12 * 3600 * 10**6) == 3600.0
