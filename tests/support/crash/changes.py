"""Every call by which a process can change the disk, in one place to stand in its way.

Rule: a call counts if it changes the disk or makes a change last; what only reads passes. The
list is longer than what `sessrotate.fs` uses, so that a new verb is met by the faults too.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from sessrotate.fs import exact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

Opened = TypeVar("Opened")

CHANGING: Final = (
    "open",
    "write",
    "fsync",
    "mkdir",
    "rmdir",
    "rename",
    "link",
    "unlink",
    "ftruncate",
    "fchmod",
    "fchown",
    "utime",
    "setxattr",
    # None of these is called today.
    "replace",
    "remove",
    "truncate",
    "fdatasync",
    "chmod",
    "chown",
    "lchown",
    "symlink",
    "pwrite",
    "pwritev",
    "writev",
    "sendfile",
    "copy_file_range",
    "posix_fallocate",
    "removexattr",
    "mknod",
    "mkfifo",
)

TWO_NAMES: Final = ("exchange", "move")
"""What `sessrotate.fs.exact` has the system do with two names, past Python."""


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it may change the disk."""


class Watch:
    """Sees every changing call before it is made; this one counts them and lets them pass."""

    def __init__(self) -> None:
        self.count = 0

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        del name
        self.count += 1
        return real(*args, **kwargs)

    @contextmanager
    def installed(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            self.install(patch)
            yield

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in CHANGING:
            if hasattr(os, name):
                patch.setattr(os, name, self._wrapped(name, getattr(os, name)))
        form = exact.FORM
        calls = {name: self._wrapped(name, getattr(form, name)) for name in TWO_NAMES}
        patch.setattr(exact, "FORM", SimpleNamespace(**calls))

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & (os.O_CREAT | os.O_TRUNC):
                return real(*args, **kwargs)
            if name == "mkdir" and os.path.lexists(args[0]):  # of a lock's folder, every time
                return real(*args, **kwargs)
            return self.call(name, real, *args, **kwargs)

        return call


class Faults(Watch):
    """Fails the call number `at` with an error of its own, and all after it if it is `lasting`.

    Without more, the process ends there. `at` 0 only counts.
    """

    def __init__(
        self, at: int, fault: Callable[[], BaseException] = Killed, *, lasting: bool = True
    ) -> None:
        super().__init__()
        self._at, self._fault, self._lasting = at, fault, lasting
        self.failed = ""

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if self.count == self._at or (self._lasting and 0 < self._at < self.count):
            self.failed = self.failed or name
            self.met()
        return real(*args, **kwargs)

    def met(self) -> None:
        """Do what is to happen at the call."""
        raise self._fault()


class Meanwhile(Faults):
    """Before the call number `at`, a client does something; then all goes on."""

    def __init__(self, at: int, deed: Callable[[], None]) -> None:
        super().__init__(at, lasting=False)
        self._deed = deed

    def met(self) -> None:
        self._deed()


class ShortWrites(Watch):
    """Lets a write take only part of what it is given."""

    def __init__(self, taken: Callable[[int], int]) -> None:
        super().__init__()
        self._taken = taken

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if name == "write" and len(args[1]) > 1:
            return real(args[0], args[1][: self._taken(len(args[1]))])
        return real(*args, **kwargs)


class Before(Watch):
    """Calls something before every change, and in the middle of every write."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self._look = look

    def call(self, name: str, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        self._look()
        if name == "write" and len(args[1]) > 1:
            half = real(args[0], args[1][: len(args[1]) // 2])
            self._look()
            return half + real(args[0], args[1][half:])
        return real(*args, **kwargs)


def killed(
    opened: Callable[[], AbstractContextManager[Opened]], run: Callable[[Opened], object]
) -> Iterator[Opened]:
    """Run with the 1st call the last that never was, then the 2nd …; yield what is left.

    `opened` gives what is run on, as new, each time. Ends when a run makes all of its calls.
    """
    for at in count(1):
        with opened() as found:
            faults = Faults(at, Killed, lasting=True)
            with faults.installed():
                try:
                    run(found)
                except Killed:
                    pass
                else:
                    assert not faults.failed, "something caught what nothing may catch"
                    return
            yield found
