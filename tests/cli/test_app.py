"""The program around the commands: help, version, completion, names that are none."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from sessrotate.cli.app import GROUPS
from sessrotate.system import user_folders
from support import homes
from support.command_line import (
    COMMAND,
    ID,
    Ended,
    assert_one_sentence,
    called,
    names_in,
    on_terminal,
    patched,
    piped,
    raw_controls,
    session,
    without_ansi,
    write,
)

PAGES: Final = [[], ["split"], ["stitch"], ["verify"]]


@pytest.mark.parametrize("run", [piped, on_terminal])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: " ".join(page) or "sessrotate")
def test_every_help_text_fits_80_columns(run: Any, page: list[str]) -> None:
    for option in ("--help", "-h"):
        narrow = {"columns": 80} if run is on_terminal else {"env": {"COLUMNS": "80"}}
        ended = run(*page, option, **narrow)
        assert (ended.code, ended.err) == (0, "")
        lines = without_ansi(ended.out).splitlines()
        assert lines[0].startswith("Usage: sessrotate")
        assert max(map(len, lines)) <= 80
        assert "--help" in ended.out


def test_help_names_every_command_and_exit_code() -> None:
    text = piped("--help").out
    for word in ("split", "stitch", "verify", "65", "74", "75", "77", "130"):
        assert word in text


def test_help_has_every_command_in_its_group_and_few_of_them_with_a_line() -> None:
    text = piped("--help").out
    for title, names in GROUPS.items():
        below = text.split(f"\n{title}:\n")[1].split("\n\n")[0]
        assert all(re.search(rf"\b{name}\b", below) for name in names), title
    assert len(re.findall(r"(?m)^  [a-z]+ {2,}\w", text)) <= 19


@pytest.mark.parametrize("words", ["", "split", "config init", "hook"])
def test_the_stored_help_is_what_typer_lays_out_on_80_columns(words: str) -> None:
    code = "import sys; sys.argv[0] = 'sessrotate'; from sessrotate.cli.app import run"
    program = (sys.executable, "-c", f"{code}; run(sys.argv[1:])")
    for columns in ("80", "200"):
        laid_out = piped(*words.split(), "--help", program=program, env={"COLUMNS": columns})
        assert laid_out.out.startswith(f"Usage: sessrotate {words}".rstrip())
        assert piped(*words.split(), "--help", env={"COLUMNS": columns}) == laid_out


def test_on_a_narrow_terminal_the_help_is_narrow() -> None:
    lines = without_ansi(on_terminal("list", "--help", columns=60).out).splitlines()
    assert max(map(len, lines)) <= 60


def test_help_is_there_when_the_file_of_it_is_not() -> None:
    gone = "from sessrotate.cli import help_page; help_page.FILE /= 'gone'"
    ended = piped("list", "--help", program=patched(gone))
    assert (ended.code, ended.err) == (0, "")
    assert "--min-size" in ended.out


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_the_version_is_one_line(run: Any) -> None:
    ended = run("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("sessrotate ")
    assert ended.out.count("\n") == 1
    assert run("--version", "split").out == ended.out


@pytest.mark.parametrize(
    "arguments", [["spilt"], ["--nonsense"], ["../../x"], ["\x1b[31mred"], ["--\x1b[31mred"], [""]]
)
def test_what_is_no_command_is_wrong_usage(arguments: list[str]) -> None:
    ended = piped(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err
    assert raw_controls(ended.err) == set()


def test_an_argument_that_is_not_utf_8_is_no_traceback(tmp_path: Path) -> None:
    for arguments in ([b"\xff\xfe"], [b"split", b"\xff\xfe"], [b"stitch", b"\xff/\xfe"]):
        ended = piped(*arguments, cwd=tmp_path)
        assert (ended.code, ended.out) == (2, "")
        assert "Traceback" not in ended.err
        assert "\udcff" not in ended.err


def test_a_name_longer_than_any_file_s_is_one_sentence(tmp_path: Path) -> None:
    ended = piped("split", "x" * 5000, cwd=tmp_path)
    assert ended.code in {2, 74}
    assert_one_sentence(ended, ended.code)
    assert len(ended.err) < 500


def test_it_runs_without_an_environment_of_its_own(tmp_path: Path) -> None:
    source = write(tmp_path / f"{ID}.jsonl", session())
    ended = piped(
        *("-c", 'exec env -i "$0" split "$1" --dry-run', COMMAND, source), program=("/bin/sh",)
    )
    assert (ended.code, ended.err) == (0, "")


def test_a_working_folder_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    source = write(tmp_path / f"{ID}.jsonl", session())
    place = tmp_path / "gone"
    place.mkdir()
    for rest in ("--dry-run", ""):
        script = f'mkdir -p "$2"; cd "$2"; rmdir "$2"; exec "$0" split "$1" {rest}'
        ended = piped("-c", script, COMMAND, source, place, program=("/bin/sh",))
        assert ended.code in {0, 77}, ended
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["split", "stitch", "verify"])
def test_a_shell_completes_session_ids(command: str, tmp_path: Path) -> None:
    projects = tmp_path / "projects"
    write(projects / "-srv-demo" / f"{ID}.jsonl", b"")
    write(projects / "-srv-demo" / "77777777-0000-4000-a000-000000000000.jsonl", b"")
    ended = piped(
        env={
            "_SESSROTATE_COMPLETE": "complete_bash",
            "COMP_WORDS": f"sessrotate {command} 5e55",
            "COMP_CWORD": "2",
            "CLAUDE_PROJECTS_DIR": str(projects),
        }
    )
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.split() == [ID]


def test_a_shell_completes_options_and_commands() -> None:
    for words, place, wanted in (
        ("sessrotate spl", "1", ["split"]),
        ("sessrotate pin", "1", ["pin"]),
        ("sessrotate un", "1", ["unpin"]),
        ("sessrotate split --dr", "2", ["--dry-run"]),
        ("sessrotate list --client ", "3", ["claude", "codex", "gemini"]),
        ("sessrotate export --format m", "3", ["markdown"]),
    ):
        ended = piped(
            env={
                "_SESSROTATE_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": place,
            }
        )
        assert (ended.code, ended.out.split()) == (0, wanted)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pin", ID, "x"], "'x' is not a whole number, 0 or more."),
        (["pin", ID, "--", "-1"], "'-1' is not a whole number, 0 or more."),
        (["prune", ID, "--keep-last", "0"], "'0' is not a whole number, 1 or more."),
        (["restore", ID, "--wait", "-1"], "'-1' is not a number of seconds, 0 or more."),
        (["restore", ID, "--wait", "soon"], "'soon' is not a number of seconds, 0 or more."),
        (["list", "--min-size", "big"], "'big' is not a size such as 500K, 50M or 2G."),
        (["list", "--older-than", "x"], "'x' is not an age such as 30m, 12h, 30d or 6w."),
    ],
)
def test_a_value_that_is_not_understood_is_refused_in_our_words(
    words: list[str], sentence: str
) -> None:
    ended = piped(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.rstrip().endswith(sentence)


@pytest.mark.parametrize("command", ["report", "verify", "prune"])
@pytest.mark.parametrize(
    ("sessions", "end"),
    [([], ": `sessrotate list` shows the sessions."), ([ID, "--all"], ", but not both.")],
)
def test_sessions_or_all_of_them_are_asked_for_in_the_same_words(
    command: str, sessions: list[str], end: str
) -> None:
    ended = called(command, *sessions)
    what = "SOURCE" if command == "verify" else "SESSION"
    assert ended == Ended(2, "", f"sessrotate: Name a {what} or pass --all{end}\n")


def test_a_module_started_by_hand_is_the_same_program() -> None:
    program = (sys.executable, "-c", "from sessrotate.cli import main; main()")
    assert piped("--version", program=program) == piped("--version")


def test_the_home_folder_may_be_missing(tmp_path: Path) -> None:
    ended = piped("split", "5e55107a", cwd=tmp_path, env={"HOME": ""})
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert names_in(tmp_path) == []


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user whom the machine does not know, as in a container."""

    def unknown(_user: int) -> None:
        raise KeyError

    pwd = pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", *user_folders.CLIENTS, *homes.OWN_FOLDERS):
        monkeypatch.delenv(name, raising=False)


