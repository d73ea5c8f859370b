"""Everything that changes a live file: rotate, restore, swap, seal, recover.

Promise: no byte is lost, whoever writes and whatever crashes. In comes a `Place`; out comes a
plan, and then its effect. May import `find`, `archive` and below.

Rule: plan first, then execute that plan; the swap is one rename, and all else is before or after.
"""
