"""Segments of other tools are read by their headers alone, whatever these say."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessrotate import open_session
from sessrotate.clients.claude import reader
from sessrotate.errors import DamagedError, SessrotateError, WrongUsageError
from support import command_line, homes, oracle
from support.command_line import ID, called, piped

DATA = command_line.session(boundaries=3)
BODIES = oracle.bodies(DATA)


def header(shuffle: int = 0, **fields: Any) -> bytes:
    told = [("type", "system"), ("subtype", "segment_header"), *fields.items()]
    random.Random(shuffle).shuffle(told)
    return json.dumps(dict(told)).encode() + b"\n"


def numbered(folder: Path, *, without: tuple[int, ...] = ()) -> Path:
    folder.mkdir()
    for index, body in enumerate(BODIES):
        head = header(
            index,
            parentFile=f"{ID}.{index - 1}.jsonl" if index > 1 else f"{ID}.jsonl",
            rootSession=ID,
            segmentIndex=index,
            timestamp="2026-03-01T12:00:00Z",
        )
        name = f"{ID}.{index}.jsonl" if index else f"{ID}.jsonl"
        if index not in without:
            (folder / name).write_bytes(head + body if index else body)
    return folder


def joined(path: Path, gaps: list[str] | None = None) -> bytes:
    with open_session(path, on_gap=None if gaps is None else gaps.append) as session:
        assert session.id == ID
        return b"".join(r.line + b"\n" * r.is_ended for r in session.history())


def test_a_numbered_folder_is_read_from_any_of_its_files(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set")
    for path in (folder, *folder.iterdir()):
        assert joined(path) == DATA
    with open_session(folder) as session:
        assert [info.index for info in session.segments] == [0, 1, 2, 3]
        assert [each.uuid for each in session.boundaries] == [
            json.loads(body.splitlines()[0])["uuid"] for body in BODIES[1:]
        ]


def test_compressed_segments_are_read_too(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set")
    for path in list(folder.iterdir()):
        homes.rewrite(path.with_name(f"{path.name}.zst"), path.read_bytes())
        path.unlink()
    assert joined(folder) == DATA


def test_the_newest_segment_is_read_without_the_others(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set", without=(0, 1, 2))
    with open_session(folder) as session:
        assert b"".join(record.line + b"\n" for record in reader.loaded(session)) == BODIES[3]


def test_a_segment_of_many_pieces_is_read_whole(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    body = command_line.row(1) * 5000
    put(folder, f"{ID}.1", body, parentFile=f"{ID}.jsonl", rootSession=ID, segmentIndex=1)
    assert len(body) > 2**19
    assert joined(folder, []) == body


def test_pruned_segments_are_gaps_that_are_told(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set", without=(0, 2))
    with pytest.raises(DamagedError, match=r"Segment 0 \(.*\) is missing"):
        joined(folder)
    gaps: list[str] = []
    assert joined(folder, gaps) == BODIES[1] + BODIES[3]
    assert gaps == [
        f"Segment 0 ({ID}.jsonl) is missing.",
        f"Segment 2 ({ID}.2.jsonl) is missing.",
    ]


def test_a_folder_of_ours_is_not_taken_for_another_tools(tmp_path: Path) -> None:
    source = command_line.write(tmp_path / f"{ID}.jsonl", DATA)
    assert piped("split", source, "--out", tmp_path / "set").code == 0
    (tmp_path / "set" / "manifest.json").unlink()
    damaged = tmp_path / "set" / f"{ID}.2.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"format":1', b'"format":2'))
    with pytest.raises(DamagedError, match="Segment 2"):
        joined(tmp_path / "set")


# ── headers that lie ─────────────────────────────────────────────────────────────────────────


def put(folder: Path, name: str, body: bytes = b"", **fields: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(header(**fields) + body)


def test_a_name_and_a_header_that_differ_are_damage(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set")
    put(folder, f"{ID}.2", BODIES[2], parentFile=f"{ID}.1.jsonl", rootSession=ID, segmentIndex=1)
    with pytest.raises(DamagedError, match="its header says that it is segment 1"):
        joined(folder)
    put(folder, f"{ID}.2", BODIES[2], parentFile=f"{ID}.jsonl", rootSession=ID, segmentIndex=2)
    with pytest.raises(DamagedError, match="its header names the parent"):
        joined(folder)


def test_several_sessions_in_a_folder_want_a_file_to_be_named(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set")
    put(folder, "other.1", b"{}\n", parentFile="other.jsonl", rootSession="other", segmentIndex=1)
    with pytest.raises(WrongUsageError, match="several sessions"):
        joined(folder)
    assert joined(folder / f"{ID}.2.jsonl") == DATA


def test_a_name_in_a_header_is_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (tmp_path / "secret.jsonl").write_bytes(BODIES[0])
    put(folder, "x.1", BODIES[1], parentFile="../secret.jsonl", rootSession="../secret")
    with open_session(folder, on_gap=lambda _: None) as session:
        assert [record for record in session.history() if record.line in BODIES[0]] == []


def test_a_huge_number_makes_no_huge_set(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    put(folder, f"{ID}.1", BODIES[1], parentFile="gone", rootSession=ID, segmentIndex=10**12)
    put(folder, f"{ID}.99999", BODIES[1], parentFile="gone", rootSession=ID, segmentIndex=1)
    with open_session(folder / f"{ID}.1.jsonl", on_gap=lambda _: None) as session:
        assert len(session.segments) == 2


def test_segments_with_other_names_are_no_set(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    put(folder, "b1", BODIES[1], parentSegment=ID, rootSession=ID, segmentIndex=1)
    (folder / f"{ID}.jsonl").write_bytes(BODIES[0])
    with pytest.raises(SessrotateError):
        joined(folder / "b1.jsonl")


@pytest.mark.scale
def test_ten_thousand_segments_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (tmp_path / "set").mkdir()
    (folder / f"{ID}.jsonl").write_bytes(b'{"n":0}\n')
    for number in range(1, 10_000):
        body = b'{"n":%d}\n' % number
        parent = f"{ID}.{number - 1}.jsonl" if number > 1 else f"{ID}.jsonl"
        put(folder, f"{ID}.{number}", body, parentFile=parent, rootSession=ID)
    with open_session(folder) as session:
        assert [json.loads(record.line)["n"] for record in session.history()] == list(range(10_000))


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 10**20),
        st.sampled_from([ID, "a", "b", f"{ID}.1"]),
    ),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
FIELDS = ("parentFile", "parentSegment", "rootSession", "segmentIndex", "timestamp")


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", ID, f"{ID}.1", f"{ID}.2"]),
        st.dictionaries(st.sampled_from(FIELDS), ANYTHING),
        max_size=5,
    )
)
def test_no_headers_are_more_than_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("set", numbered=True) / "set"
    folder.mkdir()
    for name, fields in files.items():
        put(folder, name, b'{"type":"user","uuid":"u"}\n', **fields)
    try:
        with open_session(folder, on_gap=lambda _: None) as session:
            assert len(list(session.history())) <= len(files) * 2
    except SessrotateError:
        pass


# ── put together and checked ─────────────────────────────────────────────────────────────────


def test_a_set_is_stitched_where_it_is_accepted_that_nothing_proves_it(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "numbered")
    for number, path in enumerate((folder, *folder.iterdir())):
        whole = tmp_path / f"{number}"
        done = called("stitch", path, "--output", whole)
        assert (done.code, whole.exists()) == (74, False)
        assert "nothing proves that the set is whole. Pass --allow-gaps" in done.err
        done = called("stitch", path, "--output", whole, "--allow-gaps")
        assert (done.code, whole.read_bytes()) == (0, DATA)
        assert "nothing proves that the set is whole." in done.err


def test_a_set_without_digests_does_not_pass_as_verified(tmp_path: Path) -> None:
    done = called("verify", numbered(tmp_path / "set"), "--json")
    assert done.code == 1
    (problem,) = json.loads(done.out)["problems"]
    assert problem["kind"] == "unproven"
    assert f"Segment 1 ({ID}.1.jsonl) has no digest" in problem["detail"]


def test_a_gap_fails_the_check_and_no_byte_is_stitched(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set", without=(2,))
    done = called("verify", folder, "--json")
    assert done.code == 1
    assert json.loads(done.out)["problems"] == [
        {
            "source": str(folder),
            "kind": "missing",
            "detail": f"Segment 2 ({ID}.2.jsonl) is missing.",
        }
    ]
    for options in ([], ["--allow-gaps"]):
        done = called("stitch", folder, "--output", tmp_path / "whole", *options)
        assert (done.code, (tmp_path / "whole").exists()) == (74, False)
        assert f"Segment 2 ({ID}.2.jsonl) is missing." in done.err


def test_a_header_that_contradicts_its_file_fails_the_check(tmp_path: Path) -> None:
    folder = numbered(tmp_path / "set")
    put(folder, f"{ID}.2", BODIES[2], parentFile=f"{ID}.1.jsonl", rootSession=ID, segmentIndex=3)
    done = called("verify", folder)
    assert done.code == 1
    assert "its header says that it is segment 3" in done.out
    assert called("stitch", folder, "--output", tmp_path / "whole").code == 74
