"""Arguments are checked alike at enqueue and at run, and errors name the argument."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from msgspec import Meta

from fairway import CTX, App, Cancel, Ctx, InvalidArguments, ResultIgnored, Snooze
from fairway.sdk.handler.codec import Codec
from fairway.testing import inline


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Person(pydantic.BaseModel):
    name: str
    age: int


def codec_of(function: Any) -> Codec:
    return Codec(function, function.__name__)


def there_and_back(function: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    codec = codec_of(function)
    return codec.decode_arguments(codec.encode_arguments(args, kwargs))


async def score(cv_id: str, rubric: str = "plain", *, ctx: Ctx = CTX) -> float:
    return 1.0


def test_a_payload_is_an_object_of_names() -> None:
    codec = codec_of(score)
    assert codec.encode_arguments(("cv1",), {}) == b'{"cv_id":"cv1"}'
    assert codec.encode_arguments(("cv1",), {"rubric": "r"}) == b'{"cv_id":"cv1","rubric":"r"}'
    assert codec.decode_arguments(b'{"cv_id":"cv1"}') == {"cv_id": "cv1"}


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, "score(): argument `cv_id`: expected str, got int"),
        (("a", None), {}, "score(): argument `rubric`: expected str, got null"),
        ((), {}, "score(): missing a required argument: 'cv_id'"),
        (("a",), {"rubrik": "r"}, "score(): got an unexpected keyword argument 'rubrik'"),
        (("a", "b", "c"), {}, "score(): argument `ctx`: is given by whoever runs the job"),
        (("a",), {"ctx": 1}, "score(): argument `ctx`: is given by whoever runs the job"),
        ((object(),), {}, "score(): cannot encode object as JSON"),
    ],
)
def test_enqueue_refuses(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        codec_of(score).encode_arguments(args, kwargs)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("payload", "message", "field"),
    [
        (b'{"cv_id":1}', "score(): argument `cv_id`: expected str, got int", "/payload/cv_id"),
        (b"{}", "score(): argument `cv_id`: is required", "/payload/cv_id"),
        (b'{"cv_id":"a","x":1}', "score(): argument `x`: is not known", "/payload/x"),
        (b"[]", "score(): Expected `object`, got `array`", "/payload"),
        (b"{", "score(): Input data was truncated", "/payload"),
    ],
)
def test_run_refuses_the_same_way(payload: bytes, message: str, field: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        codec_of(score).decode_arguments(payload)
    assert (caught.value.message, caught.value.field) == (message, field)


def test_a_deep_error_names_its_path() -> None:
    def plot(points: list[Point]) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        codec_of(plot).encode_arguments(([Point(1), Point("2")],), {})  # type: ignore[arg-type]
    assert caught.value.message == "plot(): argument `points[1].x`: expected int, got str"
    assert caught.value.field == "/payload/points/1/x"


def test_constraints_hold() -> None:
    def wait(seconds: Annotated[int, Meta(ge=1)], how: Literal["a", "b"] = "a") -> None: ...

    with pytest.raises(InvalidArguments, match="`seconds`: expected int >= 1"):
        codec_of(wait).encode_arguments((0,), {})
    with pytest.raises(InvalidArguments, match="`how`: invalid enum value 'c'"):
        codec_of(wait).encode_arguments((1, "c"), {})


def test_rich_types_arrive_as_annotated() -> None:
    def rich(at: datetime, key: UUID, colour: Colour, at_point: Point, raw: bytes) -> None: ...

    given = {
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "key": UUID(int=7),
        "colour": Colour.RED,
        "at_point": Point(1, 2),
        "raw": b"\x00\xff",
    }
    assert there_and_back(rich, **given) == given


def test_pydantic_models_are_taken() -> None:
    def greet(person: Person) -> Person:
        return person

    assert there_and_back(greet, Person(name="Ada", age=36)) == {
        "person": Person(name="Ada", age=36)
    }
    codec = codec_of(greet)
    encoded = codec.encode_result(Person(name="Ada", age=36))
    assert codec.decode_result(encoded) == Person(name="Ada", age=36)


def test_parameters_without_annotations_take_any_json() -> None:
    def loose(a, b=None): ...  # type: ignore[no-untyped-def]

    assert there_and_back(loose, {"x": [1]}) == {"a": {"x": [1]}}


def test_the_ctx_is_found_by_annotation_at_any_place() -> None:
    def first(context: Ctx, a: int) -> None: ...
    def optional(a: int, ctx: Ctx | None = None) -> None: ...
    def none(a: int) -> None: ...

    assert codec_of(first).ctx_name == "context"
    assert codec_of(first).encode_arguments((1,), {}) == b'{"a":1}'
    assert codec_of(optional).ctx_name == "ctx"
    assert codec_of(none).ctx_name is None


def test_surplus_arguments_are_counted() -> None:
    def one(a: int) -> None: ...

    with pytest.raises(InvalidArguments, match=r"one\(\): takes 1 arguments, got 2"):
        codec_of(one).encode_arguments((1, 2), {})


def test_results_decode_to_the_annotation_without_the_sayings() -> None:
    def place() -> Point | Snooze | Cancel:
        return Point(1)

    def never() -> Snooze:
        return Snooze(1)

    def maybe() -> Point | None:
        return None

    assert codec_of(place).decode_result(b'{"x":1}') == Point(1)
    assert codec_of(never).decode_result(b"null") is None
    assert codec_of(maybe).decode_result(b"null") is None


def test_annotations_that_cannot_be_resolved_are_explained() -> None:
    def lost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match=r"lost\(\): an annotation cannot be resolved.*Nowhere"):
        codec_of(lost)


def test_a_result_that_nobody_wants_does_not_travel() -> None:
    app = App("forgetful")

    @app.job(ignore_result=True)
    def count(upto: int) -> list[int]:
        return list(range(upto))

    with inline():
        handle = count.enqueue(1000)
        with pytest.raises(
            ResultIgnored, match=r"count .* succeeded, .*ignore_result=True"
        ) as told:
            handle.result()
        assert told.value.view.state == "succeeded"
        assert handle.status().result is None
    assert count.codec.decode_kept(b"[1]") == [1], "of a job from before"


def test_who_returns_nothing_can_be_waited_for_whatever_is_kept() -> None:
    app = App("forgetful")

    @app.job(ignore_result=True)
    def send(to: str) -> None: ...

    with inline():
        send.enqueue("ada").result()
