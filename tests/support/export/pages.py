"""What may stand in a page: every element, attribute and value that is the exporter's own.

Rule: a list of what is allowed, written down here and not taken from the code; text is free, and
nothing else is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, TypeAlias

from sessrotate import open_session
from sessrotate.export import html

VOID: Final = {"meta", "input", "img"}

ANCHOR: Final = r"#((a\d+-)?\d+-\d+|s\d+)"
TEXT: Final = r"(?s).*"
_WORDS: Final = (
    "agent|answer|attachment|boundary|branch|broken|error|meta|more|note|other|prompt|raw|result|"
    "rewound|side|step|summary|system|task|text|thinking|tool|typed"
)
CLASS: Final = rf"({_WORDS})( ({_WORDS}))*"

Allowed: TypeAlias = dict[str, dict[str, str]]
"""Elements → their attributes → what each must be."""

SESSION: Final[Allowed] = {
    "a": {"href": rf"(\d+\.html)?{ANCHOR}|\d+\.html"},  # the latter in the index of several pages
    "article": {"class": CLASS, "id": r"(a\d+-)?\d+-\d+"},
    "b": {},
    "code": {},
    "details": {"class": CLASS},
    "div": {"class": CLASS},
    "h2": {"id": r"s\d+|agents"},
    "h3": {},
    "h4": {},
    "header": {},
    "i": {},
    "img": {
        "alt": TEXT,
        "decoding": "async",
        "loading": "lazy",
        "src": r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*",
    },
    "p": {"class": CLASS},
    "pre": {},
    "section": {},
    "span": {"data-hint": TEXT},
    "strong": {},
    "summary": {},
    "time": {"datetime": TEXT},
}
"""What records are made of."""

_WORD: Final = r"[A-Za-z0-9 ,.()-]+"
FRAME: Final[Allowed] = {
    "html": {"lang": "en"},
    "head": {},
    "meta": {"charset": "utf-8", "http-equiv": _WORD, "name": _WORD, "content": TEXT},
    "title": {},
    "style": {},
    "script": {},
    "body": {},
    "header": {"id": "bar"},
    "button": {
        "id": _WORD,
        "type": "button",
        "aria-label": _WORD,
        "aria-controls": _WORD,
        "title": _WORD,
    },
    "h1": {},
    "h2": {},
    "search": {},
    "input": {
        "id": _WORD,
        "type": "search|checkbox",
        "placeholder": r"Search \( / \)",
        "aria-label": _WORD,
        "autocomplete": "off",
        "spellcheck": "false",
        "value": _WORD,
        "checked": "",
    },
    "output": {"id": "hits", "for": "query"},
    "label": {"title": _WORD},
    "details": {"id": "show"},
    "summary": {},
    "div": {},
    "table": {},
    "tr": {},
    "td": {},
    "kbd": {},
    "nav": {"id": "sidebar"},
    "ol": {},
    "li": {},
    "a": {"href": r"(\d+\.html)?#s\d+|index\.html"},
    "time": {"datetime": TEXT},
    "main": {},
    "footer": {},
}
"""What is around the records."""


@dataclass(slots=True)
class Element:
    """An element: its attributes, and the text directly and deeper in it."""

    tag: str
    attributes: dict[str, str]
    inside: tuple[str, ...]
    text: str = ""


@dataclass(slots=True)
class Page(HTMLParser):
    """A page, parsed; whatever is not allowed is a failure where it stands."""

    frame: Allowed = field(default_factory=lambda: FRAME)
    main: Allowed = field(default_factory=lambda: SESSION)
    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = tuple(element.tag for element in self.open)
        allowed = self.main if "main" in inside else self.frame
        assert tag in allowed, (tag, inside, self.getpos())
        assert len({name for name, _value in attrs}) == len(attrs), (tag, attrs)
        for name, value in attrs:
            assert name in allowed[tag], (tag, name, self.getpos())
            assert re.fullmatch(allowed[tag][name], value or ""), (tag, name, value)
        element = Element(tag, {name: value or "" for name, value in attrs}, inside)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, (tag, self.getpos())
        assert self.open.pop().tag == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(("comment", data))

    def handle_pi(self, data: str) -> None:
        raise AssertionError(("instruction", data))

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(("declaration", data))

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"
        assert not self.elements

    def all(self, tag: str, words: str = "") -> list[Element]:
        """Return the elements with this tag and these words in their class."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and set(words.split()) <= set(element.attributes.get("class", "").split())
        ]

    def one(self, tag: str, identity: str) -> Element:
        """Return the element with this id."""
        found = [each for each in self.all(tag) if each.attributes.get("id") == identity]
        assert len(found) == 1, (tag, identity, len(found))
        return found[0]


def written(path: Path | str, **options: Any) -> bytes:
    """Return a session's page."""
    with open_session(path, **options) as session:
        return b"".join(html.pieces(session))


def parsed(page: bytes | str, frame: Allowed = FRAME, main: Allowed = SESSION) -> Page:
    """Return a page, after checking that it holds nothing but what is allowed."""
    found = Page(frame, main)
    found.feed(page.decode() if isinstance(page, bytes) else page)
    found.close()
    assert not found.open, [element.tag for element in found.open]
    return found
