"""From a target to its object: a slip is one plain sentence, an app's own error stays its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairway.sdk.loading import LoadError, load_object, look_for, plainly

SOURCE = "class Shop:\n    app = 'the app'\n_hidden = 1\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with modules in it, left as it was found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "loading_shop.py").write_text(SOURCE)
    (tmp_path / "loading_leans.py").write_text("import loading_is_not_there as app\n")
    (tmp_path / "loading_breaks.py").write_text("1 / 0\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize("target", ["loading_shop:Shop.app", "loading_shop.py:Shop.app"])
def test_a_module_and_a_file_name_the_same(here: Path, target: str) -> None:
    look_for(target)
    assert load_object(target) == "the app"


@pytest.mark.parametrize("target", ["loading_shop", ":app", "loading_shop:", ""])
def test_a_target_of_another_form(here: Path, target: str) -> None:
    for act in (look_for, load_object):
        with pytest.raises(LoadError, match="not of the form 'module:name'"):
            act(target)


@pytest.mark.parametrize(
    ("target", "words"),
    [("loading_nowhere:app", "there is no module"), ("loading_nowhere.py:app", "there is no file")],
)
def test_what_is_not_there_is_named_with_where_it_was_looked_for(
    here: Path, target: str, words: str
) -> None:
    for act in (look_for, load_object):
        with pytest.raises(LoadError, match=words) as told:
            act(target)
        assert str(here) in str(told.value)


def test_a_wrong_name_is_answered_with_those_there_are(here: Path) -> None:
    for act in (look_for, load_object):
        with pytest.raises(LoadError, match=r"has no 'Ship'; it has Shop$"):
            act("loading_shop:Ship")


def test_what_a_file_imports_is_not_what_it_has(here: Path) -> None:
    text = "import sys\nfrom pathlib import Path\nclass Shop: ...\nshop = Shop()\n"
    (here / "loading_imports.py").write_text(text)
    for act in (look_for, load_object):
        with pytest.raises(LoadError, match=r"has no 'app'; it has Shop, shop$"):
            act("loading_imports:app")
    (here / "loading_inner.py").write_text("class Shop:\n    def open(self): ...\n")
    with pytest.raises(LoadError, match=r"has no 'app'; it has open$"):
        load_object("loading_inner:Shop.app")


def test_an_import_that_fails_is_told_before_a_name_that_is_not_there(here: Path) -> None:
    """`import fairwya` alone was answered with "it has fairwya"."""
    (here / "loading_slips.py").write_text("import loading_fairwya\n")
    look_for("loading_slips:app")
    with pytest.raises(ModuleNotFoundError, match="loading_fairwya"):
        load_object("loading_slips:app")


@pytest.mark.parametrize(
    "text",
    [
        "from loading_shop import *\n",
        "globals()['app'] = 1\n",
        "def __getattr__(name): ...\n",
        "try:\n    import loading_shop as app\nexcept ImportError:\n    app = None\n",
        "with open('x') as app:\n    pass\n",
        "if True:\n    app: int = 1\n",
        "for app in ():\n    pass\n",
        "(app := 1)\n",
        "a, (app, *b) = 1, (2,)\n",
        "this is no Python\n",
    ],
)
def test_what_may_have_the_name_is_left_to_who_loads_it(here: Path, text: str) -> None:
    (here / "loading_maybe.py").write_text(text)
    look_for("loading_maybe:app")


def test_modules_are_looked_for_in_their_packages(here: Path) -> None:
    (here / "loading_house" / "room").mkdir(parents=True)
    (here / "loading_house" / "__init__.py").touch()
    (here / "loading_house" / "jobs.py").write_text("app = 1\n")
    look_for("loading_house:whatever")  # a package may have it by any of its files
    look_for("loading_house.jobs:app")
    look_for("loading_house.room.jobs:app")  # below a folder that is no package
    look_for("sys.whatever:app")  # built in: it has no file to look at
    with pytest.raises(LoadError, match=r"there is no module 'loading_house\.typo'"):
        look_for("loading_house.typo:app")


def test_errors_of_the_module_itself_are_left_as_they_are(here: Path) -> None:
    look_for("loading_leans:app")  # runs nothing of it
    with pytest.raises(ModuleNotFoundError, match="loading_is_not_there") as told:
        load_object("loading_leans:app")
    assert not isinstance(told.value, LoadError)
    with pytest.raises(ZeroDivisionError):
        load_object("loading_breaks:app")


def load_half() -> None:
    with plainly("loading_half:app"):
        load_object("loading_half:app")


def test_who_starts_an_app_reads_of_its_own_lines_alone(here: Path) -> None:
    """Twenty lines of ours came before the one that was to be mended."""
    with pytest.raises(LoadError) as told, plainly("loading_breaks.py:app"):
        load_object("loading_breaks.py:app")
    words = str(told.value).splitlines()
    assert words[0] == "loading_breaks.py:app could not be loaded:"
    assert words[-1] == "ZeroDivisionError: division by zero"
    files = [line for line in words if line.lstrip().startswith("File ")]
    assert len(files) == 1
    assert files[0].endswith('loading_breaks.py", line 1, in <module>')
    (here / "loading_half.py").write_text("app = (\n")
    with pytest.raises(LoadError, match=r"SyntaxError: .* was never closed$") as half:
        load_half()
    assert "importlib" not in str(half.value)
    with pytest.raises(LoadError, match=r"^there is no module"), plainly("loading_typo:app"):
        load_object("loading_typo:app")
