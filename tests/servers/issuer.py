"""An OpenID Connect issuer on loopback, in a thread of this process."""

import base64
import json
import threading
from collections import Counter
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

DISCOVERY = "/.well-known/openid-configuration"


@cache
def rsa_key(name: str = "", bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return a key, which stays the same for a name."""
    return rsa.generate_private_key(65_537, bits)


@cache
def ec_key(name: str = "", curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def jwk_of(key: Any, kid: str, **fields: Any) -> dict[str, Any]:
    """Return the public key as a JWK."""
    kinds: dict[type, Any] = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    name = next((name for kind, name in kinds.items() if isinstance(key, kind)), "EdDSA")
    algorithm: Any = jwt.get_algorithm_by_name(name)
    found: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    found.pop("key_ops", None)
    return {**found, "kid": kid, **fields}


def encode(part: Any) -> str:
    """Return a part of a token: bytes or text as they are, anything else as JSON."""
    raw = part.encode() if isinstance(part, str) else part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def sign(header: Any, payload: Any, key: Any, algorithm: str) -> str:
    """Sign any header and any payload, also those that a library would refuse."""
    signed = f"{encode(header)}.{encode(payload)}"
    implementation = jwt.get_algorithm_by_name(algorithm)
    return f"{signed}.{encode(implementation.sign(signed.encode(), key))}"


class Issuer:
    """Context manager that serves `documents`, by path. `requests` counts them. A document may be bytes or JSON."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        self.status = 200
        self.requests: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.publish()

    def publish(self, *keys: dict[str, Any]) -> None:
        """Replace the keys of the issuer."""
        self.documents[DISCOVERY] = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        self.documents["/keys"] = {"keys": list(keys)}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests[self.path] += 1
                document = issuer.documents.get(self.path, {})
                body = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(issuer.status)
                self.send_header("Location", f"{issuer.url}/keys")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write nothing to the output of the tests."""

        return Handler
