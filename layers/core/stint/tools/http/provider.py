"""REST endpoints as tools (Llama Stack's oldest design calls this remote execution).

A model fills in arguments; the definition decides everything else. Three parties write parts of one request, and none
may replace what another has written:

    the definition    host, path, method, its headers and fields: fixed, except at its placeholders
    the model         arguments, escaped so that each stays at its placeholder (`request.py`, `text_bodies.py`)
    the caller        headers of its own for an origin, except those of the definition
    this system       the keys of the call, by which the server recognizes a repetition, and its depth

Names of headers are compared folded, since servers read several spellings as one. Headers that replace the method or
the URL for some servers are refused from callers. The guard decides which hosts may be called, for each connection, and
redirects are not followed: they would carry the headers to a host that nobody has allowed.
"""

import base64
import string
from typing import Any
from urllib.parse import quote

import httpx

from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import redact
from stint.domain.limits import MAX_TOOL_HEADERS
from stint.net.guard import Guard
from stint.tools.definitions import read_definitions
from stint.tools.depth_headers import DEPTH_NAME, depth_headers, without_depth
from stint.tools.headers import fold, read_headers
from stint.tools.http.request import EndpointDefinition, write_request
from stint.tools.http.text_bodies import describe_misplaced
from stint.tools.http_calls import ToolFailure, send, shorten
from stint.tools.outcomes import attachment, data_url, failure, read_image, unknown_tool
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

OVERRIDES = frozenset(
    {"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"}
)
"""Headers that replace the method or the URL of a request for some servers."""

BODY_HEADERS = frozenset({"content-type", "content-encoding"})
KEYS = frozenset({"idempotency-key", "stint-tool-call-id", DEPTH_NAME})
"""Headers of this system, which a caller cannot replace."""
TEXTS = frozenset({"application/xml", "application/x-ndjson", "application/x-www-form-urlencoded"})


