"""Our hook comes into the client's settings and goes out of them, and nothing else changes."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessrotate.errors import RefusedError
from sessrotate.hook import installation

LINE: Final = "/opt/bin/sessrotate hook --min-gain 50M"
OTHER: Final = "/opt/bin/sessrotate hook --min-gain 2G"
ENTRY: Final = {"type": "command", "command": LINE, "timeout": 10}
GROUP: Final = {"hooks": [ENTRY]}
COMPACTED: Final = {"matcher": "compact", **GROUP}
BOTH: Final = {"SessionStart": [COMPACTED], "SessionEnd": [GROUP]}

# ── any settings at all, in any style ────────────────────────────────────────────────────────

numbers = st.sampled_from(["0", "-0", "1.0", "1e400", "-1E+2", "9" * 5000, "0.10000"])
strings = st.text(max_size=8).map(json.dumps) | st.sampled_from(
    ['"\\u0041"', '"\\/"', '"ü"', '"\\ud800"', '"{"', '"]"', '"\\\\"', '"\\""', '"a\\\\\\"b"']
)
spaces = st.sampled_from(["", " ", "\n", "\n  ", "\t", "\r\n    ", "  \n\n  "])
scalars = numbers | strings | st.sampled_from(["null", "true", "false"])


@st.composite
def objects(draw: st.DrawFn, members: Any, keys: Any = strings) -> str:
    """An object as text, with any white space in it and no key twice."""
    taken: dict[str, str] = {}
    for key in draw(st.lists(keys, max_size=4)):
        taken.setdefault(json.loads(key), key)
    parts = [
        f"{draw(spaces)}{key}{draw(spaces)}:{draw(spaces)}{draw(members)}{draw(spaces)}"
        for key in taken.values()
    ]
    return "{" + (",".join(parts) or draw(spaces)) + "}"


@st.composite
def lists(draw: st.DrawFn, members: Any) -> str:
    parts = [
        f"{draw(spaces)}{member}{draw(spaces)}" for member in draw(st.lists(members, max_size=3))
    ]
    return "[" + (",".join(parts) or draw(spaces)) + "]"


values = st.recursive(scalars, lambda inner: st.one_of(lists(inner), objects(inner)), max_leaves=8)


@st.composite
def members(draw: st.DrawFn, name: str, own: Any) -> str:
    """An object of any members, or with one of a given name."""
    text = draw(objects(values, strings.filter(lambda key: json.loads(key) != name)))
    if draw(st.booleans()):
        return text
    key = draw(st.sampled_from([json.dumps(name), f'"\\u{ord(name[0]):04x}{name[1:]}"']))
    member = f"{draw(spaces)}{key}{draw(spaces)}:{draw(spaces)}{draw(own)}{draw(spaces)}"
    inside = text[1:-1]
    both = [member, inside] if draw(st.booleans()) else [inside, member]
    return "{" + (",".join(both) if inside.strip() else member) + "}"


handlers = objects(values)
groups = members("hooks", lists(handlers)).filter(
    lambda text: "hooks" in json.loads(text, parse_int=str)
)
documents = st.sampled_from([*BOTH]).flatmap(
    lambda event: members("hooks", members(event, lists(groups)))
)
written = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key != "hooks"),
    st.recursive(st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)),
    max_size=4,
)
"""What a program wrote, in one of the usual styles."""


@st.composite
def styled(draw: st.DrawFn) -> str:
    found: dict[str, Any] = draw(written)
    if draw(st.booleans()):
        husks: list[Any] = [{"SessionEnd": []}, {"Stop": [], "SessionStart": []}]
        found["hooks"] = draw(st.sampled_from([{}, *husks, {"SessionEnd": [{"hooks": []}]}]))
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":")])) if indent is None else None
    text = json.dumps(found, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


drawn = documents | styled()


def is_kept(text: str) -> bool:
    """Tell whether Python and UTF-8 have every value of a text that is drawn here."""
    return not re.search(r"1e400|9{5000}|\\ud800(?!\\ud[c-f])", text)


anything = drawn.filter(is_kept)


def with_entry(found: Any, line: str = LINE) -> Any:
    """Return what settings should say with our hook in them: another way than the code's."""
    wanted = copy.deepcopy(found)
    both = json.loads(json.dumps(BOTH).replace(LINE, line))
    for event, added in both.items():
        wanted.setdefault("hooks", {}).setdefault(event, []).extend(added)
    return wanted


