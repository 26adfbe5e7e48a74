"""Chains and groups before they are handed in: what they are made of, and where they cannot be."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from fairway import App, InvalidArguments, InvalidRequest, Limit, Unique, chain, group
from fairway.testing import manual, perform

app = App("flows", url="http://127.0.0.1:9", api_key="nobody's")


@app.job
async def first(a: int) -> int:
    return a


@app.job
async def then(before: int, note: str = "", *, more: int = 0) -> None: ...


@app.job
async def nothing() -> None: ...


@app.job
async def makes_a_flow() -> None:
    await chain(first.s(1), then.s()).aenqueue()


def test_a_result_takes_the_first_argument() -> None:
    request, argument = then.s("late", more=3).request_after()
    assert argument == "before"
    assert json.loads(bytes(request.payload)) == {"note": "late", "more": 3}
    assert json.loads(bytes(then.s().request_after()[0].payload)) == {}


def test_a_call_that_does_not_fit_is_told_before_anything_is_sent() -> None:
    with pytest.raises(InvalidArguments, match="takes no argument that a result could be"):
        chain(first.s(1), nothing.s()).enqueue()
    with pytest.raises(InvalidArguments, match="multiple values for argument 'before'"):
        chain(first.s(1), then.s(before=2)).enqueue()
    with pytest.raises(InvalidArguments, match="argument `a`"):
        group([first.s("one")]).enqueue()


def test_what_is_no_flow() -> None:
    with pytest.raises(ValueError, match="at least one job"):
        group([])
    with pytest.raises(TypeError, match=r"made of job\.s"):
        chain(first)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_all is"):
        group([first.s(1)], on_all="any")  # type: ignore[arg-type]
    handle = first.handle("01980a5e-7c1b-7000-8000-04a2b1c3d4e5")
    with pytest.raises(ValueError, match="do not go together"):
        first.options(after=[handle], idempotency_key="k")
    for wrong in (handle, handle.id, [handle.id], [handle, None]):
        with pytest.raises(TypeError, match=r"as in after=\[handle\]"):
            first.options(after=cast("Any", wrong))
        with pytest.raises(TypeError, match=r"as in after=\[handle\]"):
            chain(first.s(1), after=cast("Any", wrong))


def test_where_flows_cannot_be_made_it_is_said() -> None:
    assert "inside a run" in perform(makes_a_flow).error["message"]
    with manual():
        assert "inside a run" in perform(makes_a_flow).error["message"]


@app.job(unique=Unique(by="a"))
async def only(a: int) -> None: ...


@app.job(concurrency=[Limit("customer", 1), Limit(3)])
async def sync(customer: int = 0, month: int = 0) -> None: ...


@app.job(concurrency=Limit("m-{month}", 1))
async def close(customer: int, month: int) -> None: ...


def test_why_a_job_of_a_flow_cannot_be_unique() -> None:
    flows = (chain(first.s(1), only.s()), group([first.s(1)], then=only.s(1)), group([only.s(1)]))
    for flow in flows:
        with pytest.raises(InvalidRequest, match=r"^only: .*wait for it with `after`"):
            flow.enqueue()


def test_no_key_is_made_of_a_result_that_is_not_known_yet() -> None:
    with pytest.raises(InvalidArguments, match="is by 'customer', which is the result"):
        chain(first.s(1), sync.s(month=3)).enqueue()  # not of the default, either
    request, argument = close.s(7).request_after()
    assert (argument, [one.key for one in request.limits or []]) == ("customer", ["m-7"])
    assert [one.key for one in sync.s(4).request().limits or []] == ["sync/customer=4", "sync"]
