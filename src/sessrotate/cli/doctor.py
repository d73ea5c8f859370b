"""`sessrotate doctor`: what is wrong on this machine, and what to do about it."""

from __future__ import annotations

from msgspec.structs import asdict

from sessrotate import doctor, render
from sessrotate.cli import driver
from sessrotate.cli.options import Json
from sessrotate.errors import printable
from sessrotate.render.outcomes import Shown


def command(*, as_json: Json = False) -> None:
    """Show where things are, what is wrong (interrupted runs, lost sessions), and what to do.

    The exit code is 0 if everything is fine and 1 if not. Changes nothing.
    """
    settings, found = doctor.look()
    document = {
        "ok": not found,
        "settings": {setting.name: setting.value for setting in settings},
        "numbers": {each.name: each.number for each in settings if each.number is not None},
        "findings": [asdict(finding) for finding in found],
    }
    lines = [f"{setting.name}: {printable(setting.value, 1000)}" for setting in settings]
    lines += [render.located(printable(each.path), each.detail) for each in found]
    lines += [] if found else ["No problems found."]
    shown = Shown(lines, [render.as_json(document)], code=int(bool(found)))
    driver.end(shown, as_json=as_json)
