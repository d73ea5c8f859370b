"""`sessrotate split` as people and scripts meet it: a real process, piped and on a terminal."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from support import homes
from support.command_line import (
    COMMAND,
    ID,
    REAL,
    Ended,
    assert_one_sentence,
    called,
    contents,
    has_colour,
    modes,
    names_in,
    on_terminal,
    patched,
    piped,
    raw_controls,
    row,
    segments_of,
    session,
    without_ansi,
    write,
)
from support.homes import Home
from support.limits import UNPRIVILEGED, limited

DATA: Final = session()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / f"{ID}.jsonl", DATA)


def assert_is_exact(folder: Path, data: bytes) -> None:
    """Check a finished set with nothing but the design's description of it."""
    files = contents(folder)
    manifest = json.loads(files.pop("manifest.json"))
    bodies = []
    for entry in manifest["segments"]:
        body = files.pop(entry["file"])
        bodies.append(body.partition(b"\n")[2] if entry["index"] else body)
    assert files == {}
    assert b"".join(bodies) == data
    assert bodies == segments_of(data)


# ── what it says ─────────────────────────────────────────────────────────────────────────────


def test_a_piped_dry_run_is_aligned_plain_text_and_writes_nothing(source: Path) -> None:
    ended = piped("split", source, "--dry-run", cwd=source.parent)
    assert (ended.code, ended.err) == (0, "")
    assert raw_controls(ended.out) == set()
    lines = ended.out.splitlines()
    header = next(line for line in lines if "tokens before" in line)
    rows = lines[lines.index(header) + 1 :][:4]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]
    end = header.index("share") + len("share")
    assert all(row[:end].endswith("%") for row in rows)
    assert names_in(source.parent) == [source.name]


def test_the_piped_form_needs_no_more_than_ascii(source: Path) -> None:
    for arguments in (["--dry-run"], ["--out", source.parent / "set"]):
        ended = piped("split", source, *arguments, env={"PYTHONIOENCODING": "ascii"}, program=REAL)
        assert (ended.code, ended.err) == (0, ""), ended
        assert ended.out.isascii()


def test_a_terminal_that_knows_only_ascii_gets_the_table_too(source: Path) -> None:
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    ended = on_terminal("split", source, "--dry-run", env=ascii_only, program=REAL)
    assert (ended.code, ended.err) == (0, ""), ended


