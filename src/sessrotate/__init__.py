"""sessrotate: logrotate for coding-agent sessions.

Rule: importing this costs nothing; each part is loaded when it is first used.
"""

__version__ = "0.1.0.dev0"
