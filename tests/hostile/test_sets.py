"""A set of segments that is not what it was: always 74 (`verify`: 1), and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import delitem, getitem, setitem
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from sessrotate.segments.scan import MAX_BOUNDARIES
from sessrotate.system import zstd
from support import opens
from support.command_line import (
    ID,
    append,
    assert_one_sentence,
    called,
    contents,
    names_in,
    session,
    write,
)
from support.examples import examples
from support.limits import MIB, MOST_MIB, weighed

NAMES_ONE: Final = re.compile(r"Segment \d+ \(")
CANARY: Final = "canary-outside"


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to keep a session as segments."""

    layout: str
    compressed: bool
    manifest: bool

    def __str__(self) -> str:
        codec = "zstd" if self.compressed else "plain"
        return f"{self.layout}-{codec}-{'manifest' if self.manifest else 'manifest lost'}"


KINDS: Final = [
    Kind(*choice) for choice in product(("numbered", "linked"), (False, True), (True, False))
]
every_kind: Final = pytest.mark.parametrize("kind", KINDS, ids=str)


@dataclass(frozen=True, slots=True)
class Sample:
    """A sound set: the files of its folder, and which of them are the segments, in order."""

    source: bytes
    files: dict[str, bytes]
    segments: tuple[str, ...]

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        return folder


_made: dict[tuple[Kind, int], Sample] = {}


def sample(kind: Kind, boundaries: int = 3) -> Sample:
    """Return a set as `split` writes it; made once."""
    if (kind, boundaries) not in _made:
        source = session(boundaries)
        with tempfile.TemporaryDirectory() as scratch:
            path, folder = write(Path(scratch, f"{ID}.jsonl"), source), Path(scratch, "set")
            options = ["--layout", kind.layout, *(["--compress"] if kind.compressed else [])]
            ended = called("split", path, "--out", folder, "--json", *options)
            assert ended.code == 0, ended
            segments = tuple(entry["file"] for entry in ended.document()["segments"])
            files = contents(folder)
        if not kind.manifest:
            del files["manifest.json"]
        _made[kind, boundaries] = Sample(source, files, segments)
    return _made[kind, boundaries]


def assert_damaged(folder: Path, pattern: str | re.Pattern[str] = NAMES_ONE) -> None:
    """Check that `stitch` and `verify` both find the damage, and say where."""
    before = names_in(folder)
    results = folder.parent / "results"
    results.mkdir()
    ended = called("stitch", folder, "-o", results / "whole.jsonl")
    assert_one_sentence(ended, 74)
    assert re.search(pattern, ended.err), ended.err
    assert names_in(results) == []
    results.rmdir()
    verified = called("verify", folder, "--json")
    assert verified.code == 1, verified
    document = verified.document()
    assert document["ok"] is False
    assert document["problems"]
    assert all(set(problem) == {"source", "kind", "detail"} for problem in document["problems"])
    assert any(re.search(pattern, problem["detail"]) for problem in document["problems"])
    assert names_in(folder) == before


def is_exactly(folder: Path, source: bytes) -> bool:
    """Tell whether a set still gives its source, byte for byte."""
    whole = folder.parent / "whole.jsonl"
    whole.unlink(missing_ok=True)
    ended = called("stitch", folder, "-o", whole)
    return ended.code == 0 and whole.read_bytes() == source


def naming(index: int) -> re.Pattern[str]:
    return re.compile(rf"Segment {index} \(")


def packed(data: bytes, *, compressed: bool) -> bytes:
    if not compressed:
        return data
    frame = zstd.compressor(len(data))
    return frame.compress(data) + frame.flush()


def unpacked(data: bytes, *, compressed: bool) -> bytes:
    if not compressed:
        return data
    from io import BytesIO  # noqa: PLC0415 - for this line alone

    return b"".join(zstd.decompressed(BytesIO(data).read, MIB))


# ── sound sets ───────────────────────────────────────────────────────────────────────────────


@every_kind
@pytest.mark.parametrize("boundaries", [1, 3])
def test_a_sound_set_gives_its_source(kind: Kind, boundaries: int, tmp_path: Path) -> None:
    made = sample(kind, boundaries)
    folder = made.write(tmp_path / "set")
    assert is_exactly(folder, made.source)
    assert called("verify", folder, "--json").document() == {"ok": True, "problems": []}


