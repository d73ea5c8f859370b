"""What the table of findings says is what the checks ask for, by name."""

from __future__ import annotations

import ast
import re
import shlex
import string
from pathlib import Path
from typing import TYPE_CHECKING

from sessrotate import doctor
from sessrotate.automation import findings

if TYPE_CHECKING:
    from collections.abc import Iterator

ALWAYS = {"finding": {"path", "session"}, "say": {"path", "session", "live"}}
"""Facts that every call of these has, beside those that it names."""


def asked() -> Iterator[tuple[str, set[str]]]:
    """Yield each name of a check that the code has, and the facts that come with it."""
    for module in findings, doctor:
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ALWAYS:
                facts = {str(each.arg) for each in node.keywords} | ALWAYS[ast.unparse(node.func)]
                first = ast.walk(node.args[0])
                is_text = (each.value for each in first if isinstance(each, ast.Constant))
                yield from ((name, facts) for name in is_text if isinstance(name, str))


def test_each_check_has_a_sentence_and_no_sentence_is_without_a_check() -> None:
    assert {name for name, _ in asked()} == {*findings.SAYS}


def test_a_sentence_names_no_fact_that_its_check_does_not_give() -> None:
    for name, facts in asked():
        fields = (field for _, field, _, _ in string.Formatter().parse(findings.SAYS[name]))
        named = {field.removesuffix("_word") for field in fields if field}
        assert named <= facts, name


def test_a_command_that_is_told_has_its_path_as_a_shell_takes_it() -> None:
    path = Path("/home/some one/a (1).jsonl")
    for name in ("stranger: copy", "stranger: agents"):
        told = findings.finding(name, path, "s", live=path, paths="").detail
        (command,) = re.findall("`(sessrotate [a-z]+ [^`]*/[^`]*)`", told)
        assert shlex.split(command)[-1] == str(path)
