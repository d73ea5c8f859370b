"""A setting comes into the user's settings file and goes out of it, and nothing else changes."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate.errors import RefusedError, WrongUsageError
from sessrotate.job.config import edit, file, keys

KEY: Final = next(key for key in keys.KEYS if key.title == "archive.before_cleanup")
OTHER: Final = next(key for key in keys.KEYS if key.title == "archive.older_than")

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
    found = file.parsed(text)
    return {key.title: keys.written(found.value(key)) for key in keys.KEYS}


@given(texts())
def test_what_is_added_is_all_that_changes_and_goes_again(text: str) -> None:
    made = edit.with_setting(text, KEY, "3d")
    assert given_of(made) == {**given_of(text), KEY.title: "3d"}
    assert [line for line in made.splitlines() if line not in text.splitlines()] in (
        [f'before_cleanup = "3d" {edit.MARK}'],
        [f"[archive] {edit.MARK}", f'before_cleanup = "3d" {edit.MARK}'],
    )
    assert edit.without_ours(made) in {text, text.rstrip("\n") + "\n"}
    assert edit.without_ours(made) == text or not text.endswith("\n")


def test_in_the_file_that_explains_everything_it_stands_below_its_explanation() -> None:
    made = edit.with_setting(keys.commented(), KEY, "3d")
    assert f'#before_cleanup = "3d"\nbefore_cleanup = "3d" {edit.MARK}\n' in made
    assert edit.without_ours(made) == keys.commented()


@pytest.mark.parametrize(
    "text", ['archive.older_than = "9d"\n', '# mine\n[ archive ] # why\r\nolder_than = "9d"\r\n']
)
def test_it_is_added_in_the_way_that_its_table_is_written(text: str) -> None:
    made = edit.with_setting(text, KEY, "3d")
    assert made.startswith(text)
    assert made.count("\n") - made.count("\r\n") == text.count("\n") - text.count("\r\n") + (
        "\r" not in text
    )
    assert given_of(made) == {**given_of(text), KEY.title: "3d"}
    assert edit.without_ours(made) == text


def test_a_table_without_lines_of_its_own_is_refused_and_it_is_said_what_to_add() -> None:
    with pytest.raises(RefusedError, match='add `before_cleanup = "3d"` there'):
        edit.with_setting("archive = {older_than = '9d'}\n", KEY, "3d")


def test_a_file_without_lines_of_ours_stays() -> None:
    text = '[archive]\nbefore_cleanup = "3d"\n'
    assert edit.without_ours(text) == text
    assert edit.is_set(text, KEY)
    assert not edit.is_set(text, OTHER)


def test_what_somebody_added_to_a_table_of_ours_stays_in_it() -> None:
    made = edit.with_setting("[prune]\nkeep_last = 3\n", KEY, "3d")
    left = edit.without_ours(made + '# mine\nolder_than = "9d"\n')
    assert given_of(left) == {**given_of("[prune]\nkeep_last = 3\n"), OTHER.title: "9d"}


def test_what_is_no_settings_file_is_said() -> None:
    for change in (edit.without_ours, lambda text: edit.with_setting(text, KEY, "3d")):
        with pytest.raises(WrongUsageError, match="not TOML"):
            change("[")
