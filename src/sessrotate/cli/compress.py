"""`sessrotate compress`: make archived segments smaller, usually to a quarter."""

from __future__ import annotations

from typing import Annotated

import typer

from sessrotate.cli import archives, streams
from sessrotate.cli.options import Every, Json, ManySessions, Quiet, Wait, whole
from sessrotate.errors import DamagedError, SessrotateError
from sessrotate.render import archive as render_archive
from sessrotate.retention import compress
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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compress archived segments with zstd.

    Each is read back and compared before its plain file is removed. All commands read both forms.
    """
    done: list[compress.Compressed] = []
    errors: list[SessrotateError] = []
    for where in archives.named(sessions, every=every):
        try:
            total = compress.plain_bytes(where)
            with streams.progress("Compressing", total, quiet=quiet) as progress:
                done.append(compress.compress(where, wait, progress, level=level))
        except SessrotateError as error:
            errors.append(error)
        else:
            errors += [DamagedError(problem) for problem in done[-1].problems]
            if not as_json:
                streams.write(render_archive.compressed(done[-1]))
    if as_json:
        streams.write(render_archive.compressed_json(done))
    archives.end(errors)