def test_a_dry_run_on_a_terminal_is_a_table_with_bars(source: Path) -> None:
    ended = on_terminal("split", source, "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    _, titles, *rows = without_ansi(ended.out).splitlines()
    assert titles.split()[:2] == ["#", "size"]
    sizes = [len(part) for part in segments_of(source.read_bytes())]
    bars = [row.count("█") for row in rows[: len(sizes)]]
    assert max(bars) == bars[sizes.index(max(sizes))] > 0
    assert has_colour(ended.out)
    assert "auto" in without_ansi(ended.out)


def test_no_color_is_honoured_on_a_terminal(source: Path) -> None:
    ended = on_terminal("split", source, "--dry-run", env={"NO_COLOR": "1"})
    assert ended.code == 0
    assert "█" in ended.out
    assert not has_colour(ended.out)


@pytest.mark.parametrize("columns", [80, 100])
def test_a_terminal_of_usual_width_shows_number_and_size_of_every_segment(
    source: Path, columns: int
) -> None:
    ended = on_terminal("split", source, "--dry-run", columns=columns)
    assert ended.code == 0
    lines = [line.split() for line in without_ansi(ended.out).splitlines()]
    for index, part in enumerate(segments_of(source.read_bytes())):
        size = f"{len(part)}" if len(part) < 1024 else f"{len(part) / 1024:.1f}"
        assert any(words[:2] == [str(index), size] for words in lines), ended.out


DOCUMENT_KEYS: Final = {"session", "client", "source", "segments", "opaque_lines"}
SEGMENT_KEYS: Final = {
    *("index", "file", "start", "end", "bytes", "boundary", "first_timestamp", "last_timestamp")
}
BOUNDARY_KEYS: Final = {"uuid", "timestamp", "trigger", "pre_tokens"}


def assert_document(document: Any, path: Path) -> None:
    """Check the keys that the carried_lines names, and what they say, against the file itself."""
    assert set(document) >= DOCUMENT_KEYS
    data = path.read_bytes()
    assert document["session"] == ID
    assert document["client"] == "claude"
    assert document["source"] == {"path": str(path), "bytes": len(data)}
    assert document["opaque_lines"] == 0
    assert [data[entry["start"] : entry["end"]] for entry in document["segments"]] == segments_of(
        data
    )
    for index, entry in enumerate(document["segments"]):
        assert set(entry) >= SEGMENT_KEYS
        assert entry["bytes"] == entry["end"] - entry["start"]
        assert entry["file"] == (f"{ID}.{index}.jsonl" if index else f"{ID}.jsonl")
        rows = [json.loads(line) for line in data[entry["start"] : entry["end"]].splitlines()]
        times = [found["timestamp"] for found in rows]
        assert (entry["first_timestamp"], entry["last_timestamp"]) == (times[0], times[-1])
        if index == 0:
            assert entry["boundary"] is None
        else:
            assert set(entry["boundary"]) >= BOUNDARY_KEYS
            assert entry["boundary"] == {
                "uuid": rows[0]["uuid"],
                "timestamp": rows[0]["timestamp"],
                "trigger": rows[0]["compactMetadata"]["trigger"],
                "pre_tokens": rows[0]["compactMetadata"]["preTokens"],
            }


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_json_is_one_document_with_the_keys_of_the_contract(run: Any, source: Path) -> None:
    dry: Ended = run("split", source, "--dry-run", "--json")
    wet: Ended = run("split", source, "--json", "--out", source.parent / "set")
    for ended in (dry, wet):
        assert (ended.code, ended.err) == (0, "")
        assert_document(ended.document(), source)
    assert dry.document()["segments"] == wet.document()["segments"]


@pytest.mark.parametrize("run", [piped, on_terminal])
def test_a_split_says_in_one_line_what_it_wrote(run: Any, source: Path) -> None:
    ended: Ended = run("split", source, cwd=source.parent)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"Wrote 4 segments of {ID} (1.8 KiB) to {ID}.segments.\n".replace(
        "1.8 KiB", f"{source.stat().st_size / 1024:.1f} KiB"
    )
    assert_is_exact(source.parent / f"{ID}.segments", source.read_bytes())


def test_a_bar_appears_by_itself_when_it_takes_half_a_second(tmp_path: Path) -> None:
    # Slow by its own reading, so that no large file is needed: 50 ms for each part.
    slow = patched(
        "import time, sessrotate.system.source as s; read = s.Source.read_into\n"
        "def slow(self, buffer, offset):\n"
        "    time.sleep(0.05)\n"
        "    return read(self, buffer[:65536], offset)\n"
        "s.Source.read_into = slow; import sessrotate.segments.scan as c; c.BLOCK = 65536"
    )
    path = write(tmp_path / f"{ID}.jsonl", session(boundaries=1, rows=4, padding=64 * 1024))
    ended = on_terminal("split", path, "--dry-run", program=slow)
    assert ended.code == 0
    assert "Reading" in ended.err
    assert "MiB" in ended.err or "KiB" in ended.err


def test_nothing_but_the_result_is_written_to_a_redirected_stdout(source: Path) -> None:
    """A terminal for messages and a pipe for results: the common case of `| less`."""
    ended = on_terminal(
        *("-c", '"$0" split "$1" --dry-run > "$2"', COMMAND, source, source.parent / "out"),
        program=("/bin/sh",),
    )
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert raw_controls((source.parent / "out").read_text()) == set()


# ── what it refuses ──────────────────────────────────────────────────────────────────────────


def test_an_unreadable_file_is_an_error_of_the_disk(source: Path) -> None:
    source.chmod(0)
    ended = piped("split", source, "--dry-run", program=UNPRIVILEGED)
    assert_one_sentence(ended, 74)
    assert "Permission denied" in ended.err


def test_an_output_folder_that_may_not_be_written_is_an_error_of_the_disk(source: Path) -> None:
    source.parent.chmod(0o555)
    ended = piped("split", source, "--out", source.parent / "set", program=UNPRIVILEGED)
    source.parent.chmod(0o755)
    assert_one_sentence(ended, 74)
    assert names_in(source.parent) == [source.name]


def test_an_empty_file_is_one_empty_segment(tmp_path: Path) -> None:
    path = write(tmp_path / f"{ID}.jsonl", b"")
    ended = piped("split", path, "--json", "--out", tmp_path / "set")
    assert ended.code == 0
    (entry,) = ended.document()["segments"]
    assert (entry["start"], entry["end"], entry["boundary"]) == (0, 0, None)
    assert (tmp_path / "set" / f"{ID}.jsonl").read_bytes() == b""
    assert piped("stitch", tmp_path / "set").out == ""
    for run in (piped, on_terminal):
        assert run("split", path, "--dry-run").code == 0
    assert piped("read", path).code == 0


NO_SESSIONS: Final = {
    "noise": bytes(range(256)) * 300,
    "a newline": b"\n",
    "objects": b'{"name":"x"}\n{"type":"thing"}\n' * 100,
    "rows of an unknown client": b'{"time":"2026-01-01T00:00:00Z","type":"session_meta",'
    b'"payload":{"id":"x"}}\n' * 3,
}


@pytest.mark.parametrize("name", NO_SESSIONS)
def test_what_is_no_session_is_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "none.jsonl", NO_SESSIONS[name])
    for options in (["--dry-run"], ["--out", tmp_path / "set"]):
        assert_one_sentence(called("split", path, *options), 65)
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize(
    "names",
    [["note.txt"], [".hidden"], ["manifest.json"], [f"{ID}.jsonl"], ["intent.json", "note.txt"]],
)
def test_an_output_folder_with_foreign_files_is_refused_and_left_alone(
    source: Path, names: list[str]
) -> None:
    folder = source.parent / "set"
    for name in names:
        write(folder / name, b"{}")
    ended = piped("split", source, "--out", folder)
    assert_one_sentence(ended, 77)
    assert "is not empty: empty it" in ended.err
    assert contents(folder) == dict.fromkeys(names, b"{}")


