"""`sessrotate export`, as a process."""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import sessrotate.export
from sessrotate.cli import export
from sessrotate.render import size
from support import homes
from support.command_line import (
    ID,
    assert_one_sentence,
    called,
    contents,
    names_in,
    on_terminal,
    piped,
    row,
    segments_of,
    session,
    write,
)
from support.homes import Home
from support.limits import limited

DATA = session()
OTHER = ID[:-1] + "2"


def test_one_session_goes_to_standard_output(home: Home) -> None:
    for _ in range(2):
        done = called("export", ID[:8])
        assert (done.code, done.out.encode(), done.err) == (0, DATA, "")
        home.rotate()


def test_a_session_in_a_file_is_readable_by_its_owner_alone(home: Home, tmp_path: Path) -> None:
    done = piped("export", home.live, "-o", tmp_path / "out.jsonl", umask=0)
    path = tmp_path / "out.jsonl"
    assert (done.code, done.out) == (0, "")
    assert done.err == f"Wrote {path} ({size(len(DATA))}).\n"
    assert path.read_bytes() == DATA
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_session_that_is_named_twice_is_written_once(home: Home, tmp_path: Path) -> None:
    named: list[list[str | Path]] = [[ID, ID], [ID[:8], home.live], [home.live, ID[:9], ID]]
    for number, names in enumerate(named):
        done = called("export", *names, "-o", tmp_path / str(number))
        assert (done.code, done.out, done.err.count("Wrote ")) == (0, "", 1)
        assert contents(tmp_path / str(number)) == {f"{ID}.jsonl": DATA}


def test_several_sessions_become_a_file_each(home: Home, tmp_path: Path) -> None:
    other = write(home.live.with_name(f"{OTHER}.jsonl"), row(95))
    expected = {f"{ID}.jsonl": DATA, f"{OTHER}.jsonl": row(95)}
    done = piped("export", "-q", home.live, other, "-o", tmp_path / "new" / "folder")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert contents(tmp_path / "new" / "folder") == expected
    (tmp_path / "here").mkdir()
    assert piped("export", home.live, other, cwd=tmp_path / "here").code == 0
    assert contents(tmp_path / "here") == expected


def test_of_sessions_that_are_named_together_each_record_is_written_once(
    home: Home, tmp_path: Path
) -> None:
    own = row(90, sessionId=OTHER)
    clone = write(home.live.with_name(f"{OTHER}.jsonl"), DATA.replace(b"{", b"{ ", 1) + own)
    done = piped("export", home.live, clone, "-o", tmp_path / "both")
    assert done.code == 0
    assert "repeated records" in done.err
    assert contents(tmp_path / "both") == {f"{ID}.jsonl": DATA, f"{OTHER}.jsonl": own}
    done = piped("export", clone, home.live, "-o", tmp_path / "turned")
    assert contents(tmp_path / "turned") == {
        f"{ID}.jsonl": b"",
        f"{OTHER}.jsonl": clone.read_bytes(),
    }
    assert piped("export", clone, "-o", tmp_path / "alone").code == 0
    assert (tmp_path / "alone").read_bytes() == clone.read_bytes()
    for form in ("markdown", "html"):
        folder = tmp_path / form
        assert piped("export", "--format", form, home.live, clone, "-o", folder).code == 0
        first, second = (data.decode() for _, data in sorted(contents(folder).items()))
        assert ("row 1 …" in first, "row 1 …" in second) == (True, False)
        assert f"Records that are also in {ID} are left out." in second
        assert "row 90 …" in second


def test_a_path_that_ends_with_a_slash_is_a_folder(home: Home, tmp_path: Path) -> None:
    done = piped("export", "-q", home.live, "-o", f"{tmp_path}/new/")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert contents(tmp_path / "new") == {f"{ID}.jsonl": DATA}


