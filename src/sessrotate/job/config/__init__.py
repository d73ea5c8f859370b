"""The settings of `sessrotate run`: the table of them, their TOML text, and the file.

Promise: a settings file → `Settings`, or an error that names the setting. `keys` lists every
setting, `parse` understands the text, `file` reads and writes it. May import `retention` and below.

Rule: a mistake in the file is an error; it is never ignored.
"""
