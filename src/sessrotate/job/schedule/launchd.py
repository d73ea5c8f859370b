"""The scheduled job as a launchd agent, on macOS. Pure.

launchd catches up on a start that was missed while the machine slept (launchd.plist(5),
`StartCalendarInterval`), but not on one that was missed while it was off.

Rule: Python's plistlib writes the file, so that nothing needs quoting.
"""

from __future__ import annotations

import plistlib
from typing import Any, Final

from sessrotate.job.schedule.work import HOUR, MARK, MINUTE, Every, Work

_WHEN: Final[dict[Every, dict[str, int]]] = {
    "hourly": {"Minute": MINUTE},
    "daily": {"Minute": MINUTE, "Hour": HOUR},
    "weekly": {"Minute": MINUTE, "Hour": HOUR, "Weekday": 0},
}


def files(work: Work) -> dict[str, str]:
    """Return the name of the agent's file and its content."""
    agent = {
        "Label": work.name,
        "ProgramArguments": [work.program, "run"],
        "EnvironmentVariables": dict(work.environment),
        "StartCalendarInterval": _WHEN[work.every],
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 19,
        "Umask": 0o077,
    }
    text = plistlib.dumps(agent).decode()
    return {file(work.name): text.replace("<plist ", f"<!-- {MARK} -->\n<plist ", 1)}


def file(name: str) -> str:
    """Return the name of the file of the agent with this label."""
    return f"{name}.plist"


def told(data: bytes) -> tuple[str | None, Every | None]:
    """Return the program that an agent starts and how often; None for what is not as we write."""
    try:
        agent: Any = plistlib.loads(data)
        program, when = agent["ProgramArguments"][0], agent["StartCalendarInterval"]
    except Exception:  # noqa: BLE001 - whatever a file of somebody else's has in it
        return None, None
    often = next((each for each, ours in _WHEN.items() if ours == when), None)
    return (program if isinstance(program, str) else None), often
