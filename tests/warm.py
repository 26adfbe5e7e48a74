"""Reads every test once before a run of many processes: `python -m tests.warm`, by `make test`.

pytest rewrites the assertions of each test file, and those of our own package, which brings a
plugin for it; that takes twice as long as all else that it does before the first test, and four
processes that begin together would each do all of it. What is written here they only read, also
where PYTHONDONTWRITEBYTECODE keeps them from writing. It is a matter of time alone: should pytest
be made otherwise one day, this does nothing and says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent


def rewritten_files() -> Iterator[Path]:
    for name in ("test_*.py", "conftest.py"):
        yield from HERE.rglob(name)
    yield from (HERE.parent / "src" / "fairway").rglob("*.py")


def rewrite(paths: Sequence[Path]) -> None:
    from _pytest.assertion import AssertionState, rewrite
    from _pytest.config import _prepareconfig

    sys.dont_write_bytecode = False  # what is loaded here is rewritten, too: plugins, conftest
    config = _prepareconfig(["-p", "no:cacheprovider", str(HERE)])
    state = AssertionState(config, "rewrite")
    for path in paths:
        folder = rewrite.get_cache_dir(path)
        kept = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, kept, state.trace) is None:
            folder.mkdir(exist_ok=True)
            stat, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, stat, kept)


def main() -> None:
    paths, parts = sorted(rewritten_files()), os.cpu_count() or 1
    children = []
    for part in range(parts):
        child = os.fork()
        if child == 0:
            try:
                rewrite(paths[part::parts])
            except Exception as error:
                sys.stderr.write(f"tests are not read in advance: {error!r}\n")
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
