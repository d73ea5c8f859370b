"""`sessrotate compress`: make archived segments smaller, usually to a quarter."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from sessrotate.cli import archives, streams
from sessrotate.cli.options import DryRun, Every, Json, ManySessions, Quiet, Wait, whole
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.in_place import gain, room
from sessrotate.in_place.outcome import Outcome
from sessrotate.job import journal
from sessrotate.render import archive as render_archive
from sessrotate.retention import compress, left_plain
from sessrotate.system import zstd


def command(
    sessions: ManySessions = None,
    *,
    every: Every = False,
    level: Annotated[
        int,
        typer.Option(parser=whole(*zstd.LEVELS), metavar="N", help="1 is fastest, 19 smallest."),
    ] = zstd.LEVEL,
    wait: Wait = 10.0,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compress archived segments with zstd.

    Each is read back and compared before its plain file is removed. All commands read both forms.
    """
    done: list[compress.Compressed] = []
    errors: list[SessrotateError] = []
    wanted = archives.named(sessions, every=every)
    name = "compress --all" if every else "compress"
    kept = journal.begin(name, is_kept=not dry_run and (every or len(wanted) > 1))
    for where in wanted:
        try:
            planned = compress.plan(where)
            if dry_run:
                expected = compress.expected(where)
                room.check(where.archive, expected.need, sum(each.gained for each in done))
                done.append(replace(planned, gained=expected.gained))
            else:
                with streams.progress("Compressing", planned.before, quiet=quiet) as progress:
                    before = gain.measured(where)
                    made = compress.compress(where, wait, progress, level=level)
                    done.append(replace(made, gained=before - gain.measured(where)))
        except SessrotateError as error:
            errors.append(error)
        else:
            kept.note(Outcome(where, "done", done[-1].before - done[-1].after), "compress")
            errors += [DamagedError(problem) for problem in done[-1].problems]
            if not as_json and (done[-1].segments or not every):  # of all, most need nothing
                streams.write(render_archive.compressed(done[-1], dry_run=dry_run))
            if left_plain.of(where).gained:
                streams.message(render_archive.left_plain(where.session))
    if as_json:
        streams.write(render_archive.compressed_json(done, dry_run=dry_run))
    elif every and (done or not errors):
        streams.write(render_archive.compressed_sum(done, dry_run=dry_run))
    streams.complain_of(kept.failure)
    archives.end(errors)
