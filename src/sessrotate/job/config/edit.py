"""A settings file with one setting added or taken back: text → text. Pure.

Rule: everything else stays as it is, comments too. A line of ours is known by its mark.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from sessrotate.errors import RefusedError, WrongUsageError, printable
from sessrotate.job.config import file, keys
from sessrotate.job.config.keys import Key

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

MARK: Final = "# by `sessrotate setup`"
"""The end of a line that `setup` has written."""


def is_set(text: str, key: Key) -> bool:
    """Tell whether a file sets this key, to whatever value.

    Raises WrongUsageError if the text is no settings file.
    """
    return key.title in file.parsed(text).lines


def with_setting(text: str, key: Key, given: str) -> str:
    """Return the text with a setting that is not in it yet, last in its table.

    Raises RefusedError if its table has no lines of its own, WrongUsageError as `is_set` does.
    """
    file.parsed(text)
    import tomlkit  # noqa: PLC0415 - as in `_document`

    end = "\r\n" if "\r\n" in text else "\n"
    document, item = _document(text), tomlkit.item(given).comment(MARK)
    item.trivia.trail = end
    if key.table not in document:  # by itself, `tomlkit` parts tables by a line that would stay
        begun = text if text[-1:] in {"", "\n"} else text + end
        document = _document(f"{begun}[{key.table}] {MARK}{end}")
    table: Any = document[key.table]
    if isinstance(table, tomlkit.items.InlineTable):
        line = f"`{key.name} = {keys.literal(given)}`"
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
    document = _without(_document(text), {key.name for key in keys.KEYS})
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
    return trivia is not None and trivia.comment == MARK
