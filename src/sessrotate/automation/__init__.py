"""What is done by itself: rotation by the hook, the nightly run, saving from the client's clean-up.

Promise: what was shown is what is done, and removing it leaves what was there before. In come the
parts that somebody wants; out comes a plan with every file before and after. May import hook, job,
clients, system.

Rule: each part stands alone: where one cannot be had, the others are done, and what is left to a
person is said. In the settings file one line is added or taken back, and everything else stays as
it is, comments too. A line of ours is known by its mark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from sessrotate import clients, units
from sessrotate.clients.common import BOM, is_folder
from sessrotate.errors import RefusedError, SessrotateError, WrongUsageError, printable, storage
from sessrotate.hook import call, installation
from sessrotate.hook.installation import Change, checked
from sessrotate.job import config, schedule
from sessrotate.job.config import Key
from sessrotate.job.schedule import Plan
from sessrotate.job.schedule.installed import installed, others
from sessrotate.job.schedule.work import Every
from sessrotate.system import user_folders

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_MARGIN: Final = 3 * units.DAY
"""How many seconds before the client would delete a session it is put away, at most."""

_UNUSED: Final = "7d"
"""How long a session of Codex is unused before it is compressed."""

SAVING, OLDER_THAN, COMPRESS_AFTER = (
    next(key for key in config.KEYS if key.title == title)
    for title in ("archive.before_cleanup", "archive.older_than", "codex.compress_after")
)
"""The settings that put sessions away, before the client deletes them and by their age; and that
compress those of Codex.
"""


_T = TypeVar("_T")


class Part(Struct, frozen=True):
    """One thing that can be done by itself: its name, a question, and a line that explains it."""

    name: str
    question: str
    explained: str


AGE_QUESTION: Final = (
    "Put old sessions away sooner, to save room? Type how long they must be unused, such as 14d. "
    "[Enter: no]"
)

NAMES: Final = ("hook", "schedule", "saving", "codex")
"""The parts, in the order of the questions."""


def present() -> tuple[str, ...]:
    """Return the names of the clients that have a folder here; without any, whose are rotated."""
    rotated = clients.in_place().files
    here = [each.NAME for each in clients.clients() if is_folder(each.sessions_folder())]
    others = [name for name in here if name != rotated.NAME]
    is_here = len(others) < len(here) or is_folder(rotated.config_folder())
    return tuple(dict.fromkeys([rotated.NAME, *others] if is_here or not others else others))


def parts() -> tuple[Part, ...]:
    """Return the parts with their questions, of the clients that are here and not read only.

    What saving comes to depends on the client.
    """
    needs = "Without the nightly run nothing is saved, so this turns it on, too."
    every = (
        Part(
            "hook",
            "Rotate sessions when they are compacted and when they end?",
            "Claude Code then calls sessrotate, which rotates in the background if that frees "
            "128 KiB or more.",
        ),
        Part(
            "schedule",
            "Tidy once a night?",
            "The system starts `sessrotate run`, which does what `tidy` does, without asking.",
        ),
        Part(
            "saving",
            "Save old sessions before Claude Code deletes them?",
            f"{saving()} {needs}".lstrip(),
        ),
        Part(
            "codex",
            "Compress Codex sessions unused for 7 days?",
            "Codex lists and resumes them as before; a resume decompresses its session. Other "
            "programs that look for *.jsonl no longer see them. The nightly run compresses them.",
        ),
    )
    out = set[str]() if any(map(is_folder, clients.cold().folders())) else {"codex"}
    if clients.in_place().files.NAME not in present():
        # A nightly run has nothing to do where no session is rotated or compressed.
        out |= {"hook", "saving"} | ({"schedule"} if "codex" in out else set())
    return tuple(each for each in every if each.name not in out)


def saving(older_than: str = "") -> str:
    """Say which sessions the nightly run saves with the settings as `setup` leaves them.

    `older_than` is as in `plan`. Nothing is said where the settings cannot be changed.
    """
    try:
        planned = _setting(frozenset({"saving"}), older_than)
        found = config.parsed(_text(planned.after or b"")).archive
    except SessrotateError:
        return ""
    if found.before_cleanup is None:  # which only a line of somebody else's says
        return (
            "Sessions are not saved before Claude Code deletes them: `before_cleanup = false` in "
            f"{printable(str(planned.path), 1000)} turns that off. Remove that line, then run "
            "`sessrotate setup` again."
        )
    rule = clients.in_place().cleanup.in_force()
    return rule.saving(found.before_cleanup, older_than=found.older_than)


def completed(wanted: frozenset[str]) -> frozenset[str]:
    """Return the parts that are wanted, with the nightly run if one of them needs it."""
    is_needed = bool(wanted & {"saving", "codex"}) and installed() is None
    return wanted | {"schedule"} if is_needed else wanted


class Automation(Struct, frozen=True):
    """What `setup` would change, or has changed; None for a part that is left as it is.

    `schedule` has no files where there is no scheduler.
    `problems` say by the part's name why one cannot be had, and `saving` which sessions are saved.
    `does` is what the settings are for.
    """

    removes: bool
    hook: Change | None = None
    schedule: Plan | None = None
    settings: Change | None = None
    problems: tuple[tuple[str, SessrotateError], ...] = ()
    saving: str = ""
    does: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The files that are changed, but for the scheduler's."""
        found = (self.hook, self.settings)
        return tuple(each for each in found if each is not None and not each.is_nothing)

    @property
    def is_scheduled(self) -> bool:
        """Whether the scheduler's files are as this wants them."""
        planned = self.schedule
        if planned is None or not planned.files:
            return True
        return planned.is_absent if self.removes else planned.is_installed

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants any of it."""
        return any((self.hook, self.schedule, self.settings, self.problems))

    @property
    def is_nothing(self) -> bool:
        """Whether everything is as it is wanted already."""
        return not self.changes and self.is_scheduled


def plan(wanted: frozenset[str], older_than: str = "") -> Automation:
    """Return what has the parts with these names done by themselves; nothing is changed.

    `older_than` is the age at which sessions are put away even if no client would delete them, as
    it is written in the settings; empty for none.
    """
    wanted = completed(wanted)
    tried = _Tried(wanted | ({"settings"} if wanted & {"saving", "codex"} else set()))
    return Automation(
        removes=False,
        hook=tried.to("hook", lambda: installation.plan_install(call.LEAST)),
        schedule=tried.to("schedule", lambda: schedule.plan(_every())),
        settings=tried.to("settings", lambda: _setting(wanted, older_than)),
        problems=tuple(tried.problems),
        saving=saving(older_than) if "saving" in wanted else "",
        does=_does(wanted),
    )


def _every() -> Every:
    """Return how often a run starts: as somebody has installed it, or else each night."""
    found = installed()
    return (found and found.every) or "daily"


def plan_removal() -> Automation:
    """Return what undoes all of it; nothing is changed."""
    tried = _Tried(frozenset({*NAMES, "settings"}))
    return Automation(
        removes=True,
        hook=tried.to("hook", installation.plan_remove),
        schedule=tried.to("schedule", schedule.plan_removal),
        settings=tried.to("settings", _unset),
        problems=tuple(tried.problems),
        does=_does(frozenset(_KEYS), removes=True),
    )


def _does(wanted: frozenset[str], *, removes: bool = False) -> str:
    """Say what changes of these parts in the settings: not what their owner has set."""
    found = list[str]()
    with suppress(SessrotateError):
        data = _settings()[2]
        text = "" if data is None else _text(data)
        others = without_ours(text)
        for name, key in _KEYS.items():
            is_theirs, is_set = is_setting_there(others, key), is_setting_there(text, key)
            if name in wanted and not is_theirs and (is_set or not removes):
                found.append(_DOES[name])
    return " and ".join(found)


_DOES: Final = {
    "saving": "saving of sessions before the client deletes them",
    "codex": "compression of unused Codex sessions",
}
"""What the parts come to that are settings."""

_KEYS: Final = {"saving": SAVING, "codex": COMPRESS_AFTER}


class _Tried:
    """Plans the parts that are wanted; of those that cannot be planned, the errors are kept."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted: Final = wanted
        self.problems: list[tuple[str, SessrotateError]] = []

    def to(self, name: str, planned: Callable[[], _T]) -> _T | None:
        """Return the plan of one part, None if there is none."""
        if name not in self._wanted:
            return None
        try:
            return planned()
        except SessrotateError as error:
            self.problems.append((name, error))
            return None


