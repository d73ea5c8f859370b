"""`split` into a folder of segments. Not a command of its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessrotate import fs
from sessrotate.cli import streams
from sessrotate.errors import RequestError, printable
from sessrotate.render import split as render_split
from sessrotate.segments import compressed_session, split

if TYPE_CHECKING:
    from sessrotate.model import Codec, Layout, SplitPlan


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `split` for a folder."""

    out: Path | None
    layout: Layout
    codec: Codec
    dry_run: bool
    as_json: bool
    quiet: bool


def run(path: Path, options: Options) -> None:
    """Split the session at `path` into a folder, or show what that would do."""
    with compressed_session.opened(path) as source:
        if compressed_session.is_session(path.name) and not options.quiet:
            name = printable(path.name)
            streams.message(f"sessrotate: {name} is compressed; its content is split.")
        with streams.progress("Reading", source.size(), quiet=options.quiet) as progress:
            planned = split.prepare(
                source,
                progress,
                layout=options.layout,
                codec=options.codec,
            )
        folder = options.out or Path(f"{planned.session}.segments")
        if ".." in folder.parts:  # what it leads through need not exist
            folder = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() follows links
        if options.dry_run:
            _dry_run(planned, path, folder, as_json=options.as_json)
            return
        leftovers = split.check_folder(planned, folder)
        if leftovers:
            streams.warn(
                f"{printable(str(folder))} holds an unfinished split of this "
                "session; starting over."
            )
        with streams.progress("Writing", planned.source_bytes, quiet=options.quiet) as progress:
            split.execute(planned, source, folder, progress)
        if options.as_json:
            streams.write_all(render_split.as_json(planned, path, folder, dry_run=False))
        else:
            streams.write("\n".join(render_split.done(planned, folder)) + "\n")


def _dry_run(planned: SplitPlan, path: Path, folder: Path, *, as_json: bool) -> None:
    """Show the plan, and raise the refusal that the run would raise."""
    refusal: RequestError | None = None
    leftovers: tuple[str, ...] = ()
    try:
        leftovers = split.check_folder(planned, folder)
    except RequestError as error:
        refusal = error
    if as_json:
        refused = [str(refusal)] if refusal is not None else []
        streams.write_all(
            render_split.as_json(planned, path, folder, dry_run=True, refused=refused)
        )
    else:
        streams.write(render_split.heading(planned) + "\n")
        shares = [segment.span.size / (planned.source_bytes or 1) for segment in planned.segments]
        streams.show_table(render_split.rows(planned), shares)
        if refusal is None:
            would = render_split.would(planned, folder, fs.free_bytes(folder), len(leftovers))
            streams.write("\n".join(would) + "\n")
    if refusal is not None:
        raise refusal
