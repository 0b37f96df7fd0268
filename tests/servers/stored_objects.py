"""S3 and SSM on loopback, with versions of single objects and parameters."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

S3_ERROR = "<Error><Code>{code}</Code><Message>no</Message></Error>"


class StoredObjectsServer:
    """Context manager. `objects` has contents by path and version, `parameters` values by name and version.

    `requests` has the method, the target and the headers of all requests, and `refusals` are statuses of the next
    answers. `answered_version` is the version that answers have, if it is set.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.parameters: dict[tuple[str, str], str] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.refusals: list[int] = []
        self.answered_version = ""
        own = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(*own.find_object(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.answer(*own.find_parameter(str(body["Name"])))

            def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                sent = {name.lower(): value for name, value in self.headers.items()}
                own.requests.append((self.command, self.path, sent))
                if own.refusals:
                    status, body = own.refusals.pop(0), b""
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

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

    def find_object(self, target: str) -> tuple[int, bytes, dict[str, str]]:
        parts = urlsplit(target)
        version = parse_qs(parts.query).get("versionId", [""])[0]
        content = self.objects.get((parts.path, version))
        if content is None:
            return 404, S3_ERROR.format(code="NoSuchKey").encode(), {}
        return 200, content, {"x-amz-version-id": self.answered_version or version}

    def find_parameter(self, name: str) -> tuple[int, bytes, dict[str, str]]:
        path, _, version = name.partition(":")
        value = self.parameters.get((path, version))
        if value is None:
            return 400, json.dumps({"__type": "ParameterNotFound"}).encode(), {}
        found = {"Name": path, "Value": value, "Version": int(self.answered_version or version or 1)}
        return 200, json.dumps({"Parameter": found}).encode(), {}
