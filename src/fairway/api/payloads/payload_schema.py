"""Payloads against the JSON Schema of their job type, at the edge, before anything is written.

Patterns run on an engine without backtracking, and references to other documents are not followed:
a schema can neither hang the server nor make it call somebody.
"""

from __future__ import annotations

import hashlib
from typing import Any, NoReturn

import jsonschema_rs
import msgspec

from fairway.core.errors import InvalidRequest
from fairway.core.object_storage.upload_facts import NO_FIT

PATTERN_BYTES_MAX = 1 << 20
MESSAGE_MAX = 300
SCHEMA_BYTES_MAX = 64 << 10


class PayloadSchemas:
    """Compiled schemas, made when a payload of their type first comes."""

    def __init__(self, schemas: dict[str, bytes]) -> None:
        self._schemas = schemas  # by job type; changes as the registry does
        self._compiled: dict[str, tuple[bytes, Any]] = {}
        self._digests: dict[str, tuple[bytes, str]] = {}

    def digest(self, type_name: str) -> str:
        """Of the schema that a type has now; nothing when it has none.

        Computed once for each: thousands of jobs of a request ask for it, on the event loop.
        """
        schema = self._schemas.get(type_name)
        if schema is None:
            return ""
        known = self._digests.get(type_name)
        if known is None or known[0] != schema:
            known = self._digests[type_name] = schema, hashlib.sha256(schema).hexdigest()
        return known[1]

    def check(self, type_name: str, payload: bytes) -> None:
        """Raises InvalidRequest that names the first place where the payload does not fit."""
        schema = self._schemas.get(type_name)
        if schema is None:
            return
        known = self._compiled.get(type_name)
        if known is None or known[0] != schema:
            known = self._compiled[type_name] = schema, compiled(msgspec.json.decode(schema))
        error = next(known[1].iter_errors(msgspec.json.decode(payload)), None)
        if error is not None:
            place = "".join(f"/{step}" for step in error.instance_path)
            raise InvalidRequest(
                error.message[:MESSAGE_MAX],
                code=NO_FIT,
                field=f"/payload{place}"[:MESSAGE_MAX],
            )


def compiled(schema: Any) -> Any:
    try:
        return jsonschema_rs.validator_for(
            schema,
            retriever=_refuse_reference,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES_MAX),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        sentence = str(error).partition("\n")[0][:MESSAGE_MAX]
        raise InvalidRequest(f"This is no JSON Schema: {sentence}", field="/schema") from None


def schema_text(schema: Any | None) -> bytes | None:
    """A schema as it is kept; refuses what is none, and what is too large."""
    if schema is None:
        return None
    text = sized_text(schema)
    compiled(schema)
    return text


def sized_text(schema: Any) -> bytes:
    """As it is kept, not looked into yet: to compile what is too large would take long."""
    text = msgspec.json.encode(schema)
    if len(text) > SCHEMA_BYTES_MAX:
        raise InvalidRequest(
            f"A schema has at most {SCHEMA_BYTES_MAX} bytes; this one has {len(text)}.",
            field="/schema",
        )
    return text


def _refuse_reference(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed: {uri[:200]}")
