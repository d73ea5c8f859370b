"""sessrotate: logrotate for coding-agent sessions.

Promise: the names in `__all__` are public; docs/guide/library.md teaches them. Any other module,
class or function of this package may change at any time.

Rule: importing this costs nothing. A public name is loaded when it is first used.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from sessrotate.clients.preview import Agent, Continues, Title
    from sessrotate.clients.view import (
        Image,
        Text,
        Thinking,
        Tokens,
        ToolCall,
        ToolResult,
        Unknown,
        View,
    )
    from sessrotate.errors import (
        DamagedError,
        InputError,
        InUseError,
        NotASessionError,
        RefusedError,
        RequestError,
        SessrotateError,
        StorageError,
        WrongUsageError,
    )
    from sessrotate.model import Boundary
    from sessrotate.parsing import Record
    from sessrotate.reading.pieces import SegmentInfo
    from sessrotate.reading.session import Session, open_session
    from sessrotate.reports import SessionInfo
    from sessrotate.reports.listing import sessions

__all__ = [
    "Agent",
    "Boundary",
    "Continues",
    "DamagedError",
    "Image",
    "InUseError",
    "InputError",
    "NotASessionError",
    "Record",
    "RefusedError",
    "RequestError",
    "SegmentInfo",
    "Session",
    "SessionInfo",
    "SessrotateError",
    "StorageError",
    "Text",
    "Thinking",
    "Title",
    "Tokens",
    "ToolCall",
    "ToolResult",
    "Unknown",
    "View",
    "WrongUsageError",
    "open_session",
    "sessions",
]
__version__ = "0.1.0"

_MODULES = {
    "errors": "SessrotateError RequestError WrongUsageError InUseError RefusedError "
    "InputError NotASessionError DamagedError StorageError",
    "model": "Boundary",
    "clients.preview": "Agent Continues Title",
    "clients.view": "View Text Thinking ToolCall ToolResult Image Unknown Tokens",
    "parsing": "Record",
    "reading.pieces": "SegmentInfo",
    "reading.session": "Session open_session",
    "reports.listing": "sessions",
    "reports": "SessionInfo",
}
"""The public names by the module that has them."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

if not _typing.TYPE_CHECKING:  # or a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        found = getattr(_import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