def test_a_folder_takes_one_session_too(home: Home, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert piped("export", home.live, "-o", tmp_path / "out").code == 0
    assert contents(tmp_path / "out") == {f"{ID}.jsonl": DATA}


def test_nothing_is_written_over(home: Home, tmp_path: Path) -> None:
    there = write(tmp_path / "out" / f"{ID}.jsonl", b"mine")
    for output in (there, tmp_path / "out"):
        done = piped("export", home.live, "-o", output)
        assert_one_sentence(done, 77)
        assert f"{ID}.jsonl already exists" in done.err
    assert contents(tmp_path / "out") == {f"{ID}.jsonl": b"mine"}
    # Two sessions of one name: the first is there, the second is refused.
    (tmp_path / "two").mkdir()
    again = write(tmp_path / "elsewhere" / f"{ID}.jsonl", row(1))
    assert_one_sentence(piped("export", "-q", home.live, again, "-o", tmp_path / "two"), 77)
    assert contents(tmp_path / "two") == {f"{ID}.jsonl": DATA}


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.md", b"# "),
        ("a.markdown", b"# "),
        ("a.HTML", b"<!doctype html>"),
        ("a.htm", b"<!doctype html>"),
        ("a.txt", b"{"),
    ],
)
def test_a_name_that_ends_like_a_format_says_it(
    home: Home, tmp_path: Path, name: str, begins: bytes
) -> None:
    path, other = tmp_path / name, tmp_path / f"b.{name}"
    assert piped("export", ID, "-o", str(path), env=home.env).code == 0
    assert path.read_bytes().lower().startswith(begins)
    lines = ("export", ID, "--format", "jsonl", "-o", str(other))
    assert piped(*lines, env=home.env).code == 0
    assert other.read_bytes().startswith(b"{")


def test_what_is_left_out_is_counted(home: Home) -> None:
    home.append(DATA.splitlines(keepends=True)[0] + row(1, slug="other bytes"))
    done = piped("export", home.live)
    assert (done.code, done.out.encode()) == (0, DATA)
    assert done.err == "sessrotate: Left out 2 repeated records.\n"


# ── all of them ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def three(home: Home) -> Home:
    """A rotated session, one that was put away, and one of another project with the same id."""
    home.rotate()
    homes.another(home, OTHER, DATA)
    assert called("archive", OTHER).code == 0
    twin = home.config / "projects" / "-srv-other" / home.live.name
    write(twin, DATA.replace(b"/home/somebody/project", b"/srv/other") + row(99))
    return home


@pytest.mark.usefixtures("three")
def test_every_session_is_exported_with_an_index_that_leads_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    done = called("export", "--all", "-o", folder)
    assert done.code == 0, done
    assert done.err.endswith(f"Wrote 3 sessions; start at {folder / 'index.jsonl'}.\n")
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    assert {*names_in(folder)} == {"index.jsonl", *(each["file"] for each in rows)}
    written = [(folder / each["file"]).read_bytes() for each in rows]
    assert sorted(map(len, written)) == [len(DATA), len(DATA), len(DATA + row(99))]
    assert DATA in written
    listed = json.loads(called("list", "--json").out)
    told = {(each["title"], each["project"], each["bytes"]) for each in rows}
    size_of = {
        (each["title"], each["project"], each["bytes"] + (each["archived_bytes"] or 0))
        for each in listed
    }
    assert told == size_of


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("to", ["markdown", "html"])
def test_an_index_names_title_project_day_and_size(tmp_path: Path, to: str) -> None:
    folder = tmp_path / "all"
    done = called("export", "--project=-srv-other", "--format", to, "-o", folder)
    assert done.code == 0, done
    (index,) = folder.glob("index.*")
    (page,) = (name for name in names_in(folder) if not name.startswith("index."))
    told = index.read_text()
    for word in (page, "srv", "2026-03-01", size(len(DATA + row(99))), "1 session"):
        assert word in told
    assert f"({page})" in told or f'href="{page}"' in told


