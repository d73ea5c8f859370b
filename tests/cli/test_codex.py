"""The commands on Codex's sessions: the same as on Claude Code's, but for what is in place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import generate_codex
from generate_codex import Options
from sessrotate.system import zstd
from support.codex_sessions import BARE, FILES, FIXTURES
from support.command_line import assert_one_sentence, called, piped
from support.limits import MIB, weighed

SAMPLE = next((FIXTURES / "0.169.0").glob("rollout-*"))
MOST = 110
"""MiB that a command may take: a line and its items are held up to 8 MiB each, as text too."""

ID = "01a20069-3200-7812-9750-2eae4d402117"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nobody"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.delenv("CODEX_SESSIONS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    day = tmp_path / "codex" / "sessions" / "2026" / "11" / "21"
    day.mkdir(parents=True)
    (day / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    return tmp_path


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem[:20]}")
def test_a_sample_is_split_verified_and_put_together(path: Path, home: Path) -> None:
    assert called("split", path, "--out", "out", "--compress").code == 0
    assert called("verify", "out").code == 0
    assert called("stitch", "out", "-o", "again").code == 0
    assert (home / "again").read_bytes() == path.read_bytes()
    for output in ("jsonl", "markdown", "html"):
        assert called("export", "out", "--format", output, "-o", f"out.{output}").code == 0
    assert (home / "out.jsonl").read_bytes() == path.read_bytes()


def test_a_session_is_read_as_a_resume_sends_it() -> None:
    ended = piped("read", SAMPLE)
    assert ended.code == 0
    shown = [line for line in ended.out.splitlines() if line.startswith(("──", ">", "reply"))]
    assert shown[0].startswith("── Compaction 2 · 2026-11-21 23:21:36 · with history · 900 tokens")
    assert [line.partition(" USAGE")[0] for line in shown[1:]] == [
        "> hello first turn",
        "> turn 2 TOOL:seq 1 50 ;",
        "> turn 3 big now",
        "> turn 4 after compaction TOOL:echo four ;",
        "> turn 5 big",
        "> turn 6 TOOL:ls / ;",
        "reply #10 after tool",
        "> turn 7 plain",
        "reply #11 to: turn 7 plain",
    ]


def test_as_lines_a_resume_is_its_rows_and_what_the_compaction_left_item_by_item() -> None:
    lines = piped("read", SAMPLE, "--format", "jsonl").out.encode().splitlines()
    written = SAMPLE.read_bytes().splitlines()
    compaction = max(n for n, row in enumerate(written) if json.loads(row)["type"] == "compacted")
    left = json.loads(written[compaction])["payload"]["replacement_history"]
    assert [json.loads(line) for line in lines[: len(left)]] == left
    behind = [json.loads(row) for row in written[compaction + 1 :]]
    sent = [row for row in behind if row["type"] == "response_item"]
    assert [json.loads(line) for line in lines[len(left) :]] == sent


def test_a_command_in_words_is_shown_on_one_line() -> None:
    assert "shell bash -lc echo hi; seq 1 5 → 6 lines" in piped("read", BARE).out


def test_a_fork_says_what_it_continues() -> None:
    path = FIXTURES / "0.169.0" / "fork-child.jsonl"
    ended = piped("read", path, "--history", "--include", "meta")
    assert f"This session continues {ID} at ordinal 118." in ended.out


@pytest.mark.parametrize(
    "arguments", [("split", "--in-place", ID), ("rotate", ID), ("archive", ID)]
)
def test_nothing_is_changed_in_place(arguments: tuple[str, ...], home: Path) -> None:
    before = sorted((home / "codex").rglob("*"))
    ended = called(*arguments)
    assert_one_sentence(ended, 77)
    assert "Codex keeps byte offsets" in ended.err
    assert sorted((home / "codex").rglob("*")) == before


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", [("prune", "--keep-last", "1"), ("aside",)])
def test_a_session_has_no_archive_of_which_anything_could_be_asked(command: tuple[str]) -> None:
    ended = called(*command, ID)
    assert_one_sentence(ended, 77)
    assert "is a session of codex, and has no archive" in ended.err


@pytest.mark.scale
@pytest.mark.parametrize("command", ["split", "read", "export", "report"])
def test_a_compaction_of_any_size_takes_little_memory(home: Path, command: str) -> None:
    options = Options(size=300 * MIB, boundaries=2, compacted=98, images=40, image_bytes=4 * MIB)
    with (home / "big.jsonl").open("wb") as file:
        truth = generate_codex.generate(file, options)
    assert truth.bytes - truth.boundaries[0] > 250 * MIB
    options_of = {"split": ("--out", "out"), "export": ("-o", "out.jsonl"), "report": ("--kinds",)}
    ended = weighed(command, "big.jsonl", *options_of.get(command, ()))
    assert ended.code == 0, ended.err
    assert ended.peak_mib < MOST


def test_a_fork_and_a_compressed_session_are_listed(home: Path) -> None:
    day = home / "codex" / "sessions" / "2026" / "11" / "21"
    fork = FIXTURES / "0.169.0" / "fork-child.jsonl"
    child = "01a2006d-dbea-70a2-bbb5-0dfce5131b5e"
    (day / f"rollout-2026-11-21T23-25-29-{child}.jsonl").write_bytes(fork.read_bytes())
    data = SAMPLE.read_bytes()
    packer = zstd.compressor(len(data))
    packed = day / (SAMPLE.name + ".zst")
    packed.write_bytes(packer.compress(data) + packer.flush())
    (day / SAMPLE.name).unlink()
    listed = {each["session"]: each for each in called("list", "--json").document()}
    assert listed[child]["continues"] == {"session": ID, "reason": "says so", "at": 118}
    assert (listed[ID]["bytes"], listed[ID]["boundaries"]) == (packed.stat().st_size, None)
    deep = {each["session"]: each for each in called("list", "--json", "--deep").document()}
    assert (deep[ID]["boundaries"], deep[ID]["continues"]) == (2, None)
    assert deep[child]["continues"] == listed[child]["continues"]
