"""Conversion of a conversation to JSON, which is kept for later requests.

A request has the whole history, of which a warm process wrote all but the newest messages before. Entries are found by
the identity of a message, not its content, so that nothing of one caller can reach another.
"""

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any
from weakref import ref

from pydantic_core import to_json

from stint.dataclasses import dataclass, field
from stint.domain.inference import ModelMessage, ToolResult
from stint.models.openai.messages import has_images, write_message, write_tool_images

MOST_BYTES = 8_000_000
ENTRY_BYTES = 400
"""Memory of an entry besides its JSON: the table's slot, its key, the reference and the headers of objects."""

Entry = tuple["ref[ModelMessage]", Hashable, bytes]


@dataclass(slots=True)
class MessageWriter:
    """Writes messages, and keeps the JSON of each that has no image as long as it exists in memory.

    A session's messages are the same objects in each of its turns, so only the new ones have to be written. An entry
    does not keep its message alive, and a message that only equals it is written again: nothing of one caller can reach
    another. The least recently used entries are dropped beyond `most_bytes`. A message may have different JSON in each
    `form`.
    """

    most_bytes: int = MOST_BYTES
    size: int = 0
    _entries: OrderedDict[int, Entry] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def write(self, messages: Iterable[ModelMessage], form: Hashable) -> list[bytes]:
        """Return the JSON of each message. Raises InvalidRequest if an image cannot be read."""
        with self._lock:
            written = self._write_each(messages, form)
            self._drop_dead()
        return written

    def write_one(self, message: ModelMessage, form: Any) -> bytes:
        """Write one message of Chat Completions. Raises InvalidRequest if an image cannot be read."""
        return write_json(write_message(message, form))

    def late_images(self, result: ToolResult) -> list[dict[str, Any]]:
        """Return the images of a tool's result that follow the results of all tools."""
        return write_tool_images(result)

    def _write_each(self, messages: Iterable[ModelMessage], form: Hashable) -> list[bytes]:
        """Write each message, and the images of tools after the results that they belong to."""
        written: list[bytes] = []
        images: list[dict[str, Any]] = []
        get, move_to_end, append = self._entries.get, self._entries.move_to_end, written.append
        for message in messages:
            if images and not isinstance(message, ToolResult):
                append(write_json({"role": "user", "content": images}))
                images = []
            key = id(message)
            entry = get(key)
            # The id of a message that no longer exists can be that of a new one, so the reference decides.
            if entry is not None and entry[0]() is message and entry[1] == form:
                move_to_end(key)
                append(entry[2])
            elif has_images(message):
                append(self.write_one(message, form))
                images += self.late_images(message) if isinstance(message, ToolResult) else []
            else:
                append(self._write_new(message, form))
        if images:
            append(write_json({"role": "user", "content": images}))
        return written

    def _write_new(self, message: ModelMessage, form: Hashable) -> bytes:
        written = self.write_one(message, form)
        size = len(written) + ENTRY_BYTES
        # An entry of a message that no longer exists, or of this one in another form.
        self._drop(id(message))
        if size > self.most_bytes:
            return written
        self._entries[id(message)] = (ref(message), form, written)
        self.size += size
        while self.size > self.most_bytes:
            self._drop(next(iter(self._entries)))
        return written

    def _drop(self, key: int) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= len(entry[2]) + ENTRY_BYTES

    def _drop_dead(self) -> None:
        """Drop the least recently used entries while their messages no longer exist."""
        while self._entries:
            key = next(iter(self._entries))
            if self._entries[key][0]() is not None:
                return
            self._drop(key)


def write_json(value: dict[str, Any]) -> bytes:
    """Return JSON in UTF-8. A single surrogate, which a model may have written, becomes `?`."""
    try:
        return to_json(value)
    except ValueError:
        return json.dumps(value, ensure_ascii=False).encode(errors="replace")
