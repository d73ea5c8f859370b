r"""The scheduled job as units of systemd's user manager. Pure.

What systemd makes of a line is in systemd.service(5), systemd.exec(5) and systemd.syntax(7), and
was tried with systemd 252: words may stand in double quotes, in which C escapes count, so `"` is
`\"`; `%` begins a specifier, so it is `%%`; in arguments `$` begins a variable, so it is `$$`.
What is executed may hold neither quotes nor backslashes nor control characters, however escaped,
and `$$` stays two signs there: a path with such a character is given to a shell as an argument.

Rule: of what would shut the job in, only what needs no namespace of users. In one, a process
cannot see who else has a session open, and with that one of our protections would be gone. So
`ProtectSystem=`, `PrivateTmp=` and their like are left out: a user's manager needs one for them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sessrotate.errors import RefusedError, printable
from sessrotate.job.schedule.work import MARK

if TYPE_CHECKING:
    from sessrotate.job.schedule.work import Every, Work

SERVICE: Final = "sessrotate.service"
TIMER: Final = "sessrotate.timer"

_DELAY: Final[dict[Every, str]] = {"hourly": "10min", "daily": "1h", "weekly": "6h"}
"""By how much at most a start is late: machines of one site do not all begin at midnight."""

_SERVICE: Final = """\
# {mark}
[Unit]
Description=Rotate coding-agent sessions (sessrotate run)

[Service]
Type=oneshot
ExecStart={command}
{environment}# 75: somebody else runs it already.
SuccessExitStatus=75
# It is in nobody's way.
Nice=19
IOSchedulingClass=idle
# It needs no network, no other user, and nothing private of it is for others.
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
OnCalendar={every}
# What was missed while the machine was off is made up for.
Persistent=true
RandomizedDelaySec={delay}

[Install]
WantedBy=timers.target
"""


def files(work: Work) -> dict[str, str]:
    """Return the names of the units and what is in them.

    Raises RefusedError for a path or a variable that systemd cannot be told.
    """
    environment = "".join(
        f"Environment={_quoted(f'{name}={value}')}\n"
        for name, value in sorted(work.environment.items())
    )
    return {
        SERVICE: _SERVICE.format(
            mark=MARK, command=_command(work.program), environment=environment
        ),
        TIMER: _TIMER.format(mark=MARK, every=work.every, delay=_DELAY[work.every]),
    }


def _command(program: str) -> str:
    if re.search(r"[\x00-\x1f\x7f\"'\\$]", program) is None:
        return f"{_quoted(program)} run"
    script = _argument('exec "$0" run')
    return f"/bin/sh -c {script} {_argument(program)}"


def _argument(text: str) -> str:
    return _quoted(text.replace("$", "$$"))


def _quoted(text: str) -> str:
    """Return one word; `$` stays as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusedError(
            f"{printable(text)} is no UTF-8, which systemd demands: install sessrotate elsewhere, "
            "or call `sessrotate run` by cron."
        ) from None
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    escaped = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", escaped)
    return escaped if re.fullmatch(r"[\w/.,:=@+%-]+", escaped) else f'"{escaped}"'
