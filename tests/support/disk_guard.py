"""Which calls in a module's code may change the disk, told from its syntax tree.

Rule: in doubt it changes something. A mode that is not a literal counts, and so does a function
that is only named, since somebody may call it elsewhere. `os.open` counts unless it opens
`os.devnull`, or the module names O_RDONLY and no flag that writes.
"""

from __future__ import annotations

import ast
from typing import Final

MODULES: Final = {"tempfile", "sqlite3", "dbm", "shelve", "filelock", "zipfile", "tarfile"}
"""Modules whose purpose is to make files."""

OS: Final = {
    "chflags", "chmod", "chown", "copy_file_range", "fchmod", "fchown", "fdatasync", "fsync",
    "ftruncate", "lchmod", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod",
    "posix_fallocate", "pwrite", "pwritev", "remove", "removedirs", "removexattr", "rename",
    "renames", "replace", "rmdir", "sendfile", "setxattr", "splice", "symlink", "truncate",
    "unlink", "utime", "writev",
}  # fmt: skip
"""Functions of `os` (and `posix`) that change a file or a folder."""

SHUTIL: Final = {"which", "disk_usage", "get_terminal_size"}
"""All that `shutil` has without changing anything."""

METHODS: Final = {
    "chmod", "hardlink_to", "lchmod", "link_to", "mkdir", "rename", "rmdir", "rmtree",
    "symlink_to", "touch", "truncate", "unlink", "write_bytes", "write_text",
}  # fmt: skip
"""Methods of paths and open files that do; whatever they are called on."""

LIBC: Final = {"renameat2", "renameatx_np", "renamex_np", "syscall"}
"""Functions of the C library that move files, past Python; whether named or called."""

WRITES: Final = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"}

WAYS: Final = (
    "os.replace(a, b)",
    "os.remove(a)",
    "os.makedirs(a)",
    "move = os.rename",
    "from os import replace",
    "from os import unlink as gone",
    "shutil.move(a, b)",
    "from shutil import copyfile",
    "import tempfile",
    "from tempfile import mkstemp",
    "import filelock",
    "open(a, 'w')",
    "open(a, mode='ab')",
    "open(a, mode)",
    "open(a, 'r+b')",
    "path.open('x')",
    "gzip.open(a, 'wb')",
    "os.fdopen(fd, 'wb')",
    "os.open(a, os.O_RDWR | os.O_NOFOLLOW)",
    "os.open(a, flags)",
    "path.replace(other)",
    "path.write_bytes(data)",
    "path.touch()",
    "file.truncate(0)",
    "os.ftruncate(fd, 0)",
    "os.pwrite(fd, data, 0)",
    "os.setxattr(a, b, c)",
    "ctypes.CDLL(None).renameat2(a, b, c, d, 1)",
    "getattr(libc, 'renameatx_np')",
    "libc.syscall(316)",
)
"""Ways to change the disk; each must be seen."""

HARMLESS: Final = (
    "open(a, 'rb')",
    "open(a)",
    "path.open('rb')",
    "path.open()",
    "os.open(a, os.O_RDONLY | os.O_NOFOLLOW)",
    "flags = os.O_RDONLY; os.open(a, flags)",
    "os.open(os.devnull, os.O_RDWR)",
    "text.replace('a', 'b')",
    "text.replace(*pair)",
    "replace(value, field=1)",
    "when.replace(tzinfo=UTC)",
    "shutil.get_terminal_size()",
    "os.stat(a)",
    "ctypes.CDLL(None).memmem",
)


def changes(tree: ast.Module) -> set[str]:
    """Return what in a module may change the disk, each as it is written."""
    words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    words |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    found = words & LIBC
    reads = "O_RDONLY" in words and words.isdisjoint(WRITES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names if _is_named(node.module, alias.name)}
        elif isinstance(node, ast.Attribute) and _is_named(ast.unparse(node.value), node.attr):
            found.add(ast.unparse(node))
        if isinstance(node, ast.Call) and _changes(node, reads=reads):
            found.add(ast.unparse(node.func))
    return found


def _is_named(module: str | None, name: str) -> bool:
    if module in {"os", "posix"}:
        return name in OS
    return (module == "shutil" and name not in SHUTIL) or module in MODULES


def _changes(call: ast.Call, *, reads: bool) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id == "open" and _is_for_writing(call, 1)
    if not isinstance(call.func, ast.Attribute):
        return False
    holder, name = ast.unparse(call.func.value), call.func.attr
    if (holder, name) == ("os", "open"):
        return not reads and ast.unparse(call.args[0]) != "os.devnull"
    if name == "open":
        return _is_for_writing(call, 1 if holder in {"gzip", "bz2", "lzma", "io"} else 0)
    if name == "replace":  # a path's takes one argument, a string's two
        is_one = len(call.args) == 1 and not isinstance(call.args[0], ast.Starred)
        return is_one and not call.keywords
    return name in METHODS or (name == "fdopen" and _is_for_writing(call, 1))


def _is_for_writing(call: ast.Call, position: int) -> bool:
    modes = [*call.args[position : position + 1]]
    modes += [word.value for word in call.keywords if word.arg == "mode"]
    return any(
        not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in modes
    )
