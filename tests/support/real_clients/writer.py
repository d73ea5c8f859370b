"""A client's process, imitated row by row: what it knows, what it continues, what it writes again.

Rule: its rows are copies of the client's own (`kits`), and they hang together as that version was
seen to write them (docs/internals/clients.md says what was seen). What happens next is for others
to say; where a client is not known to do one thing or the other, the dice do.
"""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from support.real_clients.editing import line
from support.real_clients.synthetic import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from support.real_clients.editing import Row
    from support.real_clients.kits import Kit

COPIES_EARLIER: Final = ((2, 1, 160), (2, 1, 300))
"""The first and the last version that write rows again that an earlier compaction took."""

COPIES_LAST: Final = (2, 1, 112)
"""The version that writes again what follows the last boundary, and that boundary."""


class Writer:
    """A session, and the process that writes it."""

    def __init__(self, dice: Random, session: str, kit: Kit) -> None:
        self.dice: Final = dice
        self.session: Final = session
        self.kit = kit
        self.clock = datetime(2026, 11, 1, tzinfo=UTC)
        self.rows: Final[list[Row | bytes]] = []
        self.way: list[Row] = []
        """The conversation as the process has it in memory; the last row is continued."""
        self.count = 0
        self.version = ""
        """The one that wrote the newest compaction."""
        self.has_hook = dice.random() < 0.3
        self.half = b""
        """Half a row, that the next one is written behind."""
        self.begin()

    def begin(self) -> None:
        """Begin a process: it knows what a resume tells it."""
        self.is_new = True
        self.compactions = 0
        self.taken: list[Row] = []
        """Rows that compactions of this process took, which it does not know to be written."""
        self.kept: list[Row] = []
        """Rows that the last compaction preserved."""
        self.prompts = [self.way[:at] for at, row in enumerate(self.way) if is_question(row)]
        """The way to each prompt that a user can go back to."""

    # ── rows ─────────────────────────────────────────────────────────────────────────────────

    def append(self, *rows: Row | bytes) -> None:
        for row in rows:
            self.rows.append(self.half + line(row) if self.half else row)
            self.half = b""

    def row(self, template: Row, parent: Row | None, milliseconds: int = 0, **more: Any) -> Row:
        """Return a new row of the client's that continues `parent`."""
        self.count += 1
        self.clock += timedelta(milliseconds=self.dice.choice((0, 1, 12, 60, 900)))
        row = copy.deepcopy(template)
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.session} {self.count}")
        row.update(uuid=str(name), sessionId=self.session)
        row["parentUuid"] = None if parent is None else parent["uuid"]
        time = self.clock + timedelta(milliseconds=milliseconds)
        row["timestamp"] = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"
        if row["type"] == "assistant":
            row["message"]["id"] = f"msg_shape{self.count}"
        return {**row, **more}

    def write(self, row: Row) -> Row:
        """Write a row of the conversation, which it goes on from."""
        self.append(row)
        self.way.append(row)
        return row

    def prompt(self) -> None:
        last = self.way[-1] if self.way else None
        self.prompts.append([*self.way])
        if self.kit.around and self.dice.random() < 0.5:
            self.append(self._around())
        row = self.row(self.kit.prompt, last)
        row["message"]["content"] = [{"type": "text", "text": f"Question {self.count}."}]
        self.write(row)
        if self.is_new:
            self.attach(self.kit.opening)
        self.is_new = False

    def attach(self, templates: Iterable[Row]) -> None:
        for template in templates:
            self.write(self.row(template, self.way[-1], -1))

    def _around(self) -> Row:
        return {**self.dice.choice(self.kit.around), "sessionId": self.session}

    def calls(self, number: int) -> None:
        """Have so many tools used in one answer, and write their results."""
        answer = f"msg_shape{self.count}c"
        calls: list[Row] = []
        if self.dice.random() < 0.5:
            self.write(self.row(self.kit.speech, self.way[-1]))["message"]["id"] = answer
        for letter in "abc"[:number]:
            call = self.write(self.row(self.kit.call, self.way[-1]))
            call["message"]["id"] = answer
            name = {"id": f"toolu_{self.count}{letter}", "name": "Bash"}
            tool: Row = {"type": "tool_use", **name, "input": {"command": f"echo {letter}"}}
            call["message"]["content"] = [tool]
            calls.append(call)
        order = [*calls]
        if self.dice.random() < 0.3:
            self.dice.shuffle(order)
        for call in order:
            own = call if self.kit.has_calls_side_by_side else self.way[-1]
            result = self.write(self.row(self.kit.result, own))
            told = {"tool_use_id": call["message"]["content"][0]["id"], "type": "tool_result"}
            result["message"]["content"] = [{**told, "content": f"Result {self.count}"}]
            if "sourceToolAssistantUUID" in result:
                result["sourceToolAssistantUUID"] = call["uuid"]

    def answer(self) -> None:
        result = self.way[-1]
        row = self.row(self.kit.speech, result)
        row["message"]["content"] = [{"type": "text", "text": f"Answer {self.count}."}]
        self.write(row)
        progress = self.kit.progress
        if progress is not None and result["type"] == "user" and self.dice.random() < 0.3:
            self.way.pop()  # the answer is beside the way then
            self.write(self.row(progress, result, -5))
        self._point()
        if self.has_hook:
            self.write(self._hook(self.way[-1]))

    def _point(self) -> None:
        if self.kit.pointer is not None and self.dice.random() < 0.8:
            pointer = {**self.kit.pointer, "sessionId": self.session}
            if "leafUuid" in pointer:
                pointer["leafUuid"] = self.way[-1]["uuid"]
            self.append(pointer)

    def _hook(self, parent: Row) -> Row:
        """Return what a Stop hook leaves."""
        row = self.row(self.kit.boundary, parent, subtype="stop_hook_summary", hookCount=1)
        for name in ("logicalParentUuid", "content", "compactMetadata"):
            del row[name]
        row["hookInfos"] = [{"command": "true", "durationMs": 5}]
        row |= {"hookErrors": [], "hookAdditionalContext": [], "preventedContinuation": False}
        return row | {"stopReason": "", "hasOutput": False, "toolUseID": NOWHERE}

    # ── compactions ──────────────────────────────────────────────────────────────────────────

    def copies_earlier(self) -> bool:
        first, last = COPIES_EARLIER
        return first <= self.kit.key <= last

    def _copy(self) -> bool:
        """Write rows again that this process does not know to be written; return if there are."""
        copied: list[Row] = []
        if self.compactions and self.copies_earlier():
            copied = self.taken
        elif self.compactions and self.kit.key == COPIES_LAST and self.dice.random() < 0.5:
            starts = [at for at, row in enumerate(self.way) if is_boundary(row)]
            copied = self.way[starts[-1] :] if starts else []
        self.append(*({**copy.deepcopy(row), "slug": "written-again"} for row in copied))
        hook = self.way[-1]
        if copied and hook.get("subtype") == "stop_hook_summary" and self.copies_earlier():
            # Written late: behind the copies, of which it continues the last.
            self.rows.remove(hook)
            hook["parentUuid"] = copied[-1]["uuid"]
            self.rows.append(hook)
        return bool(copied)

    def copied(self) -> None:
        """Take note that rows were written again, and a compaction is about to be."""

    def compaction(self, *, is_plain: bool, is_auto: bool, is_cut_short: bool = False) -> None:
        if self._copy():
            self.copied()
        number = self.dice.choice((1, 1, 1, 2, 3)) + is_auto
        if self.way[-1].get("subtype") == "stop_hook_summary":
            number += 1
        before, since = self.kept, [at for at, row in enumerate(self.way) if is_boundary(row)]
        known = self.way[(since[-1] + 2 if since else 0) :]
        self.kept = known[-number:]
        is_plain = is_plain or not self.kept
        boundary = self.row(self.kit.boundary, None, logicalParentUuid=self.way[-1]["uuid"])
        summary = self.row(self.kit.summary, boundary)
        metadata = boundary["compactMetadata"]
        metadata["trigger"] = "auto" if is_auto else "manual"
        for name in ("preservedSegment", "preservedMessages"):
            metadata.pop(name, None)
        if not is_plain:
            uuids = [row["uuid"] for row in self.kept]
            ends = {"headUuid": uuids[0], "anchorUuid": summary["uuid"], "tailUuid": uuids[-1]}
            metadata["preservedSegment"] = ends
            lost = [NOWHERE] if self.has_hook else []
            anchor = {"anchorUuid": summary["uuid"]}
            metadata["preservedMessages"] = {**anchor, "uuids": uuids, "allUuids": uuids + lost}
        if isinstance(summary["message"]["content"], str):
            summary["message"]["content"] += f" Summary {self.count}."
        self.kept = [] if is_plain else self.kept
        self.taken += [*before, *(row for row in self.way if row not in self.kept)]
        self.append(boundary)
        self.boundary, self.version = boundary, self.kit.version
        self.compactions += 1
        if not is_cut_short:
            self.way = [boundary]
            self.write(summary)


def is_boundary(row: Row) -> bool:
    """Tell whether a row is a compaction."""
    return row.get("subtype") == "compact_boundary"


def is_question(row: Row) -> bool:
    """Tell whether a row is a prompt."""
    return "Question " in str((row.get("message") or {}).get("content"))
