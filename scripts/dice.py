"""What all generators share: chance, words, time, rows from templates, and the command.

Every byte follows from the options. All chance comes out of SHAKE-128 and integer arithmetic, so
that no clock, no machine, no release of Python and no libm can change a byte. Strings are escaped
once, in the pool that they are cut from, so that a row is put together and not serialised.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import re
import struct
from collections import Counter
from dataclasses import asdict, astuple, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KIB, MIB = 1 << 10, 1 << 20
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
FIRST_MORNING = datetime(2026, 2, 10, 8, tzinfo=UTC)

# Evenly spaced quantiles of the bytes of a tool's result (log-normal, median 1.7 kB, spread 1.1).
RESULT_BYTES = (
    *(111, 271, 363, 444, 522, 599, 677, 756, 839, 925, 1016, 1111, 1212, 1320, 1436, 1561, 1696),
    *(1843, 2005, 2184, 2383, 2606, 2861, 3153, 3496, 3903, 4401, 5029, 5859, 7033, 8904, 12756),
    40000,
)

# Plain words, then what a reader of JSON has to get right: quotes, backslashes, control
# characters, two to four bytes of UTF-8, and a line separator that is none in JSON Lines.
PLAIN_WORDS = """
anchor ballast bracket buffer cargo chain cinder column copper cursor delta drift ember fathom
ferry gauge gravel harbour hinge index inlet kettle ladder lantern ledger margin meadow needle
offset orchard packet pebble pivot quarry ratio ribbon rudder sextant shingle signal slate spindle
tally tangent timber token turbine def return import await class yield None True False += -> => !=
0x7f 42 3.14 12:30:07 v2.4.1 --verbose src/ferry/inlet.py tests/test_slate.py::ok self.total {} []
naïve façade Größe señal čeština данные конец 読む 分割 境界 → … 🛶 🧭
"""
HARD_WORDS = ('"quoted"', "C:\\Depot\\out", "\\d+", "\x1b[32mok\x1b[0m", "\t", "\r", "\b", "\u2028")
POOL_BYTES = 4 * MIB

Choice = TypeVar("Choice")


class Dice:
    """Chance that depends on nothing but a seed and a purpose."""

    _WORDS = struct.Struct("<4096Q")

    def __init__(self, seed: int, purpose: str) -> None:
        self._key = f"sessrotate {purpose} {seed}"
        self._blocks = itertools.count()
        self._words: Iterator[int] = iter(())
        self._digits = ""
        self._next_digit = 0

    def noise(self, size: int) -> bytes:
        """Return `size` bytes without a pattern."""
        return hashlib.shake_128(f"{self._key} {next(self._blocks)}".encode()).digest(size)

    def between(self, low: int, high: int) -> int:
        """Return an integer from low up to, but not including, high."""
        word = next(self._words, None)
        if word is None:
            self._words = iter(self._WORDS.unpack(self.noise(self._WORDS.size)))
            word = next(self._words)
        return low + (word * (high - low) >> 64)

    def quantile(self, table: Sequence[int]) -> int:
        """Draw from the distribution that has these evenly spaced quantiles."""
        cell, part = divmod(self.between(0, len(table) - 1 << 10), 1 << 10)
        return table[cell] + ((table[cell + 1] - table[cell]) * part >> 10)

    def choice(self, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices, each as likely as any other."""
        return choices[self.between(0, len(choices))]

    def number(self, low: int, high: int) -> bytes:
        """Return the digits of an integer from low up to, but not including, high."""
        return b"%d" % self.between(low, high)

    def hex(self, digits: int) -> bytes:
        """Return lower-case hexadecimal digits."""
        start, end = self._next_digit, self._next_digit + digits
        if end > len(self._digits):
            self._digits = self.noise(32 * KIB).hex()
            start, end = 0, digits
        self._next_digit = end
        return self._digits[start:end].encode()

    def uuid(self) -> bytes:
        """Return a random UUID of version 4."""
        digits = self.hex(30)
        groups = (digits[:8], digits[8:12], digits[12:15], digits[15:18], digits[18:])
        return b"%b-%b-4%b-a%b-%b" % groups


