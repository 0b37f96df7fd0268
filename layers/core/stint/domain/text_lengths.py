"""The lengths of a text's streamed pieces in compact form, so that a replay cuts the text alike.

A piece of 1 to 61 characters is one digit (0-9, a-z, A-Z), a longer one its decimal length in parentheses. `*7.` after
a length means seven pieces of it.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase, digits

DIGITS = digits + ascii_lowercase + ascii_uppercase
RUN = re.compile(r"(?:([0-9a-zA-Z])|\(([0-9]{1,9})\))(?:\*([0-9]{1,9})\.)?")

SHORTEST_RUN = 5
"""Minimum equal lengths in a row that are shorter as a count."""


def encode_lengths(pieces: Iterable[int]) -> str | None:
    """Return the lengths of a text's pieces, none of which is empty; None for a text in one piece."""
    lengths = list(pieces)
    return encode_all_lengths(lengths) if len(lengths) > 1 else None


def encode_all_lengths(pieces: Iterable[int]) -> str:
    """Return the lengths of pieces, to which those of later ones may be appended."""
    return "".join(encode_run(length, len(list(group))) for length, group in groupby(pieces))


def encode_run(length: int, count: int) -> str:
    digit = DIGITS[length] if length < len(DIGITS) else f"({length})"
    return digit * count if count < SHORTEST_RUN else f"{digit}*{count}."


def cut_text(text: str, lengths: str | None) -> list[str]:
    """Return the pieces of a text. A text whose lengths do not fit is one piece."""
    pieces: list[str] = []
    start = 0
    for digit, number, repeated in RUN.findall(lengths or ""):
        length = DIGITS.index(digit) if digit else int(number)
        for _ in range(int(repeated or 1)):
            if length < 1 or start + length > len(text):
                break
            pieces.append(text[start : start + length])
            start += length
    if start < len(text):
        return [text]
    return pieces
