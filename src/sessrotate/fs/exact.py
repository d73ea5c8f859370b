"""Moving exactly the file that was identified, while other programs rename files too.

Promise: what another program has just saved under a name is neither overwritten nor removed. Either
the file that was identified is moved, or all is as the other program left it.

Rule: move first, compare what came out, and move it back if it is another file. A look beforehand
proves nothing: `rename` and `unlink` go by names, and a program that saves by rename can give the
name to its own file between our look and our call.

That takes two calls: one that lets two names exchange their files, and one that moves a file to a
name unless something has it (renameat2(2) on Linux, renameatx_np(2) on macOS). A system or file
system without them (NFS, for one), or a sandbox that denies them, gets the portable form, which
differs in this:

* `take_place` looks, and then renames. A file that another program renames to the same name in
  between, some microseconds, is lost.
* `put` gives the file a second name and then removes the first. Where there are no hard links, and
  for a folder, it looks and then renames; only what appears in between is lost.

`take_away` never overwrites in either form, since nothing but us writes to the new name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from sessrotate import platforms
from sessrotate.fs.files import open_folder, sync_folder

if TYPE_CHECKING:
    Test = Callable[[Path], bool]
    """Tells whether a name has the file that was identified."""

_TURNS: Final = 100
"""Exchanges after which we stop giving the name to whatever came last."""

_NOT_THERE: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
"""What a kernel or file system answers that does not know the call or the flag.

And EPERM, which a sandbox answers that does not (a seccomp profile from before the call). Where it
is the file that may not be moved, the portable form's own calls are refused with it as well.
"""

NO_LINKS: Final = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""What a file system answers that has no hard links, or no more of them."""


class ReplacedError(OSError):
    """Another program had given the name to another file, which has it again.

    `kept` is where a file is that could not get its name back, because a still newer one has it;
    None if there is no such file.
    """

    def __init__(self, path: Path, kept: Path | None = None) -> None:
        text = "another program replaced it meanwhile"
        if kept is not None:
            text = f"another program saved it several times meanwhile; {kept} is an earlier version"
        super().__init__(errno.ESTALE, text, str(path))
        self.kept = kept


class Form(Protocol):
    """What the system can do with two names at once. Each call tells whether it was done."""

    def exchange(self, one: Path, other: Path) -> bool:
        """Let two names exchange their files."""

    def move(self, path: Path, to: Path) -> bool:
        """Move a file or folder; raise FileExistsError if something has the name."""


class System:
    """The system that runs us, and whatever file system the names are on."""

    def exchange(self, one: Path, other: Path) -> bool:
        """Let two names exchange their files."""
        return _called("exchange", one, other)

    def move(self, path: Path, to: Path) -> bool:
        """Move a file or folder; raise FileExistsError if something has the name."""
        return _called("no replace", path, to)


FORM: Form = System()
"""The form in use. Tests put another here."""


def same_as(status: os.stat_result) -> Test:
    """Return the test whether a name has this very file or folder.

    It must be open, or have a name: the number of a file that is gone is given to the next one.
    """

    def is_it(path: Path) -> bool:
        try:
            return os.path.samestat(path.lstat(), status)
        except FileNotFoundError:
            return False

    return is_it


def take_place(draft: Path, path: Path, is_it: Test) -> None:
    """Let a complete file take the place of the one at `path`, on the disk when this returns.

    The draft's name goes. Raises ReplacedError if `path` had another file; then the draft has its
    name again, unless `kept` is that. A crash may leave the other file under the draft's name.
    """
    if not is_it(path):
        raise ReplacedError(path)
    with ExitStack() as stack:
        ours = _pinned(draft, stack)
        try:
            is_out = FORM.exchange(draft, path)
        except FileNotFoundError:
            raise ReplacedError(path) from None
        if not is_out:
            os.rename(draft, path)  # noqa: PTH104 - one call, one name
        elif is_it(draft):
            draft.unlink()
        else:
            raise ReplacedError(path, None if give_back(draft, path, ours) else draft)
    _sync(path, draft)