def execute(planned: Automation) -> Iterator[tuple[str, SessrotateError]]:
    """Make the changes, and yield what could not be done, by the part's name."""
    yield from planned.problems
    for name, change in (("hook", planned.hook), ("settings", planned.settings)):
        if change is not None:
            try:
                installation.execute(change)
            except SessrotateError as error:
                yield name, error
    if planned.schedule is not None and planned.schedule.files:
        do = schedule.remove if planned.removes else schedule.install
        try:
            do(planned.schedule)
        except SessrotateError as error:
            yield "schedule", error


def _setting(parts: frozenset[str], older_than: str) -> Change:
    """Return the settings with those of these parts, where nobody has set them."""
    path, target, data = _settings()
    after = config.commented() if data is None else _text(data)
    with _named(path):
        for key, given in _wanted(parts, older_than):
            if not _is_edited(after, key):
                after = without(after, key)  # of ours, so that it fits the client's period now
            if not is_setting_there(after, key):
                after = with_setting(after, key, given)
    made = installation.begin(data) + after.encode()
    return checked(Change(path, target, data, made, None))


def _wanted(parts: frozenset[str], older_than: str) -> Iterator[tuple[Key, str]]:
    if "saving" in parts:
        yield SAVING, _margin(clients.in_place().cleanup.in_force().period)
        if older_than:
            yield OLDER_THAN, older_than
    if "codex" in parts:
        yield COMPRESS_AFTER, _UNUSED


