"""The clients' own hooks: installing them, and what a client calls when a session ends.

Promise: a client never waits for us and never fails because of us. In comes a client's call or its
settings file; out comes a rotation in the background, or new settings.
May import `in_place` and below.

Rule: what goes wrong is noted for `doctor`, never raised at the client.
"""
