"""Documents: short enough to be read, and every link leads somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePath

import pytest
from tests.laws.source import PACKAGE, ROOT, modules, trees

from fairway.cli.main import app

README_LINES_MAX = 150
HEAD = 100  # characters: two long lines that begin alike are one, twice
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_readme_is_a_front_door_not_a_manual() -> None:
    readme = ROOT / "README.md"
    if readme.exists():
        assert len(readme.read_text("utf-8").splitlines()) < README_LINES_MAX


def test_the_readme_lists_each_page_once() -> None:
    """And the two calls of its example leave time for the score between them."""
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*?) \|", text.partition("## Read on")[2], re.MULTILINE)
    listed = LINK.findall(" ".join(rows))
    assert len(listed) == len(set(listed)) > 20
    assert "sleep 2; curl -s http://127.0.0.1:8800/leaderboard" in text


def test_the_set_up_says_what_it_does_before_it_takes_minutes() -> None:
    """What it installs is shown as it comes, and its end says where the commands are."""
    recipe = (ROOT / "Makefile").read_text("utf-8").partition("$(STAMP): ")[2].partition("\n\n")[0]
    first, *_, last = [line for line in recipe.splitlines() if "@echo" in line]
    assert recipe.index(first) < recipe.index("pip install")
    assert "minutes" in first
    assert "activate" in last
    (large,) = [line for line in recipe.splitlines() if "-r requirements.lock" in line]
    assert "--quiet" not in large


@every_page
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@every_page
def test_files_of_ours_named_in_words_exist(page: Path) -> None:
    """A path in backquotes that begins with a folder of the house is a promise too."""
    if "decisions" in page.parts:
        return  # a decision may speak of what was there when it was taken
    for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|sql|md|toml))`", page.read_text("utf-8")):
        homes = (ROOT / path, PACKAGE / path, PACKAGE / "store" / path, ROOT / "docs" / path)
        assert any(home.exists() for home in homes), f"{page.name} names {path}"


@every_page
def test_no_paragraph_is_told_twice(page: Path) -> None:
    """Merges leave both versions of a long line; who reads them finds which holds."""
    heads = [line[:HEAD] for line in page.read_text("utf-8").splitlines() if len(line) > 2 * HEAD]
    assert sorted(heads) == sorted(set(heads))


@every_page
def test_no_path_of_one_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.~])/(work|root)/\w", page.read_text("utf-8"))


def test_the_page_shows_the_packages_that_there_are() -> None:
    """Each with what its own docstring says first."""
    page = (ROOT / "docs/ARCHITECTURE.md").read_text("utf-8")
    shown = re.findall(r"^\| `(\w+)` \| `(\w+)/` \| (.+) \|$", page, re.MULTILINE)
    there = [
        (*PurePath(name).parts[:2], (ast.get_docstring(tree) or "").split("\n")[0])
        for name, tree in trees().items()
        if PurePath(name).name == "__init__.py" and len(PurePath(name).parts) == 3
    ]
    assert sorted(shown) == sorted(there)


def test_contributors_are_told_what_each_package_is_for() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    packages = {str(PurePath(name).parent) for name in trees() if name.endswith("/__init__.py")}
    assert {name for name in packages if name.count("/") == 1 and f"`{name}`" not in page} == set()


def test_files_that_the_sources_name_exist() -> None:
    """`recorder.py` in a docstring is a signpost; a file that was renamed leaves it astray."""
    files = [f"/{path.relative_to(ROOT)}" for path in PACKAGE.rglob("*.*")]
    astray = [
        f"{name}: {path}"
        for name, text in modules().items()
        for path in re.findall(r"`([\w/]*\w\.(?:py|sql))`", text)
        if not any(file.endswith(f"/{path}") for file in files)
    ]
    assert astray == []


def test_decisions_are_numbered_without_gap() -> None:
    numbers = [int(path.name[:4]) for path in sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_command_is_told_to_operators() -> None:
    page = (ROOT / "docs/OPERATING.md").read_text("utf-8")
    programs = page.split("## Settings")[0]
    told = " ".join(re.findall(r"^\| (`fairway .*?) \|", programs, re.MULTILINE))
    commands = {name for name in app if not name.startswith("-") and app[name].show}
    assert {name for name in commands if not re.search(rf"[` ]{name}\b", told)} == set()


def test_every_slow_test_is_run_by_a_target() -> None:
    """`make test` leaves them out: one that no target runs is run by nobody."""
    lines = re.findall(r"pytest -m slow(.*)", (ROOT / "Makefile").read_text("utf-8"))
    found = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "pytest.mark." + "slow" in path.read_text("utf-8")
        and not any(_runs(line, str(path.relative_to(ROOT))) for line in lines)
    ]
    assert found == []


def _runs(line: str, path: str) -> bool:
    ignored = re.findall(r"--ignore (\S+)", line)
    named = [one for one in re.sub(r"--ignore \S+", "", line).split() if one.startswith("tests")]
    is_named = not named or any(path.startswith(one) for one in named)
    return is_named and not any(path.startswith(one) for one in ignored)
