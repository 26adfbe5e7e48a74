"""A misspelt option is an error where it stands, and says which one was meant."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from fairway import App
from fairway.sdk.options import refuse_unknown
from fairway.testing import inline


class Options(TypedDict, total=False):
    timeout: float
    priority: int


def test_those_there_are_pass() -> None:
    refuse_unknown(["timeout", "priority"], Options, "@app.job")
    refuse_unknown([], Options, "@app.job")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("timout", "did you mean timeout?"), ("colour", "there are priority, timeout")],
)
def test_another_is_refused_with_what_was_meant(name: str, hint: str) -> None:
    with pytest.raises(TypeError) as told:
        refuse_unknown(["timeout", name], Options, "@app.job")
    assert str(told.value) == f"@app.job has no option {name!r}; {hint}"


def test_of_a_schedule_before_what_it_lacks() -> None:
    options: dict[str, Any] = {"crn": "* * * * *"}
    with pytest.raises(TypeError, match="has no option 'crn'"):
        App("misspelt").schedule(**options)


def test_tags_are_a_list_of_words() -> None:
    app = App("tagged")

    @app.job(name="t", pool="short")
    async def job() -> None: ...

    with inline():
        status = job.options(tags=("a", "b"), metadata={"k": "v"}).enqueue().status()
        assert (status.tags, status.metadata) == (["a", "b"], {"k": "v"})
        with pytest.raises(ValueError, match="list of words"):
            job.options(tags="nightly")
