"""Apps and the job types they hold: declared once, checked when declared, plain to call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairway import CTX, App, Ctx, Retry
from fairway.sdk.loading import LoadError


@pytest.fixture
def app() -> App:
    return App("scoring", url="http://127.0.0.1:9")


def test_a_job_is_still_a_plain_function(app: App) -> None:
    @app.job
    def double(number: int) -> int:
        """Twice."""
        return number * 2

    assert double(3) == 6
    assert (double.__name__, double.__doc__, double.name) == ("double", "Twice.", "double")
    assert app.jobs == {"double": double}
    assert repr(double) == "<Job double of scoring>"


async def test_an_async_job_is_still_a_coroutine_function(app: App) -> None:
    @app.job()
    async def double(number: int) -> int:
        return number * 2

    assert await double(3) == 6
    assert double.is_async


def test_declared_terms(app: App) -> None:
    @app.job(pool="medium", timeout="2m", mode="process", name="cv.score", attempts=7, priority=1)
    def score(cv_id: str, ctx: Ctx = CTX) -> float:
        return 1.0

    assert app.jobs["cv.score"] is score
    assert (score.pool, score.timeout_seconds, score.run_mode) == ("medium", 120.0, "process")
    assert (score.retry.attempts, score.attempts_max, score.priority) == (7, 7, 1)
    assert score.wants_ctx == "ctx"
    assert score.decode_arguments(b'{"cv_id":"a"}') == {"cv_id": "a"}
    assert score.encode_result(1.5) == b"1.5"


def test_an_app_without_a_name_says_how_to_give_it_one() -> None:
    with pytest.raises(TypeError, match=r'an App needs a name, .*: App\("shop"\)$'):
        App()  # type: ignore[call-arg]


def test_a_misspelt_option_is_refused_when_the_program_runs(app: App) -> None:
    """Not only by a type checker: a lost time limit would be found in production."""
    with pytest.raises(TypeError, match=r"@app.job has no option 'timout'; did you mean timeout\?"):
        app.job(timout="1s")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"@app.schedule has no option 'jiter'; did you mean jitt"):
        app.schedule("0 9 * * *", jiter="1s")  # type: ignore[call-arg]

    @app.job
    def plain() -> None: ...

    with pytest.raises(TypeError, match=r"plain.options has no option 'delayy'; did you mean de"):
        plain.options(delayy="1h")  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match="has no option 'zz'; there are after, at, delay, events, exact, fair_key"
    ):
        plain.options(zz=1)  # type: ignore[call-arg]


def test_terms_left_out(app: App) -> None:
    @app.job
    def plain() -> None: ...

    assert (plain.pool, plain.timeout_seconds, plain.priority) == ("short", None, 5)
    assert (plain.retry.attempts, plain.attempts_max) == (None, 5)


def test_the_run_mode_goes_by_pool_and_colour(app: App) -> None:
    async def coroutine() -> None: ...
    def function() -> None: ...

    modes = {
        (pool, name): app.job(pool=pool, name=f"{pool}.{name}")(handler).run_mode
        for pool in ("short", "medium", "long", "gpu")
        for name, handler in (("async", coroutine), ("sync", function))
    }
    assert {mode for (_, name), mode in modes.items() if name == "async"} == {"loop", "process"}
    assert modes["long", "async"] == modes["long", "sync"] == "process"
    assert modes["short", "sync"] == modes["medium", "sync"] == modes["gpu", "sync"] == "thread"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no spaces"}, "no name for a job"),
        ({"pool": "Short!"}, "no name for a pool"),
        ({"priority": 10}, "priority must be 0 to 9"),
        ({"timeout": "soon"}, "no duration"),
        ({"mode": "fibre"}, "mode must be one of loop, thread, process"),
        ({"attempts": 0}, "at least 1"),
        ({"attempts": 1, "retry": Retry(2)}, "either attempts= or retry="),
    ],
)
def test_wrong_terms_are_refused_at_once(app: App, options: Any, message: str) -> None:
    def handler() -> None: ...

    with pytest.raises(ValueError, match=message):
        app.job(**options)(handler)
    assert app.jobs == {}


def test_parameters_without_a_name_are_refused(app: App) -> None:
    def many(*numbers: int) -> None: ...
    def named(**numbers: int) -> None: ...
    def hidden(number: int, /) -> None: ...

    for handler in (many, named, hidden):
        with pytest.raises(TypeError, match="a job cannot take"):
            app.job(handler)


def test_one_name_is_one_job(app: App) -> None:
    def handler() -> None: ...

    app.job(handler)
    with pytest.raises(ValueError, match="already has a job named 'handler'"):
        app.job(handler)


def test_wrong_arguments_fail_in_the_caller(app: App) -> None:
    @app.job
    def double(number: int) -> int:
        return number * 2

    with pytest.raises(ValueError, match="priority must be"):
        double.options(priority=99)
    for key in ("", "é", "k" * 256, "a\nb"):
        with pytest.raises(ValueError, match="printable ASCII"):
            double.options(idempotency_key=key)
    with pytest.raises(Exception, match=r"double\(\): argument `number`: expected int, got str"):
        double.enqueue("2")  # type: ignore[arg-type]


def test_a_type_may_be_defined_below_its_job(app: App) -> None:
    app.job(uses_later)
    assert app.jobs["uses_later"].codec.encode_arguments((Later(1),), {}) == b'{"later":{"n":1}}'


def uses_later(later: Later) -> None: ...


class Later(msgspec.Struct):
    n: int


# -- loading ---------------------------------------------------------------------------------------

SOURCE = "from fairway import App\napp = App('loaded')\nother = 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_jobs_for_loading.py").write_text(SOURCE)
    (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    monkeypatch.setattr("sys.modules", dict(__import__("sys").modules))
    return tmp_path


@pytest.mark.parametrize("target", ["my_jobs_for_loading:app", "my_jobs_for_loading.py:app"])
def test_load(folder: Path, target: str) -> None:
    assert App.load(target).name == "loaded"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("my_jobs_for_loading", "not of the form"),
        (":app", "not of the form"),
        ("nowhere_to_be_found:app", "there is no module 'nowhere_to_be_found'"),
        ("nowhere.py:app", "there is no file nowhere.py"),
        ("my_jobs_for_loading:ap", "has no 'ap'; it has app, other"),
    ],
)
def test_load_says_what_is_missing(folder: Path, target: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        App.load(target)


def test_load_leaves_the_modules_own_errors(folder: Path) -> None:
    with pytest.raises(LoadError, match="not_installed_anywhere") as caught:
        App.load("needs_more:app")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_load_wants_an_app(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"is a int, not a fairway\.App"):
        App.load("my_jobs_for_loading:other")
