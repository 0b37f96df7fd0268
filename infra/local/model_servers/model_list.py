"""The request for the models of a server with OpenAI's API: `GET {base_url}/models`.

It is sent as the functions send theirs: with the proxies and certificates of the environment, and without following
redirects, which would show the key to another server. The server is not trusted: its answer is bounded in size and
time, and ids that a terminal would not show as they are, are left out.
"""

import asyncio
import json
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from stint.http1.client import HttpClient, HttpStream, HttpTimeouts
from stint.http1.parser import MalformedResponse
from stint.http1.pool import TransportError
from stint.http1.proxies import InvalidProxy, read_proxies
from stint.http1.urls import InvalidURL
from stint.providers.openai.server import ALWAYS, system_certificates

MOST_BYTES = 1_000_000
LONGEST_ID = 120
LATE = "it did not answer in time"
LONGEST_LOCATION = 300


@dataclass(frozen=True)
class ModelList:
    """The answer to a request for the list of models.

    `ids` is None if the answer is no such list. `fault` says why there is no answer, or none that can be read.
    `location` is where a redirect leads. The status is 0 if there is no answer.
    """

    status: int = 0
    ids: tuple[str, ...] | None = None
    fault: str = ""
    location: str = ""
    about_key: bool = False
    """The server refuses the key, or requires one, or the key cannot be sent."""

    @property
    def is_other(self) -> bool:
        """Whether the answer is a success, but no list of models."""
        return 200 <= self.status < 300 and self.ids is None and not self.fault


def make_client(variables: Mapping[str, str], seconds: float) -> HttpClient:
    """Return a client with the proxies that the variables of functions set."""
    return HttpClient(read_proxies(variables), HttpTimeouts(seconds, seconds), ca_bundle=system_certificates())


async def request_list(client: HttpClient, base_url: str, key: str, deadline: float) -> ModelList:
    """Request the list until a time of the event loop's clock."""
    if not (key.isascii() and key.isprintable()):
        return ModelList(about_key=True)
    headers = {"Accept": "application/json", **ALWAYS} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with (
            asyncio.timeout_at(deadline),
            client.stream("GET", f"{base_url}/models", headers, b"") as stream,
        ):
            return await read_list(stream)
    except TimeoutError:
        return ModelList(fault=LATE)
    except (InvalidURL, InvalidProxy) as error:
        return ModelList(fault=str(error).rstrip("."))
    except TransportError as error:
        return ModelList(fault=describe(error))


async def read_list(stream: HttpStream) -> ModelList:
    """Read an answer. Raises TransportError."""
    body = bytearray()
    async with aclosing(aiter(stream)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > MOST_BYTES:
                return ModelList(stream.status, fault=f"its list has more than {MOST_BYTES:,} bytes")
    location = stream.headers.get("location", "")
    return ModelList(
        stream.status,
        parse_ids(bytes(body)) if 200 <= stream.status < 300 else None,
        location=location if location.isprintable() and len(location) <= LONGEST_LOCATION else "",
        # Some servers, such as Gemini's and xAI's, answer 400 to a wrong key.
        about_key=stream.status in (401, 403) or (stream.status == 400 and b"api key" in bytes(body).lower()),
    )


def parse_ids(body: bytes) -> tuple[str, ...] | None:
    """Return the ids of a list, each once; None if it is no list of models.

    Together's servers send a bare array. The `data` of Ollama without models is null.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    entries: Any = document.get("data", ...) if isinstance(document, dict) else document
    if entries is None and isinstance(document, dict):
        return ()
    if not isinstance(entries, list):
        return None
    ids = [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    shown = tuple(dict.fromkeys(each for each in ids if each.isprintable() and 0 < len(each) <= LONGEST_ID))
    return shown if shown or not entries else None


def describe(error: TransportError) -> str:
    """Return why a request has no answer."""
    cause = error.__cause__
    match cause:
        case TimeoutError():
            return LATE
        case MalformedResponse():
            return "it does not answer in HTTP"
        case socket.gaierror():
            return "its name cannot be resolved"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not accepted: {cause.verify_message}"
        case ssl.SSLError():
            return "it does not answer in TLS"
        case OSError() if cause.errno:
            return os.strerror(cause.errno).lower()
        case _:
            return "it closed the connection"
