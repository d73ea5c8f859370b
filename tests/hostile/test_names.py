"""Names and values with escape sequences, newlines, markup: data everywhere, never commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.command_line import (
    COMMAND,
    ENVIRONMENT,
    ID,
    SECONDS,
    Ended,
    append,
    boundary,
    called,
    on_terminal,
    piped,
    raw_controls,
    row,
    session,
    without_ansi,
)

ESCAPES: Final = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\r\x08"

NAMES: Final[dict[str, bytes]] = {
    "escape sequences": ESCAPES.encode(),
    "newlines": b"a\nsessrotate: all is well\nb",
    "invalid UTF-8": b"\xff\xfe\x80",
    "markup": b"[bold red]x[:)][link=file:a]",
    "right to left": "a\u202egnp.exe".encode(),
    "line separators": "a\u2028b\u2029c\u0085d".encode(),
    "a dash first": b"-rf",
    "blanks": b"  two  blanks  ",
    "a number that looks like a segment's": b"a.1",
    "two dots": b"..",
    "nothing": b"",
    "percent and braces": b"%s{0}%n",
    "a manifest": b"manifest.json",
    "an intent": b"intent",
    "patterns": b"a*?[b](c)+.1",
    "wide and combining": "分割\u0301🛶".encode(),
    "as long as a name may be": b"x" * 230,
}


def run_bytes(folder: Path, *arguments: bytes) -> Ended:
    return piped(*arguments, cwd=folder)


def assert_harmless(ended: Ended, code: int = 0) -> None:
    assert ended.code == code, ended
    assert raw_controls(ended.out + ended.err) == set(), ended
    assert "Traceback" not in ended.err
    assert not any(0xDC80 <= ord(letter) <= 0xDCFF for letter in ended.out + ended.err)
    assert not any(mark in ended.out + ended.err for mark in "\u202e\u2028\u2029")


LAYOUTS: Final = [(), (b"--layout", b"linked"), (b"--compress",)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", LAYOUTS, ids=["numbered", "linked", "compressed"])
def test_a_session_with_a_hostile_name_is_split_and_stitched(
    name: str, options: tuple[bytes, ...], tmp_path: Path
) -> None:
    data = session(2)
    file = b"./" + NAMES[name] + b".jsonl"
    place = os.fsencode(tmp_path) + b"/" + file[2:]
    Path(os.fsdecode(place)).write_bytes(data)
    split = run_bytes(tmp_path, b"split", file, b"--out", b"set", *options)
    assert_harmless(split)
    assert split.out.count("\n") == 1
    for number, manifest in enumerate((True, False)):
        if not manifest:
            (tmp_path / "set" / "manifest.json").unlink()
        ended = called("stitch", tmp_path / "set", "-o", tmp_path / f"whole-{number}")
        assert_harmless(ended)
        assert (tmp_path / f"whole-{number}").read_bytes() == data
        assert_harmless(called("verify", tmp_path / "set"))


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_never_reaches_the_terminal_raw(name: str, tmp_path: Path) -> None:
    file = b"./" + NAMES[name] + b".jsonl"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + file[2:])).write_bytes(session(1))
    assert_harmless(run_bytes(tmp_path, b"split", file, b"--dry-run"))
    assert_harmless(run_bytes(tmp_path, b"split", file, b"--dry-run", b"--json"))
    shown = on_terminal("split", file, "--dry-run", cwd=tmp_path)
    text = without_ansi(shown.out)
    assert raw_controls(text) == set(), text
    assert "\x1b]" not in shown.out
    assert "\x07" not in shown.out
    assert text.count("\n") < 14
    if name == "markup":
        assert "[bold red]x[:)]" in text


@pytest.mark.parametrize("name", ["escape sequences", "newlines", "invalid UTF-8", "markup"])
def test_messages_about_hostile_names_are_harmless(name: str, tmp_path: Path) -> None:
    base = os.fsencode(tmp_path) + b"/" + NAMES[name]
    Path(os.fsdecode(base)).mkdir()
    for arguments, code in (
        ((b"split", base + b".none"), 2),
        ((b"split", NAMES[name] + b"none"), 2),
        ((b"split", base), 65),
        ((b"stitch", base, b"-o", base + b".whole"), 65),
        ((b"verify", base), 65),
        ((b"stitch", base + b".none", b"-o", base + b".whole"), 2),
    ):
        ended = run_bytes(tmp_path, *arguments)
        assert_harmless(ended, code)
        assert ended.err.count("\n") == 1, ended.err


@pytest.mark.parametrize("name", ["escape sequences", "newlines", "invalid UTF-8", "markup"])
def test_damage_in_a_set_with_a_hostile_name_is_told_harmlessly(name: str, tmp_path: Path) -> None:
    file = os.fsencode(tmp_path) + b"/" + NAMES[name] + b".jsonl"
    Path(os.fsdecode(file)).write_bytes(session(2))
    folder = os.fsencode(tmp_path) + b"/set " + NAMES[name]
    assert run_bytes(tmp_path, b"split", file, b"--out", folder).code == 0
    second = os.fsdecode(folder + b"/" + NAMES[name] + b".2.jsonl")
    append(Path(second), b"more\n")
    assert_harmless(run_bytes(tmp_path, b"verify", folder), 1)
    assert_harmless(run_bytes(tmp_path, b"verify", folder, b"--json"), 1)
    ended = run_bytes(tmp_path, b"stitch", folder, b"-o", b"whole")
    assert_harmless(ended, 74)
    assert "Segment 2" in ended.err


# ── values ───────────────────────────────────────────────────────────────────────────────────

VALUES: Final = {
    "escape sequences": ESCAPES,
    "newlines": "a\nb\u2028c",
    "markup": "[bold red]x[/][link=file:a]",
    "a lone surrogate": "\ud800",
    "right to left": "\u202egnp",
    "NUL": "a\0b",
    "a long text": "x" * 100_000,
    "nothing": "",
}
OTHER_TYPES: Final[dict[str, object]] = {
    "a number": 7,
    "a truth": True,
    "null": None,
    "a list": ["auto"],
    "an object": {"trigger": "auto"},
    "a large number": 10**30,
    "a fraction": 1.5,
    "a negative number": -5,
}


def hostile_rows() -> Iterator[bytes]:
    """Yield a session whose boundaries hold every value in every place."""
    yield row(0)
    for value in (*VALUES.values(), *OTHER_TYPES.values()):
        for key in ("uuid", "timestamp", "compactMetadata"):
            yield with_value(key, value)
        for key in ("trigger", "preTokens"):
            yield with_value("compactMetadata", {"trigger": "auto", "preTokens": 1, key: value})
    yield row(9)


def with_value(key: str, value: object) -> bytes:
    return json.dumps({**json.loads(boundary(2)), key: value}).encode() + b"\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / f"{ID}.jsonl"
    path.write_bytes(b"".join(hostile_rows()))
    return path


COUNT: Final = 5 * (len(VALUES) + len(OTHER_TYPES)) + 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_hostile_values_of_boundaries_are_harmless_in_a_pipe(
    options: list[str], hostile: Path
) -> None:
    ended = piped("split", hostile, "--dry-run", *options)
    assert_harmless(ended)
    if options:
        assert len(ended.document()["segments"]) == COUNT
    else:
        assert sum(line.split()[:1] != [] and "%" in line for line in ended.out.splitlines()) == (
            COUNT
        )


def test_hostile_values_of_boundaries_are_harmless_on_a_terminal(hostile: Path) -> None:
    ended = on_terminal("split", hostile, "--dry-run", columns=200)
    assert (ended.code, ended.err) == (0, "")
    text = without_ansi(ended.out)
    assert raw_controls(text) == set()
    assert "\x1b]" not in ended.out
    assert "[bold red]" in text, "markup is text like any other"
    assert "link=" not in ended.out.replace(text, "")


@pytest.mark.parametrize("options", [(), ("--layout", "linked"), ("--compress",)])
def test_hostile_values_of_boundaries_make_a_sound_set(
    options: tuple[str, ...], hostile: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    ended = called("split", hostile, "--out", folder, "--json", *options)
    assert_harmless(ended)
    for number in range(2):
        whole = tmp_path / str(number)
        assert_harmless(called("stitch", folder, "-o", whole))
        assert whole.read_bytes() == hostile.read_bytes()
        assert_harmless(called("verify", folder))
        (folder / "manifest.json").unlink(missing_ok=True)


def test_json_gives_only_values_of_the_types_that_the_contract_names(hostile: Path) -> None:
    document: Any = called("split", hostile, "--dry-run", "--json").document()
    for entry in document["segments"][1:]:
        found = entry["boundary"]
        for key in ("uuid", "timestamp", "trigger"):
            assert found[key] is None or type(found[key]) is str
        assert found["pre_tokens"] is None or type(found["pre_tokens"]) is int
        for text in filter(None, (found["uuid"], found["timestamp"], found["trigger"])):
            text.encode()  # no lone surrogate


def test_a_working_folder_with_a_hostile_name_is_harmless(tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\x1b[31m\n\xff"))
    place.mkdir()
    (place / f"{ID}.jsonl").write_bytes(session(1))
    done = subprocess.run(
        [COMMAND, "split", place / f"{ID}.jsonl"],
        cwd=place,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr
