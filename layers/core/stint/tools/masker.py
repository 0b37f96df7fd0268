"""A walk over a caller's value that finds and masks its credentials.

One walk serves two purposes: responses show a registration with MASK in place of its credentials, and the redaction of
results needs the set of these credentials. They must agree: what is hidden from readers must be found in results.

A credential is recognized by its place, before its look:

    a value in `headers`               a credential, except in headers that are public by their name
    a value with a credential's name   a credential, of any type and with all that is in it
    a text that looks like a key       a credential, unless its name says id, name, model and the like
    `server_url`                       an endpoint of MCP, of which more parts may be keys
    a URL in a text                    its user and password, fields of its query, segments of its path
    a text named body, data, payload   read as JSON, or as `name=value` pairs
    names of tools                     unchanged
    `parameters` of type object        a JSON schema, which models see: unchanged
    placeholders, `{name}`             arguments of the call: never credentials

Values come from callers, so a walk that masks stops looking after limits, and masks the rest whole: too much is hidden
rather than too little. A walk that collects has no limits, because it would miss a credential; registrations are
limited when they are made.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from stint.domain.json_text import parse_json
from stint.domain.redaction import MASK, SHORTEST
from stint.tools.credential_names import is_key, is_key_of_path, is_key_of_query, is_plain, is_secret
from stint.tools.templates import PLACEHOLDER

Found = Callable[[str], None]
"""A function that receives each credential in the form in which it would be sent."""

PUBLIC_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "prefer", "range", "user-agent"}
)

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
"""Without the limit on the scheme, the search takes quadratic time in a run of letters."""
_PAIR = re.compile(r"(?<![\w-])([\w-]{1,64})(\"?\s?[=:]\s?\"?)([^\s\"&,;{}]+)")
"""`name=value` and `"name": "value"` in a text that is sent as a body."""
NAMES_OF_TOOLS = frozenset({"allowed_tools", "tool_names"})
"""The fields with names of tools. Whether a call waits for approval may depend on them, so none is taken for a key."""
_BODIES = frozenset({"body", "data", "payload"})

MAX_FIELDS = 100
"""Maximum fields of a query or a fragment. One with more is masked as a whole."""

MAX_PLACES = 1_000
"""Maximum URLs, query fields and `name=value` pairs in a value. Texts after these are masked as a whole.

Registrations are limited when they are made. This limits the time for those that are already stored.
"""

LONGEST_SHOWN = 262_144
"""Maximum characters of a value's texts. Texts after these are masked as a whole."""


def literal_parts(texts: set[str]) -> set[str]:
    """Return the parts of texts between their placeholders."""
    return {part.strip() for text in texts for part in PLACEHOLDER.split(text)[::2]} - {""}


def literal(text: str) -> str:
    """Return a text without its placeholders."""
    return PLACEHOLDER.sub("", text)