HOMELESS: Final = (
    (), ("list",), ("doctor",), ("run", "-n"), ("tidy", "-n"), ("report", "--all"),
    ("search", "row"), ("verify", "--all"), ("prune", "--all", "--keep-last", "1", "-n"),
    ("config", "show"), ("run",),
)  # fmt: skip


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_is_told_what_to_set() -> None:
    for command in (*HOMELESS, ("setup", "-n"), ("rotate", ID)):
        ended = called(*command)
        assert ended.code == 2, (command, ended)
        assert "no home directory: set HOME, or CLAUDE_CONFIG_DIR to" in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.usefixtures("homeless")
def test_without_a_home_all_works_that_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    write(tmp_path / "projects" / homes.PROJECT / f"{ID}.jsonl", session(boundaries=3))
    for command in (*HOMELESS, ("rotate", ID), ("restore", ID)):
        ended = called(*command)
        assert ended.code == 0, (command, ended)
    assert "no home directory, and sessrotate keeps files of its own there" in called("run").err
    for command in (("config", "init"), ("setup", "-n")):
        ended = called(*command)
        assert (ended.code, "XDG_CONFIG_HOME" in ended.err) == (2, True)
    assert not Path("/nonexistent").exists()


@pytest.mark.usefixtures("homeless")
def test_without_a_home_one_client_s_folder_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert called("list").code == 0


@pytest.mark.parametrize("words", [[], ["list"], ["hook", "install"]])
def test_help_as_a_word_is_the_help_of_what_follows(words: list[str]) -> None:
    env = {"COLUMNS": "80"}
    assert piped("help", *words, env=env) == piped(*words, "--help", env=env)
