"""One line → a typed row, with the values that a client's `JSON.parse` would give its fields.

Rule: the type says what is read, and everything else on the line is checked and skipped. What the
decoder (msgspec 0.22) declines, `JSON.parse` may still accept: lone surrogates, invalid UTF-8 in a
field that is read, a field of another type, thousands of levels. Such a line is parsed the guarded
way (`json_line`), and a field that has another type than its row says counts as absent. A property
test holds both ways and the clients' own `JSON.parse` together.

msgspec takes 15 to 30 ms to load: only modules that read records may import this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args

import msgspec

from sessrotate.parsing import json_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessrotate.parsing.records import Record

Row = TypeVar("Row", bound=msgspec.Struct)

DECLINED: Final = (ValueError, RecursionError)
"""What a decoder raises for a line that is no JSON, or that it declines to judge."""


class Decoder(Generic[Row]):
    """Decodes lines as rows of one type; make one and keep it.

    `fast` is the bare decoder, for those who have another answer to what it declines: it raises
    one of `DECLINED`.
    """

    def __init__(self, row: type[Row]) -> None:
        self.fast: Final = msgspec.json.Decoder(row).decode
        self._row: Final = row

    def __call__(self, line: bytes | memoryview) -> Row | None:
        """Return the row on a line (without its newline), None if it holds no JSON object.

        A line with some thousand levels is taken for none.
        """
        try:
            return self.fast(line)
        except DECLINED:
            found = json_line.whole(bytes(line))
            return None if found is None else lenient(self._row, found)

    def of(self, record: Record) -> Row | None:
        """Return the row that a record is, None if it is none, or too long to be held."""
        return self(record.line) if record.is_whole else None


def names(row: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the keys that a row reads, as they are spelled in JSON."""
    return tuple(field.encode_name for field in msgspec.structs.fields(row))


def lenient(row: type[Row], found: Mapping[str, Any]) -> Row:
    """Return an object as a row, without the values that have another type than the row says."""
    values = {}
    for field in msgspec.structs.fields(row):
        if field.encode_name in found:
            value = _lenient(field.type, found[field.encode_name])
            if value is not msgspec.UNSET:
                values[field.name] = value
    return row(**values)


def _lenient(wanted: Any, value: Any) -> Any:
    inner = [each for each in (wanted, *get_args(wanted)) if _is_row(each)]
    if isinstance(value, dict) and inner:
        return lenient(inner[0], value)
    if isinstance(value, list):
        for each in get_args(wanted):
            if getattr(each, "__origin__", None) is list and _is_row(each.__args__[0]):
                rows = (item for item in value if isinstance(item, dict))
                return [lenient(each.__args__[0], item) for item in rows]
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return msgspec.UNSET


def _is_row(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, msgspec.Struct)
