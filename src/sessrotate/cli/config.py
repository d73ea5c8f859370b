"""`sessrotate config`: the settings of `run`."""

from __future__ import annotations

import typer

from sessrotate.cli import driver, streams
from sessrotate.cli.options import Config, Json
from sessrotate.errors import printable
from sessrotate.job import config as config_file
from sessrotate.render import run as render_run
from sessrotate.render.outcomes import Shown

group = typer.Typer(help="Write or show the settings of `run`.", no_args_is_help=True)


@group.command()
def init() -> None:
    """Write a settings file that explains every setting and changes none.

    Does not overwrite an existing file (77).
    """
    streams.write(f"Wrote {printable(str(config_file.init()), 1000)}.\n")


@group.command()
def show(*, config: Config = None, as_json: Json = False) -> None:
    """Show the settings in force, and where each value comes from."""
    loaded = config_file.read(config)
    shown = Shown(render_run.settings(loaded), render_run.settings_json(loaded))
    driver.end(shown, as_json=as_json)