def give_back(hand: Path, path: Path, ours: os.stat_result) -> bool:
    """Exchange a file that came out for ours, which took its place; on the disk when this returns.

    Tells whether ours came out. If not, something newer had the place: that has it again, and what
    is left in hand is an earlier one. Where nothing has the place any more, the file stays in hand.
    """
    with ExitStack() as stack:
        before = ours
        for _ in range(_TURNS):
            here = _pinned(hand, stack)
            try:
                FORM.exchange(hand, path)
            except FileNotFoundError:
                break
            if same_as(before)(hand):
                break
            before = here
        _sync(path, hand)
        return same_as(ours)(hand)


def _pinned(path: Path, stack: ExitStack) -> os.stat_result:
    """Return which file has a name; it keeps its number until the stack closes."""
    fd = os.open(path, os.O_RDONLY | platforms.ONLY_LOOK)
    stack.callback(os.close, fd)
    return os.fstat(fd)


def take_away(path: Path, to: Path, is_it: Test) -> None:
    """Move a file or folder to a name of ours that nothing has, on the disk when this returns.

    Raises ReplacedError if `path` had something else, FileExistsError if `to` is not free.
    """
    if not is_it(path):
        raise ReplacedError(path)
    try:
        _moved_away(path, to)
    except FileNotFoundError:
        if path.parent.is_dir() and to.parent.is_dir():
            raise ReplacedError(path) from None
        raise
    if not is_it(to):
        kept = None
        try:
            put(to, path)
        except FileExistsError:
            kept = to
        raise ReplacedError(path, kept)
    _sync(to, path)


def put(path: Path, to: Path) -> None:
    """Move a file or folder of ours to a name that nothing has, on the disk when this returns.

    Raises FileExistsError if something has the name. A crash may leave both names.
    """
    if not FORM.move(path, to):
        _linked(path, to)
    _sync(to, path)


def _moved_away(path: Path, to: Path) -> None:
    if not FORM.move(path, to):
        _check_free(to)  # nobody but us gives this name to anything
        os.rename(path, to)  # noqa: PTH104 - as above


def _linked(path: Path, to: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        try:
            os.link(path, to, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
        else:
            sync_folder(to.parent)  # else a power loss may keep the removal without the new name
            path.unlink()
            return
    _check_free(to)
    os.rename(path, to)  # noqa: PTH104 - as above


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _sync(*paths: Path) -> None:
    for folder in dict.fromkeys(path.parent for path in paths):
        sync_folder(folder)


# ── the system's calls ───────────────────────────────────────────────────────────────────────


_FLAGS: Final = {
    "renameat2": {"exchange": 2, "no replace": 1},  # linux/fs.h
    "renameatx_np": {"exchange": 2, "no replace": 4},  # sys/stdio.h
}


def _called(what: str, one: Path, other: Path) -> bool:
    name = platforms.HERE.exact_renames
    function = None if name is None else _function(name)
    if function is None or name is None:
        return False
    flag = _FLAGS[name][what]
    with open_folder(one.parent) as here, open_folder(other.parent) as there:
        number = function(here, os.fsencode(one.name), there, os.fsencode(other.name), flag)
    if number in _NOT_THERE:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(one), None, str(other))
    return True


@cache
def _function(called: str) -> Callable[[int, bytes, int, bytes, int], int] | None:
    """Return the system's call, which returns an error number; None if there is none."""
    import ctypes  # noqa: PLC0415 - 4 ms at start-up, wanted only where a file is moved

    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), called)
    except (AttributeError, OSError):  # glibc before 2.28, musl before 1.2.6
        return None
    number, name = ctypes.c_int, ctypes.c_char_p
    function.argtypes = [number, name, number, name, ctypes.c_uint]

    def call(here: int, one: bytes, there: int, other: bytes, flag: int) -> int:
        return ctypes.get_errno() if function(here, one, there, other, flag) else 0

    return call