def test_a_dry_run_shows_the_plan_and_then_the_refusal(source: Path) -> None:
    folder = source.parent / "set"
    write(folder / "note.txt", b"mine")
    ended = piped("split", source, "--out", folder, "--dry-run")
    assert (ended.code, "compacted" in ended.out) == (77, True)
    assert ended.err.startswith("sessrotate: ")
    assert ended.err.count("\n") == 1
    told = piped("split", source, "--out", folder, "--dry-run", "--json")
    assert (told.code, told.err) == (77, ended.err)
    assert len(told.document()["segments"]) == 4
    assert contents(folder) == {"note.txt": b"mine"}


def test_a_finished_set_is_never_written_over(source: Path) -> None:
    folder = source.parent / "set"
    assert piped("split", source, "--out", folder).code == 0
    before = contents(folder)
    assert_one_sentence(piped("split", source, "--out", folder), 77)
    assert contents(folder) == before


def test_an_output_folder_that_is_a_file_is_refused(source: Path) -> None:
    path = write(source.parent / "set", b"mine")
    assert_one_sentence(piped("split", source, "--out", path), 77)
    assert path.read_bytes() == b"mine"
    assert_one_sentence(piped("split", source, "--out", path / "below"), 77)


def test_an_empty_output_folder_and_one_below_missing_ones_are_fine(source: Path) -> None:
    (source.parent / "empty").mkdir()
    for folder in (source.parent / "empty", source.parent / "a" / "b" / "c"):
        assert piped("split", source, "--out", folder).code == 0
        assert_is_exact(folder, source.read_bytes())


# ── sessions by id ───────────────────────────────────────────────────────────────────────────


