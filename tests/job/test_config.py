"""Settings: their table, the file that follows from it, and what is said about a wrong one."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from sessrotate.errors import WrongUsageError
from sessrotate.job import config
from sessrotate.job.config import (
    KEYS,
    TABLES,
    Age,
    Archive,
    Codex,
    Key,
    Rotate,
    Size,
    Trash,
    commented,
    written,
)
from sessrotate.retention.policy import Policy
from sessrotate.system import user_folders

DAY: Final = 86400

ALL: Final = """
[rotate]
min_gain = "2G"
live = true
[archive]
older_than = "6w"
before_cleanup = "3d"
[codex]
compress_after = "8d"
[prune]
keep_last = 3
keep_within = "30d"
keep_daily = 4
keep_weekly = 5
keep_monthly = 6
max_age = "60d"
max_size = "1.5K"
[trash]
grace = "0"
"""


def refused(text: str) -> str:
    with pytest.raises(WrongUsageError) as caught:
        config.parsed(text)
    return str(caught.value)


# ── what is in force ─────────────────────────────────────────────────────────────────────────


def test_without_a_file_nothing_is_pruned_or_put_away() -> None:
    settings = config.parsed("")
    assert settings.prune.is_empty
    assert settings.archive == Archive(None, None)
    assert settings.rotate == Rotate(Size(2**20), live=False)
    assert settings.trash == Trash(Age("1w"))
    assert settings.lines == {}


def test_every_setting_can_be_set() -> None:
    settings = config.parsed(ALL)
    assert settings.rotate == Rotate(Size(2**31), live=True)
    assert settings.archive == Archive(Age("42d"), Age("72h"))
    assert settings.codex == Codex(Age("8d"))
    assert settings.prune == Policy(
        keep_last=3,
        keep_within=30.0 * DAY,
        keep_daily=4,
        keep_weekly=5,
        keep_monthly=6,
        max_age=60.0 * DAY,
        max_size=1536,
    )
    assert settings.trash == Trash(Age("0"))
    assert settings.lines.keys() == {key.title for key in KEYS}


def test_what_is_off_is_said_by_false() -> None:
    off = {key.table: "" for key in KEYS}
    for key in KEYS:
        if key.may_be_off:
            off[key.table] += f"{key.name} = false\n"
    settings = config.parsed("".join(f"[{table}]\n{lines}" for table, lines in off.items()))
    assert settings.prune.is_empty
    assert settings.rotate.min_gain is None
    assert settings.trash.grace is None


def test_each_setting_has_a_field_and_each_field_a_setting() -> None:
    named = {
        (part.name, field.name)
        for part in fields(config.Settings)
        if part.name != "lines"
        for field in fields(type(getattr(config.parsed(""), part.name)))
    }
    assert named == {(key.table, key.name) for key in KEYS}
    assert list(TABLES) == list(dict.fromkeys(key.table for key in KEYS))


# ── the commented file ───────────────────────────────────────────────────────────────────────


def test_the_commented_file_sets_nothing() -> None:
    assert config.parsed(commented()) == config.parsed("")


def test_without_its_comment_signs_it_sets_everything_to_the_default_or_an_example() -> None:
    text, many = re.subn(r"(?m)^#(?=\w+ = )", "", commented())
    settings = config.parsed(text)
    assert many == len(KEYS)
    for key in KEYS:
        line = text.split("\n")[settings.lines[key.title] - 1]
        assert line.startswith(f"{key.name} = ")
        if not key.is_off:
            assert written(settings.value(key)) == key.default
        else:
            assert settings.value(key) is not None


def test_it_is_read_comfortably() -> None:
    assert max(map(len, commented().splitlines())) <= 100
    for key in KEYS:
        assert f"\n#{key.name} = " in commented()


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rotate]\n\nmin-gain = 3", "Unknown setting in [rotate]: min-gain (did you mean"),
        ("[prunes]", "Unknown table prunes (did you mean prune?)."),
        ("\nmin_gain = 1", "Unknown setting min_gain (did you mean rotate.min_gain?)."),
        ("[trash]\nzzzzzz = 1", "Unknown setting in [trash]: zzzzzz (known: grace)."),
        ("prune = 3", "prune is a table: write [prune], and its settings below."),
        ("[[prune]]\nkeep_last = 3", "prune is a table"),
        ("prune.keep_lest = 1", "Unknown setting in [prune]: keep_lest (did you mean keep_"),
        ("# x\nprune = {keep_last = 0}", "prune.keep_last must be a whole number, 1"),
        ('[trash]\ngrace = """\n7 days"""', "trash.grace must be an age"),
        ("[trash]\ngrace = 7", "trash.grace must be an age"),
        ("[rotate]\nlive = 1", "rotate.live must be true or false, not 1."),
        ("[rotate]\nmin_gain = true", "rotate.min_gain must be a size"),
        ("[rotate]\nmin_gain = -1", "rotate.min_gain must be a size"),
        ("[rotate]\nmin_gain = [1,\n2]", "rotate.min_gain must be a size"),
        ("[prune]\nkeep_last = 1.5", "prune.keep_last must be a whole number"),
        ("[prune]\nkeep_last = true", "prune.keep_last must be a whole number"),
        ("[prune]\nkeep_last = 1\nkeep_last = 1\n", "not TOML"),
        ("[prune\n", "not TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_and_what_would_be_right(text: str, said: str) -> None:
    assert said in refused(text)


def test_a_value_is_printed_harmlessly() -> None:
    assert "\x1b" not in refused('[trash]\ngrace = "\\u001b[31m"')
    assert "\x1b" not in refused('"\\u001b[31m" = 1')


def test_a_file_that_is_nested_deeply_is_an_error() -> None:
    assert refused(f"a = {'[' * 100_000}")


LINES: Final = st.sampled_from([*ALL.split("\n"), "[", "'''", "a.b=1"])


@given(st.text(max_size=200) | st.lists(LINES).map("\n".join))
def test_any_text_is_settings_or_one_sentence(text: str) -> None:
    try:
        config.parsed(text)
    except WrongUsageError as error:
        said = str(error)
        assert (said[-1], "\n" in said) == (".", False)


EVERY: Final = tomllib.loads(ALL)


@given(st.data())
def test_the_line_of_a_setting_is_where_it_stands(data: st.DataObject) -> None:
    chosen: list[Key] = data.draw(st.lists(st.sampled_from(KEYS), unique=True))
    lines: list[str] = []
    expected: dict[str, int] = {}
    for table in data.draw(st.permutations(list(TABLES))):
        lines += data.draw(st.lists(st.sampled_from(["", "# [prune]", "#keep_last = 1", "\t"])))
        lines.append(
            data.draw(st.sampled_from([f"[{table}]", f"[ {table} ] # x", f'["{table}"]\r']))
        )
        for key in chosen:
            if key.table == table:
                lines += data.draw(st.lists(st.sampled_from(["", "# = [", "  "])))
                space = data.draw(st.sampled_from(["", " "]))
                lines.append(f"{space}{key.name} = {json.dumps(EVERY[key.table][key.name])}")
                expected[key.title] = len(lines)
    assert config.parsed("\n".join([*lines, ""])).lines == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\nprune = {keep_last = 3}\n", 2),
        ("# keep_last = 1\nprune.keep_last = 3\n", 2),
        ('\n[prune]\n"keep_last" = 3\n', 3),
    ],
)
def test_it_is_found_however_its_table_is_written(text: str, line: int) -> None:
    assert config.parsed(text).lines == {"prune.keep_last": line}


# ── where it is ──────────────────────────────────────────────────────────────────────────────


XDG: Final = {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}
LIBRARY: Final = "/h/Library/Application Support"


@pytest.mark.parametrize(
    ("platform", "variables", "config_home", "state_home", "cache_home"),
    [
        ("linux", {}, "/h/.config", "/h/.local/state", "/h/.cache"),
        ("linux", XDG, "/c", "/s", "/k"),
        ("linux", {"XDG_CONFIG_HOME": "c"}, "/h/.config", "/h/.local/state", "/h/.cache"),
        ("darwin", {}, LIBRARY, LIBRARY, "/h/Library/Caches"),
        ("darwin", XDG, "/c", "/s", "/k"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l", "/l", "/l"),
        ("win32", {}, *["/h/AppData/Local"] * 3),
    ],
)
def test_files_are_where_the_platform_wants_them(
    platform: str,
    variables: dict[str, str],
    config_home: str,
    state_home: str,
    cache_home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*XDG, "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/h")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_folders.config_file(platform) == Path(config_home) / "sessrotate" / "config.toml"
    assert user_folders.log_file(platform) == Path(state_home) / "sessrotate" / "runs.jsonl"
    assert user_folders.cache_file(platform) == Path(cache_home) / "sessrotate" / "status.json"
