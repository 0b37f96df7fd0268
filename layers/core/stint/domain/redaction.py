"""Redaction of credentials in text that leaves: tool results, logs, errors, streams.

A secret seldom leaves as it came in: a server writes it as JSON, into a URL or HTML, or into the base64 of a header, in
which its characters depend on what is before it. So each secret is searched in all of its forms (`forms_of`).

    Redactor        a whole text. Each form is searched by itself, which is fastest for few forms and short texts.
                    Above `SEARCHED`, all forms are matched in one pass (`Matcher`), which takes linear time.
                    Then runs in which every character is encoded are decoded, and searched again:
                    percent-encoding, escapes of JSON, base64 in lines.
    StreamRedactor  a text in pieces. What may be the beginning of a form is held back until a later piece shows
                    whether it is one. Everything else leaves at once.

Everything takes linear time, because callers choose the texts and some of the secrets.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "********"
"""The replacement of a credential in a registration, an agent or a response."""

REDACTED = "***"
"""The replacement of a credential in text."""

SHORTEST = 8
"""Minimum characters. Shorter secrets (`x`, `none`, `ollama`) occur in text by chance, and are not replaced."""

MOST_KNOWN = 16_384
"""Maximum characters of all secrets for one text. Their matcher takes up to 80 MB."""

SEARCHED = 300_000_000
"""Maximum text characters times forms for a search form by form. Above it, all are matched in one pass."""

Span = tuple[int, int]

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}){8,}+")
_ESCAPED = re.compile(r"(?:\\{1,2}u00[0-9A-Fa-f]{2}){8,}+")
_LINES = re.compile(r"(?<![\w+/-])(?:[\w+/-]{20,}+[ \t]*+(?:\r?\n|(?:\\r)?\\n)[ \t]*+)++[\w+/-]*+={0,2}", re.ASCII)
"""Base64 in lines. The pattern does not backtrack, so that it takes linear time."""


def forms_of(secret: str) -> set[str]:
    """Return a secret in plain form and encoded for JSON, URLs, HTML and base64.

    In base64 a part's characters depend on its offset. Each of the three alignments is a form, without the characters
    at its ends that depend on the neighbouring bytes.
    """
    encoded = {core for shift in range(3) for core in base64_of(secret.encode(), shift)}
    quoted = {quote(form, safe="") for form in (secret, *encoded)} | {quote_plus(secret)}
    quoted |= {quote(secret, safe=safe) for safe in ("/", "!'()*")}
    wide = {"\0".join(secret)} if secret.isascii() else set()
    forms = {secret, html.escape(secret), *wide, *encoded, *quoted, *(lower_hex(form) for form in quoted)}
    for _ in range(2):  # JSON, and JSON in JSON
        forms |= {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (True, False)}
    return {form for form in forms | {form.replace("/", "\\/") for form in forms} if len(form) >= SHORTEST}


@lru_cache(maxsize=64)
def forms_of_own(key: str) -> frozenset[str]:
    """Return the forms of a key of the server. They are kept, so it must be no secret of a caller."""
    return frozenset(forms_of(key))


def base64_of(data: bytes, shift: int) -> tuple[str, str]:
    """Return the base64 of bytes at an offset of `shift` in a group of three, in both alphabets (RFC 4648)."""
    whole = base64.b64encode(bytes(shift) + data).decode()
    core = whole[(0, 2, 3)[shift] : (shift + len(data)) * 8 // 6]
    return core, core.translate({ord("+"): "-", ord("/"): "_"})


def lower_hex(quoted: str) -> str:
    """Write percent-encodings with lowercase digits, as some libraries do."""
    head, *rest = quoted.split("%")
    return "".join([head, *(f"%{part[:2].lower()}{part[2:]}" for part in rest)])


class Matcher:
    """Finds several texts in one pass, in linear time (Aho and Corasick, 1975)."""

    def __init__(self, forms: Iterable[str]) -> None:
        self.moves: list[dict[str, int]] = [{}]
        self.depths = [0]
        self.lengths = [0]
        """The longest form that ends at each node."""
        for form in forms:
            self._enter(form)
        self.back = [0] * len(self.moves)
        self._link()

    def _enter(self, form: str) -> None:
        node = 0
        for depth, character in enumerate(form, 1):
            following = self.moves[node].get(character)
            if following is None:
                following = self.moves[node][character] = len(self.moves)
                self.moves.append({})
                self.depths.append(depth)
                self.lengths.append(0)
            node = following
        self.lengths[node] = len(form)

    def _link(self) -> None:
        """Link each node to that of its longest proper suffix, by increasing depth: a link needs its parent's."""
        level = list(self.moves[0].values())
        while level:
            below: list[int] = []
            for node in level:
                self.lengths[node] = max(self.lengths[node], self.lengths[self.back[node]])
                for character, child in self.moves[node].items():
                    self.back[child] = self.step(self.back[node], character)
                    below.append(child)
            level = below

    def step(self, node: int, character: str) -> int:
        """Return the node after a character."""
        while node and character not in self.moves[node]:
            node = self.back[node]
        return self.moves[node].get(character, 0)

    def find(self, text: str, node: int = 0, start: int = 0) -> tuple[int, list[Span]]:
        """Return the node at the end of a text that begins at `start`, and the spans of forms without overlaps."""
        spans: list[Span] = []
        moves, back, lengths = self.moves, self.back, self.lengths
        for end, character in enumerate(text, start + 1):
            following = moves[node].get(character)
            while following is None and node:
                node = back[node]
                following = moves[node].get(character)
            node = following or 0
            if lengths[node]:
                begin = end - lengths[node]
                # A form that ends here may begin before the earlier ones.
                while spans and spans[-1][1] >= begin:
                    begin = min(begin, spans.pop()[0])
                spans.append((begin, end))
        return node, spans


