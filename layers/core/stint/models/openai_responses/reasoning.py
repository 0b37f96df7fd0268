"""Reasoning items of the Responses API, between the answer that had them and the requests that repeat it.

A model continues its reasoning after tool calls and in later turns only if it gets its items back unchanged, at their
places in the answer. `Reasoning.text` has their joined texts, which callers may see. `Reasoning.signature` has what
else is needed: a line of JSON for each item, after one that names the server and the model. `Reasoning.late` has the
same for items after the first word of the answer. Items are opaque to others, so a request to another server or model
omits them.

docs/decisions.md, entry 31, has the reasons.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.inference import Reasoning

Item = dict[str, Any]

MAX_CHARACTERS = 300_000
"""Maximum characters of the items of one answer. Those beyond are omitted, so that the model reasons again."""

BETWEEN = "\n\n"
"""Text between two messages of one answer, which are one text here, and between two texts of its reasoning."""

PHASES = ("", "commentary", "final_answer")
"""The phases of a message. Most models send none."""

MARK = '{"reasoning_of":'
"""The beginning of a signature of these items. Those of other adapters begin otherwise."""


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """A place in an answer: after so many characters of its text, and so many calls."""

    characters: int
    calls: int


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """A reasoning item, or the phase of the message that begins at the place."""

    place: AnswerPlace
    item: Item | None
    phase: str = ""


def write_head(origin: str) -> str:
    """Return the first line of a signature. `origin` is the server and the model."""
    return f"{MARK}{json.dumps(origin)}}}"


def write_item(item: Item, place: AnswerPlace, texts: Sequence[tuple[int, int]]) -> str:
    """Return the line of an item, after a line break; empty if no server could use the item.

    `texts` are the places of its texts in the joined text.
    """
    encrypted = item.get("encrypted_content")
    is_summary = isinstance(encrypted, str) and bool(encrypted)
    if not is_summary and not texts:
        return ""
    item_id = item.get("id")
    line = {"id": item_id if isinstance(item_id, str) else "", "at": [place.characters, place.calls], "texts": texts}
    return "\n" + _dump({**line, "encrypted_content": encrypted} if is_summary else line)


def write_phase(phase: str, place: AnswerPlace) -> str:
    """Return the line of the phase of a message, after a line break."""
    return "\n" + _dump({"phase": phase, "at": [place.characters, place.calls]})


def read_items(reasoning: Reasoning | None, origin: str) -> Iterator[PlacedItem]:
    """Yield what an answer of the same server and model had, in its order; nothing if it was of another one.

    It ends at a line that no answer can have. Only content that was stored before content was signed has such lines.
    """
    if reasoning is None:
        return
    left = len(reasoning.text)
    for signature in (reasoning.signature, reasoning.late):
        head, *lines = signature.split("\n") if signature.startswith(MARK) else [""]
        if head != write_head(origin):
            continue
        for line in lines:
            try:
                entry = json.loads(line)
                # What is left counts over all lines: two items with the same texts would be repeated, too.
                left -= _measure_texts(entry.get("texts", []), left, len(reasoning.text))
                yield _read_line(entry, reasoning.text)
            except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
                return


def _measure_texts(places: list[list[int]], left: int, end_of_all: int) -> int:
    """Return the number of characters of texts. Raises ValueError if a text is repeated, or longer than what is left.

    Repeated texts would make a huge request of a small line.
    """
    total, last = 0, 0
    for start, end in places:
        if type(start) is not int or type(end) is not int or not last <= start < end:
            raise ValueError("The texts are not in order")
        total, last = total + end - start, end
    if total > left or last > end_of_all:
        raise ValueError("The texts are longer than the reasoning")
    return total


def _read_line(entry: Item, text: str) -> PlacedItem:
    characters, calls = entry["at"]
    place = AnswerPlace(int(characters), int(calls))
    if "phase" not in entry:
        return PlacedItem(place, _to_item(entry, text))
    if entry["phase"] not in PHASES:
        raise ValueError("The phase is unknown")
    return PlacedItem(place, None, entry["phase"])


def _to_item(entry: Item, text: str) -> Item:
    """Return an item as input. Its texts are a summary, or without encrypted content the reasoning itself."""
    texts = [text[start:end] for start, end in entry["texts"]]
    item: Item = {"type": "reasoning", "summary": []}
    if entry["id"]:
        item["id"] = entry["id"]
    if "encrypted_content" in entry:
        item["summary"] = [{"type": "summary_text", "text": each} for each in texts]
        item["encrypted_content"] = entry["encrypted_content"]
    else:
        item["content"] = [{"type": "reasoning_text", "text": each} for each in texts]
    return item


def _dump(line: Item) -> str:
    return json.dumps(line, separators=(",", ":"))
