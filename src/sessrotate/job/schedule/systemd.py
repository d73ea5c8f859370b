"""The scheduled job as units of systemd's user manager. Pure.

A word with a space is in double quotes: no `Work` has what needs more (systemd.syntax(7)).

Rule: the job is sandboxed only as far as that needs no user namespace. In one, a process cannot
see who else has a session open, which is one of our protections. So `ProtectSystem=`, `PrivateTmp=`
and the like are left out: in a user's manager they need one.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

from sessrotate.job.schedule.work import MARK, Every, Work

_WITHIN: Final[dict[Every, int]] = {"hourly": 600, "daily": 3600, "weekly": 6 * 3600}
"""In how many seconds the machines of a site start, each at its own: not all at once.

No `RandomizedDelaySec=`: systemd lets a start that it catches up on wait as well, anew after each
login, and so a machine that is on for less than that would never start.
"""

_CALENDAR: Final[dict[Every, tuple[str, str]]] = {
    "hourly": ("*:{1:02}:{2:02}", r"\*:\d\d:\d\d"),
    "daily": ("{0:02}:{1:02}:{2:02}", r"\d\d:\d\d:\d\d"),
    "weekly": ("Mon {0:02}:{1:02}:{2:02}", r"Mon \d\d:\d\d:\d\d"),
}
"""When it starts, by hour, minute and second, and what that looks like."""

TIMES: Final[dict[Every, str]] = {
    "hourly": "in the first 10 minutes of every hour",
    "daily": "every night between 0:00 and 1:00",
    "weekly": "on Mondays between 0:00 and 6:00",
}
"""When it starts, in words (systemd.time(7)), by the machine's own time."""

_SERVICE: Final = """\
# {mark}
[Unit]
Description=Rotate coding-agent sessions (sessrotate run)

[Service]
Type=oneshot
ExecStart={command}
{environment}# 75: another run is in progress.
SuccessExitStatus=75
# Stay out of the way.
Nice=19
IOSchedulingClass=idle
# It needs no network and no other user.
RestrictAddressFamilies=AF_UNIX
NoNewPrivileges=true
RestrictSUIDSGID=true
RestrictNamespaces=true
RestrictRealtime=true
LockPersonality=true
SystemCallArchitectures=native
UMask=0077
"""

_TIMER: Final = """\
# {mark}
[Unit]
Description=Rotate coding-agent sessions {every}

[Timer]
OnCalendar={calendar}
# Catch up on a start that was missed while the machine was off.
Persistent=true

[Install]
WantedBy=timers.target
"""


def files(work: Work) -> dict[str, str]:
    """Return the names of the units and their content."""
    environment = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n"
        for name, value in sorted(work.environment.items())
    )
    return {
        service(work.name): _SERVICE.format(
            mark=MARK, command=f"{_quoted(work.program)} run", environment=environment
        ),
        timer(work.name): _TIMER.format(
            mark=MARK, every=work.every, calendar=_calendar(work.every, work.spread)
        ),
    }


def service(name: str) -> str:
    """Return the name of the unit that does the work."""
    return f"{name}.service"


def timer(name: str) -> str:
    """Return the name of the unit that starts the service of the same name."""
    return f"{name}.timer"


def program(text: str) -> str | None:
    """Return the program that a service starts, None if that is not written as we do."""
    found = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)
    try:
        words = [] if found is None else shlex.split(found[1])
    except ValueError:
        return None
    return words[0] if words[1:] == ["run"] else None


def every(text: str) -> Every | None:
    """Return how often a timer starts, None if that is not written as we do."""
    found = re.search(r"^OnCalendar=(.*)$", text, re.MULTILINE)
    told = "" if found is None else found[1]
    forms = ((each, form) for each, (_, form) in _CALENDAR.items())
    return next((each for each, form in forms if told == each or re.fullmatch(form, told)), None)


def _calendar(every: Every, spread: int) -> str:
    minutes, second = divmod(spread % _WITHIN[every], 60)
    return _CALENDAR[every][0].format(*divmod(minutes, 60), second)


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text
