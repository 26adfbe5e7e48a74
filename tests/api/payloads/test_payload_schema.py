"""The digest of a schema, by which looks at uploads are told apart: computed once for each."""

from __future__ import annotations

from fairway.api.payloads.payload_schema import PayloadSchemas


def test_a_schema_is_hashed_once_until_it_changes() -> None:
    schemas = {"x": b'{"type":"object"}'}
    known = PayloadSchemas(schemas)
    first = known.digest("x")
    assert known.digest("x") is first, "up to 64 KB for every job of a batch, on the event loop"
    schemas["x"] = b"{}"
    assert known.digest("x") != first
    del schemas["x"]
    assert known.digest("x") == ""
