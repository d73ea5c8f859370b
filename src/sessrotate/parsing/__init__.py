"""Bytes of a session file → lines → JSON values.

Promise: the same verdict as a client's `JSON.parse`, at any length and depth, in bounded memory.
In come bytes, or an open `Source`; out come lines, records and single values of them.
May import `system` and the words that everybody uses.

Rule: a line is opaque bytes until somebody asks what it says; nothing is repaired.
"""
