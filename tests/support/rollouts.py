"""A home of Codex with rollouts as its client writes them, and what the client would take of it.

The oracle decodes by the library alone, and goes by what four versions do (0.142.5 to 0.171): of a
session in both forms the plain one counts.
"""

from __future__ import annotations

import base64
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sessrotate.retention import rollouts
from support.codex_sessions import Rows, message

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    import pytest

    from sessrotate.archive.place import Place

DAY: Final = 86_400.0
NAME: Final = "rollout-2026-10-01T10-00-0{}-01a20069-3200-7812-9750-2eae4d40211{}.jsonl"


@dataclass(frozen=True)
class Codex:
    """The client's folder, and a day in it."""

    root: Path

    @property
    def day(self) -> Path:
        return self.root / "sessions" / "2026" / "10" / "01"

    def path(self, number: int = 0) -> Path:
        return self.day / NAME.format(number, number)

    def where(self, number: int = 0) -> Place:
        return rollouts.place_of(self.path(number))

    def begin(
        self, data: bytes, number: int = 0, *, days: float = 40, archived: bool = False
    ) -> Path:
        """Write a rollout that was not used for so many days."""
        path = self.path(number)
        if archived:
            path = self.root / "archived_sessions" / path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.age(path, days)
        return path

    @staticmethod
    def age(path: Path, days: float) -> None:
        then = time.time() - days * DAY
        os.utime(path, (then, then))

    def taken(self, number: int = 0) -> bytes:
        """Return what the client takes for a session."""
        return taken(self.path(number))

    def names(self) -> list[str]:
        """Return the names of all files, but for locks."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(path.name for path in found if path.suffix != ".lock")


def taken(path: Path) -> bytes:
    if path.exists():
        return path.read_bytes()
    return unpacked(path.with_name(f"{path.name}.zst").read_bytes())


def unpacked(data: bytes) -> bytes:
    limit: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
    return zstd.decompress(data, options=limit)


def packed(data: bytes) -> bytes:
    """Return a compressed form as the client makes it: no content size, no long matching."""
    frame = zstd.ZstdCompressor(level=3)
    return frame.compress(data) + frame.flush()


def home(folder: Path, patch: pytest.MonkeyPatch) -> Codex:
    """Make a home for whatever runs until the end of the test."""
    patch.setenv("HOME", str(folder))
    for kind in ("config", "state", "cache"):
        patch.setenv(f"XDG_{kind.upper()}_HOME", str(folder / f"xdg-{kind}"))
    patch.setenv("CODEX_HOME", str(folder / "codex"))
    patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "claude"))
    patch.delenv("CODEX_SESSIONS_DIR", raising=False)
    found = Codex(folder / "codex")
    found.day.mkdir(parents=True)
    return found


def rollout(
    *,
    size: int = 0,
    compactions: int = 2,
    version: str = "0.169.0",
    originator: str = "codex_exec",
) -> bytes:
    """Return a rollout whose compactions repeat a picture of `size` bytes."""
    rows = Rows()
    rows.add(
        "session_meta",
        id="01a20069-3200-7812-9750-2eae4d402110",
        cwd="/srv/p",
        originator=originator,
        cli_version=version,
    )
    shown = message("user", "look at this")
    shown["content"].append({"type": "input_image", "image_url": _picture(size)})
    rows.asked("look at this")
    rows.item(**shown)
    for number in range(compactions):
        rows.turn(f"turn {number}")
        rows.compacted(shown, message("user", f"turn {number}"))
    rows.turn("the last")
    return b"".join(line + b"\n" for line in rows.lines)


def _picture(size: int) -> str:
    """Return what no compressor makes smaller than three quarters: base64 of what looks random."""
    return f"data:image/png;base64,{base64.b64encode(random.Random(7).randbytes(size)).decode()}"
