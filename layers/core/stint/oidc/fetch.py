"""Documents of an issuer, fetched with limits. No redirect is followed."""

import ssl
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
SECONDS = 4.0
"""Longest time of a fetch. API Gateway waits up to 30 s for the authorizer."""

LARGEST = 262_144
"""Maximum bytes of a document."""

BLOCK = 16_384
"""Bytes that are read at a time."""


class FetchError(Exception):
    """A document cannot be fetched. The message has the URL and the reason."""


def is_secure(url: str) -> bool:
    """Return whether a URL is https, or http to this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK))


def fetch(url: str) -> bytes:
    """Return a document. Raises FetchError."""
    if not is_secure(url):
        raise FetchError(f"{url} is not an https URL.")
    connection = connect(url)
    try:
        return read_document(connection, url)
    except (OSError, HTTPException, ValueError) as error:
        raise FetchError(f"{url} cannot be fetched: {error or type(error).__name__}") from error
    finally:
        connection.close()


def connect(url: str) -> HTTPConnection:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            return HTTPSConnection(host, port, timeout=SECONDS, context=ssl.create_default_context())
        return HTTPConnection(host, port, timeout=SECONDS)
    except ValueError as error:
        raise FetchError(f"{url} is not a valid URL: {error}") from error


def read_document(connection: HTTPConnection, url: str) -> bytes:
    deadline = time.monotonic() + SECONDS
    parts = urlsplit(url)
    target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    connection.request("GET", target, headers={"Accept": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise FetchError(f"{url} cannot be fetched: status {response.status}")
    parts_of_body: list[bytes] = []
    while block := response.read1(BLOCK):
        parts_of_body.append(block)
        if sum(map(len, parts_of_body)) > LARGEST:
            raise FetchError(f"{url} has more than {LARGEST} bytes.")
        # The timeout of the connection applies to each read, so a server could send a byte every few seconds.
        if time.monotonic() > deadline:
            raise FetchError(f"{url} cannot be fetched within {SECONDS:.0f} s.")
    return b"".join(parts_of_body)