def test_what_one_session_lacks_keeps_none_of_the_others_from_the_index(
    three: Home, tmp_path: Path
) -> None:
    three.segment(1).unlink()
    folder = tmp_path / "all"
    done = called("export", "--all", "-o", folder)
    assert (done.code, ID in done.err) == (74, True)
    assert len((folder / "index.jsonl").read_text().splitlines()) == 2
    assert len(names_in(folder)) == 3


@pytest.mark.usefixtures("three")
def test_of_a_time_only_sessions_that_have_something_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    words = ("export", "--all", "--since", "2026-03-01T10:01:38Z", "-o", folder)
    assert called(*words).code == 0
    assert len(names_in(folder)) == 2


@pytest.mark.usefixtures("three")
def test_a_folder_that_has_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert called("export", "--all", "-o", tmp_path).code == 77
    assert called("export", "--all").code == 2
    assert called("export", "--all", ID, "-o", tmp_path / "new").code == 2
    nowhere = ("export", "--project", "/no/such", "-o", tmp_path / "new")
    assert called(*nowhere).code == 2
    assert called("export", "--all", "-o", "-").code == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("three")
def test_the_page_of_all_leads_to_exported_pages_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    words = ("export", "--all", "--format", "html", "-o", folder)
    assert called(*words).code == 0
    assert called("report", "--all", "--html", folder / "report.html").code == 0
    page = (folder / "report.html").read_text()
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["pages"][OTHER] == f"{OTHER}.html"
    assert (folder / data["pages"][OTHER]).is_file()


# ── names ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["../../evil", "..", "/etc/evil", "a\x1b[31mb", "x" * 300, "é/é", "-rf"]
)
def test_a_name_is_safe_whatever_a_session_is_called(name: str) -> None:
    made = sessrotate.export.file_name(name)
    assert Path(made).name == made
    assert made not in {"", ".", ".."}
    assert len(made) <= 200
    assert made.isascii()
    assert made.isprintable()
    assert not made.startswith((".", "-"))


def test_a_gap_is_an_error_and_leaves_no_file(home: Home, tmp_path: Path) -> None:
    home.rotate()
    home.segment(1).unlink()
    (tmp_path / "out").mkdir()
    done = called("export", home.live, "-o", tmp_path / "out")
    assert_one_sentence(done, 74)
    assert "Segment 1" in done.err
    assert names_in(tmp_path / "out") == []


def test_a_gap_is_passed_over_and_named_where_that_is_allowed(home: Home, tmp_path: Path) -> None:
    home.rotate()
    gone = home.segment(1)
    gone.unlink()
    done = called("export", "-q", home.live, "--allow-gaps", "-o", tmp_path / "out")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"sessrotate: Segment 1 ({gone.name}) is missing.\n"
    bodies = segments_of(DATA)
    assert (tmp_path / "out").read_bytes() == b"".join([bodies[0], *bodies[2:]])


def test_a_full_disk_leaves_no_file(home: Home, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    program = limited("RLIMIT_FSIZE", len(DATA) // 2)
    done = piped("export", home.live, "-o", tmp_path / "out" / "x", program=program)
    assert_one_sentence(done, 74)
    assert names_in(tmp_path / "out") == []


def test_a_terminal_is_shown_text_and_obeys_none_of_it(home: Home) -> None:
    home.append(b"torn \x1b]0;title\x07 \xc2\x9b31m\n")
    done = on_terminal("export", home.live)
    assert done.code == 0
    assert done.out == DATA.decode() + "torn ␛]0;title␇ \ufffd31m\n"


def test_every_format_that_is_there_is_offered() -> None:
    there = {
        found.name
        for found in pkgutil.iter_modules(sessrotate.export.__path__)
        if hasattr(import_module(f"sessrotate.export.{found.name}"), "pieces")
    }
    assert set(export.FORMATS) == there


def test_a_format_that_no_terminal_can_show_needs_a_file(
    home: Home,
) -> None:
    done = on_terminal("export", home.live, "--format", "html")
    assert (done.code, done.out) == (2, "")
    assert "-o" in done.err
    piped_page = piped("export", home.live, "--format", "html").out
    assert piped_page.startswith("<!DOCTYPE html>")
