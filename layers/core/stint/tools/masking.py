"""Masking of credentials in callers' values, for the API's responses, and collecting of these credentials."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from stint.domain.errors import InvalidRequest
from stint.domain.redaction import MASK, SHORTEST
from stint.tools.credential_names import is_key, is_secret
from stint.tools.masker import PUBLIC_HEADERS, Masker, literal_parts, texts_in
from stint.tools.templates import PLACEHOLDER


def mask(value: Any) -> Any:
    """Return a value, such as a registration's args, with MASK instead of its credentials.

    Credentials are the values of headers, values with a credential's name (`api_key`, `accessToken`, `password`), texts
    that look like a key, and such parts of URLs. JSON schemas (`parameters`) are unchanged, because models see them.
    """
    return Masker().value(value)


def mask_url(url: str, *, endpoint: bool = False) -> str:
    """Return a URL without its user and password, the credentials in its query, and the keys in its path.

    In the URL of an MCP server's `endpoint`, any path segment of letters and digits may be a key, and any query value
    of at least 8 characters.
    """
    return Masker().url(url, endpoint=endpoint)


def mask_path(url: str) -> str:
    """Return an MCP server's URL for responses, without path segments that are long enough to be a key."""
    head, separator, path = mask_url(url, endpoint=True).partition("://")
    host, *segments = path.partition("?")[0].split("/")
    kept = [MASK if len(segment) >= SHORTEST else segment for segment in segments]
    return head + separator + "/".join([host, *kept]) + "".join(path.partition("?")[1:])


def secrets_in(value: Any) -> set[str]:
    """Return the credentials that `mask` hides, without placeholders."""
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
    """Return the values of headers, except public ones."""
    return literal_parts({value for name, value in headers.items() if name.lower() not in PUBLIC_HEADERS})


def possible_secrets_in_headers(headers: Mapping[str, str]) -> set[str]:
    """Return the values of headers that may be credentials but do not have the name or form of one (`X-Tenant`)."""
    found = {value for name, value in headers.items() if not (is_secret(name) or is_key(value))}
    return literal_parts(found)


def headers_in(value: Any) -> Iterator[dict[str, str]]:
    """Yield the objects of headers in a registration's args."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if str(name).lower() == "headers" and isinstance(part, dict):
            yield {str(header): text for header, text in part.items() if isinstance(text, str)}
        else:
            yield from headers_in(part)


def refuse_masked(value: Any, param: str) -> None:
    """Refuse a value that was copied from a response, because MASK would replace the real credential.

    Raises:
        InvalidRequest: the value contains MASK. The message says where.
    """
    for place, text in texts_in(value):
        if MASK in unquote(text):
            where = param + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
            raise InvalidRequest(
                f"{where} contains {MASK}, which replaces a credential in responses. Send the credential itself.",
                code="masked_value",
                param=where,
            )
