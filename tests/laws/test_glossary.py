"""The words of the house: one name for one thing, and what was retired stays away.

`docs/GLOSSARY.md` says what a word means; here is what a machine can hold of it. A word that means
two things is found by class: no class name twice within a layer, no member of an old name.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import PurePath

from tests.laws.source import ROOT, modules, trees, walk

GLOSSARY = ROOT / "docs/GLOSSARY.md"

#: Words that the field has others for. No identifier and no file is made of them.
RETIRED = {
    "aftermath": "failure policy",
    "bulletin": "tenant events",
    "calm": "background",
    "courier": "transfers",
    "lobby": "deferred",
    "lone": "isolated",
    "roster": "competitors, worker list",
    "sweeper": "reconciler",
    "vault": "large payloads",
}
#: Names that said nothing of what they stood for.
RETIRED_NAMES = {
    "at_hand", "AtHand", "company", "_company", "COMPANY_JOBS", "HttpDoor", "Measuring", "Overtime",
    "ring_due", "rung_us", "Saying", "set_patience", "set_terms", "sort_out",
    "stand_aside", "Terms",
}  # fmt: skip
#: Members of a name that has one meaning: which classes may have one.
ONE_MEANING = {
    "coming": set(),
    "door": {"App", "HasDoor"},  # what tenants' programs may call keeps its name
    "ending": set(),
    "keeper": set(),
    "lobby": set(),
    "outside": set(),
    "place": {"QueuedJob", "Success"},  # where the store keeps a row
}
LAYERS_OF_ONE_MEANING = ("core/", "services/", "store/", "worker/", "sdk/", "runtime/")
#: Whose processes a keeper is one of; nothing in a server is called so.
KEEPERS = ("worker/", "cli/")


def test_no_class_has_its_name_twice_within_a_layer() -> None:
    homes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[name.split("/")[0], node.name].append(name)
    assert {key: found for key, found in homes.items() if len(found) > 1} == {}


def test_retired_words_do_not_come_back() -> None:
    back = sorted(
        f"{name}: {word} (say {RETIRED[part]})"
        for name, words in identifiers().items()
        for word in words | {PurePath(name).stem}
        for part in _parts(word) & RETIRED.keys()
    )
    assert back == []


def test_retired_names_do_not_come_back() -> None:
    back = {name: words & RETIRED_NAMES for name, words in identifiers().items()}
    assert {name: words for name, words in back.items() if words} == {}


def test_a_word_has_one_meaning() -> None:
    others = [
        f"{name}: {owner}.{member}"
        for name, tree in trees().items()
        if name.startswith(LAYERS_OF_ONE_MEANING)
        for node in walk(tree)
        if isinstance(node, ast.ClassDef)
        for owner, member in [(node.name, one) for one in _members(node)]
        if owner not in ONE_MEANING.get(member, {owner})
    ]
    assert others == []


def test_a_keeper_is_a_process_of_a_worker() -> None:
    keepers = [
        f"{name}: {word}"
        for name, words in identifiers().items()
        if not name.startswith(KEEPERS)
        for word in words
        if "keeper" in _parts(word)
    ]
    assert keepers == []


def test_what_the_glossary_names_exists() -> None:
    known = set().union(*identifiers().values())
    named = re.findall(r"`([A-Za-z_]+)`", GLOSSARY.read_text("utf-8"))
    assert [name for name in named if name not in known] == []


def test_the_glossary_says_a_word_once() -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    words = [word.strip() for row in rows for word in row.split(",")]
    assert sorted({word for word in words if words.count(word) > 1}) == []


@cache
def identifiers() -> dict[str, set[str]]:
    """Names in the code of each module; what stands in strings and comments is prose."""
    return {
        name: {
            token.string
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.NAME
        }
        for name, text in modules().items()
    }


def _parts(word: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower().split("_"))


def _members(node: ast.ClassDef) -> set[str]:
    """Fields and methods of a class, and what its methods set on it."""
    names = set()
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one in node.body:
            names.add(one.name)
        elif (
            isinstance(one, ast.AnnAssign) and one in node.body and isinstance(one.target, ast.Name)
        ):
            names.add(one.target.id)
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and _is_own(one):
            names.add(one.attr)
    return names


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"
