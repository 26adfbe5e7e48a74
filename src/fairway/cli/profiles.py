"""`fairway profiles …`: platforms one often speaks to, by name, in a small file of one's own.

`fairway/config.toml` in the user's folder for settings, for its owner's eyes only:

    default = "prod"

    [profiles.prod]
    url = "https://jobs.example.com"
    key = "fw_tenant_…"
    operator_key = "fw_operator_…"
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from cyclopts import App

from fairway.cli.terminal.output import Column, Output
from fairway.core.errors import InvalidRequest

app = App(name="profiles", help="Platforms by name, for --profile: their addresses and keys.")

FILE = Path("fairway") / "config.toml"


PROFILES = (
    Column("name", "name"),
    Column("default", lambda one: "yes" if one["default"] else ""),
    Column("url", "url"),
    Column("keys", "keys"),
)
PLAIN = Output()


class Profile(NamedTuple):
    url: str
    key: str = ""
    operator_key: str = ""


class Profiles(NamedTuple):
    default: str
    by_name: dict[str, Profile]

    def named(self, name: str) -> Profile:
        if name not in self.by_name:
            there = ", ".join(sorted(self.by_name)) or "none"
            raise InvalidRequest(
                f"There is no profile {name[:64]!r} in {config_path()}; there are: {there}."
                f" Make it with `fairway profiles set {name[:64]} --url …`."
            )
        return self.by_name[name]


def config_path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME") or "~") / ".config"
    return Path(home).expanduser() / FILE


def read_profiles(path: Path) -> Profiles:
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        profiles = {
            name: Profile(**{field: str(value) for field, value in said.items()})
            for name, said in found.get("profiles", {}).items()
        }
        return Profiles(str(found.get("default", "")), profiles)
    except (FileNotFoundError, NotADirectoryError):
        return Profiles("", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise InvalidRequest(
            f"{path} cannot be read: {error}. Each profile has url, key and operator_key."
        ) from None


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Whole or not at all, and for its owner alone: it holds keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"default = {_quoted(profiles.default)}"] if profiles.default else []
    for name, profile in sorted(profiles.by_name.items()):
        lines += ["", f"[profiles.{_quoted(name)}]"]
        lines += [f"{key} = {_quoted(value)}" for key, value in _said(profile).items()]
    made = path.with_suffix(".new")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    made.replace(path)


def _said(profile: Profile) -> dict[str, Any]:
    return {name: value for name, value in profile._asdict().items() if value}


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for the letter 0x7f."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# -- commands ------------------------------------------------------------------------------------


@app.command(name=("ls", "list"))
def list_(*, form: Output = PLAIN) -> None:
    """The profiles there are; their keys are not shown."""
    found = read_profiles(config_path())
    rows = [
        {
            "name": name,
            "default": name == found.default,
            "url": one.url,
            "keys": [word for word, key in _keys(one) if key],
        }
        for name, one in sorted(found.by_name.items())
    ]
    if_none = f"No profiles in {config_path()}: `fairway profiles set NAME --url …` makes one."
    form.rows({"profiles": rows}, rows, PROFILES, if_none)


@app.command(name="set")
def set_(
    name: str,
    *,
    url: str | None = None,
    key: str | None = None,
    operator_key: str | None = None,
    default: bool = False,
    form: Output = PLAIN,
) -> None:
    """Make or change a profile; what is not said stays.

    Parameters
    ----------
    url
        Where its server is.
    key
        A tenant's key.
    operator_key
        An operator's key.
    default
        Use it where nothing else says which platform is meant.
    """
    found = read_profiles(config_path())
    known = found.by_name.get(name)
    if known is None and url is None:
        raise InvalidRequest(f"{name} is new: say where it is, with --url.")
    before = known or Profile("")
    one = Profile(url or before.url, key or before.key, operator_key or before.operator_key)
    usual = name if default or not found.by_name else found.default
    write_profiles(config_path(), Profiles(usual, found.by_name | {name: one}))
    form.record({"name": name, "url": one.url}, f"{name} is {one.url}, in {config_path()}.")


@app.command(name=("rm", "delete"))
def delete(name: str, *, form: Output = PLAIN) -> None:
    """Forget a profile, with its keys."""
    found = read_profiles(config_path())
    found.named(name)
    left = {other: one for other, one in found.by_name.items() if other != name}
    usual = "" if found.default == name else found.default
    write_profiles(config_path(), Profiles(usual, left))
    form.record({"name": name, "deleted": True}, f"Deleted: {name}")


def _keys(one: Profile) -> tuple[tuple[str, str], ...]:
    return ("tenant", one.key), ("operator", one.operator_key)
