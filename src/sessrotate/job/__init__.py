"""The scheduled job: settings, steps, the log that undoes it, how the system starts it.

Promise: `sessrotate run` does what the settings say, once, and reports what it did. In comes a
settings file; out come a report and a line in the log. May import `retention`, `in_place`, `find`
and below.

Rule: the steps are rows of a table, in the order in which they are done.
"""
