"""A function that writes queries for messages."""

from typing import Any

ANSWERS: dict[str, Any] = {
    "object": {"query": "from an object"},
    "list": ["tea"],
    "number": {"query": 7},
    "nothing": None,
    "huge": "x" * 8_001,
}


def handler(event: dict[str, Any], _context: Any) -> Any:
    text = " ".join(message["content"] for message in event["messages"])
    if text == "fail":
        raise ValueError("no idea")
    return ANSWERS.get(text, text.upper())
