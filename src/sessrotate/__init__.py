"""sessrotate: logrotate for coding-agent sessions.

Rule: importing this costs nothing; each part is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessrotate.reading.session import open_session

__all__ = ["open_session"]
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("sessrotate.reading.session"), name)
    raise AttributeError(name)