def test_the_home_folder_is_where_sessions_are_otherwise(tmp_path: Path) -> None:
    write(tmp_path / ".claude" / "projects" / "-srv-demo" / f"{ID}.jsonl", DATA)
    ended = piped("split", ID, "--dry-run", "--json", env={"HOME": str(tmp_path)})
    assert ended.code == 0, ended.err


# ── interrupted ──────────────────────────────────────────────────────────────────────────────


def interrupting(signal_name: str, *, at: int) -> tuple[str, ...]:
    """Return the command, which signals itself when it writes for the `at`th time."""
    return patched(
        "import os, signal, sessrotate.fs as fs\n"
        f"original, left = fs.NewFile.append, [{at}]\n"
        "def counted(self, *arguments):\n"
        "    left[0] -= 1\n"
        "    if left[0] == 0:\n"
        f"        os.kill(os.getpid(), signal.{signal_name})\n"
        "    return original(self, *arguments)\n"
        "fs.NewFile.append = counted"
    )


@pytest.mark.parametrize("options", [(), ("--compress",)], ids=["plain", "compressed"])
@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_split_is_unfinished_and_the_next_one_starts_over(
    signal_name: str, options: tuple[str, ...], source: Path
) -> None:
    before, folder = source.read_bytes(), source.parent / "set"
    arguments: tuple[str | Path, ...] = ("split", source, "--out", folder, *options)
    ended = piped(*arguments, program=interrupting(signal_name, at=5))
    assert ended == Ended(130, "", "sessrotate: Interrupted.\n")
    assert source.read_bytes() == before
    assert "intent.json" in names_in(folder)
    assert "manifest.json" not in names_in(folder)
    output = source.parent / "whole"
    assert_one_sentence(piped("stitch", folder, "-o", output), 74)
    assert not output.exists()
    assert piped("verify", folder).code == 1
    dry = piped(*arguments, "--dry-run")
    assert (dry.code, "unfinished" in dry.out) == (0, True)
    again = piped(*arguments)
    assert again.code == 0
    assert again.err.startswith("sessrotate: ")
    assert "unfinished" in again.err
    assert again.out.startswith("Wrote 4 segments")
    assert piped("stitch", folder, "-o", output).code == 0
    assert output.read_bytes() == before
    assert names_in(folder) == sorted(
        ["manifest.json"]
        + [f"{ID}{n}.jsonl{'.zst' if options else ''}" for n in ("", ".1", ".2", ".3")]
    )


def test_an_interrupt_while_reading_writes_nothing(source: Path) -> None:
    program = patched(
        "import os, signal, sessrotate.system.source as s; read = s.Source.read_into\n"
        "def interrupted(self, buffer, offset):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return read(self, buffer, offset)\n"
        "s.Source.read_into = interrupted"
    )
    ended = piped("split", source, "--out", source.parent / "set", program=program)
    assert ended == Ended(130, "", "sessrotate: Interrupted.\n")
    assert names_in(source.parent) == [source.name]


def test_an_interrupt_on_a_terminal_takes_the_bar_away(source: Path) -> None:
    preparation = interrupting("SIGINT", at=6)[2].replace("\nfrom sessrotate.cli import main", "")
    program = patched(
        preparation.removesuffix("\nmain()")
        + "\nimport sessrotate.cli.streams as s; s.PATIENCE = 0.0"
    )
    ended = on_terminal("split", source, "--out", source.parent / "set", program=program)
    assert ended.code == 130
    assert without_ansi(ended.err).splitlines()[-1].endswith("sessrotate: Interrupted.")
    assert ended.err.count("\x1b[?25h") >= ended.err.count("\x1b[?25l")


# ── a full disk ──────────────────────────────────────────────────────────────────────────────


