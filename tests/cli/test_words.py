"""What people typed is shown as theirs, and as they typed it, wherever a session is shown.

The sessions are shaped after public reports about other viewers.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessrotate.reading import deduplicate
from support import codex_sessions, homes
from support.command_line import ID, piped, row
from support.talks import answer, call, chained, prompt, result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.command_line import Ended

PICTURE: Final = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoA"},
}


class Shown:
    """A session, and what the commands show of it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env

    def piped(self, *arguments: str | Path) -> Ended:
        ended = piped(*arguments, env=self._env)
        assert ended.code == 0, ended
        return ended

    def read(self, *arguments: str) -> str:
        return self.piped("read", ID, *arguments).out

    def headings(self, *arguments: str) -> list[str]:
        ended = self.piped("export", ID, "--format", "markdown", *arguments)
        return re.findall(r"^## (.*)$", ended.out, re.MULTILINE)

    def articles(self, page: Path) -> list[str]:
        """Return the prompts of a page."""
        self.piped("export", ID, "--format", "html", "--output", page)
        return re.findall(r'<article class="prompt".*?</article>', page.read_text(), re.DOTALL)

    def found(self, word: str) -> list[tuple[str, str]]:
        """Return who says a word, and the line that says it, of each hit of a search."""
        hits: list[dict[str, Any]] = [
            *map(json.loads, self.piped("search", word, "--json").out.splitlines())
        ]
        return [(each["who"], each["text"]) for each in hits]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    return lambda data: Shown(homes.home(tmp_path, monkeypatch, data).env)


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def queued(number: int, said: object, **more: object) -> bytes:
    """Return what 2.1.112 to 2.1.332 write of a prompt that a running turn took in."""
    attachment = {"type": "queued_command", "prompt": said, "commandMode": "prompt", **more}
    return row(number, type="attachment", message=None, attachment=attachment)


def typed(shown: str) -> list[str]:
    """Return the lines that are marked as typed, but for pictures."""
    return re.findall(r"^> (?!\[)(.*)$", shown, re.MULTILINE)


if TYPE_CHECKING:
    Open = Callable[[bytes], Shown]


# ── what was typed while the client worked ───────────────────────────────────────────────────

WORKING: Final = chained(
    prompt(1, "Fire the first kiln?"),
    answer(2, call("Bash", "t1", command="fire 1")),
    result(3, "t1", "fired"),
    queued(4, "TAKEN-IN use the blue glaze"),
    answer(5, "Using the blue glaze."),
    queued(6, [text("WITH-PICTURE like this"), PICTURE], origin={"kind": "human"}),
    answer(7, "As in the picture."),
    queued(8, "<task-notification>\nNOTICE\n</task-notification>", commandMode="task-notification"),
    queued(9, "OF-A-PEER", origin={"kind": "peer"}),
    queued(10, "OF-THE-CLIENT", isMeta=True),
    answer(11, "Noted."),
    prompt(12, "OWN-TURN count the bricks"),
    answer(13, "Nine bricks."),
)


@pytest.mark.parametrize("arguments", [(), ("--history",), ("--brief",), ("--history", "--brief")])
def test_what_was_typed_while_the_client_worked_is_a_prompt(
    opened: Open, arguments: tuple[str, ...]
) -> None:
    session = opened(WORKING)
    shown = session.read(*arguments)
    assert typed(shown) == [
        "Fire the first kiln?",
        "TAKEN-IN use the blue glaze",
        "WITH-PICTURE like this",
        "OWN-TURN count the bricks",
    ]
    assert "\n> [image/png, 9 B]\n" in shown
    assert shown.count("You · ") == 4
    for other in ("NOTICE", "OF-A-PEER", "OF-THE-CLIENT"):
        assert other not in shown


def test_it_is_a_turn_with_a_number_and_a_heading(opened: Open) -> None:
    session = opened(WORKING)
    told = [
        "1. Fire the first kiln?",
        "2. TAKEN-IN use the blue glaze",
        "3. WITH-PICTURE like this",
        "4. OWN-TURN count the bricks",
    ]
    assert session.headings() == told
    assert session.headings("--turns", "2:3") == told[1:3]
    assert typed(session.read("--turns", "3")) == ["WITH-PICTURE like this"]


def test_a_search_finds_it_as_the_users(opened: Open) -> None:
    session = opened(WORKING)
    assert session.found("TAKEN-IN") == [("You", "TAKEN-IN use the blue glaze")]
    assert session.found("OF-A-PEER")[0][0] == "Attachment"


