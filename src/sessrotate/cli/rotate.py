"""`sessrotate rotate`: make a session small for its client, and keep its history in an archive."""

from __future__ import annotations

from typing import Annotated

from sessrotate import find
from sessrotate.cli import in_place
from sessrotate.cli.options import (
    DryRun,
    Json,
    ManySessions,
    Quiet,
    Wait,
    Yes,
    flag,
    one_of,
    sized,
)
from sessrotate.errors import WrongUsageError


def command(
    sessions: ManySessions = None,
    *,
    every: Annotated[
        bool, flag("--all", "Every session whose rotation frees 1 MiB of the disk, or more.")
    ] = False,
    min_size: Annotated[
        int | None,
        sized("With --all: sessions of at least this size, whatever rotating them frees."),
    ] = None,
    live: Annotated[bool, flag("--live", "Also if a client is running the session.")] = False,
    wait: Wait = 10.0,
    unsafe_adopt: Annotated[
        bool,
        flag(
            "--unsafe-adopt",
            "If the live file does not continue its archive, put that archive aside and start a "
            "new one.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make sessions small for their client, and keep their history in compressed archives.

    What a resume needs stays where the client looks, and the session resumes exactly as before.
    Everything else moves to an archive next to the client's projects folder. `restore` undoes it.

    One session that you name is rotated at once. Several, or --all, are shown first, and you are
    asked.
    """
    one_of(sessions, every)
    if min_size is not None and not every:
        raise WrongUsageError("--min-size needs --all.")
    if unsafe_adopt and (every or len(sessions or ()) > 1):
        raise WrongUsageError("--unsafe-adopt takes one SESSION.")
    options = in_place.Options(wait, live, unsafe_adopt, dry_run, as_json, quiet, yes)
    in_place.run([find.path_of(session) for session in sessions or ()], options, min_size)
