"""`sessrotate split`: cut a session at its compactions into a folder of segments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sessrotate import find, fs
from sessrotate.archive import owner, state
from sessrotate.cli import rotate, streams
from sessrotate.cli.options import DryRun, Json, Quiet, SessionOrNone, Wait, Yes, flag
from sessrotate.errors import RefusedError, RequestError, WrongUsageError, printable
from sessrotate.model import Codec, Layout
from sessrotate.reading import pieces
from sessrotate.render import segment_table
from sessrotate.segments import compressed, split
from sessrotate.system.source import Source


def command(
    session: SessionOrNone = None,
    *,
    every: rotate.Every = False,
    min_size: rotate.MinSize = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the segments to this folder (default: ./ID.segments)."
        ),
    ] = None,
    in_place: Annotated[
        bool,
        flag(
            "--in-place", "Move the history to the session's archive, and keep what a resume needs."
        ),
    ] = False,
    dry_run: DryRun = False,
    layout: Annotated[
        Layout | None,
        typer.Option(
            help="How files are named. numbered (default): ID.1.jsonl, ID.2.jsonl …; linked: each "
            "has a new UUID."
        ),
    ] = None,
    compress: Annotated[
        bool, flag("--compress", "Compress the segments (.jsonl.zst). --in-place always does.")
    ] = False,
    live: rotate.Live = False,
    wait: Wait = 10.0,
    unsafe_adopt: rotate.Adopt = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cut a session at its compactions into numbered segments.

    The session itself does not change; if it has an archive, `split` cuts all of its history. The
    output folder must be empty, or not exist yet. `stitch` gives you back the session's exact
    bytes.

    With --in-place, this is `rotate`: the session's own file becomes small. The options --all,
    --min-size, --live, --unsafe-adopt and --yes need --in-place.
    """
    if in_place and (out is not None or layout is not None):
        raise WrongUsageError("--in-place cannot be combined with --out or --layout.")
    if in_place:
        rotate.command(
            [] if session is None else [session],
            every=every,
            min_size=min_size,
            live=live,
            wait=wait,
            unsafe_adopt=unsafe_adopt,
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if every or live or yes or unsafe_adopt or min_size is not None:
        raise WrongUsageError(
            "--all, --min-size, --live, --unsafe-adopt and --yes need --in-place."
        )
    if session is None:
        raise WrongUsageError("Name a SESSION, or pass --all with --in-place.")
    path = find.path_of(session)
    _to_folder(
        path,
        out,
        layout or "numbered",
        "zstd" if compress else "plain",
        dry_run=dry_run,
        as_json=as_json,
        quiet=quiet,
    )


def _to_folder(
    path: Path,
    out: Path | None,
    layout: Layout,
    codec: Codec,
    *,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Split the session at `path` into a folder, or show what that would do.

    A dry run raises the refusal that the run would raise.
    """
    refusal, left = None, 0
    with _opened(path, _straight(out or Path())) as source:
        if compressed.is_session(path.name) and not quiet:
            name = printable(path.name)
            streams.message(f"sessrotate: Splitting the decompressed content of {name}.")
        with streams.progress("Reading", source.size(), quiet=quiet) as progress:
            planned = split.prepare(source, progress, layout=layout, codec=codec)
        folder = _straight(out or Path(f"{planned.session}.segments"))
        try:
            left = len(split.check_folder(planned, folder))
        except RequestError as error:
            if not dry_run:
                raise
            refusal = error
        if not dry_run:
            if left:
                name = printable(str(folder))
                streams.warn(f"{name} holds an unfinished split of this session; starting over.")
            with streams.progress("Writing", planned.source_bytes, quiet=quiet) as progress:
                split.execute(planned, source, folder, progress)
    if as_json:
        streams.write_all(
            segment_table.split_json(planned, path, folder, dry_run=dry_run, refusal=refusal)
        )
    elif not dry_run:
        streams.write_lines(segment_table.done(planned, folder))
    else:
        streams.write(segment_table.heading(planned) + "\n")
        streams.write_lines(segment_table.table(planned.segments, streams.canvas()))
    if refusal is not None:
        raise refusal
    if dry_run and not as_json:
        room = fs.free_bytes(folder)
        streams.write_lines(segment_table.would(planned, folder, room, left))


@contextmanager
def _opened(path: Path, folder: Path) -> Iterator[Source]:
    """Open a session, all of it: of one that has an archive, the history there too.

    The whole of such a one stands in a file without a name for that, in `folder` or above it.
    """
    where = owner.of(path)
    with ExitStack() as stack:
        found = None if where is None else stack.enter_context(state.opened(where))
        if found is None or not found.is_rotated:
            yield stack.enter_context(compressed.opened_session(path))
            return
        above = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
        parts = pieces.of_state(found).stream(_pruned)
        whole = compressed.ComposedSession(found.place.live, parts, above)
        yield stack.enter_context(whole)


def _pruned(gap: str) -> None:
    """Refuse to cut what is left as if it were the whole."""
    raise RefusedError(
        f"{gap.rstrip('.')}, and a cut would number the rest as if nothing were missing: "
        "`sessrotate stitch --allow-gaps -o FILE` writes the rest, and you can split FILE."
    )


def _straight(folder: Path) -> Path:
    """Return a path without `..`: what one leads through need not exist."""
    # resolve() follows links
    return Path(os.path.abspath(folder)) if ".." in folder.parts else folder  # noqa: PTH100