def test_a_disk_that_is_full_half_way_leaves_an_unfinished_set(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(64 * 1024).hex()
    data = session(3)
    lines = data.splitlines(keepends=True)
    lines.insert(6, lines[5].replace(b'"pad":""', f'"pad":"{noise}"'.encode()))
    path, folder = write(tmp_path / f"{ID}.jsonl", b"".join(lines)), tmp_path / "set"
    before = path.read_bytes()
    arguments = ("split", path, "--out", folder)
    ended = piped(*arguments, program=limited("RLIMIT_FSIZE", 32 * 1024))
    assert_one_sentence(ended, 74)
    assert path.read_bytes() == before
    assert "intent.json" in names_in(folder)
    assert "manifest.json" not in names_in(folder)
    assert_one_sentence(piped("stitch", folder, "-o", tmp_path / "whole"), 74)
    again = piped(*arguments)
    assert (again.code, "unfinished" in again.err) == (0, True)
    assert piped("stitch", folder, "-o", tmp_path / "whole").code == 0
    assert (tmp_path / "whole").read_bytes() == before


# ── permissions ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [(), ("--compress",), ("--layout", "linked")])
def test_everything_written_is_for_its_owner_alone(options: tuple[str, ...], source: Path) -> None:
    top = source.parent / "new"
    assert piped("split", source, "--out", top / "set", *options, umask=0).code == 0
    for name, mode in modes(top):
        assert mode == (0o700 if name in {"new", "set"} else 0o600), name


def test_an_unfinished_set_is_for_its_owner_alone_too(source: Path) -> None:
    folder = source.parent / "set"
    piped("split", source, "--out", folder, umask=0, program=interrupting("SIGKILL", at=6))
    found = dict(modes(folder))
    assert found.pop("set") == 0o700
    assert set(found.values()) == {0o600}
    assert "intent.json" in found


def test_the_source_keeps_its_bytes_time_and_mode(source: Path) -> None:
    source.chmod(0o440)
    before = source.stat()
    assert piped("split", source, "--out", source.parent / "set").code == 0
    after = source.stat()
    assert source.read_bytes() == DATA
    assert (before.st_mtime_ns, before.st_mode, before.st_ino) == (
        after.st_mtime_ns,
        after.st_mode,
        after.st_ino,
    )


# ── a session that has an archive ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", ["rotated", "put away", "both"])
def test_of_a_session_that_has_an_archive_the_whole_history_is_cut(
    home: Home, tmp_path: Path, state: str
) -> None:
    if state != "put away":
        home.rotate()
        home.append(row(99))
    if state != "rotated":
        assert called("archive", ID).code == 0
    data = DATA + (row(99) if state != "put away" else b"")
    before = homes.snapshot(home.config)
    told = called("split", ID, "--out", tmp_path / "set", "--dry-run")
    assert not (tmp_path / "set").exists()
    ended = called("split", ID, "--out", tmp_path / "set")
    assert (told.code, ended.code, ended.err) == (0, 0, "")
    assert f"Wrote {len(segments_of(data))} segments" in ended.out
    assert_is_exact(tmp_path / "set", data)
    assert homes.snapshot(home.config) == before


def test_what_is_left_of_a_pruned_session_is_not_cut_as_if_it_were_the_whole(
    home: Home, tmp_path: Path
) -> None:
    home.rotate()
    assert called("prune", ID, "--keep-last", "1", "--yes").code == 0
    ended = called("split", ID, "--out", tmp_path / "set")
    assert_one_sentence(ended, 77)
    assert "`sessrotate stitch --allow-gaps -o FILE` writes the rest" in ended.err
    assert not (tmp_path / "set").exists()
    assert called("stitch", ID, "--allow-gaps", "-o", tmp_path / "left.jsonl").code == 0
    assert called("split", tmp_path / "left.jsonl", "--out", tmp_path / "set").code == 0
    assert_is_exact(tmp_path / "set", b"".join(segments_of(DATA)[-2:]))


def test_a_current_folder_that_was_removed_is_said(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    needing = (
        ("split", ID),
        ("stitch", ID, "-o", "x"),
        ("read", "./x"),
        ("list", "--project", "."),
        ("search", "row", "--project", "x"),
    )
    for words in needing:
        ended = called(*words)
        assert_one_sentence(ended, 77)
        assert "The current folder was removed" in ended.err
    for other in (("list",), ("read", ID), ("verify", ID), ("rotate", ID), ("search", "row")):
        assert called(*other).code == 0, other
    assert home.stitched() == DATA