@every_kind
def test_a_set_of_one_gives_its_source_unless_nothing_says_that_it_is_whole(
    kind: Kind, tmp_path: Path
) -> None:
    made = sample(kind, 0)
    folder = made.write(tmp_path / "set")
    if kind.manifest:
        assert is_exactly(folder, made.source)
    else:
        # The same folder is what a set leaves that lost all the others: it must be refused.
        assert_damaged(folder, re.escape(ID))


# ── damage ───────────────────────────────────────────────────────────────────────────────────


@every_kind
@given(st.data())
@examples(40, suppress_health_check=list(HealthCheck))
def test_a_changed_byte_is_found_wherever_it_is(kind: Kind, data: st.DataObject) -> None:
    made = sample(kind)
    index = data.draw(st.integers(0, len(made.segments) - 1), label="segment")
    changed = bytearray(made.files[made.segments[index]])
    offset = data.draw(st.integers(0, len(changed) - 1), label="offset")
    if not kind.compressed and not kind.manifest and index:
        # The header's copy of the boundary's time has a test of its own.
        place = re.search(rb'"timestamp":"[^"]*"', changed)
        assert place is not None
        if place.start() <= offset < place.end():
            offset = place.end()
    changed[offset] ^= data.draw(st.integers(1, 255), label="bits")
    with tempfile.TemporaryDirectory() as scratch:
        folder = made.write(Path(scratch, "set"))
        (folder / made.segments[index]).write_bytes(changed)
        if kind.compressed and is_exactly(folder, made.source):
            return  # a bit of the frame that zstd does not use: not one byte is another
        assert_damaged(folder, naming(index) if kind.manifest else NAMES_ONE)


@every_kind
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_a_changed_byte_in_the_middle_names_exactly_its_segment(
    kind: Kind, index: int, tmp_path: Path
) -> None:
    made = sample(kind)
    name = made.segments[index]
    plain = bytearray(unpacked(made.files[name], compressed=kind.compressed))
    plain[-20] ^= 1
    folder = made.write(tmp_path / "set")
    (folder / name).write_bytes(packed(bytes(plain), compressed=kind.compressed))
    assert_damaged(folder, naming(index))


@pytest.mark.parametrize("layout", ["numbered", "linked"])
def test_a_changed_time_in_a_header_is_found_without_the_manifest(
    layout: str, tmp_path: Path
) -> None:
    made = sample(Kind(layout, compressed=False, manifest=False))
    folder = made.write(tmp_path / "set")
    name = made.segments[2]
    forged = re.sub(rb'"timestamp":"2026-', b'"timestamp":"2027-', made.files[name], count=1)
    assert forged != made.files[name]
    (folder / name).write_bytes(forged)
    assert_damaged(folder, naming(2))


def _symlink_to_the_same(path: Path, data: bytes) -> None:
    path.symlink_to(write(path.parent.parent / CANARY, data))