def texts_in(value: Any, *place: str | int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts in a JSON value with their paths."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from texts_in(part, *place, str(name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from texts_in(part, *place, index)


class Masker:
    """One walk over a value. The returned value has MASK instead of each credential.

    With `found`, which receives each credential, the whole value is read; otherwise, only up to the limits.
    """

    def __init__(self, found: Found | None = None) -> None:
        self.collects = found is not None
        self.found: Found = found or (lambda _: None)
        self.places = MAX_PLACES
        self.characters = LONGEST_SHOWN

    def exceeds_limits(self, text: str = "", places: int = 0) -> bool:
        """Count a text and its parts, and return whether the value exceeds the limits."""
        self.characters -= len(text)
        self.places -= places
        return not self.collects and min(self.characters, self.places) < 0

    def hide(self, value: Any) -> Any:
        """Return MASK, or the value if it consists of placeholders only."""
        if not self.collects and not isinstance(value, str):
            return MASK
        for _, text in texts_in(value):
            self.found(text)
        if isinstance(value, str) and not literal_parts({value}):
            return value
        if isinstance(value, int | float):
            self.found(str(value))
        return MASK

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.named(str(name), part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.value(part) for part in value]
        return self.text(value) if isinstance(value, str) else value

    def named(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if name == "parameters" and isinstance(value, dict) and value.get("type") == "object":
            return value
        if name in NAMES_OF_TOOLS and isinstance(value, list):
            return value
        if name.lower() == "headers":
            return self.headers(value)
        if is_secret(name):
            return self.hide(value)
        if not isinstance(value, str):
            return self.value(value)
        if name == "server_url":
            return self.url(value, endpoint=True)
        return self.body(value) if name.lower() in _BODIES else self.text(value, plain=is_plain(name))

    def headers(self, value: Any) -> Any:
        if isinstance(value, list):
            lines = [line.partition(":") for line in value if isinstance(line, str)]
            value = {name.strip(): text.strip() for name, _, text in lines}
            self.headers(value)
            return MASK
        if not isinstance(value, dict):
            return self.hide(value)
        return {
            name: part if str(name).lower() in PUBLIC_HEADERS and isinstance(part, str) else self.hide(part)
            for name, part in value.items()
        }

    def text(self, text: str, *, plain: bool = False) -> str:
        if self.exceeds_limits(text):
            return MASK
        if is_key(text) and not plain:
            return str(self.hide(text))
        shown = _URL.sub(lambda found: self.url(found[0]), text)
        return MASK if self.exceeds_limits() else shown

    def body(self, text: str) -> str:
        """Mask a text that is sent unchanged: JSON, a form, or anything with names and values."""
        if self.exceeds_limits(text):
            return MASK
        try:
            document = parse_json(text)
        except ValueError:
            document = None
        if isinstance(document, dict | list):
            return json.dumps(self.value(document), ensure_ascii=False)
        shown = _PAIR.sub(self.pair, self.text(text))
        return MASK if self.exceeds_limits() else shown

    def pair(self, found: re.Match[str]) -> str:
        if self.exceeds_limits(places=1):
            return ""
        name, sign, value = found.groups()
        # `self.text` has masked URLs and keys before, and a mask must not be counted as a credential.
        if value == MASK or not is_secret(name):
            return found[0]
        self.found(unquote_plus(value))
        return f"{name}{sign}{self.hide(value)}"

    def url(self, url: str, *, endpoint: bool = False) -> str:
        if self.exceeds_limits(places=1):
            return MASK
        try:
            parts = urlsplit(url)
        except ValueError:
            return str(self.hide(url))
        netloc = parts.netloc
        if "@" in netloc:
            userinfo, _, host = netloc.rpartition("@")
            netloc = f"{self.userinfo(userinfo)}@{host}"
        path = self.path(parts.path, endpoint=endpoint)
        query = self.fields(parts.query, endpoint=endpoint)
        fragment = self.fields(parts.fragment, endpoint=endpoint)
        return urlunsplit(parts._replace(netloc=netloc, path=path, query=query, fragment=fragment))

    def userinfo(self, userinfo: str) -> str:
        plain = unquote(userinfo)
        user, _, password = plain.partition(":")
        for part in (plain, password or user, *([user] if is_key(user) else [])):
            self.found(part)
        return MASK

    def path(self, path: str, *, endpoint: bool) -> str:
        before, shown = "", []
        for segment in path.split("/"):
            plain = unquote(segment)
            shown.append(str(self.hide(plain)) if is_key_of_path(plain, before, endpoint=endpoint) else segment)
            before = plain
        return "/".join(shown)

    def fields(self, text: str, *, endpoint: bool) -> str:
        """Mask a query, or a fragment in the form of one."""
        count = text.count("&") + 1
        if self.exceeds_limits(places=count) or (count > MAX_FIELDS and not self.collects):
            return MASK
        return "&".join([self.field(field, endpoint=endpoint) for field in text.split("&")]) if text else text

    def field(self, field: str, *, endpoint: bool) -> str:
        name, sign, value = field.partition("=")
        named, plain = unquote_plus(name), unquote_plus(value)
        # `code` is the grant of an OAuth redirect, and of Azure's functions the key.
        is_known = is_secret(named) or named.lower() == "code" or (is_key(plain) and not is_plain(named))
        if sign and (is_known or (endpoint and is_key_of_query(plain))):
            shown = self.hide(plain)
            return f"{name}={value if shown == plain else shown}"
        return f"{name}={MASK}" if sign and endpoint and len(literal(plain)) >= SHORTEST else field
