"""Output of commands: JSON, a table, or a list of names and values."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from stint.domain.schema import Schema


def show_json(value: Schema | Sequence[Schema]) -> None:
    """Print an object, or a list of objects, as the API returns it."""
    entries = [value] if isinstance(value, Schema) else value
    documents = [json.loads(entry.to_json()) for entry in entries]
    print(json.dumps(documents[0] if isinstance(value, Schema) else documents, indent=2, ensure_ascii=False))


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below a head, with columns as wide as their longest text."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def show_fields(fields: Mapping[str, str]) -> None:
    """Print names and values that are not empty."""
    width = max(map(len, fields))
    for name, value in fields.items():
        if value:
            print(f"{name.ljust(width)}  {value}")


def format_time(seconds: int | None) -> str:
    """Return a time in UTC, or an empty text for none."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
