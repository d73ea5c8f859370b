#!/usr/bin/env python3
"""Write every command's help to where it is shown; with --check, only say if that is current.

Promise: `help.txt`, which `--help` prints, and docs/guide/cli.md follow from the commands alone;
the table in docs/internals/protocol.md follows from the rows by which a crash is recovered, and the
file in docs/guide/scheduling.md from the settings; tests/README.md from the tests' first lines.
Rule: nobody edits them, so what they say is what the program does.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.main

from sessrotate.archive import record
from sessrotate.cli import app, help_page
from sessrotate.job import config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DOCS = Path(__file__).parents[1] / "docs"
GUIDE = DOCS / "guide" / "cli.md"
PROTOCOL = DOCS / "internals" / "protocol.md"
SCHEDULING = DOCS / "guide" / "scheduling.md"
TESTS = DOCS.parent / "tests"
SOURCE = DOCS.parent / "src" / "sessrotate"

TESTS_HEAD = """\
# Tests

`scripts/docs.py` generates this page. A file of tests has the name of the module that it tests:
`fs/test_exact.py` is about `fs/exact.py`. The files below ask something of several modules, or of a
part of one. [Testing](../docs/internals/testing.md) says what runs when.

| file | what it is about |
|---|---|
"""

HEAD = """\
# The command line

`scripts/docs.py` generates this page. The other pages of this guide explain the commands, with
examples.

## Output

Results go to standard output, and messages and progress to standard error. `--json` prints one
JSON document and nothing else, `search --json` one object a line. On a terminal, a progress bar
appears when a command takes longer than half a second; `--quiet` turns it off, and `NO_COLOR`
turns colors off. If you close the pipe, the command ends quietly. If you press Ctrl-C, the next
run cleans up.

`--help` is laid out for 80 columns. On a narrower terminal, sessrotate lays it out again, which
takes longer.

## Exit codes

| code | meaning |
|---|---|
| 0 | Done. |
| 1 | A problem (`verify`, `doctor`), a lost or unreadable folder (`list`), no hit (`search`). |
| 2 | The command line is wrong. |
| 65 | The input is not a session that sessrotate understands. |
| 74 | Something is damaged, or reading or writing failed. |
| 75 | The session is in use by another process. Try again later. |
| 77 | sessrotate refused, for safety. The message says why, and what would allow it. |
| 130 | You interrupted the command. |
"""


def pages() -> dict[str, str]:
    """Return each command's help on a terminal of 80 columns, by the words that call it."""
    os.environ["COLUMNS"] = str(help_page.COLUMNS)
    program = typer.main.get_command(app.build())
    context = typer.Context(program, info_name="sessrotate", **program.context_settings)
    return dict(_pages(program, context))


def _pages(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    words = context.command_path.partition(" ")[2]
    yield words, f"{command.get_help(context)}\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from _pages(below, type(context)(below, info_name=name, parent=context))


def guide(found: Mapping[str, str]) -> str:
    """Return the page of the guide that shows all of them."""
    return HEAD + "".join(
        f"\n## {words or 'All commands'}\n\n```text\n{page}```\n" for words, page in found.items()
    )


def with_rows(page: str) -> str:
    """Return the page about the protocol with the table of recovery as it is now."""
    return re.sub(
        r"(<!-- rows of [^\n]*-->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}\n{record.table()}\n{match[2]}",
        page,
        flags=re.DOTALL,
    )


def with_settings(page: str) -> str:
    """Return the page about scheduling with the settings file as `config` writes it."""
    return re.sub(
        r"(?<=```toml\n).*?(?=```)", lambda _: config.commented(), page, count=1, flags=re.DOTALL
    )


def tests() -> str:
    """Return the page of the tests that have no module's name: what each is about."""
    rows = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS)
        module = SOURCE / name.with_name(path.stem.removeprefix("test_"))
        if not (module.is_dir() or module.with_suffix(".py").exists()):
            said = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]
            rows.append(f"| `{name.as_posix()}` | {' '.join(said.split())} |")
    return TESTS_HEAD + "\n".join([*rows, ""])


def main() -> int:
    """Write or check the files; return the exit code."""
    found = pages()
    wanted = {
        help_page.FILE: help_page.stored(found),
        GUIDE: guide(found),
        PROTOCOL: with_rows(PROTOCOL.read_text()),
        SCHEDULING: with_settings(SCHEDULING.read_text()),
        TESTS / "README.md": tests(),
    }
    if sys.argv[1:] == ["--check"]:
        stale = [path.name for path, text in wanted.items() if path.read_text() != text]
        print(f"stale: {', '.join(stale)}; run scripts/docs.py" if stale else "current")
        return 1 if stale else 0
    for path, text in wanted.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