class TextPool:
    """Text, escaped for a JSON string, from which any length is cut without breaking a word."""

    _STEP = 64

    def __init__(self, dice: Dice) -> None:
        all_words = (*PLAIN_WORDS.split(), *HARD_WORDS)
        escaped = [json.dumps(word, ensure_ascii=False)[1:-1].encode() for word in all_words]
        gaps = (b" ", b" ", b" ", b" ", b" ", b" ", b"\\n", b"\\n    ")
        pieces = [word + gap for word in escaped for gap in gaps]
        text = bytearray()
        self._starts: list[int] = []  # where the first piece begins after each multiple of the step
        while len(text) < POOL_BYTES:
            while len(text) >= len(self._starts) * self._STEP:
                self._starts.append(len(text))
            text += dice.choice(pieces)
        self._text = bytes(text)

    def cut(self, dice: Dice, size: int) -> bytes:
        """Return about `size` bytes from anywhere in the pool."""
        steps = min(max(size, self._STEP) // self._STEP, len(self._starts) - 1)
        first = dice.between(0, len(self._starts) - steps)
        return self._text[self._starts[first] : self._starts[first + steps]]


@cache
def text_pool() -> TextPool:
    """Return the pool that all sessions cut their text from; making it takes a while."""
    return TextPool(Dice(0, "text"))


class Kind(NamedTuple):
    """How many rows of a kind there are, and their bytes with newlines."""

    lines: int
    bytes: int


@dataclass(frozen=True)
class Truth:
    """What is in the generated bytes, known without reading them."""

    session_id: str
    bytes: int
    lines: int
    sha256: str
    boundaries: tuple[int, ...]
    """Where the lines of the real ones begin."""
    kinds: dict[str, Kind]
    ended: str
    """The time of the last row."""
    live: tuple[str, ...] = ()
    """The ids of the messages that a resume sends, in order, where the client has such ids."""


def templates(table: bytes) -> dict[str, bytes]:
    """Read a table of templates, `name: text`, whose further lines are indented by four blanks."""
    lines = table.strip().replace(b"\n    ", b"").split(b"\n")
    return {name.decode(): text for name, _, text in (line.partition(b": ") for line in lines)}


class Writer:
    """A session as it is written: its templates, chance and time, and what the file has so far."""

    def __init__(
        self, target: BinaryIO, rows: dict[str, bytes], dice: Dice, session: bytes
    ) -> None:
        self.rows = rows
        self.dice = dice
        self.session = session
        self.now = FIRST_MORNING
        self.size = 0
        self.boundaries: list[int] = []
        self._target = target
        self._digest = hashlib.sha256()
        self._lines: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def time(self) -> bytes:
        """Return a later time than before, as the clients write it."""
        self.now += timedelta(milliseconds=self.dice.between(40, 40_000))
        return self.now.isoformat(timespec="milliseconds")[:23].encode() + b"Z"

    def cut(self, size: int, _share: int = 1) -> bytes:
        """Return about `size` bytes of escaped text."""
        return text_pool().cut(self.dice, size)

    def text(self, low: int, high: int, share: int = 1) -> bytes:
        """Return escaped text of about that many bytes."""
        return self.cut(self.dice.between(low, high), share)

    def fill(self, name: str, **given: bytes) -> bytes:
        """Return a template with its blanks filled from left to right.

        A blank, such as `%(text 64 900)b`, names what is given here, another template, or what
        the writer or its dice have or draw.
        """
        return self.rows[name] % _Blanks(self, given)

    def write(self, kind: str, template: str | None = None, /, **given: bytes) -> None:
        """Write a template as one row, and count it under its kind."""
        self.put(kind, self.fill(template or kind, **given), b"\n")

    def put(self, kind: str, *parts: bytes) -> None:
        """Write a row as it stands."""
        line = b"".join(parts)
        self._target.write(line)
        self._digest.update(line)
        self.size += len(line)
        self._lines[kind] += 1
        self._bytes[kind] += len(line)

    @property
    def lines(self) -> int:
        """The number of rows so far."""
        return self._lines.total()

    def truth(self, live: Sequence[bytes] = ()) -> Truth:
        """Return what was written; the kind with the most bytes comes first."""
        return Truth(
            session_id=self.session.decode(),
            bytes=self.size,
            lines=self.lines,
            sha256=self._digest.hexdigest(),
            boundaries=tuple(self.boundaries),
            kinds={kind: Kind(self._lines[kind], n) for kind, n in self._bytes.most_common()},
            ended=self.now.isoformat(),
            live=tuple(each.decode() for each in live),
        )


class _Blanks:
    def __init__(self, writer: Writer, given: dict[str, bytes]) -> None:
        self._writer, self._given = writer, given

    def __getitem__(self, blank: bytes) -> bytes:
        name, numbers = _parsed(blank)
        if name in self._given:
            return self._given[name]
        if name in self._writer.rows:
            return self._writer.fill(name, **self._given)
        holder = self._writer if hasattr(self._writer, name) else self._writer.dice
        value: Any = getattr(holder, name)
        drawn: bytes = value(*numbers) if callable(value) else value
        return drawn


@cache
def _parsed(blank: bytes) -> tuple[str, tuple[int, ...]]:
    name, *numbers = blank.decode().split()
    return name, tuple(map(int, numbers))


# ---- the command


def parse_size(text: str) -> int:
    """Read a size such as 400M, in powers of 1024."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (write 512K, 400M, 2G)")
    return int(match[1]) * UNITS[match[2]]


def option(default: Any, text: str, read: Callable[[str], Any] = int) -> Any:
    """Return a field of Options, which is an option of the command line, too."""
    return field(default=default, metadata={"help": text, "type": read})


@dataclass(frozen=True)
class Options:
    """What to generate: what all generators know."""

    size: int = option(400 * MIB, "about, of the file, in bytes (default: %(default)s)", parse_size)
    seed: int = option(7, "another session for every integer (default: %(default)s)")

    def __post_init__(self) -> None:
        if any(isinstance(each, int) and each < 0 for each in astuple(self)):
            raise ValueError("sizes and counts cannot be negative")


Asked = TypeVar("Asked", bound=Options)


def command(
    kind: type[Asked],
    generate: Callable[[BinaryIO, Asked], Truth],
    name: Callable[[Asked], str],
    arguments: Sequence[str] | None = None,
) -> None:
    """Generate one file as the command line says, and print what is in it as JSON."""
    parser = argparse.ArgumentParser(
        description="Write a synthetic session: same arguments, same bytes."
    )
    parser.add_argument("out", type=Path, help="a file, or a folder to put the client's file in")
    for each in (each for each in fields(kind) if each.metadata):
        words = each.name.replace("_", "-")
        parser.add_argument(f"--{words}", metavar="N", default=each.default, **each.metadata)
    settings = vars(parser.parse_args(arguments))
    out: Path = settings.pop("out")
    try:
        options = kind(**settings)
    except ValueError as error:
        parser.error(str(error))
    path = out / name(options) if out.is_dir() else out
    with path.open("wb", buffering=MIB) as target:
        truth = generate(target, options)
    print(json.dumps({"path": str(path), **asdict(truth)}, indent=1))