def test_a_page_shows_it_with_its_picture(opened: Open, tmp_path: Path) -> None:
    articles = opened(WORKING).articles(tmp_path / "page.html")
    assert [re.findall("[A-Z]+-[A-Z]+", each)[-1:] for each in articles] == [
        [], ["TAKEN-IN"], ["WITH-PICTURE"], ["OWN-TURN"],
    ]  # fmt: skip
    assert "data:image/png;base64,iVBORw0KGgoA" in articles[2]


def enqueued(number: int, said: str, operation: str = "enqueue") -> bytes:
    fields = {"operation": operation, "content": said, "sessionId": ID}
    return row(number, type="queue-operation", uuid=None, message=None, **fields)


QUEUE: Final = chained(
    prompt(1, "Fire the first kiln?"),
    enqueued(2, "TAKEN-IN use the blue glaze\nand the red"),
    answer(3, call("Bash", "t1", command="fire 1")),
    result(4, "t1", "fired"),
    queued(5, "TAKEN-IN use the blue glaze\nand the red"),
    enqueued(6, "LOST never delivered"),
    enqueued(7, "JOINED-1"),
    enqueued(8, "JOINED-2"),
    enqueued(9, "/review all"),
    enqueued(10, "<task-notification>NOTICE</task-notification>"),
    enqueued(11, "/model"),
    answer(12, "LOST never delivered"),
    prompt(13, "JOINED-1\nJOINED-2"),
    prompt(14, "<command-name>/review</command-name>\n<command-args>all</command-args>"),
    answer(15, "Nine bricks."),
)


def test_what_waited_and_never_was_delivered_is_a_prompt_of_the_history(opened: Open) -> None:
    session = opened(QUEUE)
    told = [
        "Fire the first kiln?", "TAKEN-IN use the blue glaze", "and the red",
        "LOST never delivered", "JOINED-1", "JOINED-2", "/review all",
    ]  # fmt: skip
    assert typed(session.read("--history")) == told
    assert typed(session.read("--history", "--brief")) == told
    # A client that resumes it does not send it.
    assert typed(session.read()) == [each for each in told if "LOST" not in each]
    assert typed(session.read("--history", "--turns", "3")) == ["LOST never delivered"]
    assert typed(session.read("--history", "--grep", "LOST|JOINED")) == []  # places, not turns
    assert [each.split(" ", 1)[0] for each in session.headings()] == ["1.", "2.", "3.", "4.", "5."]


def test_a_search_finds_what_waited_once(opened: Open) -> None:
    session = opened(QUEUE)
    lost = "LOST never delivered"
    assert session.found("LOST") == [("You", lost), ("Assistant", lost)]
    assert session.found("TAKEN") == [("You", "TAKEN-IN use the blue glaze")]
    assert session.found("JOINED-2") == [("You", "JOINED-2")]
    assert session.found("^/review all$") == [("You", "/review all")]


def test_what_waited_is_of_no_branch_that_was_rewound(opened: Open) -> None:
    parent = json.loads(row(2))["uuid"]
    begun = [prompt(1, "First."), answer(2, "Well.")]
    left = [prompt(3, "Left."), enqueued(4, "LOST"), answer(5, "Gone.")]
    data = chained(*begun, *left) + chained(prompt(6, "Again.")).replace(
        b'"parentUuid":null', b'"parentUuid":"%s"' % parent.encode()
    )
    session = opened(data)
    assert session.headings() == ["1. First.", "2. LOST", "3. Again."]
    document = session.piped("export", ID, "--format", "markdown").out
    assert re.findall("Left out here: .*? of", document) == ["Left out here: 2 records of"]
    assert session.headings("--all-branches") == ["1. First.", "Left.", "2. LOST", "3. Again."]


def test_what_was_taken_back_from_the_queue_is_no_prompt(opened: Open) -> None:
    session = opened(
        chained(
            prompt(1, "First."),
            enqueued(2, "half a thought"),
            enqueued(3, "half a thought", "popAll"),
            answer(4, "Well."),
            enqueued(5, "a whole one"),
        )
    )
    assert typed(session.read("--history")) == ["First.", "a whole one"]


def test_no_more_than_there_is_room_for_is_held_to_know_what_was_delivered(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deduplicate, "MOST_HELD", 1000)
    late = [answer(number, "x" * 100) for number in range(3, 12)]
    rows = [prompt(1, "First."), enqueued(2, "LATE"), *late, prompt(12, "LATE")]
    session = opened(chained(*rows))
    assert typed(session.read("--history")) == ["First.", "LATE", "LATE"]  # nothing is lost
    assert typed(opened(chained(*rows[:4], rows[-1])).read("--history")) == ["First.", "LATE"]


