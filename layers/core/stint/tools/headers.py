"""Headers from callers and registrations."""

import re
from typing import Any

from stint.domain.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OWN = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer"}
)


def fold(name: str) -> str:
    """Return a header's name as servers may read it: CGI, WSGI and PHP do not distinguish `X-A`, `X_A` and `x.a`."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())


def read_headers(given: Any, where: str) -> dict[str, str]:
    """Read `{name: value}`, or Llama Stack's list of `"name: value"`.

    Raises:
        InvalidRequest: the value is neither, or a header cannot be sent. The message names the header, never its value.
    """
    if given is None:
        return {}
    if isinstance(given, list) and all(isinstance(line, str) for line in given):
        given = {name: value.strip() for name, _, value in (line.partition(":") for line in given)}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise InvalidRequest(
            f'The {where} must be an object of headers: {{"Authorization": "Bearer ..."}}', param=where
        )
    for name, value in given.items():
        # Folded, because a server that reads `Content_Length` as the same header would be misled.
        if fold(name) in _OWN:
            raise InvalidRequest(f"The header {name!r} is set by the connection. Remove it from {where}", param=where)
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise InvalidRequest(f"The header {name[:40]!r} has an invalid name or value, in {where}", param=where)
    return dict(given)
