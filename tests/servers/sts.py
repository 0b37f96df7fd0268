"""An STS on loopback whose credentials have the tenant of the session in their access key."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs

ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/data/x</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>{key}</AccessKeyId>
      <SecretAccessKey>wJalr/XUtnFEMI+K7MDENG=</SecretAccessKey>
      <SessionToken>token/of+{key}==</SessionToken>
      <Expiration>{expiration}</Expiration>
    </Credentials>
  </AssumeRoleResult>
</AssumeRoleResponse>"""

REFUSAL = (
    """<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"""
)

SKEW_SECONDS = 300


class StsServer:
    """Context manager. `requests` has the parameters of all requests, and their headers Authorization and X-Amz-Date.

    `refusals` are statuses and codes of the next answers. `now` is its time: sessions last an hour from then, and
    signatures may differ by five minutes.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.requests: list[dict[str, str]] = []
        self.refusals: list[tuple[int, str]] = []
        self.now = now
        sts = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                sent = {name: values[0] for name, values in parse_qs(body).items()}
                signed = {name: self.headers[name] for name in ("Authorization", "X-Amz-Date")}
                status, answer = sts.answer(sent | signed)
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer.encode())

            def date_time_string(self, timestamp: float | None = None) -> str:
                return formatdate(sts.now() if timestamp is None else timestamp, usegmt=True)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, sent: dict[str, str]) -> tuple[int, str]:
        """Note a request, and return the status and the body of its answer."""
        self.requests.append(sent)
        if self.refusals:
            status, code = self.refusals.pop(0)
            return status, REFUSAL.format(code=code)
        signed_at = datetime.strptime(f"{sent['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
        if abs(signed_at - self.now()) > SKEW_SECONDS:
            return 403, REFUSAL.format(code="SignatureDoesNotMatch")
        expiration = datetime.fromtimestamp(self.now() + 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        key = f"ASIA{tags_of(sent)['tenant'].upper()}{len(self.requests)}"
        return 200, ANSWER.format(key=key, expiration=expiration)


def tags_of(sent: dict[str, str]) -> dict[str, str]:
    """Return the tags of a request."""
    names = [name for name in sent if name.startswith("Tags.member.") and name.endswith(".Key")]
    return {sent[name]: sent[f"{name[:-4]}.Value"] for name in names}
