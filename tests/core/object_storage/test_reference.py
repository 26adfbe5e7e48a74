"""Large texts stand aside: a reference is never taken for a text, nor a text for a reference."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.object_storage.object_names import ObjectFacts
from fairway.core.object_storage.reference import refer, referred

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.text(), st.integers(0, 1 << 40), st.binary(max_size=32))
def test_what_was_referred_to_is_found(name: str, size_bytes: int, sha256: bytes) -> None:
    facts = ObjectFacts(name, size_bytes, sha256)
    assert referred(refer(facts)) == facts


@given(JSON)
def test_no_json_is_a_reference(value: Any) -> None:
    assert referred(json.dumps(value).encode()) is None
    assert referred(b" \n" + json.dumps(value).encode()) is None
