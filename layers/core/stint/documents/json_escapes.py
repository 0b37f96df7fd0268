"""Escapes in JSON documents."""

import json
import re

ESCAPES = re.compile(r"\\\\|((?:\\u[0-9a-fA-F]{4})+)")
STRUCTURAL = re.compile(r'["\\\x00-\x1f]')


def unescape_json(text: str) -> str:
    """Replace escapes such as `\\u00fc` by their characters, so that a search finds the words of the text.

    Escapes of quotes, backslashes and control characters remain. The text need not be valid JSON.
    """
    return ESCAPES.sub(unescape, text) if "\\u" in text else text


def unescape(escapes: re.Match[str]) -> str:
    if escapes[1] is None:
        return escapes[0]
    characters = json.loads(f'"{escapes[1]}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return escapes[0] if STRUCTURAL.search(characters) else characters