# ── what a turn is called by ─────────────────────────────────────────────────────────────────

IDE: Final = "<ide_opened_file>The user opened a.py in the IDE.</ide_opened_file>"
SELECTION: Final = "<ide_selection>The user selected the lines 1 to 3:\nx\n</ide_selection>"
REMINDER: Final = "<system-reminder>\nToday is Sunday.\n</system-reminder>"


def asking(number: int, *blocks: object) -> bytes:
    return row(number, message={"role": "user", "content": [*blocks]})


BESIDE: Final = chained(
    asking(1, PICTURE, text("HEADING-1 picture in front?")),
    answer(2, "Answer 1."),
    asking(3, text(IDE), text("HEADING-2 behind an open file")),
    answer(4, "Answer 2."),
    asking(5, text(SELECTION), text("HEADING-3 behind a selection")),
    answer(6, "Answer 3."),
    prompt(7, f"{REMINDER}\nHEADING-4 behind a reminder, in one text"),
    answer(8, "Answer 4."),
    prompt(9, f"{IDE}\n<command-name>/review</command-name>\n<command-args>all</command-args>"),
    answer(10, "Answer 5."),
    asking(11, PICTURE),
    answer(12, "Answer 6."),
)
CALLED: Final = [
    "HEADING-1 picture in front?",
    "HEADING-2 behind an open file",
    "HEADING-3 behind a selection",
    "HEADING-4 behind a reminder, in one text",
    "/review all",
]


def test_a_turn_is_called_by_what_was_typed(opened: Open) -> None:
    session = opened(BESIDE)
    assert session.headings() == [
        *(f"{number}. {said}" for number, said in enumerate(CALLED, 1)),
        r"6. \[image/png, 9 B\]",
    ]
    assert typed(session.read("--history")) == CALLED


def test_a_page_lists_turns_by_what_was_typed(opened: Open, tmp_path: Path) -> None:
    articles = opened(BESIDE).articles(tmp_path / "page.html")
    # The page's script takes the first text of each. (See `page.js`.)
    listed = [re.findall(r'class="text[^>]*>(?:<p>)?([^<]*)', each)[:1] for each in articles]
    assert listed == [*([said] for said in CALLED), []]
    assert articles[0].index("HEADING-1") < articles[0].index("data:image/png")
    for article, note in zip(articles[1:5], ("a.py", "lines 1", "Sunday", "a.py"), strict=True):
        assert article.index('class="text') < article.index(note)


def test_what_editors_and_the_client_put_beside_it_is_shown_on_demand(opened: Open) -> None:
    session = opened(BESIDE)
    ended = session.piped("read", ID)
    assert "IDE" not in ended.out
    assert "Sunday" not in ended.out
    assert "Hidden: 4 records of the client. --include meta shows them." in ended.err
    shown = session.read("--include", "meta")
    assert typed(shown) == CALLED  # what others said is not marked as typed
    assert shown.count("The user opened a.py in the IDE.") == 2
    assert "Today is Sunday." in shown
    assert session.found("Sunday") == [("Client", "Today is Sunday.")]


COMMAND: Final = "<command-name>/{}</command-name>\n<command-message>{}</command-message>\n"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (COMMAND.format("clear", "clear"), None),
        ("<local-command-stdout></local-command-stdout>", None),
        (IDE, None),
        ("<task-notification>\n<status>completed</status>\n</task-notification>", None),
        ("<bash-input>ls</bash-input>", None),
        ("<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>", None),
        ("[Request interrupted by user]", None),
        (f"{IDE}\nTYPED behind an open file", "TYPED behind an open file"),
        (f"{REMINDER}\nTYPED behind a reminder", "TYPED behind a reminder"),
        ("<teammate-message teammate_id='lead'>\nTYPED by the lead\n</teammate-message>",
         "TYPED by the lead"),
        ("<div>TYPED with a tag</div> here?", "<div>TYPED with a tag</div> here?"),
        (COMMAND.format("review", "review") + "<command-args>TYPED</command-args>",
         "/review TYPED"),
    ],
)  # fmt: skip
def test_a_session_is_called_by_what_was_typed(opened: Open, said: str, title: str | None) -> None:
    later = [] if title else [prompt(3, "A real prompt")]
    session = opened(chained(prompt(1, said), answer(2, "Done."), *later))
    (entry,) = json.loads(session.piped("list", "--json").out)
    assert entry["title"] == (title or "A real prompt")
    assert session.headings()[-1].replace("\\", "").endswith(f". {entry['title']}")


