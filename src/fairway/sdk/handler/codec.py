"""Arguments and results between Python and JSON, driven by a function's own annotations.

The payload of a job is a JSON object `{parameter: value}`. It is checked when the job is enqueued
by decoding it exactly as the worker will, so what passes here passes there. Types that msgspec
does not know may bring pydantic's `model_dump` and `model_validate`.

Annotations are resolved on first use, not at decoration: a type may be defined below the job.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from fairway.core.errors import InvalidRequest
from fairway.sdk.handler.context import Ctx
from fairway.sdk.handler.outcomes import Cancel, HandBack, Snooze

_REFUSED_KINDS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
    inspect.Parameter.POSITIONAL_ONLY: "positional-only ",
}

_CONTROL_FLOW = (Snooze, Cancel, HandBack)


class InvalidArguments(InvalidRequest):
    """The arguments do not fit the job."""


class NothingKept(LookupError):
    """There was a result, and the job type said that nobody wants it."""


class Codec:
    """How one function's arguments and result travel."""

    def __init__(self, function: Callable[..., Any], label: str) -> None:
        hints = _resolved_hints(function, label)
        parameters = inspect.signature(function).parameters.values()
        self.label = label
        self.ctx_name = next((p.name for p in parameters if is_ctx(hints.get(p.name))), None)
        passed = [p for p in parameters if p.name != self.ctx_name]
        self._signature = inspect.Signature([p.replace(annotation=p.empty) for p in passed])
        self._fields = tuple(p.name for p in passed)
        self._may_lack_some = any(p.default is not p.empty for p in passed)
        self._decoder = msgspec.json.Decoder(_struct_of(passed, hints), dec_hook=_decode_foreign)
        self._returns = result_type(hints.get("return", Any))
        self._result_decoder = msgspec.json.Decoder(self._returns, dec_hook=_decode_foreign)

    def encode_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The payload for a call with these arguments; InvalidArguments names what is wrong."""
        if not kwargs and len(args) == len(self._fields):
            arguments = dict(zip(self._fields, args, strict=True))  # `bind` takes ten times as long
        else:
            arguments = self._bound(args, kwargs)
        payload = self._encode(arguments)
        self._decode(payload)
        return payload

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if self.ctx_name in kwargs or len(args) > len(self._fields):
            self._refuse_surplus(args)
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InvalidArguments(f"{self.label}(): {error}", field="/payload") from None

    def encode_after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, str]:
        """The payload without the first argument, which comes later; and what that is called."""
        if not self._fields:
            raise InvalidArguments(f"{self.label}(): takes no argument that a result could be")
        try:
            bound = self._signature.bind(None, *args, **kwargs)
        except TypeError as error:
            raise InvalidArguments(f"{self.label}(): {error}", field="/payload") from None
        given = {
            name: bound.arguments[name] for name in self._fields[1:] if name in bound.arguments
        }
        return self._encode(given), self._fields[0]

    def decode_arguments(self, payload: bytes) -> dict[str, Any]:
        """Keyword arguments for the function; its own defaults stand for what is not there."""
        given = msgspec.structs.asdict(self._decode(payload))
        if self._may_lack_some:
            given = {name: value for name, value in given.items() if value is not UNSET}
        return given

    def _decode(self, payload: bytes) -> msgspec.Struct:
        try:
            return self._decoder.decode(payload)
        except msgspec.DecodeError as error:
            raise _explained(error, self.label) from None

    def encode_result(self, value: Any) -> bytes:
        return _encoder.encode(value)

    def decode_result(self, result: bytes) -> Any:
        return self._result_decoder.decode(result)

    def decode_kept(self, result: bytes) -> Any:
        """For whoever asks for the result of a job; NothingKept where there was one once."""
        return self.decode_result(result)

    def _encode(self, arguments: dict[str, Any]) -> bytes:
        try:
            return encode_value(arguments)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArguments(f"{self.label}(): {error}", field="/payload") from None

    def _refuse_surplus(self, args: tuple[Any, ...]) -> None:
        if self.ctx_name is not None:
            text = f"{self.label}(): argument `{self.ctx_name}`: is given by whoever runs the job"
        else:
            text = f"{self.label}(): takes {len(self._fields)} arguments, got {len(args)}"
        raise InvalidArguments(text, field="/payload")


class ForgetfulCodec(Codec):
    """Of a job type whose results nobody wants: whatever is returned, nothing travels."""

    def encode_result(self, value: Any) -> bytes:
        return b"null"

    def decode_result(self, result: bytes) -> Any:
        """None, but for what was kept before the type said so."""
        return None if bytes(result) == b"null" else super().decode_result(result)

    def decode_kept(self, result: bytes) -> Any:
        """A function that returns None has lost nothing."""
        if bytes(result) == b"null" and self._returns not in (None, types.NoneType):
            raise NothingKept
        return self.decode_result(result)


def refuse_unnamed_parameters(function: Callable[..., Any], label: str) -> None:
    """A payload is an object of names: parameters without one cannot be filled from it."""
    for parameter in inspect.signature(function).parameters.values():
        mark = _REFUSED_KINDS.get(parameter.kind)
        if mark:
            raise TypeError(f"{label}(): a job cannot take {mark}{parameter.name}")


def encode_value(value: Any) -> bytes:
    return _encoder.encode(value)


def is_ctx(hint: Any) -> bool:
    return hint is Ctx or Ctx in get_args(hint)


def result_type(hint: Any) -> Any:
    """The return annotation without what a handler may say instead of a result."""
    if get_origin(hint) not in (Union, types.UnionType):
        return None if hint in _CONTROL_FLOW else hint
    kept = tuple(part for part in get_args(hint) if part not in _CONTROL_FLOW)
    return Union[kept] if kept else None  # noqa: UP007  (made at run time from a tuple)


def _resolved_hints(function: Callable[..., Any], label: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{label}(): an annotation cannot be resolved: {error}; "
            "the types of a job must be importable from its module"
        ) from error


def _struct_of(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        "Arguments",
        [_field_of(parameter, hints.get(parameter.name, Any)) for parameter in parameters],
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _field_of(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return parameter.name, hint
    return parameter.name, Union[hint, UnsetType], UNSET  # noqa: UP007  (hint may be a string)


_AT = re.compile(r" - at `\$\.([^`]+)`$")
_NAMED = re.compile(r"Object (missing required|contains unknown) field `([^`]+)`$")


def _explained(error: Exception, label: str) -> InvalidArguments:
    """msgspec's message, told in terms of the call."""
    text = str(error)
    where = _AT.search(text)
    named = _NAMED.match(text)
    if named:
        reason = "is required" if named[1] == "missing required" else "is not known"
        return _invalid(label, named[2], reason)
    if where:
        reason = text[: where.start()].replace("`", "")
        return _invalid(label, where[1], reason[:1].lower() + reason[1:])
    return InvalidArguments(f"{label}(): {text}", field="/payload")


def _invalid(label: str, path: str, reason: str) -> InvalidArguments:
    pointer = "/payload/" + re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", path).replace(".", "/")
    return InvalidArguments(f"{label}(): argument `{path}`: {reason}", field=pointer)


def _encode_foreign(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"cannot encode {type(value).__qualname__} as JSON")
    return dump(mode="json")


_encoder = msgspec.json.Encoder(enc_hook=_encode_foreign)


def _decode_foreign(wanted: type, value: Any) -> Any:
    validate = getattr(wanted, "model_validate", None)
    if validate is None:
        raise TypeError(f"cannot read {wanted.__qualname__} from JSON")
    return validate(value)
