"""What is on the disk for one session at one moment: its live file, its archive, what is half-done.

Promise: every byte of the history is found, during a rotation and after any crash. In comes a
`Place`; out come a `State` and the `history` in order. May import `segments` and below.

Rule: only reads.
"""
