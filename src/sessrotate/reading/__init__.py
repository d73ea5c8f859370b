"""An open session: its records, a selection of them, and the whole history stitched together.

Promise: the history reads the same wherever its parts are by now. In comes what holds a session
(live file, archive, folder, single file); out come records and bytes, in order.
May import `find`, `archive` and below, never what changes a live file.

Rule: segments that are not asked for are never opened.
"""
