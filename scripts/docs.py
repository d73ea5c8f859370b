#!/usr/bin/env python3
"""Write every command's help to where it is shown; with --check, only say if that is current.

Promise: `help.txt`, which `--help` prints, follows from the commands; so does what stands between
two marks in docs/guide/cli.md. What does in docs/internals/protocol.md follows from the rows by
which a crash is recovered, in docs/guide/scheduling.md from the settings, and in tests/README.md
from the tests' first lines.
Rule: nobody edits them, so what they say is what the program does.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.main

from sessrotate.archive import record
from sessrotate.cli import app, help_page
from sessrotate.job import config

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
BEGIN, END = "by scripts/docs.py -->\n", "<!-- end -->"


def pages(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Give each command's help, by the words that call it."""
    words = context.command_path.partition(" ")[2]
    yield words, f"{command.get_help(context)}\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from pages(below, type(context)(below, info_name=name, parent=context))


def tests() -> str:
    """Return the table of the tests that have no module's name: what each is about."""
    rows = ["| file | what it is about |", "|---|---|"]
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS)
        module = ROOT / "src" / "sessrotate" / name.with_name(path.stem.removeprefix("test_"))
        if not (module.is_dir() or module.with_suffix(".py").exists()):
            said = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]
            rows.append(f"| `{name.as_posix()}` | {' '.join(said.split())} |")
    return "\n".join([*rows, ""])


def between_marks(page: Path, part: str) -> str:
    """Return a page with the part between its marks as it is now."""
    before, _, rest = page.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{part}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write or check the files; return the exit code."""
    os.environ["COLUMNS"] = str(help_page.COLUMNS)
    program = typer.main.get_command(app.build())
    context = typer.Context(program, info_name="sessrotate", **program.context_settings)
    found = dict(pages(program, context))
    shown = [
        f"## {words or 'All commands'}\n\n```text\n{text}```\n" for words, text in found.items()
    ]
    parts = {
        ROOT / "docs" / "guide" / "cli.md": "\n".join(shown),
        ROOT / "docs" / "guide" / "scheduling.md": f"```toml\n{config.commented()}```\n",
        ROOT / "docs" / "internals" / "protocol.md": record.table(),
        TESTS / "README.md": tests(),
    }
    wanted = {page: between_marks(page, part) for page, part in parts.items()}
    wanted[help_page.FILE] = help_page.stored(found)
    if sys.argv[1:] == ["--check"]:
        stale = [path.name for path, text in wanted.items() if path.read_text() != text]
        print(f"stale: {', '.join(stale)}; run scripts/docs.py" if stale else "current")
        return 1 if stale else 0
    for path, text in wanted.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
