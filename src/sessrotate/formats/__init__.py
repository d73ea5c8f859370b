"""One module for each client: what is a boundary, how a file is recognised, where sessions live.

Rule: nothing outside this package knows a client's record types, and nothing inside it opens a
session file: it is handed lines.
"""
