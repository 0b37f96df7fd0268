from collections.abc import Iterator
from typing import Any

import pytest
from tests.servers.issuer import Issuer, ec_key, jwk_of, rsa_key, sign

from stint.oidc.fetch import fetch
from stint.oidc.key_set import KeySet
from stint.oidc.tokens import OidcTokens, TokenRules

NOW = 1_800_000_000.0


class Verifier:
    """A verifier of an issuer's tokens with a clock of its own, and the issuer's own signatures."""

    def __init__(self, issuer: Issuer, *algorithms: str) -> None:
        self.issuer, self.time = issuer, NOW
        keys = KeySet(issuer.url, fetch, lambda: self.time)
        rules = TokenRules(issuer.url, "stint", algorithms or ("RS256", "ES256"))
        self.tokens = OidcTokens(rules, keys, lambda: self.time)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return valid claims with changes. None removes one."""
        valid = {"iss": self.issuer.url, "aud": "stint", "sub": "ada", "exp": int(self.time) + 300}
        return {name: value for name, value in (valid | changes).items() if value is not None}

    def sign(self, kid: str = "rsa", header: Any = None, algorithm: str = "RS256", **changes: Any) -> str:
        key = ec_key() if algorithm.startswith("ES") else rsa_key()
        head = {"alg": algorithm, "kid": kid, "typ": "JWT"} | (header or {})
        return sign(head, self.claims(**changes), key, algorithm)

    def verify(self, token: str) -> dict[str, Any]:
        return self.tokens.claims_of(token)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """Yield an issuer with an RSA key and an EC key."""
    with Issuer() as issuer:
        issuer.publish(jwk_of(rsa_key(), "rsa", use="sig", alg="RS256"), jwk_of(ec_key(), "ec"))
        yield issuer


@pytest.fixture
def verifier(issuer: Issuer) -> Verifier:
    return Verifier(issuer)
