"""JSON schemas of the wire types, as people need them: raw JSON parts get the type they stand for.

The codec keeps payloads and results as raw text, which a schema cannot express. So each message is
described by a twin whose raw fields have a real type, with a note on every field.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType

from fairway.api.reference.field_notes import FIELD_NOTES
from fairway.core.lifecycle import BY_LABEL
from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.wire.messages import BATCH_MAX, END, JobError, JobRequest, RunView
from fairway.wire.problems import Problem

Schema: TypeAlias = dict[str, Any]
REF = "#/components/schemas/{name}"

#: Narrower than the codec's own types, where people are better served by that.
TOLD_AS: dict[tuple[str, str], Any] = {
    ("JobRequest", "payload"): dict[str, Any],
    ("BatchRequest", "jobs"): Annotated[list[JobRequest], Meta(min_length=1, max_length=BATCH_MAX)],
    ("BatchItem", "problem"): Problem | None,
    ("JobView", "state"): Literal[tuple(BY_LABEL)],
    ("JobView", "payload"): dict[str, Any],
    ("JobView", "error"): JobError | None,
    ("JobView", "history"): list[RunView],
    ("RunView", "error"): JobError | None,
    ("FailureGroup", "error"): JobError | None,
    ("ReplayOne", "payload"): dict[str, Any] | None,
    ("ReplayMany", "payload"): dict[str, Any] | None,
    ("Report", "kind"): Literal[tuple(kind.value for kind in OutcomeKind)],
    ("Report", "failure"): Literal[tuple(one.value for one in FailureClass)] | None,
    ("Report", "error"): JobError | None,
    ("Lease", "payload"): dict[str, Any],
    ("ScheduleRequest", "payload"): dict[str, Any],
    ("ScheduleView", "payload"): dict[str, Any],
}


def components(kinds: Iterable[type[Struct]]) -> dict[str, Schema]:
    """The schema of each of these messages, and of all that they are made of, by name."""
    _, found = msgspec.json.schema_components([_twin(kind) for kind in kinds], ref_template=REF)
    return {name: _annotated(name, schema) for name, schema in sorted(found.items())}


def _annotated(name: str, schema: Schema) -> Schema:
    schema.pop("title", None)
    for field, inner in schema["properties"].items():
        inner["description"] = FIELD_NOTES[name][field]
        for part in (inner, *inner.get("anyOf", ())):
            if "pattern" in part:
                part["pattern"] = part["pattern"].replace(END, "$")
    return schema


@cache
def _twin(kind: type[Struct]) -> type[Struct]:
    hints = get_type_hints(kind, include_extras=True)
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        told = TOLD_AS.get((kind.__name__, field.name), hints[field.name])
        fields.append((field.name, _plain(told), _default(field)))
    twin = msgspec.defstruct(
        kind.__name__,
        fields,
        kw_only=True,
        forbid_unknown_fields=kind.__struct_config__.forbid_unknown_fields,
    )
    twin.__doc__ = kind.__doc__
    return twin


def _plain(hint: Any) -> Any:
    """The same type with raw parts as any JSON and messages as their twins."""
    if hint is Raw:
        return Any
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _twin(hint)
    arguments = get_args(hint)
    if get_origin(hint) is Annotated:
        return Annotated[(_plain(arguments[0]), *hint.__metadata__)]
    if get_origin(hint) in (list, dict):
        return get_origin(hint)[tuple(_plain(inner) for inner in arguments)]
    if arguments and get_origin(hint) is not Literal:
        return reduce(or_, [_plain(inner) for inner in arguments if inner is not UnsetType])
    return hint


def _default(field: Any) -> Any:
    if field.default_factory is not NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    if field.default is UNSET:
        return msgspec.field(default_factory=lambda: None)  # may be absent, and has no default
    if isinstance(field.default, Raw):
        value = msgspec.json.decode(field.default)
        return msgspec.field(default_factory=dict) if value == {} else value
    return field.default
