"""A KMS on loopback with Encrypt and Decrypt, whose ciphertexts can be read with their own context only.

https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html
"""

import base64
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"


class KmsServer:
    """Context manager. `operations` has the names of the calls."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.texts: dict[str, tuple[str, Any]] = {}
        kms = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = kms.answer(self.headers["x-amz-target"].partition(".")[2], sent)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/x-amz-json-1.1")
                self.send_header("content-length", str(len(body)))
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

    def answer(self, operation: str, sent: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.operations.append(operation)
        if sent["KeyId"] != KEY:
            return 400, {"__type": "NotFoundException", "message": "no such key"}
        if operation == "Encrypt":
            blob = base64.b64encode(secrets.token_bytes(64)).decode()
            self.texts[blob] = sent["Plaintext"], sent["EncryptionContext"]
            return 200, {"CiphertextBlob": blob, "KeyId": KEY}
        text, context = self.texts.get(sent["CiphertextBlob"], ("", None))
        if context is None or context != sent["EncryptionContext"]:
            return 400, {"__type": "InvalidCiphertextException", "message": None}
        return 200, {"Plaintext": text, "KeyId": KEY}
