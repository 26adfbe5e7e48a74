"""Taste that a machine can check: budgets, names, and what the house does not do.

Each law answers with everyone who breaks it, so that all of it is mended in one go.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from tests.laws.source import PACKAGE, functions, modules, trees, walk

FOLDER_FILES_MAX = 25
FILE_LINES_MAX = 400
#: The one owner: a verb for each thing that is asked of it, most of them a line of a part's.
#: And the one place where all services are joined.
LONGER = {
    "core/fair_share/queue.py": 410,
    "runtime/settings.py": 430,  # what each setting means stands below it
    "services/dispatch/dispatcher.py": 585,
    "services/platform.py": 570,  # one port a line: the list of what is wired to what
    "services/sessions/sessions.py": 455,
    "services/submit/submission.py": 405,  # one commit, from its callers to their answers
    "services/workers/exchange.py": 405,
    "store/connections/database.py": 415,
}
FUNCTION_LINES_MAX = 50
REPORT_LINES_MAX = 65  # of a page of the lab, which is one expression
PARAMETERS_MAX = 6
PORTS_MAX = 8  # of a constructor: better one more than an attribute that is set afterwards
JUNK_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "base", "manager", "managers"}
LAYERS = {"core", "wire", "store", "services", "runtime", "api", "worker", "sdk", "cli"}
INNER = ("core/", "store/", "services/", "wire/")
PROGRAMS_OF_PEOPLE = ("sdk/", "cli/", "lab/", "bench/", "rig/")  # they have no loops to drive them

#: The one place that measures how far the database's clock is from ours.
COMPARES_CLOCKS = "store/postgres/inspection.py"
#: The one place that falls back to the system's own folder for sockets, whose paths must be short.
KNOWS_THE_SYSTEM = "store/postgres/data_folder.py"


def test_a_file_is_read_in_one_sitting() -> None:
    lengths = {name: len(text.splitlines()) for name, text in modules().items()}
    assert {
        name: lines for name, lines in lengths.items() if lines > LONGER.get(name, FILE_LINES_MAX)
    } == {}


def test_a_module_says_what_it_is_for() -> None:
    docstrings = {name: ast.get_docstring(tree) for name, tree in trees().items()}
    assert [name for name, text in docstrings.items() if not text] == []
    ends = {name: (text or " ").split("\n")[0][-1] for name, text in docstrings.items()}
    assert [name for name, end in ends.items() if end not in ".:?"] == []


def test_pauses_grow_in_one_way() -> None:
    """Five spellings once, two of which outgrew a float in a long outage."""
    powers = re.compile(r"\b2(\.0)? ?\*\* ?(?!3\b)")
    doubling = [name for name, text in modules().items() if powers.search(text)]
    assert [name for name in doubling if not name.startswith(("lab/", "bench/"))] == [
        "core/backoff.py"
    ]


def test_a_function_does_one_thing() -> None:
    long = [
        f"{name}: {function.name}"
        for name, tree in trees().items()
        for function in functions(tree)
        if (function.end_lineno or 0) - _first_statement(function).lineno
        >= (REPORT_LINES_MAX if name.startswith("lab/experiments/") else FUNCTION_LINES_MAX)
    ]
    assert long == []


def _first_statement(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """What it does begins behind what is said of it: a command's docstring is its manual."""
    has_text = ast.get_docstring(function) is not None and len(function.body) > 1
    return function.body[1 if has_text else 0]


def test_a_function_asks_for_little() -> None:
    greedy = [
        f"{name}: {function.name}"
        for name, tree in trees().items()
        if not name.startswith("cli/")  # a command's flags are its parameters
        for function in functions(tree)
        if len(_asked(function)) > (PORTS_MAX if function.name == "__init__" else PARAMETERS_MAX)
    ]
    assert greedy == []


def _asked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    asks = function.args
    given = [*asks.posonlyargs, *asks.args, *asks.kwonlyargs]
    return [one.arg for one in given if one.arg not in ("self", "cls")]


def test_names_are_words_of_the_domain() -> None:
    assert [name for name in modules() if PurePath(name).stem in JUNK_NAMES] == []
    versioned = re.compile(r"(^|_)v?\d+$")
    assert [name for name in modules() if versioned.search(PurePath(name).stem)] == []


