"""What tests ask of a report's page in a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from sessrotate.render import report_json
from sessrotate.reports import MachineReport, SessionReport
from support.export.browser import Browser

SOON: Final = "new Promise((done) => setTimeout(done, 120))"


def made(folder: Path, name: str, report: MachineReport | list[SessionReport]) -> Path:
    page = folder / f"{name}.html"
    page.write_bytes(b"".join(report_json.page(report, 1_795_000_000.0)))
    return page


def card(name: str) -> str:
    return f'[data-card="{name}"]'


def drawn(browser: Browser, page: Path) -> None:
    """Open a page and wait until its charts are there."""
    browser.open(page)
    browser.wait("document.querySelector('.chart svg') || !document.querySelector('.chart')")


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.textContent)"
    )
    return found


def cells(browser: Browser, table: str) -> list[list[str]]:
    """Return the cells of a table's rows that are drawn, top to bottom."""
    found: list[list[str]] = browser.run(
        f"[...document.querySelectorAll({json.dumps(table + ' tbody tr:not(.blank)')})]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return found


def count(browser: Browser, selector: str) -> int:
    return len(texts(browser, selector))
