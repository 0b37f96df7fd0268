"""Bodies that are texts with placeholders.

The Content-Type of the definition says how an argument is escaped, so that it stays where its placeholder is: within
the value of a form field, a JSON value or string, or text and quoted attributes of XML and HTML. No argument is put
anywhere else, such as into the name of a field or a tag, or into a text of another type, in which it could replace
what the definition has. A body that is nothing but a placeholder is the argument itself.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from stint.dataclasses import dataclass
from stint.domain.json_text import parse_json
from stint.tools.http_calls import ToolFailure
from stint.tools.templates import PLACEHOLDER, fill_text, text_of

FORM = "application/x-www-form-urlencoded"
JSON_LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"})
HTML = "text/html"
MARKUP = frozenset({"application/xml", "text/xml", HTML})

JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
COLON = re.compile(r"\s*+:")
TAG = r"""<!--.*?(?:-->|\Z)|<(?P<tag>(?:[^<>"']|"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))*+)>?"""
XML_PART = re.compile(rf"<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)|{TAG}", re.DOTALL)
HTML_PART = re.compile(rf"<(?:script|style)\b.*?(?:</(?:script|style)\s*+>|\Z)|{TAG}", re.DOTALL | re.IGNORECASE)
QUOTED = re.compile(r""""[^"]*+"|'[^']*+'""")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text. `write` returns an argument as it is written there; None if none can be."""

    text: str
    write: Callable[[Any], str] | None = None
    absent: str = ""


def find_misplaced(text: str, content_type: str, names: Collection[str]) -> str | None:
    """Return the first placeholder where no argument can be written. All names are arguments if `names` is empty."""
    if PLACEHOLDER.fullmatch(text):
        return None
    for piece in pieces_of(text, content_type):
        for name in PLACEHOLDER.findall(piece.text) if piece.write is None else ():
            if not names or name in names:
                return str(name)
    return None


def fill_text_body(text: str, content_type: str, arguments: Mapping[str, Any], names: Collection[str]) -> str:
    """Fill a text. Raises ToolFailure if a placeholder is where no argument can be written."""
    return "".join(fill_piece(piece, arguments, names) for piece in pieces_of(text, content_type))


def fill_piece(piece: Piece, arguments: Mapping[str, Any], names: Collection[str]) -> str:
    if piece.write is not None:
        return fill_text(piece.text, arguments, names, piece.write, absent=piece.absent)
    for name in PLACEHOLDER.findall(piece.text):
        if name in names:
            raise ToolFailure(describe_misplaced(name))
    return piece.text


def describe_misplaced(name: str) -> str:
    return (
        f"The body has the placeholder {name!r} where no argument can be written. Write the body as an object, or with "
        "the Content-Type of a form, JSON, XML or HTML, and the placeholder in a value, a text or a quoted attribute."
    )


def pieces_of(text: str, content_type: str) -> Iterator[Piece]:
    """Divide a text by how an argument is written in each part."""
    media_type = content_type.partition(";")[0].strip().lower()
    if PLACEHOLDER.search(content_type):
        return iter([Piece(text)])
    if media_type == FORM:
        return form_pieces(text)
    if media_type in MARKUP or media_type.endswith("+xml"):
        return markup_pieces(text, HTML_PART if media_type == HTML else XML_PART)
    pieces = list(json_pieces(text))
    lines = text.split("\n") if media_type in JSON_LINES else [text]
    # What is not JSON with nulls in place of its placeholders has no place where an argument is known to stay.
    return iter(pieces if all(is_json(line) for line in lines if line.strip()) else [Piece(text)])


def fixed_fields(text: str, content_type: str) -> set[str]:
    """Return the names of the fields that a text has, if it is a form or a JSON object."""
    if content_type.partition(";")[0].strip().lower() == FORM:
        return {name for name, _ in parse_qsl(text, keep_blank_values=True)}
    value = read_json(text)
    return set(value) if isinstance(value, dict) else set()


def form_pieces(text: str) -> Iterator[Piece]:
    for part in re.split("(?<=&)", text):
        name, sign, value = part.partition("=")
        yield Piece(name + sign)
        yield Piece(value, lambda argument: quote_plus(text_of(argument)))


def json_pieces(text: str) -> Iterator[Piece]:
    end = 0
    for found in JSON_STRING.finditer(text):
        yield Piece(text[end : found.start()], json.dumps, "null")
        is_key = COLON.match(text, found.end())
        # A string that a colon follows is the name of a field.
        yield Piece(found[0], None if is_key else write_in_string)
        end = found.end()
    yield Piece(text[end:], json.dumps, "null")


def write_in_string(argument: Any) -> str:
    return json.dumps(text_of(argument))[1:-1]


def is_json(text: str) -> bool:
    return read_json(text) is not None or text.strip() == "null"


def read_json(text: str) -> Any:
    """Return the value of a JSON template, whose placeholders outside of strings are null; None if it is malformed."""
    pieces = (PLACEHOLDER.sub("null", piece.text) if piece.absent else piece.text for piece in json_pieces(text))
    try:
        return parse_json("".join(pieces))
    except (ValueError, RecursionError):
        return None


def markup_pieces(text: str, part: re.Pattern[str]) -> Iterator[Piece]:
    end = 0
    for found in part.finditer(text):
        yield Piece(text[end : found.start()], write_in_markup)
        end = found.end()
        tag = found["tag"]
        if found.groupdict().get("data") is not None:
            yield Piece(found[0], write_in_data)
        elif tag is not None and found[0].endswith(">") and tag[:1] not in ("!", "?"):
            yield from tag_pieces(found[0])
        else:
            yield Piece(found[0])
    yield Piece(text[end:], write_in_markup)


def tag_pieces(tag: str) -> Iterator[Piece]:
    end = 0
    for found in QUOTED.finditer(tag):
        yield Piece(tag[end : found.start()])
        yield Piece(found[0], write_in_markup)
        end = found.end()
    yield Piece(tag[end:])


def write_in_markup(argument: Any) -> str:
    return escape(text_of(argument))


def write_in_data(argument: Any) -> str:
    """Write an argument in CDATA, which its end would end."""
    return text_of(argument).replace(">", "]]><![CDATA[>")
