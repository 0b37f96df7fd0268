"""The targets of calls: what they reach, whatever their toolgroups and names. `tool_approvals.py` follows them.

A target may be known in part: URLs are stored with masked credentials, and a placeholder of a path is written by the
model. So two targets count as the same if they may be.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial
from ipaddress import ip_address
from posixpath import normpath
from socket import inet_aton, inet_ntoa
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from stint.domain.redaction import MASK
from stint.http1.urls import encode_host
from stint.loop.toolbox import ServerTool
from stint.tools.port import MCP, Toolgroup

FUNCTIONS, ENDPOINTS = "lambda-function", "remote-execution"
PORTS = {"http": 80, "https": 443}
Target: TypeAlias = tuple[str, ...]
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
ANY = "{}"
"""What a target has for a placeholder."""


def is_same_server(one: Toolgroup, other: Toolgroup) -> bool:
    """Return whether two toolgroups are of one MCP server. Notations of one address count as the same.

    Its query does not count, and neither does whether it is encrypted. A masked part may be any.
    """
    if one.mcp_endpoint is None or other.mcp_endpoint is None or not one.provider_id == other.provider_id == MCP:
        return False
    (host, path), (other_host, other_path) = address_of(one.mcp_endpoint), address_of(other.mcp_endpoint)
    return host == other_host and is_same_target(path, other_path)


def is_same_target(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(map(may_equal, one, other))


def may_equal(part: str, other: str) -> bool:
    """Return whether two parts of a target may be the same, of which each may have a mask or a placeholder."""
    return part == other or ANY in part or ANY in other or MASK in part or MASK in other


@lru_cache(maxsize=512)
def address_of(url: str) -> tuple[tuple[str, int | None], list[str]]:
    """Return the host and the path of a URL, in one notation."""
    try:
        parts = urlsplit(url)
        port = None if parts.port in (None, PORTS.get(parts.scheme)) else parts.port
        host = plain_host(parts.hostname or "")
    except ValueError:  # nothing can be called there
        return (url, None), []
    path = normpath(f"/{unquote(parts.path).strip('/')}")
    return (host, port), path.casefold().split("/")


def plain_host(host: str) -> str:
    """Return a host in one notation: a name in ASCII, or an address. Raises ValueError for what can be neither."""
    name = encode_host(host).rstrip(".")
    with suppress(OSError):
        return inet_ntoa(inet_aton(name))
    return ip_address(name.partition("%")[0]).compressed if ":" in name else name


def target_of(tool: ServerTool) -> Target:
    """Return what a call reaches: a function, or a method of an HTTP endpoint; for other tools the tool itself."""
    group, itself = tool.toolgroup, (tool.toolgroup.toolgroup_id, tool.signature.name)
    if group.provider_id not in (FUNCTIONS, ENDPOINTS):
        return itself
    entries = group.config.get("tools")
    named = partial(has_name, tool.signature.name)
    entry = next(filter(named, entries), None) if isinstance(entries, list) else None
    if entry is None:
        return itself
    if group.provider_id == FUNCTIONS:
        return FUNCTIONS, function_name(str(entry.get("function")))
    url = str(entry.get("url"))
    (host, port), path = address_of(PLACEHOLDER.sub(ANY, url))
    return ENDPOINTS, str(entry.get("method", "GET")).upper(), host, str(port), *path


def has_name(name: str, entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("name") == name


def function_name(reference: str) -> str:
    """Return the name of a function, given that, or a partial or full ARN, with or without a version or an alias."""
    parts = reference.casefold().split(":")
    return parts[parts.index("function") + 1] if "function" in parts[:-1] else parts[0]