REPLACEMENTS: Final[dict[str, Callable[[Path, bytes], object]]] = {
    "a link to the same": _symlink_to_the_same,
    "a link to nowhere": lambda path, _data: path.symlink_to("nowhere"),
    "a folder": lambda path, _data: path.mkdir(),
    "a pipe": lambda path, _data: os.mkfifo(path),
}
CHANGES: Final[dict[str, Callable[[Path, bytes], object]]] = {
    **REPLACEMENTS,
    "nothing of it": lambda path, _data: path.write_bytes(b""),
    "a byte of it": lambda path, data: path.write_bytes(data[:1]),
    "half of it": lambda path, data: path.write_bytes(data[: len(data) // 2]),
    "all but a byte": lambda path, data: path.write_bytes(data[:-1]),
    "a newline more": lambda path, data: path.write_bytes(data + b"\n"),
    "a NUL more": lambda path, data: path.write_bytes(data + b"\0"),
    "a KB more": lambda path, data: path.write_bytes(data + b"x" * 1000),
    "a row more": lambda path, data: path.write_bytes(data + b'{"type":"user"}\n'),
}
"""What stands where a segment was: nothing of this is one, and only the files are opened."""


@every_kind
@pytest.mark.parametrize("boundaries", [1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_what_stands_in_for_a_segment_is_found(
    kind: Kind, boundaries: int, change: str, tmp_path: Path
) -> None:
    made = sample(kind, boundaries)
    for index, name in enumerate(made.segments):
        folder = made.write(tmp_path / str(index) / "set")
        (folder / name).unlink()
        CHANGES[change](folder / name, made.files[name])
        assert_damaged(folder, naming(index) if kind.manifest else NAMES_ONE)


@pytest.mark.parametrize("manifest", [True, False])
def test_a_second_compressed_frame_behind_a_segment_is_found(
    manifest: bool, tmp_path: Path
) -> None:
    made = sample(Kind("numbered", compressed=True, manifest=manifest))
    folder = made.write(tmp_path / "set")
    append((folder / made.segments[1]), packed(b"more\n", compressed=True))
    assert_damaged(folder, naming(1))


@every_kind
@pytest.mark.parametrize("boundaries", [1, 3])
def test_a_missing_segment_is_named_whichever_it_is(
    kind: Kind, boundaries: int, tmp_path: Path
) -> None:
    made = sample(kind, boundaries)
    for index, name in enumerate(made.segments):
        folder = made.write(tmp_path / str(index) / "set")
        (folder / name).unlink()
        alone = boundaries == 1 and index == 1 and not kind.manifest
        assert_damaged(folder, "segment" if alone else naming(index))


@every_kind
def test_a_missing_segment_is_found_from_any_other_file_of_the_set(
    kind: Kind, tmp_path: Path
) -> None:
    made = sample(kind)
    for missing, asked in ((3, 1), (0, 3), (1, 2)):
        folder = made.write(tmp_path / str(missing) / "set")
        (folder / made.segments[missing]).unlink()
        output = tmp_path / str(missing) / "whole"
        ended = called("stitch", folder / made.segments[asked], "-o", output)
        assert_one_sentence(ended, 74)
        assert naming(missing).search(ended.err)
        assert not output.exists()


@every_kind
@pytest.mark.parametrize(
    ("boundaries", "pair"), [(3, (0, 1)), (3, (1, 2)), (3, (1, 3)), (3, (2, 3)), (1, (0, 1))]
)
def test_two_swapped_segments_are_found(
    kind: Kind, boundaries: int, pair: tuple[int, int], tmp_path: Path
) -> None:
    made = sample(kind, boundaries)
    folder = made.write(tmp_path / "set")
    one, other = (made.segments[index] for index in pair)
    (folder / one).write_bytes(made.files[other])
    (folder / other).write_bytes(made.files[one])
    assert_damaged(folder)


@every_kind
def test_a_segment_of_another_session_is_found(kind: Kind, tmp_path: Path) -> None:
    made, foreign = sample(kind), sample(kind, 1)
    folder = made.write(tmp_path / "set")
    (folder / made.segments[1]).write_bytes(foreign.files[foreign.segments[1]])
    assert_damaged(folder)


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_what_stands_in_for_the_manifest_is_not_opened_and_named(
    replace: str, tmp_path: Path
) -> None:
    made = sample(KINDS[0])
    folder = made.write(tmp_path / "set")
    (folder / "manifest.json").unlink()
    REPLACEMENTS[replace](folder / "manifest.json", made.files["manifest.json"])
    assert_damaged(folder, r"manifest\.json")


@every_kind
def test_an_unfinished_set_is_not_stitched(kind: Kind, tmp_path: Path) -> None:
    folder = sample(kind).write(tmp_path / "set")
    (folder / "intent.json").write_bytes(b"{}")
    assert_damaged(folder, "unfinished")
    assert any(
        problem["kind"] == "unfinished"
        for problem in called("verify", folder, "--json").document()["problems"]
    )


# ── forged headers ───────────────────────────────────────────────────────────────────────────

HOSTILE_NAMES: Final = {
    "up": f"../../{CANARY}",
    "up and back": f"../set/{ID}.jsonl",
    "absolute": f"/{CANARY}",
    "backslashes": f"..\\..\\{CANARY}",
    "nul": f"{ID}.jsonl\0{CANARY}",
    "64 KiB": "x" * 65536,
    "wide letters": f"{ID}.jsonl".replace("5", "\N{FULLWIDTH DIGIT FIVE}"),
    "a hyphen that is none": f"{ID}.jsonl".replace("-", "\N{NON-BREAKING HYPHEN}"),
    "lone surrogate": "\ud800",
    "half of a pair, escaped byte": "\udcff",
    "escape sequence": "\x1b[2J\x1b]0;owned\x07",
    "empty": "",
    "dot": ".",
}

_PARENT: Final = {"numbered": "parentFile", "linked": "parentSegment"}

Forgery = Callable[[str, dict[str, Any]], bytes]


def _dumped(header: dict[str, Any], **options: Any) -> bytes:
    return json.dumps(header, **{"separators": (",", ":"), **options}).encode() + b"\n"


def _changed(key: str, change: Callable[[dict[str, Any], str], object]) -> Forgery:
    def forge(layout: str, header: dict[str, Any]) -> bytes:
        name = _PARENT[layout] if key == "parent" else key
        change(header["sessrotate"] if name in header["sessrotate"] else header, name)
        return _dumped(header)

    return forge


def _with(key: str, value: object) -> Forgery:
    return _changed(key, lambda fields, name: fields.update({name: value}))


def _without(key: str) -> Forgery:
    return _changed(key, dict.pop)


def _raw(line: bytes) -> Forgery:
    return lambda _layout, _header: line


COUNTS: Final[tuple[object, ...]] = (0, 3, 7, 20_001, -1, True, None, "1", 1.0, [])
HOSTILE_COUNTS: Final[dict[str, object]] = {
    **{repr(value): value for value in COUNTS},
    "10^18": 10**18,
    "10^4000": 10**4000,
}
HOSTILE_DIGESTS: Final = {
    "zero": "xxh3_128:" + "0" * 32,
    "of another algorithm": "md5:" + "0" * 32,
    "empty": "",
    "null": None,
    "a number": 0,
    "64 KiB": "x" * 65536,
}
OURS: Final = ("format", "start", "digest", "parentDigest", "segments", "sourceBytes")
KEYS: Final = ("type", "subtype", "parent", "rootSession", "segmentIndex", "timestamp")

FORGERIES: Final[dict[str, Forgery]] = {
    **{f"parent {name}": _with("parent", value) for name, value in HOSTILE_NAMES.items()},
    **{f"root {name}": _with("rootSession", value) for name, value in HOSTILE_NAMES.items()},
    **{f"without {key}": _without(key) for key in (*KEYS, *OURS, "sessrotate")},
    **{
        f"{key} is {name}": _with(key, value)
        for key in ("segmentIndex", "segments", "start", "sourceBytes")
        for name, value in HOSTILE_COUNTS.items()
    },
    **{
        f"{key} is {name}": _with(key, value)
        for key in ("digest", "parentDigest")
        for name, value in HOSTILE_DIGESTS.items()
    },
    "another format": _with("format", 2),
    "another type": _with("type", "user"),
    "another time": _with("timestamp", 1),
    "an extra field": _with("extra", CANARY),
    "a deep extra field": lambda _layout, header: (
        _dumped(header)[:-2] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    ),
    "a number of 5,000 digits": lambda _layout, header: re.sub(
        rb'"segmentIndex":\d+', b'"segmentIndex":' + b"9" * 5000, _dumped(header)
    ),
    "other white space": lambda _layout, header: _dumped(header, separators=(", ", ": ")),
    "a blank behind": lambda _layout, header: _dumped(header)[:-1] + b" \n",
    "a return behind": lambda _layout, header: _dumped(header)[:-1] + b"\r\n",
    "another order": lambda _layout, header: _dumped(dict(reversed(header.items()))),
    "twice": lambda _layout, header: _dumped(header) * 2,
    "a key twice": lambda _layout, header: b'{"type":"system",' + _dumped(header)[1:],
    "no header": _raw(b""),
    "an empty line": _raw(b"\n"),
    "no newline": lambda _layout, header: _dumped(header)[:-1],
    "not JSON": _raw(b'{"subtype":"segment_header",\n'),
    "no object": _raw(b'["segment_header"]\n'),
    "invalid UTF-8": _raw(b'{"subtype":"segment_header","x":"\xff"}\n'),
    "UTF-16": lambda _layout, header: json.dumps(header).encode("utf-16") + b"\n",
    "a megabyte": _raw(b" " * MIB + b"\n"),
    "a byte order mark": lambda _layout, header: b"\xef\xbb\xbf" + _dumped(header),
}


def forged(made: Sample, kind: Kind, index: int, forge: Forgery) -> bytes:
    """Return a segment's file with another header."""
    data = unpacked(made.files[made.segments[index]], compressed=kind.compressed)
    line, _, body = data.partition(b"\n")
    return packed(forge(kind.layout, json.loads(line)) + body, compressed=kind.compressed)


def _chosen(kind: Kind) -> dict[str, Forgery]:
    """Return the forgeries to try: of compressed headers, which differ in nothing else, a few."""
    some = [key for number, key in enumerate(FORGERIES) if not kind.compressed or number % 9 == 0]
    return {key: FORGERIES[key] for key in some}


def _unfound(
    kind: Kind, boundaries: int, index: int, tmp_path: Path, *, exactly: bool
) -> dict[str, str]:
    """Return the forgeries of a segment's header that did not end as damage must, and how."""
    made = sample(kind, boundaries)
    result: dict[str, str] = {}
    for number, (name, forge) in enumerate(_chosen(kind).items()):
        data = forged(made, kind, index, forge)
        if data == made.files[made.segments[index]]:
            continue  # what the header says
        folder = made.write(tmp_path / str(number) / "set")
        (folder / made.segments[index]).write_bytes(data)
        # Two headers that disagree on what lies between them: either may be the forged one.
        either = not exactly or (not kind.manifest and name.startswith(("start", "parentDigest")))
        try:
            assert_damaged(folder, NAMES_ONE if either else naming(index))
        except Exception as error:  # noqa: BLE001 - whatever a command dies of is the finding
            result[name] = f"{type(error).__name__}: {str(error).splitlines()[0]:.120}"
        shutil.rmtree(folder.parent)
    return result


@every_kind
def test_every_forged_header_is_found(kind: Kind, tmp_path: Path) -> None:
    assert _unfound(kind, 3, 2, tmp_path, exactly=True) == {}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.manifest], ids=str)
def test_every_forged_header_is_found_where_it_is_the_only_one(kind: Kind, tmp_path: Path) -> None:
    assert _unfound(kind, 1, 1, tmp_path, exactly=False) == {}


@pytest.mark.parametrize("layout", ["numbered", "linked"])
def test_all_headers_that_lie_together_about_the_count_are_found(
    layout: str, tmp_path: Path
) -> None:
    kind = Kind(layout, compressed=False, manifest=False)
    made = sample(kind)
    folder = made.write(tmp_path / "set")
    for index in (1, 2, 3):
        data = forged(made, kind, index, _with("segments", 10**18))
        (folder / made.segments[index]).write_bytes(data)
    assert_damaged(folder)


@pytest.mark.parametrize("layout", ["numbered", "linked"])
def test_the_last_segment_gone_and_a_header_that_hides_it_is_found(
    layout: str, tmp_path: Path
) -> None:
    kind = Kind(layout, compressed=False, manifest=False)
    made = sample(kind)
    folder = made.write(tmp_path / "set")
    (folder / made.segments[3]).unlink()
    data = forged(made, kind, 2, _with("segments", 3))
    (folder / made.segments[2]).write_bytes(data)
    assert_damaged(folder)


def test_a_file_with_an_absurd_number_costs_no_memory(tmp_path: Path) -> None:
    made = sample(Kind("numbered", compressed=False, manifest=False))
    folder = made.write(tmp_path / "set")
    (folder / f"{ID}.999999.jsonl").write_bytes(b"")
    whole = tmp_path / "whole"
    ended = weighed("stitch", folder, "-o", whole)
    # Either it is a foreign file, or it is one of a set that lost almost all.
    assert ended.code == 74 or whole.read_bytes() == made.source, ended
    assert ended.err.count("\n") == (ended.code == 74)
    assert ended.peak_mib <= MOST_MIB


def test_a_file_with_the_highest_number_costs_little_memory(tmp_path: Path) -> None:
    made = sample(Kind("numbered", compressed=False, manifest=False))
    folder = made.write(tmp_path / "set")
    (folder / f"{ID}.{MAX_BOUNDARIES}.jsonl").write_bytes(b"")
    for arguments, code in (
        (("stitch", folder, "-o", tmp_path / "whole"), 74),
        (("verify", folder, "--json"), 1),
    ):
        ended = weighed(*arguments)
        assert ended.code == code, ended.err
        assert ended.peak_mib <= MOST_MIB
    assert not (tmp_path / "whole").exists()


# ── forged manifests ─────────────────────────────────────────────────────────────────────────

ManifestForgery = Callable[[dict[str, Any]], object]


def _below(place: list[Any], change: Callable[[Any], object]) -> ManifestForgery:
    """Return what changes the part of a manifest that is found by these keys."""

    def forge(manifest: dict[str, Any]) -> object:
        change(reduce(getitem, place, manifest))
        return manifest

    return forge


def _set(*path: Any) -> ManifestForgery:
    *place, key, value = path
    return _below(place, lambda part: setitem(part, key, value))


def _drop(*path: Any) -> ManifestForgery:
    *place, key = path
    return _below(place, lambda part: delitem(part, key))


def _lie_about_size(manifest: dict[str, Any]) -> object:
    manifest["segments"][-1]["end"] = manifest["source"]["bytes"] = 10**18
    return manifest


def _move_a_cut(manifest: dict[str, Any]) -> object:
    manifest["segments"][1]["end"] -= 1
    manifest["segments"][2]["start"] -= 1
    return manifest


def _hide_the_last(manifest: dict[str, Any]) -> object:
    gone = manifest["segments"].pop()
    manifest["source"]["bytes"] = gone["start"]
    return manifest


def _hostile_session(layout: str, name: str) -> ManifestForgery:
    def forge(manifest: dict[str, Any]) -> object:
        manifest["session"], manifest["layout"] = name, layout
        for entry in manifest["segments"]:
            entry["file"] = f"{name}.{entry['index']}.jsonl" if entry["index"] else f"{name}.jsonl"
        return manifest

    return forge


MANIFEST_FORGERIES: Final[dict[str, ManifestForgery]] = {
    **{
        f"{layout} session {name}": _hostile_session(layout, value)
        for name, value in HOSTILE_NAMES.items()
        for layout in ("numbered", "linked")
    },
    **{f"file {key}": _set("segments", 1, "file", name) for key, name in HOSTILE_NAMES.items()},
    "the file of another": _set("segments", 1, "file", f"{ID}.2.jsonl"),
    "etc": _set("segments", 0, "file", "../../etc/passwd"),
    "an unknown client and layout": _set("layout", "spiral"),
    "another format": _set("format", 2),
    "an extra key": _set("extra", CANARY),
    "an extra key below": _set("segments", 1, "extra", CANARY),
    "an extra segment": lambda m: {**m, "segments": [*m["segments"], m["segments"][-1]]},
    "no segments": _set("segments", []),
    "the last one hidden": _hide_the_last,
    "a cut moved": _move_a_cut,
    "a huge size": _lie_about_size,
    "a huge index": _set("segments", 1, "index", 10**18),
    "a huge start": _set("segments", 1, "start", 10**18),
    "a negative start": _set("segments", 1, "start", -1),
    "a float": _set("segments", 1, "start", 1.0),
    "a truth": _set("segments", 0, "start", False),
    "a wrong count of lines": _set("segments", 1, "lines", 10**18),
    "no lines": _set("segments", 1, "lines", 0),
    "another digest": _set("segments", 1, "digest", "xxh3_128:" + "0" * 32),
    "another algorithm": _set("segments", 1, "digest", "md5:" + "0" * 32),
    "another digest of the whole": _set("source", "digest", "xxh3_128:" + "0" * 32),
    "no digest of the whole": _set("source", "digest", "unknown"),
    "another codec": _set("segments", 1, "codec", "zstd"),
    "an unknown codec": _set("segments", 1, "codec", "lzma"),
    "a boundary of another time": _set("segments", 1, "boundary", "timestamp", "1999"),
    "no boundary": _set("segments", 1, "boundary", None),
    "a boundary that is a number": _set("segments", 1, "boundary", 0),
    "a boundary that is a text": _set("segments", 1, "boundary", "x"),
    "segment 0 with an empty boundary": _set("segments", 0, "boundary", {}),
    "a pin that is no text": _set("segments", 1, "pin", True),
    "a tombstone without a time": _set("segments", 1, "pruned", {"rule": "r"}),
    "pruned": _set("segments", 1, "pruned", {"when": "now"}),
    "a list": lambda m: [m],
    "a text": lambda _m: "manifest",
    "null": lambda _m: None,
    "segments in an object": lambda m: {**m, "segments": {"0": m["segments"][0]}},
    "segments as a text": _set("segments", "abc"),
    "source as a list": _set("source", []),
    **{
        f"without {key}": _drop(key)
        for key in ("format", "session", "client", "layout", "source", "segments")
    },
    **{
        f"a segment without {key}": _drop("segments", 1, key)
        for key in ("index", "file", "start", "end", "lines", "digest", "codec", "boundary")
    },
}


@pytest.mark.parametrize("forgery", MANIFEST_FORGERIES)
def test_a_forged_manifest_is_found(forgery: str, tmp_path: Path) -> None:
    made = sample(KINDS[0])
    folder = made.write(tmp_path / "set")
    manifest = json.loads(made.files["manifest.json"])
    data = json.dumps(MANIFEST_FORGERIES[forgery](manifest), indent=1).encode() + b"\n"
    assert data != made.files["manifest.json"]
    (folder / "manifest.json").write_bytes(data)
    assert_damaged(folder, r"manifest\.json|Segment \d+ \(")


RAW_MANIFESTS: Final = {
    "empty": b"",
    "not JSON": b"{",
    "not UTF-8": b'{"session":"\xff\xfe"}',
    "NUL bytes": b"\0" * 4096,
    "deep": b"[" * 100_000,
    "deep and closed": b'{"segments":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a long number": b'{"format":' + b"9" * 100_000 + b"}",
    "UTF-16": '{"session":"x"}'.encode("utf-16"),
    "20 MB": b" " * (20 * MIB),
    "NaN": b"NaN",
}


@pytest.mark.parametrize("name", RAW_MANIFESTS)
def test_a_manifest_that_is_none_is_found(name: str, tmp_path: Path) -> None:
    folder = sample(KINDS[0]).write(tmp_path / "set")
    (folder / "manifest.json").write_bytes(RAW_MANIFESTS[name])
    assert_damaged(folder, r"manifest\.json")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" + b"1," * (7 * MIB) + b"1]", id="numbers"),
        pytest.param(b"[" + b"{}," * (5 * MIB) + b"1]", id="objects"),
        pytest.param(b" " * (300 * MIB), id="300 MB"),
    ],
)
def test_a_hostile_manifest_costs_no_memory(data: bytes, tmp_path: Path) -> None:
    folder = sample(KINDS[0]).write(tmp_path / "set")
    (folder / "manifest.json").write_bytes(data)
    ended = weighed("stitch", folder, "-o", tmp_path / "whole")
    (folder / "manifest.json").unlink()
    assert ended.code == 74, ended.err
    assert "manifest.json" in ended.err
    assert ended.peak_mib <= MOST_MIB


