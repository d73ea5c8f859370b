"""Claude Code's hook: installing it, and what the client calls when a session ends.

Promise: a client never waits for sessrotate and never fails because of it. In comes a client's
call or its settings file; out comes a rotation in the background, or new settings.
May import `in_place` and below.

Rule: failures are noted for `doctor`, and never raised at the client.
"""