def test_only_hands_print() -> None:
    printing = [
        f"{name}:{node.lineno}"
        for name, node in _nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not name.startswith(("cli/", "bench/"))
    ]
    assert printing == []


def test_no_error_is_swallowed() -> None:
    """Who catches everything says so, or answers with something."""
    swallowing = [
        f"{name}:{node.lineno}"
        for name, node in _nodes()
        if isinstance(node, ast.ExceptHandler)
        and _catches_everything(node)
        and all(map(_does_nothing, node.body))
    ]
    assert swallowing == []


def _does_nothing(step: ast.stmt) -> bool:
    is_bare_return = isinstance(step, ast.Return) and step.value is None
    return is_bare_return or isinstance(step, ast.Pass | ast.Continue | ast.Break)


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    wide = ("Exception", "BaseException")
    return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in wide)


def test_comments_hold_no_debts() -> None:
    debt = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        f"{name}: {token.string}"
        for name, text in modules().items()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and debt.search(token.string)
    ]
    assert found == []


def test_a_silenced_warning_has_a_reason() -> None:
    silenced = re.compile(r"# (?:type: ignore|noqa)(.*)$")
    reasoned = re.compile(r"^(\[[\w, -]+\]|: [A-Z0-9, ]+)\s+(# |\()\S+ \S+")
    found = []
    for name, text in modules().items():
        lines = text.splitlines()
        for place, line in enumerate(lines):
            mark = silenced.search(line)
            said_above = any(one.strip().startswith("# ") for one in lines[place - 2 : place])
            if mark and not said_above and not reasoned.match(mark[1]):
                found.append(f"{name}: {line.strip()}")
    assert found == []


def test_no_path_of_one_machine() -> None:
    found = [
        f"{name}: {text}"
        for name, text in _strings()
        if re.match(r"/(work|root|home|tmp)(/|$)", text) and name != KNOWS_THE_SYSTEM
    ]
    assert found == []


def test_only_one_file_rests() -> None:
    """Servers and workers wait for signals; resting is the business of `runtime/loops.py`."""
    resting = {
        name
        for name, node in _nodes()
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("asyncio", "time")
        and not name.startswith(PROGRAMS_OF_PEOPLE)
    }
    assert resting == {"runtime/loops.py"}


def test_only_the_clock_reads_the_time() -> None:
    reading = re.compile(r"\b(time\.(time|monotonic)|datetime\.(now|utcnow))\(")
    found = [
        name
        for name, text in modules().items()
        if name.startswith(INNER) and reading.search(text) and name != COMPARES_CLOCKS
    ]
    assert found == []


def test_the_house_has_its_rooms() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and "__" not in path.name}
    assert rooms >= LAYERS


def test_a_folder_is_seen_at_a_glance() -> None:
    folders = Counter(str(PurePath(name).parent) for name in modules())
    assert {name: files for name, files in folders.items() if files > FOLDER_FILES_MAX} == {}


def test_a_package_says_what_lives_there_and_what_does_not() -> None:
    """`fairway` itself is what users import."""
    silent = [
        name
        for name, tree in trees().items()
        if name.endswith("/__init__.py")
        and not re.search(r"^Here: .*^Not here: ", ast.get_docstring(tree) or "", re.M | re.S)
    ]
    assert silent == []


def test_what_a_package_says_of_its_neighbours_is_true() -> None:
    """A path in the docstring of a package leads to a file or folder of the house."""
    lost = [
        f"{name}: {path}"
        for name, tree in trees().items()
        if name.endswith("/__init__.py")
        for path in re.findall(r"`([a-z_/]+(?:/|\.py))`", ast.get_docstring(tree) or "")
        if not path.startswith("/") and not _is_there(PurePath(name).parent, path)
    ]
    assert lost == []


def _is_there(folder: PurePath, path: str) -> bool:
    homes = (PACKAGE, PACKAGE / folder, PACKAGE / folder.parent, PACKAGE.parents[1])
    return any((home / path).exists() for home in homes)


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    return ((name, node) for name, tree in trees().items() for node in walk(tree))


def _strings() -> Iterator[tuple[str, str]]:
    for name, node in _nodes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield name, node.value