def _is_edited(text: str, key: Key) -> bool:
    """Tell whether somebody has changed what `setup` had written: it is theirs then, mark or not.

    An age was chosen by a person, who has just chosen another one.
    """
    value = config.written(config.parsed(text).value(key))
    ours = {SAVING: _MARGINS, COMPRESS_AFTER: {_UNUSED}}
    return is_setting_there(text, key) and key in ours and value not in ours[key]


def _margin(period: float) -> str:
    """Return the setting that saves sessions in time: in days if that is a whole number."""
    hours = max(1, int((min(_MARGIN, period / 3) or _MARGIN) // 3600))
    return f"{hours}h" if hours % 24 else f"{hours // 24}d"


_MARGINS: Final = {_margin(days * units.DAY) for days in range(1, 10)}
"""What `setup` writes, whatever whole number of days the client's period is."""


def _unset() -> Change:
    path, target, data = _settings()
    if data is None or others():  # which run by the same settings
        return Change(path, target, data, data, None)
    with _named(path):
        left = without_ours(_text(data))
    after = installation.begin(data) + left.encode()
    is_ours_alone = left == config.commented() and after != data and path == target
    return checked(Change(path, target, data, None if is_ours_alone else after, None))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in whatever keeps it as it is."""
    try:
        yield
    except (RefusedError, WrongUsageError) as error:
        raise type(error)(f"{printable(str(path))} was left alone. {error}") from None


def _settings() -> tuple[Path, Path, bytes | None]:
    """Return the path of the user's settings, the file that it leads to, and its content.

    A link stays a link: dotfiles often are.
    """
    path = user_folders.config_file()
    user_folders.check_home(path)
    with storage("read the settings"):
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        return path, target, config.content(target)


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError:
        path = printable(str(user_folders.config_file()))
        raise RefusedError(f"{path} is not UTF-8, which TOML must be: fix that first.") from None


# ── a line in the settings file ───────────────────────────────────────────────────────────────────

OURS: Final = "# by `sessrotate setup`"
"""The end of a line that `setup` has written."""


def is_setting_there(text: str, key: Key) -> bool:
    """Tell whether a file sets this key, to whatever value.

    Raises WrongUsageError if the text is no settings file.
    """
    return key.title in config.parsed(text).lines


def with_setting(text: str, key: Key, given: str) -> str:
    """Return the text with a setting that is not in it yet, last in its table.

    Raises RefusedError if its table has no lines of its own, WrongUsageError as `is_set` does.
    """
    config.parsed(text)
    import tomlkit  # noqa: PLC0415 - as in `_document`

    end = "\r\n" if "\r\n" in text else "\n"
    document, item = _document(text), tomlkit.item(given).comment(OURS)
    item.trivia.trail = end
    if key.table not in document:  # by itself, `tomlkit` parts tables by a line that would stay
        begun = text if text[-1:] in {"", "\n"} else text + end
        document = _document(f"{begun}[{key.table}] {OURS}{end}")
    table: Any = document[key.table]
    if isinstance(table, tomlkit.items.InlineTable):
        line = f"`{key.name} = {config.literal(given)}`"
        raise RefusedError(f"Its {key.table} is all on one line: add {line} there by hand.")
    table.append(key.name, item)
    return tomlkit.dumps(document)


def without(text: str, key: Key) -> str:
    """Return the text without the line for this key that `setup` has written, if it has."""
    return _without(_document(text), {key.name}).as_string()


def without_ours(text: str) -> str:
    """Return the text without the lines that `setup` has written.

    A table of ours stays where somebody has added to it: that would become another table's.
    Raises WrongUsageError if the text is not TOML.
    """
    document = _without(_document(text), {key.name for key in config.KEYS})
    for name in [*document]:
        if _is_ours(document[name]) and not document[name]:
            del document[name]
    return document.as_string()


def _document(text: str) -> TOMLDocument:
    import tomlkit  # noqa: PLC0415 - 50 ms, and only `setup` edits
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        return tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise WrongUsageError(f"This is not TOML: {printable(str(error))}") from None


def _without(document: TOMLDocument, names: Collection[str]) -> TOMLDocument:
    for table in (table for table in document.values() if isinstance(table, dict)):
        for name in [name for name in table if name in names and _is_ours(table[name])]:
            del table[name]
    return document


def _is_ours(item: object) -> bool:
    trivia = getattr(item, "trivia", None)
    return trivia is not None and trivia.comment == OURS