@given(st.data())
@examples(150, suppress_health_check=list(HealthCheck))
def test_a_changed_byte_in_the_manifest_never_gives_other_bytes(data: st.DataObject) -> None:
    made = sample(KINDS[0])
    changed = bytearray(made.files["manifest.json"])
    offset = data.draw(st.integers(0, len(changed) - 1), label="offset")
    changed[offset] ^= data.draw(st.integers(1, 255), label="bits")
    with tempfile.TemporaryDirectory() as scratch:
        folder = made.write(Path(scratch, "set"))
        (folder / "manifest.json").write_bytes(changed)
        if not is_exactly(folder, made.source):
            assert_damaged(folder, r"manifest\.json|Segment \d+ \(")


# ── names are never paths ────────────────────────────────────────────────────────────────────


@pytest.mark.hostile
def test_no_name_out_of_a_file_is_ever_opened(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / CANARY, b"secret\n")
    root, results = tmp_path / "sets", tmp_path / "results"
    root.mkdir()
    results.mkdir()
    names = [
        *(name for key, name in HOSTILE_NAMES.items() if key != "lone surrogate"),
        str(outside),
        f"../../outside/{CANARY}",
        f"{ID}.jsonl/../../../outside/{CANARY}",
    ]
    folders: list[Path] = []
    for kind in KINDS:
        if kind.compressed:
            continue
        made = sample(kind)
        for key, name in product(("parent", "rootSession"), names):
            folder = made.write(root / str(len(folders)))
            for index in (1, 2, 3):
                data = forged(made, kind, index, _with(key, name))
                (folder / made.segments[index]).write_bytes(data)
            folders.append(folder)
        if kind.manifest:
            for name in names:
                manifest = json.loads(made.files["manifest.json"])
                for forge in (
                    _hostile_session(kind.layout, name),
                    _set("segments", 1, "file", name),
                ):
                    folder = made.write(root / str(len(folders)))
                    document = json.dumps(forge(manifest), indent=1) + "\n"
                    (folder / "manifest.json").write_text(document, encoding="utf-8")
                    folders.append(folder)
    with opens.watched() as seen:
        for folder in folders:
            for command in (("stitch", folder, "-o", results / folder.name), ("verify", folder)):
                assert "Traceback" not in called(*command).err, command
    opened = seen.opened
    assert not [name for name in opened if CANARY in name]
    here = {Path(os.path.normpath(name)) for name in opened if name.startswith(str(tmp_path))}
    assert here, "the hook saw nothing"
    allowed = {*folders, results, tmp_path}
    assert {path.parent for path in here} <= allowed | {root}
    assert {path.name for path in here if path.parent in allowed} <= {
        *(name for made in _made.values() for name in made.files),
        results.name,
    }
    assert names_in(results) == []
    assert outside.read_bytes() == b"secret\n"


