"""One line → a row of a client's own types (`msgspec` Structs), or our own value. Pure.

Promise: a line has one row, whichever way it was decoded. `msgspec` decodes almost all lines and
skips what a type does not name. It refuses some that a client's `JSON.parse` takes (a lone
surrogate, a value of an unexpected type) and some bytes that clients read with replacement
(invalid UTF-8). Those lines take the guarded way: `json`, then `fitted`. Property tests hold the
two ways equal.

Rule: a value of an unexpected type counts as absent, and never makes a line unreadable. What fits
none of a union's types stays plain JSON: an element of a list, and the line itself. Of a key that
is there twice, the last value counts.

A small file of ours is one value, written as one line. `parse_line(dump_line(value), type(value))
== value`, and any other bytes are not a value. So whatever else a file might say (another format,
an unknown key, a number out of its range) is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct
from msgspec.inspect import StructType, Type

if TYPE_CHECKING:
    from sessrotate.parsing import Record

T = TypeVar("T")

DECLINED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What `msgspec` raises for a line that is no JSON, or that it refuses."""

_MOST_DIGITS: Final = 4300
"""Digits of an integer that Python converts by default."""


class Decoder(Generic[T]):
    """Decodes lines into `wanted`: a Struct, or a union of Structs.

    An object that fits none of them stays plain JSON: `T` then names `dict[str, Any]` too. Any
    object fits a Struct of which every field may be absent.

    `fast` is the bare decoder, for callers who have another answer to a line that it refuses: it
    raises one of `DECLINED`. A record's line may begin with what is `skipped`.
    """

    def __init__(self, wanted: Any, skipped: bytes = b"") -> None:
        self._wanted: Final = wanted
        self._skipped: Final = skipped
        decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(wanted)
        self.fast: Final = decoder.decode

    def __call__(self, line: bytes | memoryview) -> T | None:
        """Return the line's row, None if it is no JSON object."""
        try:
            return self.fast(line)
        except DECLINED:
            return self.guarded(line)

    def guarded(self, line: bytes | memoryview) -> T | None:
        """Return the line's row without `msgspec`'s decoder. It takes four times as long."""
        found = parsed(bytes(line))
        return self.fitted(found) if isinstance(found, dict) else None

    def of(self, record: Record) -> T | None:
        """Return the record's row, None if it is no JSON object, or too long to be held."""
        return self(record.line.removeprefix(self._skipped)) if record.is_whole else None

    def fitted(self, value: dict[str, Any]) -> T:
        """Return a JSON object as a row."""
        found: T = _kept(value, self._shape)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of a Struct that are read, as JSON spells them."""
        return tuple(field.encode_name for field in msgspec.structs.fields(self._wanted))

    @cached_property
    def _shape(self) -> Type:
        from msgspec import inspect  # noqa: PLC0415 - 10 ms, and most files never need it

        return inspect.type_info(self._wanted)


def tagged(table: Mapping[type[msgspec.Struct], tuple[str, ...]]) -> Any:
    """Return the union of a type for each tag: each a subclass of the Struct beside its tag."""
    made = [
        msgspec.defstruct(kind.__name__, (), bases=(kind,), tag=tag)
        for kind, tags in table.items()
        for tag in tags
    ]
    return reduce(or_, made)


def parsed(text: bytes) -> Any:
    """Return a JSON text as Python values, None if it is no JSON or nested too deeply."""
    try:
        return _GUARDED.decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    # JSON.parse takes a number of any length.
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON


_GUARDED: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


# ── JSON values → types ──────────────────────────────────────────────────────────────────────


_MISFIT: Final = object()
"""Stands for a value of another type; never leaves this module."""

_SCALARS: Final = {"BoolType": "bool", "IntType": "int", "NoneType": "NoneType", "StrType": "str"}
"""Names of msgspec's types, and of Python's."""


def _fitted(value: Any, wanted: Type) -> Any:
    """Return a value as `wanted`, `_MISFIT` where it does not fit."""
    from msgspec import inspect  # noqa: PLC0415 - 10 ms, and most files never need it

    match wanted:
        case inspect.UnionType():
            fitted = (_fitted(value, each) for each in wanted.types)
            return next((each for each in fitted if each is not _MISFIT), _MISFIT)
        case inspect.StructType() if isinstance(value, dict):
            return _struct(value, wanted)
        case inspect.ListType(item_type=inspect.UnionType() as kinds) if isinstance(value, list):
            return [_kept(each, kinds) for each in value]
        case inspect.ListType(item_type=kind) if isinstance(value, list):
            fitted = (_fitted(each, kind) for each in value)
            return [each for each in fitted if each is not _MISFIT]
        case inspect.AnyType():
            return value
        case _:
            is_scalar = type(value).__name__ == _SCALARS.get(type(wanted).__name__)
            return value if is_scalar else _MISFIT


def _kept(value: Any, wanted: Type) -> Any:
    """Return a value as `wanted`, or as it is where it does not fit."""
    found = _fitted(value, wanted)
    return value if found is _MISFIT else found


def _struct(value: dict[str, Any], wanted: StructType) -> Any:
    if wanted.tag is not None and value.get(str(wanted.tag_field)) != wanted.tag:
        return _MISFIT
    fields = {}
    for field in wanted.fields:
        name = field.encode_name
        found = _fitted(value[name], field.type) if name in value else _MISFIT
        if found is not _MISFIT:
            fields[field.name] = found
        elif field.required:
            return _MISFIT
    return wanted.cls(**fields)


# ── our own ───────────────────────────────────────────────────────────────────────────────────────

FORMAT: Final = 1
"""Of every such file."""

Ours = TypeVar("Ours", bound=Struct)


def dump_line(value: Struct) -> bytes:
    """Return a value as the bytes of its line, in ASCII so that any file's name fits."""
    return json.dumps({"format": FORMAT, **msgspec.to_builtins(value)}).encode() + b"\n"


def parse_line(data: bytes, kind: type[Ours]) -> Ours | None:
    """Return the value of a `kind` that these bytes are, None if we would not have written them.

    What a field may hold is its annotation: `model.Count`, `model.Digest`.
    """
    try:
        value = msgspec.convert(json.loads(data), kind)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if dump_line(value) == data else None
