"""The arguments of one job among many, as type checkers see them.

    score.enqueue_many([score.call("cv1", "r1"), score.call("cv2", "r1").keyed("cv2")])

Tuples and dicts do as well; what is wrong with those shows when they are handed in.
"""

from __future__ import annotations

from typing import Any, Generic, ParamSpec, TypeAlias

P = ParamSpec("P")

#: One call in `enqueue_many`: positional arguments, or arguments by name.
PlainCall: TypeAlias = tuple[Any, ...] | dict[str, Any]

KEY_LENGTH_MAX = 255


class TypedCall(Generic[P]):
    """Made by `job.call(...)`."""

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], idempotency_key: str | None = None
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.idempotency_key = checked_key(idempotency_key)

    def keyed(self, idempotency_key: str) -> TypedCall[P]:
        """The same with a key of its own: handed in twice, in whatever batch, it is made once."""
        return TypedCall(self.args, self.kwargs, idempotency_key)


def typed(call: PlainCall | TypedCall[P]) -> TypedCall[P]:
    match call:
        case TypedCall():
            return call
        case tuple():
            return TypedCall(call, {})
        case dict():
            return TypedCall((), call)
    raise TypeError(
        f"each call is job.call(…), a tuple of arguments or a dict of them by name, not {call!r}"
    )


def key_of(call: TypedCall[P], batch_key: str | None, place: int) -> str | None:
    """Its own, or its place under the key of the whole batch."""
    if call.idempotency_key is not None or batch_key is None:
        return call.idempotency_key
    return checked_key(f"{batch_key}#{place}")


def checked_key(key: str | None) -> str | None:
    if key is not None and not (
        0 < len(key) <= KEY_LENGTH_MAX and key.isascii() and key.isprintable()
    ):
        raise ValueError(f"an idempotency_key is 1 to {KEY_LENGTH_MAX} printable ASCII characters")
    return key
