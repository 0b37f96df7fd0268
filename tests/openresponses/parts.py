"""Check of the events of one item, from its `added` to its `done`."""

from dataclasses import dataclass, field

from tests.openresponses.bodies import require
from tests.openresponses.schema import Json

# The fields of an item that have the parts, by the prefix of the parts' events.
PLACES = {"response.content_part": "content", "response.reasoning_summary_part": "summary"}
# The field, the part's type and the key of its text, by the prefix of the events.
TEXTS = {
    "response.output_text": ("content", "output_text", "text"),
    "response.refusal": ("content", "refusal", "refusal"),
    "response.reasoning_text": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary", "summary_text", "text"),
}
# The item's type, and the field that is streamed, by the prefix of the events.
ARGUMENTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
    "response.code_interpreter_call_code": ("code_interpreter_call", "code"),
}
STREAMED_FIELDS = dict(ARGUMENTS.values())
# The states of a hosted item in its events before it is done; the last is one of several.
PROGRESS = {
    "mcp_list_tools": (("in_progress",), ("completed", "failed")),
    "mcp_call": (("in_progress",), ("completed", "failed")),
    "web_search_call": (("in_progress", "searching"), ("completed", "failed")),
    "file_search_call": (("in_progress", "searching"), ("completed",)),
    "image_generation_call": (("in_progress", "generating"), ("completed",)),
    "code_interpreter_call": (("in_progress", "interpreting"), ("completed",)),
}
EMPTY: Json = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
EMPTY["code_interpreter_call"] = {"code": ""}


@dataclass
class StreamedPart:
    """A part of a message's or a reasoning item's content."""

    type: str
    text: str = ""
    finished: bool = False
    annotations: list[Json] = field(default_factory=list)
    done: Json | None = None


class StreamedItem:
    """An item that was added. `done` is its final form."""

    def __init__(self, item: Json, index: int) -> None:
        self.item = item
        self.index = index
        self.parts: dict[str, list[StreamedPart]] = {"content": [], "summary": []}
        self.arguments = ""
        self.written: str | None = None
        self.progress: list[str] = []
        self.done: Json | None = None
        require(item.get("status", "in_progress") in ("in_progress", "searching"), f"An item is added finished: {item}")
        begun = EMPTY.get(item["type"], {})
        require(begun.items() <= item.items(), f"An item is added with what is still to come: {item}")

    def take(self, event: Json) -> None:
        """Check an event between the item's `added` and its `done`."""
        require(self.done is None, f"{event['type']} of item {self.item['id']}, which is done")
        require(event["output_index"] == self.index, f"{event['type']} of item {self.item['id']} has another index")
        stem, _, moment = event["type"].rpartition(".")
        if stem in PLACES:
            self._take_part(event, PLACES[stem], moment)
        elif stem in TEXTS:
            self._take_text(event, *TEXTS[stem], moment)
        elif stem in ARGUMENTS:
            self._take_arguments(event, *ARGUMENTS[stem], moment)
        elif stem == "response.output_text.annotation":
            self._take_annotation(event)
        else:
            require(stem == f"response.{self.item['type']}", f"{event['type']} of a {self.item['type']}")
            self._take_progress(event, moment)

    def _take_progress(self, event: Json, moment: str) -> None:
        if moment == "partial_image":
            require(self.progress[-1:] == ["generating"], "A partial image of an image that is not being generated")
            require(event["partial_image_index"] == 0 and event["partial_image_b64"] != "", f"No image in {event}")
        else:
            self.progress.append(moment)

    def _take_part(self, event: Json, place: str, moment: str) -> None:
        index, part, parts = _index(event, place), event["part"], self.parts[place]
        if moment == "added":
            require(index == len(parts), f"Part {index} is added as number {len(parts)}")
            require(all(each.done for each in parts), f"Part {index} is added while another is open")
            key = "refusal" if part["type"] == "refusal" else "text"
            require(part[key] == "", f"A part is added with its text: {part}")
            parts.append(StreamedPart(part["type"]))
            return
        known = self._part(event, place, part["type"])
        text = part["refusal" if part["type"] == "refusal" else "text"]
        require(known.finished, f"Part {index} is done before its text")
        require(text == known.text, f"Part {index} is done with {text!r}, not {known.text!r}")
        same = part.get("annotations", []) == known.annotations
        require(same, f"Part {index} has annotations that were not announced, or lacks one")
        known.done = part

    def _take_text(self, event: Json, place: str, kind: str, key: str, moment: str) -> None:
        part = self._part(event, place, kind)
        require(not part.finished, f"{event['type']} after the text was done")
        if moment == "delta":
            part.text += event["delta"]
            return
        require(event[key] == part.text, f"{event['type']} says {event[key]!r}, the deltas {part.text!r}")
        part.finished = True

    def _part(self, event: Json, place: str, kind: str) -> StreamedPart:
        index, parts = _index(event, place), self.parts[place]
        require(index < len(parts), f"{event['type']} before part {index} was added")
        require(parts[index].done is None, f"{event['type']} after part {index} was done")
        require(parts[index].type == kind, f"{event['type']} of part {index}, which is a {parts[index].type}")
        return parts[index]

    def _take_annotation(self, event: Json) -> None:
        part = self._part(event, "content", "output_text")
        require(event["annotation_index"] == len(part.annotations), "An annotation is announced out of order")
        part.annotations.append(event["annotation"])

    def _take_arguments(self, event: Json, kind: str, key: str, moment: str) -> None:
        require(self.item["type"] == kind, f"{event['type']} of a {self.item['type']}")
        require(self.written is None, f"{event['type']} after the arguments were done")
        if moment == "delta":
            self.arguments += event["delta"]
            return
        said = event[key]
        require(said == self.arguments, f"{event['type']} says {said!r}, the deltas {self.arguments!r}")
        self.written = said

    def close(self, event: Json) -> None:
        """Check that the item in `done` is the streamed one. An incomplete call may differ."""
        item, begun = event["item"], self.item
        require(self.done is None, f"Item {begun['id']} is done twice")
        same = all(item.get(key) == begun.get(key) for key in ("id", "type", "call_id", "name", "role"))
        require(same and event["output_index"] == self.index, f"Item {begun} is done as another: {item}")
        require(item.get("status") != "in_progress", f"Item {item['id']} is done and in progress")
        self.done = item
        for place, parts in self.parts.items():
            require(item.get(place, []) == [each.done for each in parts], f"The {place} of {item} was not streamed")
        if item.get("status") == "incomplete":
            return
        streamed = STREAMED_FIELDS.get(item["type"])
        if streamed in item:
            require(item[streamed] == self.written, f"The {streamed} of {item} is not {self.written!r}")
        if item["type"] in PROGRESS:
            first, last = PROGRESS[item["type"]]
            # There is no event for their failures.
            silent = item["type"] in ("file_search_call", "image_generation_call", "code_interpreter_call")
            if silent and item["status"] == "failed":
                first, last = first[:-1], first[-1:]
            good = tuple(self.progress[:-1]) == first and self.progress[-1] in last
            require(good, f"The states of a {item['type']} were {self.progress}")


def _index(event: Json, place: str) -> int:
    index: int = event[f"{place}_index"]
    return index
