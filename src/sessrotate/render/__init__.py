"""Results → text, tables, JSON and pages.

Promise: what people and programs read, safe on any terminal and in any browser. In come results
of all packages below, as values; out comes text. May import the packages whose results it shows.

Rule: pure: no file, no clock, no decision.
"""
