"""`docs/CLI.md` says what the commands say of themselves."""

from __future__ import annotations

from tests.laws.cli_page import PAGE, page


def test_the_page_of_the_commands_is_current() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.laws.cli_page`"


def test_every_option_says_what_it_means() -> None:
    """But for what is plain from its name."""
    plain = {"ID, --id", "NAME, --name"}
    silent = [
        line
        for line in page().splitlines()
        if line.startswith("* `")
        and "`:" in line
        and not line.partition("`:")[2].strip(" *[]")
        and line.split("`")[1] not in plain
    ]
    assert silent == []
