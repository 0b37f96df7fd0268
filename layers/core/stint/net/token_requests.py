"""Requests to the token endpoints of OAuth servers, whose URLs callers choose (RFC 6749, section 6).

The guard checks the URL at each request. A redirect is not followed, since it would carry the refresh token to a host
that nobody has named. Nothing of the answer gets into an error but a known error code: it may repeat a secret.
"""

import asyncio
import base64
import re
from collections.abc import Mapping
from typing import TypeGuard
from urllib.parse import quote_plus

import httpx

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.domain.json_text import parse_json
from stint.net.guard import Guard

SECONDS = 10.0
"""Seconds of a request, from the resolution of the host to the end of the answer."""
MAX_ANSWER = 65_536
"""Maximum bytes of an answer."""
MAX_LIFETIME = 10 * 366 * 86_400
"""Maximum seconds of a lifetime. A longer one is cut."""

TOKEN = re.compile(r"[\x21-\x7e]{8,4096}")
"""The tokens that are accepted: printable ASCII without spaces, long enough to be redacted, and to be encrypted."""

HEADERS = {"Accept": "application/json", "User-Agent": "Stint"}
ERRORS = frozenset(
    {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"}
) | {"invalid_scope", "invalid_target"}
"""The error codes of RFC 6749, section 5.2, and RFC 8707. Others are not shown."""


class TokenEndpointFailed(Exception):
    """An endpoint gave no usable answer. The message has neither its URL nor what it sent."""


class TokensRefused(Exception):
    """An endpoint refuses the request. `code` is its error code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """New tokens. `lifetime` is in seconds, None if it is unknown. Without a refresh token, the old one stays valid."""

    access_token: str
    refresh_token: str | None
    lifetime: float | None


def basic_login(client_id: str, client_secret: str) -> str:
    """Return the header of a client with a secret (RFC 6749, section 2.3.1)."""
    login = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return f"Basic {base64.b64encode(login.encode()).decode()}"


async def request_tokens(guard: Guard, url: str, form: Mapping[str, str], login: str | None) -> IssuedTokens:
    """Send a form, with a Basic `login` if there is one, and return the tokens of the answer.

    Raises:
        TokensRefused: the endpoint refuses the request.
        TokenEndpointFailed: it gave no usable answer, or may not be called.
    """
    headers = HEADERS | ({"Authorization": login} if login else {})
    try:
        async with asyncio.timeout(SECONDS):
            await guard.check_secret_target(url)
            async with guard.client(timeout=SECONDS, max_bytes=MAX_ANSWER, headers=headers) as client:
                response = await client.post(url, data=dict(form))
    except (TimeoutError, httpx.TimeoutException):
        raise TokenEndpointFailed(f"it did not answer within {SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TokenEndpointFailed(f"the connection failed ({type(error).__name__})") from None
    except UnresolvableURL:
        raise TokenEndpointFailed("its host has no address, or it redirects to an invalid URL") from None
    except InvalidRequest as error:
        raise TokenEndpointFailed(f"the request is refused ({error.code})") from None
    return read_tokens(response.status_code, response.content)


def read_tokens(status: int, content: bytes) -> IssuedTokens:
    """Read an answer. Raises as `request_tokens`."""
    try:
        answer = parse_json(content.decode())
    except ValueError:
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    if status != httpx.codes.OK:
        code = fields.get("error")
        # Only these two statuses are refusals by the rules. A gateway in front may send any body with another one.
        if status in (httpx.codes.BAD_REQUEST, httpx.codes.UNAUTHORIZED) and isinstance(code, str) and code in ERRORS:
            raise TokensRefused(code)
        raise TokenEndpointFailed(f"it answered {status}")
    access, refresh, kind = fields.get("access_token"), fields.get("refresh_token"), fields.get("token_type", "bearer")
    if not is_token(access):
        raise TokenEndpointFailed("its answer has no valid access_token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenEndpointFailed("its answer has another token_type than Bearer")
    if refresh is not None and not is_token(refresh):
        raise TokenEndpointFailed("its answer has an invalid refresh_token")
    return IssuedTokens(access, refresh, read_lifetime(fields.get("expires_in")))


def is_token(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def read_lifetime(value: object) -> float | None:
    """Return a lifetime in seconds; None for one that is unknown. Some servers send it as a text."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return None
    return min(seconds, MAX_LIFETIME) if seconds > 0 else None
