"""Requests to the token endpoints of OAuth servers, whose URLs callers choose (RFC 6749, section 6).

Nothing of the answer gets into an error but a known error code: it may repeat a secret.
"""

import base64
import re
from collections.abc import Mapping
from typing import TypeGuard
from urllib.parse import quote_plus

import httpx

from stint.dataclasses import dataclass
from stint.domain.json_text import parse_json
from stint.net.guard import Guard
from stint.net.secret_requests import EndpointFailed, open_client

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
        EndpointFailed: it gave no usable answer, or may not be called.
    """
    headers = HEADERS | ({"Authorization": login} if login else {})
    async with open_client(guard, url, headers, MAX_ANSWER) as client:
        response = await client.post(url, data=dict(form))
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
        raise EndpointFailed(f"it answered {status}")
    access, refresh, kind = fields.get("access_token"), fields.get("refresh_token"), fields.get("token_type", "bearer")
    if not is_token(access):
        raise EndpointFailed("its answer has no valid access_token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise EndpointFailed("its answer has another token_type than Bearer")
    if refresh is not None and not is_token(refresh):
        raise EndpointFailed("its answer has an invalid refresh_token")
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
