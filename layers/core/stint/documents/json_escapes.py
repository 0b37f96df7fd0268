"""Escapes in JSON documents."""

import json
import re
from io import StringIO

PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
ESCAPES = re.compile(rf"\\\\|((?:{PAIR}|\\u[0-9a-fA-F]{{4}}){{1,1000}})")
STRUCTURAL = re.compile(r'["\\\x00-\x1f]')


def unescape_json(text: str) -> str:
    """Replace escapes such as `\\u00fc` by their characters, so that a search finds the words of the text.

    Escapes of quotes, backslashes and control characters remain. The text need not be valid JSON.
    """
    if "\\u" not in text:
        return text
    written, place = StringIO(), 0  # `re.sub` would keep a list of all pieces
    for escapes in ESCAPES.finditer(text):
        written.write(text[place : escapes.start()])
        written.write(unescape(escapes))
        place = escapes.end()
    written.write(text[place:])
    return written.getvalue()


def unescape(escapes: re.Match[str]) -> str:
    if escapes[1] is None:
        return escapes[0]
    # A pair of surrogates becomes one character; a single one becomes U+FFFD, since UTF-8 cannot encode it.
    characters = json.loads(f'"{escapes[1]}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return escapes[0] if STRUCTURAL.search(characters) else characters