class HttpEndpoints:
    """Runs tools that are HTTP requests. A registration's args define them:

        {"tools": [{
            "name": "create_ticket",
            "description": "Open a ticket in a project.",
            "parameters": {"type": "object", "properties": {"project": {"type": "string"}, ...}, "required": [...]},
            "url": "https://tickets.example.com/projects/{project}/tickets",
            "method": "POST",
            "params": {"notify": "{notify}"},
            "headers": {"X-Api-Key": "..."},
            "body": {"title": "{title}", "labels": ["from-agent", "{label}"]},
            "timeout": 10
        }]}

    See `EndpointDefinition` for the templates. The unique key of the call is sent as `Idempotency-Key`, the model's id
    of it as `Stint-Tool-Call-Id`, its depth as `Stint-Call-Depth` (`domain/call_depth.py`). Each request may have the
    caller's own credentials in `provider_data["http_headers"]`, `{origin: {header: value}}` with an origin such as
    `https://tickets.example.com`; they are sent to that origin only, and cannot replace headers of the definition.
    Redirects are not followed.

    The body of a 2xx response is the tool's result: text and JSON as text, PNG, JPEG, GIF and WebP as an image,
    anything else as an attachment for the user. The metadata has `status`.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check the definitions, and that each host is allowed; see the port."""
        for tool in read_definitions(toolgroup, EndpointDefinition).values():
            refuse_many_headers(tool)
            refuse_misplaced(tool)
            try:
                await self._guard.check(tool.origin)
            except InvalidRequest as error:
                raise InvalidRequest(
                    f"The tool {tool.name!r} of the toolgroup {toolgroup.toolgroup_id!r} cannot be used: "
                    f"{error.message}",
                    code=error.code,
                    param="args",
                ) from error

    def known_tools(self, toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines; see the port."""
        return [tool.signature for tool in read_definitions(toolgroup, EndpointDefinition).values()]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the tools that the registration defines, without a request; see the port."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Send the request; see the port."""
        tools = read_definitions(toolgroup, EndpointDefinition)
        tool = tools.get(invocation.tool_name)
        if tool is None:
            return unknown_tool(invocation.tool_name, list(tools))
        callers = read_origin_headers(invocation.provider_data, tool.origin)
        try:
            request = write_request(tool, invocation.arguments)
            refuse_replacement(tool, callers, has_body=request.content is not None)
            response = await send(
                self._guard,
                "The endpoint",
                tool.method,
                request.url,
                timeout=tool.timeout,
                headers=merge_headers(without_depth(request.headers), callers, keys_of(invocation)),
                content=request.content,
            )
        except ToolFailure as error:
            return failure(str(error))
        return read_response(response)


def refuse_many_headers(tool: EndpointDefinition) -> None:
    """Refuse a tool with too many headers. Each may be a credential, and every response is searched for it."""
    if len(tool.headers) > MAX_TOOL_HEADERS:
        count = len(tool.headers)
        message = f"The tool {tool.name!r} has {count} headers; at most {MAX_TOOL_HEADERS} are allowed."
        raise InvalidRequest(message, param="args")


def refuse_misplaced(tool: EndpointDefinition) -> None:
    """Refuse a tool whose text body has a placeholder where an argument could replace other parts of the body."""
    if (name := tool.misplaced) is not None:
        raise InvalidRequest(f"The tool {tool.name!r} cannot be used. {describe_misplaced(name)}", param="args")


def refuse_replacement(tool: EndpointDefinition, callers: dict[str, str], *, has_body: bool) -> None:
    """Refuse a caller's headers that would replace what a definition has: a header, the method, the URL or the body."""
    fixed = {fold(name) for name in tool.headers} | OVERRIDES | (BODY_HEADERS if has_body else frozenset())
    for name in callers:
        if fold(name) in fixed:
            raise InvalidRequest(
                f"Only the definition of the tool {tool.name!r} may set the header {name!r}. Remove it from "
                "http_headers.",
                code="header_not_allowed",
                param="http_headers",
            )


def merge_headers(*parts: dict[str, str]) -> httpx.Headers:
    """Return headers of which later ones replace earlier ones, whatever the case of their names."""
    headers = httpx.Headers()
    for part in parts:
        headers.update(part)
    return headers


def keys_of(invocation: Invocation) -> dict[str, str]:
    """Return the headers that identify a call and its repetitions, and that say how deep it is."""
    return {
        "Idempotency-Key": write_key(invocation.idempotency_key),
        "Stint-Tool-Call-Id": write_key(invocation.call_id),
        **depth_headers(),
    }


def read_response(response: httpx.Response) -> ToolOutcome:
    """Convert a response to an outcome."""
    metadata: dict[str, Any] = {"status": response.status_code}
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not response.is_success:
        text = shorten(redact(response.text)) if is_text(media_type) else media_type
        reason = "it redirects, and redirects are not followed" if response.has_redirect_location else text
        message = f"The endpoint returned {response.status_code}: {reason or response.reason_phrase}"
        return ToolOutcome(content=message, metadata=metadata, error=True)
    # By its bytes: a type that the server only claims would be refused by the model's provider.
    if media_type.startswith("image/") and (image := read_image(base64.b64encode(response.content).decode())):
        return ToolOutcome(content=[image], metadata=metadata)
    if is_text(media_type) or not response.content:
        text = response.text
        return ToolOutcome(content=text or f"({response.status_code}, no content)", metadata=metadata)
    note = f"[The user received the response as an attachment: {media_type}, {len(response.content)} bytes]"
    attached = [attachment(data_url(response.content, media_type), media_type)]
    return ToolOutcome(content=note, metadata={**metadata, ATTACHMENTS: attached})


def write_key(key: str) -> str:
    """Return a call's key as a header's value. Model servers' ids are plain ASCII, but clients may send any."""
    return quote(key, safe=string.punctuation + " ")


def is_text(media_type: str) -> bool:
    """Return whether a media type is text. A response without one counts as text."""
    return (
        not media_type
        or media_type.startswith("text/")
        or media_type.endswith(("/json", "+json", "+xml"))
        or media_type in TEXTS
    )


def read_origin_headers(provider_data: dict[str, Any], origin: str) -> dict[str, str]:
    """Return the caller's headers for an origin. Raises InvalidRequest if `http_headers` is malformed."""
    given = provider_data.get("http_headers") or {}
    if not isinstance(given, dict):
        message = 'The http_headers in the provider data must be {"https://host": {...}}'
        raise InvalidRequest(message, param="http_headers")
    ours = next((headers for place, headers in given.items() if place.rstrip("/").lower() == origin), None)
    headers = read_headers(ours, "http_headers")
    return {name: value for name, value in headers.items() if fold(name) not in KEYS}
