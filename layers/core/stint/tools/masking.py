"""Credentials in what callers register or send: where they are, and the same without them, for the API to show."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from stint.domain.errors import InvalidRequest
from stint.domain.redaction import MASK, SHORTEST
from stint.tools.credential_names import is_key, is_secret
from stint.tools.masker import PUBLIC_HEADERS, Masker, literal_parts, texts_in
from stint.tools.templates import PLACEHOLDER


def mask(value: Any) -> Any:
    """Return a value, such as a registration's args, with MASK in place of the credentials in it.

    Credentials are the values of headers, what is named like one (`api_key`, `accessToken`, `password`), what looks
    like a key, and those parts of URLs. JSON schemas (`parameters`) stay, as models see them.
    """
    return Masker().value(value)


def mask_url(url: str, *, endpoint: bool = False) -> str:
    """Return a URL without its user and password, the credentials in its query, and what looks like a key in its path.

    In the path of an `endpoint` of an MCP server any segment of letters and digits may be a key, and in its query any
    value of 8 characters and more.
    """
    return Masker().url(url, endpoint=endpoint)


def mask_path(url: str) -> str:
    """Return an MCP server's URL as responses show it: of the path, what is long enough to be a key is left out."""
    head, separator, path = mask_url(url, endpoint=True).partition("://")
    host, *segments = path.partition("?")[0].split("/")
    kept = [MASK if len(segment) >= SHORTEST else segment for segment in segments]
    return head + separator + "/".join([host, *kept]) + "".join(path.partition("?")[1:])


def secrets_in(value: Any) -> set[str]:
    """Return the credentials that `mask` hides, but for values that are placeholders."""
    found: set[str] = set()
    Masker(found.add).value(value)
    return literal_parts(found)


def has_short_secrets(value: Any) -> bool:
    """Return whether credentials that `mask` hides are too short to be replaced in text."""
    found: set[str] = set()
    Masker(found.add).value(value)
    return any(0 < len(text) < SHORTEST and not PLACEHOLDER.search(text) for text in found)


def secrets_in_url(url: str, *, endpoint: bool = False) -> set[str]:
    """Return the credentials that `mask_url` hides."""
    found: set[str] = set()
    Masker(found.add).url(url, endpoint=endpoint)
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
