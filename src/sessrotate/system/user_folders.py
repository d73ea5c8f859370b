"""Where the user's own files of sessrotate are: its settings, what it remembers, and the command.

Rule: as the platform wants it. `XDG_CONFIG_HOME`, `XDG_STATE_HOME` and `XDG_CACHE_HOME` count
everywhere if they are absolute, as their specification demands; without them it is `~/.config`,
`~/.local/state` and `~/.cache`, on macOS `~/Library/Application Support` (and `~/Library/Caches`),
on Windows `%LOCALAPPDATA%`.

The command's path is absolute, since whoever calls it later may know no PATH of the user's.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sessrotate import platforms
from sessrotate.errors import RefusedError, WrongUsageError

NAME: Final = "sessrotate"

_ELSEWHERE: Final = {
    "darwin": ("", "Library/Application Support"),
    "win32": ("LOCALAPPDATA", "AppData/Local"),
}
"""Systems with one folder for all: the variable that names it, and where it is in the home."""

_CACHES: Final = {**_ELSEWHERE, "darwin": ("", "Library/Caches")}

CLIENTS: Final = (
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_PROJECTS_DIR",
    "CODEX_HOME",
    "CODEX_SESSIONS_DIR",
    "GEMINI_CLI_HOME",
    "GEMINI_SESSIONS_DIR",
)
"""Variables that say where clients' folders are."""

_NOWHERE: Final = Path("/nonexistent")
"""The home of a user who has none, as system accounts of Debian have it: nothing is there."""


def home() -> Path:
    """Return the user's home directory.

    In a container, a user may have none: then it is one in which nothing is, if a variable says
    where a client's folder is. Raises WrongUsageError if none does.
    """
    try:
        return Path.home()
    except RuntimeError:
        if any(map(os.environ.get, CLIENTS)):
            return _NOWHERE
    raise WrongUsageError(
        "This user has no home directory: set HOME, or CLAUDE_CONFIG_DIR to the client's folder."
    )


def check_home(path: Path) -> None:
    """Raise WrongUsageError if a file is to be in the home of a user who has none."""
    if path.is_relative_to(_NOWHERE) and home() == _NOWHERE:
        raise WrongUsageError(
            "This user has no home directory, and sessrotate keeps files of its own there: set "
            "HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME."
        )


def check_here() -> None:
    """Raise RefusedError if the current folder was removed, which a relative path needs."""
    try:
        os.getcwd()  # noqa: PTH109 - whether it fails
    except FileNotFoundError:
        raise RefusedError(
            "The current folder was removed: change to another one, then try again."
        ) from None


def config_file(platform: str = platforms.NAME) -> Path:
    """Return where the settings of `run` are, if there are any."""
    return config_home(platform) / NAME / "config.toml"


def log_file(platform: str = platforms.NAME) -> Path:
    """Return where each run writes what it did."""
    return _home("XDG_STATE_HOME", ".local/state", platform) / NAME / "runs.jsonl"


def cache_file(platform: str = platforms.NAME) -> Path:
    """Return where the figures of `sessrotate` alone are remembered; anything may delete it."""
    return _home("XDG_CACHE_HOME", ".cache", platform, _CACHES) / NAME / "status.json"


def config_home(platform: str = platforms.NAME) -> Path:
    """Return the folder of all programs' settings."""
    return _home("XDG_CONFIG_HOME", ".config", platform)


def data_home(platform: str = platforms.NAME) -> Path:
    """Return the folder of all programs' data."""
    return _home("XDG_DATA_HOME", ".local/share", platform)


def _home(
    variable: str,
    otherwise: str,
    platform: str,
    elsewhere: Mapping[str, tuple[str, str]] = _ELSEWHERE,
) -> Path:
    named = os.environ.get(variable, "")
    if not os.path.isabs(named) and platform in elsewhere:  # noqa: PTH117 - may be empty
        variable, otherwise = elsewhere[platform]
        named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else home() / otherwise  # noqa: PTH117 - as above


# ── the command ───────────────────────────────────────────────────────────────────────────────────

_EXEC: Final = re.compile(rb"""^'{3}exec' (?:"([^"]+)"|(\S+)) """, re.MULTILINE)
"""The second line of a script that installers write, where a path is too long for the first."""


def executable() -> str:
    """Return the absolute path; raise WrongUsageError if it is not installed where it is found.

    The name it was called by comes first: it may be a link that outlives an upgrade.
    """
    name = "sessrotate"
    beside = Path(sys.executable).with_name(name)
    for candidate in (Path(sys.argv[0]).absolute(), beside, shutil.which(name)):
        if candidate is not None and Path(candidate).name == name and os.access(candidate, os.X_OK):
            return str(Path(candidate).absolute())
    raise WrongUsageError(
        "The command `sessrotate` cannot be found: install it with `pip install`, so that it can "
        "be called."
    )


def can_start(program: str) -> bool:
    """Tell whether a program can be started: it is there, and so is what interprets it.

    A script outlives the environment that it belongs to (a Python that was upgraded or removed).
    """
    path = shutil.which(program)
    if path is None:
        return False
    try:
        with Path(path).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return True  # one that may be started, and not read
    if not head.startswith(b"#!"):
        return True
    words = head[2:].split(b"\n")[0].split()
    named = _EXEC.search(head)
    needed = [*words[:1], *((named[1] or named[2],) if named else ())]
    if words[1:] and words[0].endswith(b"/env") and shutil.which(os.fsdecode(words[1])) is None:
        return False
    return bool(needed) and all(Path(os.fsdecode(name)).exists() for name in needed)