def lines(text: str) -> list[str]:
    """Return all command lines of ours."""
    return [line for found in installation.commands(text).values() for line in found]


@given(anything)
@example("{}")
@example(' { "hooks" : { } }\n')
@example('{"hooks": {"SessionEnd": [\n]}}')
@example('{"hooks": {"SessionEnd": [ ],\n"SessionStart": []}}')
@example('{"hooks": {"SessionEnd": [{"hooks": [], "matcher": ""}]}}')
@example('{"\\ud800\\udd00": 0}')
def test_installed_and_removed_again_they_are_the_same_text(text: str) -> None:
    installed = installation.install(text, LINE)
    assert json.loads(installed) == with_entry(json.loads(text))
    assert list(json.loads(installed)) == list(with_entry(json.loads(text)))
    assert installation.commands(installed) == {"SessionStart": [LINE], "SessionEnd": [LINE]}
    assert installation.remove(installed, text) == text


@given(drawn.filter(lambda text: not is_kept(text)))
def test_a_value_that_could_not_be_written_again_is_refused(text: str) -> None:
    for change in (installation.commands, lambda text: installation.install(text, LINE)):
        with pytest.raises(RefusedError):
            change(text)


@given(anything)
def test_a_second_time_changes_nothing_and_another_size_only_that(text: str) -> None:
    installed = installation.install(text, LINE)
    assert installation.install(installed, LINE) == installed
    other = installation.install(installed, OTHER)
    assert other == installed.replace(json.dumps(LINE), json.dumps(OTHER))
    assert installation.remove(other, text) == text


@given(anything)
def test_without_memory_of_the_first_text_only_empty_husks_go_too(text: str) -> None:
    removed = json.loads(installation.remove(installation.install(text, LINE), None))
    wanted = json.loads(text)
    for event in BOTH:
        if wanted.get("hooks", {}).get(event) == []:
            del wanted["hooks"][event]
    if wanted.get("hooks") == {}:
        del wanted["hooks"]
    assert removed == wanted


@given(styled().filter(lambda text: "hooks" not in text))
def test_without_memory_a_text_in_a_usual_style_is_the_same_again(text: str) -> None:
    removed = installation.remove(installation.install(text, LINE), None)
    assert json.loads(removed) == json.loads(text)
    usual = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    for style in (usual, usual + "\n", usual.replace("\n", "\r\n")):
        assert installation.remove(installation.install(style, LINE), None) == style


def test_a_text_that_was_formatted_anew_keeps_its_new_form() -> None:
    before = '{"model": "opus",   "n": 1}'
    anew = json.dumps(json.loads(installation.install(before, LINE)), indent=4)
    assert installation.remove(anew, before) == json.dumps(json.loads(before), indent=4)


def test_what_was_emptied_since_is_no_husk_that_was_there_before() -> None:
    before = '{"hooks": {"Stop": []}}'
    emptied = installation.install("{}", LINE)
    assert installation.remove(emptied, before) == "{}"


@given(anything, st.sampled_from(["\n  ", "", " "]))
def test_what_others_add_around_our_entry_stays(text: str, space: str) -> None:
    installed = installation.install(text, LINE)
    entry = json.dumps(LINE)
    assert installed.count(entry) == 2
    more = f'{{"hooks": [{{"type": "command", "command": "x"}}]}},{space}'
    at = installed.rindex("{", 0, installed.rindex("{", 0, installed.index(entry)))
    changed = installed[:at] + more + installed[at:]
    removed = json.loads(installation.remove(changed, text))
    last = [found[-1] for event, found in removed["hooks"].items() if event in BOTH and found]
    assert any(group["hooks"] == [{"type": "command", "command": "x"}] for group in last)
    assert lines(installation.remove(changed, text)) == []


@given(anything)
def test_where_there_is_no_entry_removing_changes_nothing(text: str) -> None:
    assert installation.remove(text, None) == text
    assert lines(text) == []


