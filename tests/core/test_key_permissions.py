"""What a key may do: never more than its scope can, whatever was written down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.keys import PERMISSIONS, SCOPES, permitted

words = st.sampled_from(["read", "submit", "operate", "admin", "worker", "king", ""])


@given(st.sampled_from(SCOPES), st.none() | st.lists(words))
def test_chosen_permissions_narrow_and_never_widen(scope: str, chosen: list[str] | None) -> None:
    may = permitted(scope, chosen)
    assert may <= set(PERMISSIONS[scope])
    assert may == (set(PERMISSIONS[scope]) if chosen is None else may & set(chosen))


def test_what_was_chosen_is_permitted() -> None:
    assert permitted("tenant", ["read"]) == {"read"}
    assert permitted("operator", ["read", "admin"]) == {"read", "admin"}
    assert permitted("tenant", ["admin"]) == set()
