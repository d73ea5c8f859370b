"""Files that another program saves by rename at the worst moment: right before the system's call.

Rule: no luck and no waiting. The call that counts is known, and the other program comes before it.
"""

from __future__ import annotations

import itertools
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest

from sessrotate.fs import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def exchanges() -> bool:
    """Tell whether two names can exchange their files here: the portable form cannot."""
    with tempfile.TemporaryDirectory() as folder:
        one, other = Path(folder) / "1", Path(folder) / "2"
        one.touch()
        other.touch()
        return exact.FORM.exchange(one, other)


def needs_exchange() -> None:
    """Skip a test about the moment between our look and our rename, where there is one."""
    if not exchanges():
        pytest.skip("what is saved in that moment is lost in the portable form, as documented")


_NUMBERS: Final = itertools.count()


def saved(path: Path, data: bytes) -> None:
    """Save a file as editors and synchronizing tools do."""
    other = path.with_name(f".saving-{next(_NUMBERS)}")
    other.write_bytes(data)
    other.replace(path)


@dataclass
class Newcomers:
    """What another program saves as `path` before the next calls; None where it removes it.

    `came` is what it has saved so far, `skips` how many calls come before its first.
    """

    path: Path
    pending: list[bytes | None]
    skips: int = 0
    came: list[bytes] = field(default_factory=list)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Have the other program come in the block."""
        form = exact.FORM

        def before(call: Callable[[Path, Path], bool]) -> Callable[[Path, Path], bool]:
            def calling(one: Path, other: Path) -> bool:
                if self.path in {one, other}:
                    self._come()
                return call(one, other)

            return calling

        with pytest.MonkeyPatch.context() as patch:
            calls = {"exchange": before(form.exchange), "move": before(form.move)}
            patch.setattr(exact, "FORM", SimpleNamespace(**calls))
            yield

    def _come(self) -> None:
        if self.skips:
            self.skips -= 1
        elif self.pending:
            data = self.pending.pop(0)
            if data is None:
                self.path.unlink()
            else:
                saved(self.path, data)
                self.came.append(data)
