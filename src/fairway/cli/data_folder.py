"""The data folder: all state of a Fairway on one machine, for nobody else to look into."""

from __future__ import annotations

from pathlib import Path

OWNER_ONLY = 0o700
#: In every folder that we made. Keys and a database are nothing for a repository, either.
MARK, MARK_TEXT = ".gitignore", "*\n"


def make_data_folder(folder: Path) -> None:
    """Where there is none. One that somebody else made stays as it is."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
        (folder / MARK).write_text(MARK_TEXT)


def is_ours(folder: Path) -> bool:
    """Whether we made it: a folder that somebody chose may hold other things, or be all of /tmp."""
    try:
        return (folder / MARK).read_text() == MARK_TEXT
    except (OSError, UnicodeDecodeError):
        return False