def test_codex_names_a_picture_and_a_turn_is_called_by_what_was_typed(tmp_path: Path) -> None:
    rows = codex_sessions.Rows()
    rows.add("session_meta", id=codex_sessions.ID, cli_version="0.142.5")
    sent = codex_sessions.message(
        "user", "<image name=[Image #1]>", "</image>", "HEADING-5 what is this?"
    )
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoA"}
    sent["content"].insert(1, picture)
    rows.item(**sent)
    path = tmp_path / f"rollout-2026-03-02T09-00-00-{codex_sessions.ID}.jsonl"
    path.write_bytes(b"\n".join(rows.lines) + b"\n")
    ended = piped("export", path, "--format", "markdown")
    assert re.findall(r"^##? (.*)$", ended.out, re.MULTILINE) == [
        "HEADING-5 what is this?",
        "1. HEADING-5 what is this?",
    ]
    assert "<image" not in ended.out


# ── what was typed at a tool ─────────────────────────────────────────────────────────────────

ASKED: Final = {"questions": [{"question": "Which tiles?", "options": [{"label": "Slate"}]}]}
REFUSED: Final = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you "
    "how to proceed, the user said:\n"
)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("User has answered your questions: ",
         " You can now continue with the user's answers in mind."),
        ("Your questions have been answered: ",
         " You can now continue with these answers in mind."),
        ("The user answered: ", " Read the answers carefully — they may request clarification."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("arguments", [("--history",), ("--brief",)])
def test_what_the_user_answered_is_shown(
    opened: Open, before: str, behind: str, arguments: tuple[str, ...]
) -> None:
    said = '"Which tiles?"="Red clay, the old ones".'
    shown = opened(
        chained(
            prompt(1, "Plan the roof?"),
            answer(2, call("AskUserQuestion", "t1", **ASKED)),
            result(3, "t1", before + said + behind),
            answer(4, "Clay it is."),
        )
    ).read(*arguments)
    assert f"  • AskUserQuestion Which tiles? → answered\n    > {said}\n" in shown


def test_what_the_user_put_to_a_permission_is_a_prompt(opened: Open) -> None:
    # So 2.1.112 writes what is typed at "Yes, and tell Claude what to do next".
    given = {"type": "tool_result", "tool_use_id": "t1", "content": "GIVEN"}
    session = opened(
        chained(
            prompt(1, "Lay the tiles"),
            answer(2, call("Bash", "t1", command="lay")),
            row(3, message={"role": "user", "content": [given, text("PUT-TO-IT dry"), PICTURE]}),
            answer(4, "Dry."),
            prompt(5, "And the roof?"),
        )
    )
    told = ["1. Lay the tiles", "2. PUT-TO-IT dry", "3. And the roof?"]
    assert session.headings() == told
    assert session.headings("--turns", "2:3") == told[1:]
    shown = session.read()
    assert "  • Bash lay → 1 line\n\nYou · 2026-03-01 10:00:03\n> PUT-TO-IT dry\n" in shown
    assert session.found("PUT-TO-IT") == [("You", "PUT-TO-IT dry")]
    assert session.found("GIVEN") == [("Tool", "GIVEN")]
    assert session.piped("search", "PUT-TO-IT", "--who", "you", "-c").out.startswith("     1 · ")


@pytest.mark.parametrize(
    "behind", ["", "\n\nNote: The user's next message may contain a correction or preference."]
)
def test_why_the_user_refused_is_shown(opened: Open, behind: str) -> None:
    plan = "# The plan\n\n1. Lay battens\n2. Hang tiles"
    data = chained(
        prompt(1, "Plan the roof?"),
        answer(2, call("ExitPlanMode", "t1", plan=plan)),
        result(3, "t1", f"{REFUSED}Battens are there\nalready{behind}", is_error=True),
        answer(4, call("Bash", "t2", command="false")),
        result(5, "t2", "the user said:\nnothing", is_error=True),
        answer(6, "I leave the battens out."),
    )
    session = opened(data)
    assert session.read("--history").splitlines()[4:8] == [
        "  • ExitPlanMode # The plan 1. Lay battens 2. Hang tiles → refused",
        "    > Battens are there",
        "    > already",
        "  • Bash false → error: the user said: nothing",
    ]
    assert f"{REFUSED}Battens are there" in session.piped(
        "export", ID, "--format", "markdown"
    ).out  # fmt: skip