_HEAD = re.compile(r"\\{1,2}u00")
_BREAK = re.compile(r"(?:\\r)?\\n|\s+")


def _join(lines: str) -> str:
    return _BREAK.sub("", lines)


class Redactor:
    """Replaces secrets of 8 characters or more in all their forms. `own` are keys of the server."""

    def __init__(self, secrets: Iterable[str], *, own: Iterable[str] = ()) -> None:
        others = {secret for secret in secrets if len(secret) >= SHORTEST}.difference(own)
        kept = [key for key in own if len(key) >= SHORTEST]
        self.forms = frozenset[str]().union(*map(forms_of, others), *map(forms_of_own, kept))

    def __bool__(self) -> bool:
        return bool(self.forms)

    @cached_property
    def matcher(self) -> Matcher:
        return Matcher(self.forms)

    def text(self, text: str) -> str:
        """Return a text without the secrets, in linear time."""
        if not self.forms:
            return text
        text = self._plain(text)
        if "%" in text:
            text = self._runs(
                text, _PERCENT, lambda run: bytes.fromhex(run.replace("%", "")).decode("utf-8", "replace")
            )
        if "u00" in text:
            text = self._runs(text, _ESCAPED, lambda run: bytes.fromhex(_HEAD.sub("", run)).decode("latin-1"))
        return self._runs(text, _LINES, _join) if "\n" in text or "\\n" in text else text

    def _runs(self, text: str, pattern: re.Pattern[str], decode: Callable[[str], str]) -> str:
        """Replace the runs of a pattern whose decoded text has a secret. All runs are searched together."""
        runs = [(run.span(), decode(run[0]).replace("\n", " ")) for run in pattern.finditer(text)]
        if not runs:
            return text
        redacted = self._plain("\n".join(decoded for _, decoded in runs)).split("\n")
        if len(redacted) != len(runs):  # a secret may have several lines
            redacted = [""] * len(runs)
        hidden = [span for (span, decoded), shown in zip(runs, redacted, strict=True) if shown != decoded]
        return replace_spans(text, hidden)

    def _plain(self, text: str) -> str:
        if len(self.forms) * len(text) > SEARCHED:
            return replace_spans(text, self.matcher.find(text)[1])
        found = [form for form in self.forms if form in text]
        # The longest first: a shorter form may be a part of it, and would leave the rest.
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, REDACTED)
        return text

    def json(self, value: Any) -> Any:
        """Return a JSON value without the secrets in its texts and names."""
        if not self.forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.json(name): self.json(part) for name, part in value.items()}
        return [self.json(part) for part in value] if isinstance(value, list) else value


class StreamRedactor:
    """Redacts a text that arrives in pieces. It delays only what may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._matcher = redactor.matcher
        self.found = False
        self._node = 0
        self._held = ""
        self._start = 0
        self._spans: list[Span] = []

    def feed(self, piece: str) -> str:
        """Return the text that can leave after a piece."""
        end = self._start + len(self._held)
        self._node, spans = self._matcher.find(piece, self._node, end)
        self._held += piece
        self._spans = merge([*self._spans, *spans])
        self.found = self.found or bool(spans)
        # What a later piece may complete: the node's depth is the length of the longest end that begins a form.
        cut = end + len(piece) - self._matcher.depths[self._node]
        return self._release(next((begin for begin, last in self._spans if last > cut and begin < cut), cut))

    def flush(self) -> str:
        """Return the rest of the text, and start a new one."""
        rest = self._release(self._start + len(self._held))
        self._node, self.found = 0, False
        return rest

    def _release(self, cut: int) -> str:
        size = cut - self._start
        spans = [(begin - self._start, end - self._start) for begin, end in self._spans if end <= cut]
        self._spans = [span for span in self._spans if span[1] > cut]
        leaving, self._held, self._start = self._held[:size], self._held[size:], cut
        return replace_spans(leaving, spans)


def merge(spans: Iterable[Span]) -> list[Span]:
    """Join spans that overlap or touch."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            begin, last = merged.pop()
            end = max(last, end)
        merged.append((begin, end))
    return merged


def replace_spans(text: str, spans: Collection[Span]) -> str:
    """Replace parts of a text."""
    parts: list[str] = []
    end = 0
    for begin, last in spans:
        parts += [text[end:begin], REDACTED]
        end = last
    return "".join([*parts, text[end:]]) if spans else text
