"""A session for people and programs, each record once: one module for each format.

Promise: a session → a document. In comes an open session; out comes text in pieces: JSON lines,
Markdown, or a page. May import `render`, `reading` and below.

Rule: each has a function `pieces(session)` that yields the output in pieces, in constant memory.
"""
