"""A token endpoint of OAuth on loopback, which accepts each refresh token once (RFC 6749, section 6).

https://datatracker.ietf.org/doc/html/draft-ietf-oauth-security-topics#section-2.2.2
"""

import base64
import json
import threading
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

CLIENT, CLIENT_SECRET = "client of a:test", "client-secret:/+"


class OAuthServer:
    """Context manager. `valid` is the refresh token that is accepted next, and `access_token` the one that it gives.

    `forms` has what was sent, and `logins` the user and the password of Basic logins.
    """

    def __init__(self, valid: str = "refresh-token-0", access_token: str = "right-token") -> None:
        self.valid, self.access_token = valid, access_token
        self.rotates = True
        self.fields: dict[str, Any] = {"token_type": "Bearer", "expires_in": 3600}
        self.forms: list[dict[str, str]] = []
        self.logins: list[tuple[str, str]] = []
        self.on_request: Callable[[], object] = lambda: None
        self.lock = threading.Lock()
        self.server = ScriptedHTTPServer(self.answer)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    @property
    def url(self) -> str:
        return f"{self.server.url}/token"

    def answer(self, received: Received) -> Reply:
        with self.lock:
            self.on_request()
            form = {name: values[0] for name, values in parse_qs(received.body.decode()).items()}
            self.forms.append(form)
            scheme, _, login = received.headers.get("authorization", "").partition(" ")
            if scheme == "Basic":
                user, _, password = base64.b64decode(login).decode().partition(":")
                self.logins.append((unquote_plus(user), unquote_plus(password)))
            if form.get("grant_type") != "refresh_token" or form.get("refresh_token") != self.valid:
                return reply(400, {"error": "invalid_grant", "error_description": f"no such {form}"})
            body = {"access_token": self.access_token, **self.fields}
            if self.rotates:
                self.valid = f"refresh-token-{len(self.forms)}"
                body["refresh_token"] = self.valid
            return reply(200, body)


def reply(status: int, body: Any) -> Reply:
    return Reply((json.dumps(body).encode(),), status, {"content-type": "application/json"})
