"""How a job type says that one of a kind is enough, and what makes two jobs the same."""

from __future__ import annotations

from typing import Any

import pytest

from fairway import App, Unique
from fairway.wire.unique import UniqueRequest

app = App("unique")


@app.job(unique=Unique())
def report(customer: str, month: int = 1) -> None: ...


@app.job(unique=Unique(by="customer", within="1h", while_=["queued"], on_conflict="return"))
def reindex(customer: str, reason: str) -> None: ...


@app.job
def plain(customer: str) -> None: ...


def wanted(job: Any, *args: Any, **kwargs: Any) -> UniqueRequest | None:
    found: UniqueRequest | None = job.options().request(args, kwargs).unique
    return found


def test_all_arguments_make_the_kind_in_whatever_way_they_are_given() -> None:
    assert wanted(report, "a") == wanted(report, month=1, customer="a")
    assert wanted(report, "a") != wanted(report, "a", 2)
    assert wanted(report, "a") != wanted(report, "b")
    assert wanted(plain, "a") is None


def test_or_one_of_them() -> None:
    assert wanted(reindex, "a", "new") == wanted(reindex, "a", "old")
    assert wanted(reindex, "a", "new") == UniqueRequest(
        key="reindex/customer=a",
        within_seconds=3600,
        while_states=["queued"],
        on_conflict="return",
    )


@pytest.mark.parametrize(
    "wrong", [{"within": 0}, {"within": "90d"}, {"while_": ["soon"]}, {"on_conflict": "shout"}]
)
def test_what_is_not_understood_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Unique"):
        Unique(**wrong)


def test_a_key_of_an_argument_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'tenant', which is no argument"):
        app.job(name="other", unique=Unique(by="tenant"))(plain.function)