# ── in the style of the file ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("indent", [1, 2, 4, "\t"])
@pytest.mark.parametrize(
    "found",
    [
        {"model": "opus", "n": [1, {"a": 2}]},
        {"hooks": {"Stop": [GROUP]}, "model": "opus"},
        {"a": 1, "hooks": {"SessionEnd": [{"matcher": "x", "hooks": [{"type": "prompt"}]}]}},
    ],
)
def test_what_is_put_in_looks_like_the_rest(indent: Any, found: Any) -> None:
    style = json.dumps(found, indent=indent)
    assert installation.install(style, LINE) == json.dumps(with_entry(found), indent=indent)


@pytest.mark.parametrize(
    "found", [{"a": 1}, {"hooks": {}, "a": 1}, {"a": 1, "hooks": {"SessionEnd": []}}]
)
def test_lines_end_as_they_do_elsewhere(found: Any) -> None:
    style = json.dumps(found, indent=2).replace("\n", "\r\n")
    installed = installation.install(style, LINE)
    assert installed.count("\n") == installed.count("\r\n") > style.count("\r\n")


def test_where_nothing_is_it_looks_as_the_client_writes_it() -> None:
    assert installation.install("{}\n", LINE) == json.dumps({"hooks": BOTH}, indent=2) + "\n"


def test_one_line_stays_one_line() -> None:
    assert installation.install('{"a": 1}', LINE) == json.dumps({"a": 1, "hooks": BOTH})


# ── our entry among others ───────────────────────────────────────────────────────────────────

OURS: Final = [
    "sessrotate hook",
    "/x/sessrotate hook",
    "'/with space/sessrotate' hook --min-gain 1.5G",
    "sessrotate hook --min-gain 5M 2>/dev/null || true",
]
NOT_OURS: Final = [
    "sessrotate",
    "sessrotate hook; rm -rf /",
    "sessrotate hook && true",
    "sessrotate hook 2>/dev/null || true; rm -rf /",
    "sessrotate hook '2>/dev/null' '||' true",
    "sessrotate hook --min-gain 5M | tee log",
    "sessrotate hook --min-gain many",
    "sessrotate doctor",
    "true; sessrotate hook",
    "A=1 sessrotate hook",
    "/x/sessrotate-wrapper hook",
    "echo 'sessrotate hook",
    "",
]


@pytest.mark.parametrize("event", BOTH)
@pytest.mark.parametrize("line", OURS)
def test_an_entry_that_calls_our_hook_is_ours(line: str, event: str) -> None:
    group = {"matcher": "*", "hooks": [{"type": "command", "command": line}]}
    text = json.dumps({"hooks": {event: [group]}})
    assert lines(text) == [line]
    assert installation.remove(text, None) == "{}"
    installed = json.loads(installation.install(text, LINE))
    assert installed["hooks"] == BOTH


@pytest.mark.parametrize(
    "group",
    [
        {"matcher": "startup", "hooks": [ENTRY]},
        {"matcher": 7, "hooks": [ENTRY]},
        {"hooks": [ENTRY]},
        {"matcher": "compact", "hooks": [{**ENTRY, "timeout": 1}]},
    ],
)
def test_an_entry_that_is_not_as_we_write_it_is_made_anew(group: dict[str, Any]) -> None:
    other = {"matcher": "startup", "hooks": [{"type": "command", "command": "mine"}]}
    text = json.dumps({"hooks": {"SessionStart": [group, other], "SessionEnd": [GROUP]}})
    is_heard = group.get("matcher") == "compact"
    assert installation.unheard(text) == ([] if is_heard else ["SessionStart"])
    installed = installation.install(text, LINE)
    assert installation.unheard(installed) == []
    assert json.loads(installed)["hooks"] == {**BOTH, "SessionStart": [other, COMPACTED]}
    assert installation.install(installed, LINE) == installed