# ── bombs ────────────────────────────────────────────────────────────────────────────────────


def _bomb(head: bytes, size: int) -> bytes:
    """Return a few kilobytes that decompress to `head` and `size` zeros."""
    frame = zstd.compressor(len(head) + size)
    zeros = bytes(16 * MIB)
    pieces = [frame.compress(head), *(frame.compress(zeros) for _ in range(size // len(zeros)))]
    return b"".join([*pieces, frame.flush()])


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("with_header", [True, False])
def test_a_small_file_that_decompresses_to_gigabytes_is_found_at_once(
    manifest: bool, with_header: bool, tmp_path: Path
) -> None:
    kind = Kind("numbered", compressed=True, manifest=manifest)
    made = sample(kind)
    folder = made.write(tmp_path / "set")
    data = unpacked(made.files[made.segments[1]], compressed=True)
    head = data if with_header else b""
    bomb = _bomb(head, 2048 * MIB)
    assert len(bomb) < MIB
    (folder / made.segments[1]).write_bytes(bomb)
    for arguments, code in (
        (("stitch", folder, "-o", tmp_path / "whole"), 74),
        (("verify", folder, "--json"), 1),
    ):
        ended = weighed(*arguments, address_space=512 * MIB)
        assert ended.code == code, ended.err
        assert naming(1).search(ended.err + ended.out)
        assert ended.peak_mib <= MOST_MIB
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set"]


@pytest.mark.parametrize("log", [31, 28])
def test_a_frame_that_asks_for_a_huge_window_is_found(tmp_path: Path, log: int) -> None:
    made = sample(Kind("numbered", compressed=True, manifest=True))
    folder = made.write(tmp_path / "set")
    # Magic number, a descriptor without a size, a window of 2 GiB or 256 MiB, one empty last block.
    huge = bytes.fromhex("28b52ffd") + b"\x00" + bytes([log - 10 << 3]) + b"\x01\x00\x00" * 4
    (folder / made.segments[1]).write_bytes(huge)
    ended = weighed("stitch", folder, "-o", tmp_path / "whole")
    assert (ended.code, bool(naming(1).search(ended.err))) == (74, True)
    assert ended.peak_mib <= MOST_MIB


def test_a_changed_set_is_sound_again_when_the_change_is_undone(tmp_path: Path) -> None:
    """The checks above must fail for the change, and for nothing else."""
    made = sample(KINDS[0])
    folder = made.write(tmp_path / "set")
    name = made.segments[1]
    (folder / name).write_bytes(made.files[name][:-1])
    assert_damaged(folder, naming(1))
    (folder / name).write_bytes(made.files[name])
    assert is_exactly(folder, made.source)
    shutil.rmtree(folder)
