"""Credentials in what callers register or send: where they are, and the same without them, for the API to show."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit, urlunsplit

from stint.domain.errors import InvalidRequest
from stint.domain.json_text import parse_json
from stint.domain.redaction import MASK, SHORTEST
from stint.tools.credential_names import is_key, is_key_of_path, is_plain, is_secret
from stint.tools.templates import PLACEHOLDER

Found = Callable[[str], None]
"""Is told each credential, as it would be sent."""

PUBLIC_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "prefer", "range", "user-agent"}
)

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>]+")
"""Without the limit on the scheme, the search takes a time quadratic in a run of letters."""
_PAIR = re.compile(r"(?<![\w-])([\w-]{1,64})(\"?\s?[=:]\s?\"?)([^\s\"&,;{}]+)")
"""`name=value` and `"name": "value"` in a text that is sent as a body."""
_BODIES = frozenset({"body", "data", "payload"})


def mask(value: Any) -> Any:
    """Return a value, such as a registration's args, with MASK in place of the credentials in it.

    Credentials are the values of headers, what is named like one (`api_key`, `accessToken`, `password`), what looks
    like a key, and those parts of URLs. JSON schemas (`parameters`) stay, as models see them.
    """
    return _Masking(lambda _: None).value(value)


def mask_url(url: str, *, endpoint: bool = False) -> str:
    """Return a URL without its user and password, the credentials in its query, and what looks like a key in its path.

    In the path of an `endpoint` of an MCP server any segment of letters and digits may be a key.
    """
    return _Masking(lambda _: None).url(url, endpoint=endpoint)


def mask_path(url: str) -> str:
    """Return an MCP server's URL as responses show it: of the path, what is long enough to be a key is left out."""
    head, separator, path = mask_url(url, endpoint=True).partition("://")
    host, *segments = path.partition("?")[0].split("/")
    kept = [MASK if len(segment) >= SHORTEST else segment for segment in segments]
    return head + separator + "/".join([host, *kept]) + "".join(path.partition("?")[1:])


def secrets_in(value: Any) -> set[str]:
    """Return the credentials that `mask` hides, but for values that are placeholders."""
    found: set[str] = set()
    _Masking(found.add).value(value)
    return literal_parts(found)


def has_short_secrets(value: Any) -> bool:
    """Return whether credentials that `mask` hides are too short to be replaced in text."""
    found: set[str] = set()
    _Masking(found.add).value(value)
    return any(0 < len(text) < SHORTEST and not PLACEHOLDER.search(text) for text in found)


def secrets_in_url(url: str, *, endpoint: bool = False) -> set[str]:
    """Return the credentials that `mask_url` hides."""
    found: set[str] = set()
    _Masking(found.add).url(url, endpoint=endpoint)
    return literal_parts(found)


def secrets_in_headers(headers: Mapping[str, str]) -> set[str]:
    """Return the values of headers, but for those of public ones."""
    return literal_parts({value for name, value in headers.items() if name.lower() not in PUBLIC_HEADERS})


def doubtful_in_headers(headers: Mapping[str, str]) -> set[str]:
    """Return the values of headers that may be credentials, and neither are named nor look like one (`X-Tenant`)."""
    doubtful = {value for name, value in headers.items() if not (is_secret(name) or is_key(value))}
    return literal_parts(doubtful)


def headers_in(value: Any) -> Iterator[dict[str, str]]:
    """Yield the objects of headers in a registration's args."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if str(name).lower() == "headers" and isinstance(part, dict):
            yield {str(header): text for header, text in part.items() if isinstance(text, str)}
        else:
            yield from headers_in(part)


def literal_parts(texts: set[str]) -> set[str]:
    """Return what stands in texts between their placeholders."""
    return {part.strip() for text in texts for part in PLACEHOLDER.split(text)[::2]} - {""}


def refuse_masked(value: Any, param: str) -> None:
    """Refuse what was read from an answer: MASK would take the place of the real credential.

    Raises:
        InvalidRequest: MASK stands in it; names the place.
    """
    for place, text in texts_in(value):
        if MASK in unquote(text):
            where = param + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
            raise InvalidRequest(
                f"{where} holds {MASK}, which answers show in place of a credential: send the credential itself.",
                code="masked_value",
                param=where,
            )


def texts_in(value: Any, *place: str | int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts of a JSON value with their places."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from texts_in(part, *place, str(name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from texts_in(part, *place, index)


class _Masking:
    """One walk over a value: `found` is told each credential, and MASK stands in its place in what is returned."""

    def __init__(self, found: Found) -> None:
        self.found = found

    def hide(self, value: Any) -> Any:
        """Return MASK, or the value if it is no more than placeholders."""
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
        if name.lower() == "headers":
            return self.headers(value)
        if is_secret(name):
            return self.hide(value)
        if not isinstance(value, str):
            return self.value(value)
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
        if is_key(text) and not plain:
            return str(self.hide(text))
        return _URL.sub(lambda found: self.url(found[0]), text)

    def body(self, text: str) -> str:
        """Mask a text that is sent as it is: JSON, a form, or anything with names and values in it."""
        try:
            document = parse_json(text)
        except ValueError:
            document = None
        if isinstance(document, dict | list):
            return json.dumps(self.value(document), ensure_ascii=False)
        return _PAIR.sub(self.pair, self.text(text))

    def pair(self, found: re.Match[str]) -> str:
        name, sign, value = found.groups()
        if value == MASK or not is_secret(name):
            return found[0]
        self.found(unquote_plus(value))
        return f"{name}{sign}{self.hide(value)}"

    def url(self, url: str, *, endpoint: bool = False) -> str:
        try:
            parts = urlsplit(url)
        except ValueError:
            return str(self.hide(url))
        netloc = parts.netloc
        if "@" in netloc:
            userinfo, _, host = netloc.rpartition("@")
            netloc = f"{self.userinfo(userinfo)}@{host}"
        path = self.path(parts.path, endpoint=endpoint)
        query, fragment = ("&".join(map(self.field, part.split("&"))) for part in (parts.query, parts.fragment))
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

    def field(self, field: str) -> str:
        name, sign, value = field.partition("=")
        named, plain = unquote_plus(name), unquote_plus(value)
        if sign and (is_secret(named) or named.lower() == "code" or (is_key(plain) and not is_plain(named))):
            shown = self.hide(plain)
            return f"{name}={value if shown == plain else shown}"
        return field
