"""The revisions of MCP, and the checks of a message that differ between them.

    revision               2026-07-28                                   2025-11-25, 2025-06-18
    is known by            the header MCP-Protocol-Version              the same header, or by its absence
    a client begins with   any request, or `server/discover`            `initialize`, without a session id
    each request has       version and capabilities in `_meta`; its     nothing more
                           method and its tool in headers, too
    an error's status      that of its code                             200, because older clients read no other body
    a call is cancelled    by closing its stream                        by `notifications/cancelled`

Headers are compared with the body, because proxies decide by headers and this server by the body. A header that is sent
twice is refused: two readers could read different ones.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import shorten
from stint.http.json_rpc import INVALID_PARAMS, JsonRpcError, JsonRpcMessage

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")
SUPPORTED = [MODERN, *LEGACY]

HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
"""Codes of the revision 2026-07-28."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
"""Keys of `_meta`, which each request of the revision 2026-07-28 has."""

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
ENCODED = re.compile(r"=\?base64\?(.*)\?=")
"""The form of a header's value that has other characters than visible ASCII."""

Headers = Sequence[tuple[str, str]]
"""The headers of a request with lower-case names, also those that were sent twice."""


@dataclass(frozen=True, slots=True)
class McpClient:
    """The client of a message. `elicits`: it can ask its user for input."""

    is_modern: bool = False
    elicits: bool = False


def read_client(message: JsonRpcMessage, headers: Headers) -> McpClient:
    """Return what the client of a request can do. Raises JsonRpcError if the message is not of a supported revision."""
    version, meta = value_of(headers, VERSION_HEADER), message.params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    if version in LEGACY and VERSION_KEY in meta:
        text = f"The header {VERSION_HEADER} is {version}, and params._meta has {VERSION_KEY}, a newer one."
        raise JsonRpcError(HEADER_MISMATCH, text, code="header_mismatch", param=VERSION_HEADER)
    if version in LEGACY or (version is None and VERSION_KEY not in meta):
        return McpClient()
    if message.is_notification and version == MODERN:
        return McpClient(is_modern=True)
    if message.is_notification:
        raise refuse_version(version or "")
    if version != MODERN and VERSION_KEY not in meta:
        raise refuse_version(version or "")
    check_headers(message, meta, headers)
    if meta[VERSION_KEY] != MODERN:
        raise refuse_version(meta[VERSION_KEY])
    return McpClient(is_modern=True, elicits=can_elicit(meta[CAPABILITIES_KEY]))


def check_headers(message: JsonRpcMessage, meta: Mapping[str, Any], headers: Headers) -> None:
    """Check that a request has what the revision 2026-07-28 requires, and that its headers agree with its body."""
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise JsonRpcError(INVALID_PARAMS, f"params._meta needs {' and '.join(missing)}.", param="params._meta")
    for key, kind in ((VERSION_KEY, str), (CAPABILITIES_KEY, dict)):
        if not isinstance(meta[key], kind):
            text = f"params._meta[{key!r}] must be {'a string' if kind is str else 'an object'}."
            raise JsonRpcError(INVALID_PARAMS, text, param="params._meta")
    expected = {VERSION_HEADER: meta[VERSION_KEY], METHOD_HEADER: message.method}
    if message.method == "tools/call" and isinstance(message.params.get("name"), str):
        expected[NAME_HEADER] = message.params["name"]
    for name, wanted in expected.items():
        if decode_header(value_of(headers, name)) != wanted:
            text = f"The header {name} must be sent once, and be {shorten(wanted, 200)!r} as in the body."
            raise JsonRpcError(HEADER_MISMATCH, text, code="header_mismatch", param=name)


def value_of(headers: Headers, name: str) -> str | None:
    """Return the value of a header; None if it is absent. Raises JsonRpcError if it was sent twice."""
    values = [value for key, value in headers if key == name]
    if len(values) > 1:
        raise JsonRpcError(HEADER_MISMATCH, f"The header {name} was sent twice.", code="header_mismatch", param=name)
    return values[0] if values else None


def decode_header(value: str | None) -> str | None:
    """Return the text of a header, which may be encoded in base64; None if it is absent or malformed."""
    found = ENCODED.fullmatch(value or "")
    if found is None:
        return value
    try:
        raw = base64.b64decode(found.group(1), validate=True)
        return raw.decode() if base64.b64encode(raw).decode() == found.group(1) else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def can_elicit(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client can show its user a form. An empty capability means a form (MCP, "Elicitation")."""
    declared = capabilities.get("elicitation")
    return isinstance(declared, dict) and (not declared or "form" in declared)


def refuse_version(requested: str) -> JsonRpcError:
    """Return the error of a revision that is not supported, which names those that are."""
    text = f"The protocol version {shorten(requested, 40)!r} is not supported. Send one of {', '.join(SUPPORTED)}."
    data = {"supported": SUPPORTED, "requested": shorten(requested, 40)}
    return JsonRpcError(UNSUPPORTED_VERSION, text, code="unsupported_version", param=VERSION_HEADER, data=data)


def negotiate(requested: object) -> str:
    """Return the older revision that `initialize` agrees on: the client's, or the newest one."""
    return requested if isinstance(requested, str) and requested in LEGACY else LEGACY[0]