@pytest.mark.parametrize("line", NOT_OURS)
def test_an_entry_that_does_more_or_something_else_is_not(line: str) -> None:
    text = json.dumps(
        {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": line}]}]}}
    )
    assert installation.remove(text, None) == text
    assert json.loads(installation.install(text, LINE)) == with_entry(json.loads(text))


def test_an_entry_of_another_kind_is_not() -> None:
    other = {"type": "prompt", "command": LINE}
    text = json.dumps({"hooks": {"SessionEnd": [{"hooks": [other]}]}})
    assert lines(text) == []


def test_the_same_command_spelled_in_another_way_stays() -> None:
    text = installation.install("{}", LINE).replace("/opt", "\\/o\\u0070t")
    assert lines(text) == [LINE, LINE]
    assert installation.install(text, LINE) == text


def test_in_a_group_of_others_only_the_entry_goes() -> None:
    mine = {"type": "command", "command": "mine"}
    text = json.dumps(
        {"hooks": {"SessionEnd": [{"matcher": "clear", "hooks": [ENTRY, mine]}]}}, indent=2
    )
    assert json.loads(installation.remove(text, None)) == {
        "hooks": {"SessionEnd": [{"matcher": "clear", "hooks": [mine]}]}
    }


def test_of_several_entries_one_is_left() -> None:
    several = {
        "SessionEnd": [GROUP, {"hooks": [ENTRY, ENTRY]}, GROUP],
        "SessionStart": [COMPACTED, COMPACTED],
    }
    text = json.dumps({"hooks": several})
    wanted = {"hooks": json.loads(json.dumps(BOTH).replace(LINE, OTHER))}
    assert json.loads(installation.install(text, OTHER)) == wanted


def test_the_command_line_is_that_of_a_shell() -> None:
    line = installation.command("/with space/it's/sessrotate", "50M")
    assert installation.program_of(line) == "/with space/it's/sessrotate"


# ── what is refused ──────────────────────────────────────────────────────────────────────────

TWICE: Final = "appears twice"
END: Final = '{"hooks": {"SessionEnd": ['
OTHERWISE: Final = "The client expects something else (Expected"

WRONG: Final = {
    "": "not plain JSON",
    "{": "not plain JSON",
    "{} {}": "not plain JSON",
    '{"a": NaN}': "Out of range",
    '{"a": 1,}': "not plain JSON from line 1, column 9 on",
    "{// comment\n}": "not plain JSON from line 1, column 2 on",
    '{"a": "\t"}': "not plain JSON",
    "\ufeff{}": "not plain JSON",
    '{"a":' + "[" * 100_000 + "]" * 100_000 + "}": "nested too deeply",
    "[]": OTHERWISE,
    "1": OTHERWISE,
    '{"hooks": []}': "Expected `object`, got `array` - at `$.hooks`",
    '{"hooks": null}': "Expected `object`, got `null` - at `$.hooks`",
    '{"hooks": {"SessionEnd": {}}}': "got `object` - at `$.hooks.SessionEnd`",
    '{"hooks": {"SessionEnd": ["x"]}}': "got `str` - at `$.hooks.SessionEnd[0]`",
    '{"hooks": {"SessionEnd": [{}]}}': "missing required field `hooks`",
    '{"hooks": {"SessionEnd": [{"hooks": {}}]}}': OTHERWISE,
    '{"hooks": {"SessionEnd": [{"hooks": [1]}]}}': OTHERWISE,
    '{"hooks": {}, "hooks": {}}': f"hooks {TWICE}",
    '{"hooks": {}, "\\u0068ooks": {}}': f"hooks {TWICE}",
    '{"hooks": {"SessionEnd": [], "SessionEnd": []}}': f"SessionEnd {TWICE}",
    END + '{"hooks": [{"command": "a", "command": "b"}]}]}}': f"command {TWICE}",
    '{"a": 1, "a": 2}': f"a {TWICE}",  # only the last would be written again
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_not_as_documented_is_refused(text: str) -> None:
    for change in (
        lambda: installation.install(text, LINE),
        lambda: installation.remove(text, None),
        lambda: installation.commands(text),
    ):
        with pytest.raises(RefusedError, match=re.escape(WRONG[text])):
            change()


def test_whoever_is_refused_is_told_what_to_add_by_hand() -> None:
    with pytest.raises(RefusedError) as refused:
        installation.install('{"model": "opus", // mine\n}', LINE)
    added = re.search(r'add "hooks": (.*) by hand', str(refused.value))
    assert added is not None
    assert json.loads(added[1]) == BOTH
    assert "\n" not in str(refused.value)
