"""A setting comes into the user's settings file and goes out of it, and nothing else changes."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import automation
from sessrotate.errors import RefusedError, WrongUsageError
from sessrotate.job import config

KEY: Final = next(key for key in config.KEYS if key.title == "archive.before_cleanup")
OTHER: Final = next(key for key in config.KEYS if key.title == "archive.older_than")

TABLES: Final = {
    "rotate": ('min_gain = "2M"', "live = true"),
    "archive": ('older_than = "90d"', '#before_cleanup = "3d"', "# before_cleanup"),
    "prune": ("keep_last = 3",),
}


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts: list[str] = []
    for name in draw(st.permutations([*TABLES])):
        if draw(st.booleans()):
            lines = [line for line in TABLES[name] if draw(st.booleans())]
            space = draw(st.sampled_from(["", "\n", "  # why\n"]))
            parts.append(f"[{name}]{space or chr(10)}" + "".join(f"{line}\n" for line in lines))
    text = draw(st.sampled_from(["", "# mine\n", "\n"])) + "\n".join(parts)
    return text if draw(st.booleans()) else text.rstrip("\n")


def given_of(text: str) -> dict[str, object]:
    found = config.parsed(text)
    return {key.title: config.written(found.value(key)) for key in config.KEYS}


@given(texts())
def test_what_is_added_is_all_that_changes_and_goes_again(text: str) -> None:
    made = automation.with_setting(text, KEY, "3d")
    assert given_of(made) == {**given_of(text), KEY.title: "3d"}
    assert [line for line in made.splitlines() if line not in text.splitlines()] in (
        [f'before_cleanup = "3d" {automation.OURS}'],
        [f"[archive] {automation.OURS}", f'before_cleanup = "3d" {automation.OURS}'],
    )
    assert automation.without_ours(made) in {text, text.rstrip("\n") + "\n"}
    assert automation.without_ours(made) == text or not text.endswith("\n")


def test_in_the_file_that_explains_everything_it_stands_below_its_explanation() -> None:
    made = automation.with_setting(config.commented(), KEY, "3d")
    assert f'#before_cleanup = "3d"\nbefore_cleanup = "3d" {automation.OURS}\n' in made
    assert automation.without_ours(made) == config.commented()


@pytest.mark.parametrize(
    "text", ['archive.older_than = "9d"\n', '# mine\n[ archive ] # why\r\nolder_than = "9d"\r\n']
)
def test_it_is_added_in_the_way_that_its_table_is_written(text: str) -> None:
    made = automation.with_setting(text, KEY, "3d")
    assert made.startswith(text)
    assert made.count("\n") - made.count("\r\n") == text.count("\n") - text.count("\r\n") + (
        "\r" not in text
    )
    assert given_of(made) == {**given_of(text), KEY.title: "3d"}
    assert automation.without_ours(made) == text


def test_a_table_without_lines_of_its_own_is_refused_and_it_is_said_what_to_add() -> None:
    with pytest.raises(RefusedError, match='add `before_cleanup = "3d"` there'):
        automation.with_setting("archive = {older_than = '9d'}\n", KEY, "3d")


def test_a_file_without_lines_of_ours_stays() -> None:
    text = '[archive]\nbefore_cleanup = "3d"\n'
    assert automation.without_ours(text) == text
    assert automation.is_setting_there(text, KEY)
    assert not automation.is_setting_there(text, OTHER)


def test_what_somebody_added_to_a_table_of_ours_stays_in_it() -> None:
    made = automation.with_setting("[prune]\nkeep_last = 3\n", KEY, "3d")
    left = automation.without_ours(made + '# mine\nolder_than = "9d"\n')
    assert given_of(left) == {**given_of("[prune]\nkeep_last = 3\n"), OTHER.title: "9d"}


def test_what_is_no_settings_file_is_said() -> None:
    for change in (automation.without_ours, lambda text: automation.with_setting(text, KEY, "3d")):
        with pytest.raises(WrongUsageError, match="not TOML"):
            change("[")
