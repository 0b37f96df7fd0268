"""HTTP requests of tools, and their errors."""

import asyncio
import json
from typing import Any

import httpx

from stint.domain.errors import InvalidRequest, ToolUnavailable, UnresolvableURL
from stint.domain.json_text import parse_json
from stint.domain.known_secrets import redact
from stint.net.guard import Guard
from stint.tools.outcomes import MAX_ANSWER_BYTES, timed_out

LONGEST_MESSAGE = 2000


class ToolFailure(Exception):
    """A failure of a call that the model should see."""


async def send(
    guard: Guard, service: str, method: str, url: str | httpx.URL, *, timeout: float, **parts: Any
) -> httpx.Response:
    """Send one request without following redirects, and read the whole response; `timeout` (seconds) covers both.

    Raises:
        ToolFailure: it took too long, or the response is too large or damaged.
        ToolUnavailable: there is no connection.
        InvalidRequest: the guard refuses the URL, or its host does not resolve.
    """
    try:
        async with asyncio.timeout(timeout), guard.client(timeout=timeout, max_bytes=MAX_ANSWER_BYTES) as client:
            return await client.request(method, url, **parts)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise ToolFailure(timed_out(timeout).content) from error
    except httpx.ConnectError as error:
        raise ToolUnavailable(f"{service} cannot be reached") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolFailure(f"{service} could not be called ({type(error).__name__}).") from error
    except UnresolvableURL:
        raise
    except InvalidRequest as error:
        # An address that may not be called is a mistake of the registration; any other refusal is of the response.
        if error.code == "url_not_allowed":
            raise
        raise ToolFailure(f"{service} returned no usable response: {error.message}.") from error


def read_answer(service: str, response: httpx.Response) -> Any:
    """Return the JSON of a response.

    Raises:
        ToolUnavailable: the service refuses the key.
        ToolFailure: it is not 200 with JSON. The error has the service's message, without credentials.
    """
    if response.status_code in (401, 403):
        raise ToolUnavailable(f"{service} refused the API key ({response.status_code})")
    if response.status_code != httpx.codes.OK:
        raise ToolFailure(f"{service} answered {response.status_code}: {shorten(redact(response.text))}")
    try:
        return parse_json(response.content)
    except ValueError as error:
        raise ToolFailure(f"{service} did not return JSON.") from error


def shorten(text: str) -> str:
    """Cut a message after 2,000 characters."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


def read_query(arguments: dict[str, Any]) -> str:
    """Return the argument `query`. Raises ToolFailure if it is missing, empty or not a text."""
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise ToolFailure(f'The argument "query" must be a string, not {json.dumps(query)[:80]}.')
    return query
