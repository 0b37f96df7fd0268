"""PyJWT's client of key sets lacks four things that `oidc/key_set.py` has. If a test fails, it has gained one."""

import pytest
from jwt import PyJWKClient
from jwt.exceptions import PyJWKClientConnectionError, PyJWKSetError
from tests.servers.issuer import Issuer, jwk_of, rsa_key

from stint.oidc.fetch import LARGEST, FetchError, fetch

SHORT_SECONDS = 0.000_001
"""A lifetime of the cached keys that has passed at the next call."""


def client_of(issuer: Issuer, lifespan: float = 300) -> PyJWKClient:
    issuer.publish(jwk_of(rsa_key(), "rsa", alg="RS256"))
    return PyJWKClient(f"{issuer.url}/keys", lifespan=lifespan, cooldown_duration=60)


def test_the_library_keeps_no_stale_keys_while_the_issuer_is_down() -> None:
    with Issuer() as issuer:
        client = client_of(issuer, lifespan=SHORT_SECONDS)
        client.get_signing_key("rsa")
        issuer.status = 503
        with pytest.raises(PyJWKClientConnectionError):
            client.get_signing_key("rsa")


def test_the_library_fetches_for_each_token_while_the_issuer_is_down() -> None:
    with Issuer() as issuer:
        client = client_of(issuer)
        issuer.status = 503
        for _ in range(3):
            with pytest.raises(PyJWKClientConnectionError):
                client.get_signing_key("unknown")
        assert issuer.requests["/keys"] == 3


def test_the_library_reads_documents_of_any_size() -> None:
    with Issuer() as issuer:
        client = client_of(issuer)
        issuer.publish(jwk_of(rsa_key(), "rsa", alg="RS256"), {"kty": "RSA", "kid": "x" * LARGEST})
        assert client.get_signing_key("rsa").key_id == "rsa"
        with pytest.raises(FetchError):
            fetch(f"{issuer.url}/keys")


def test_the_library_does_not_discover_the_address_of_the_keys() -> None:
    with Issuer() as issuer:
        issuer.publish(jwk_of(rsa_key(), "rsa", alg="RS256"))
        with pytest.raises(PyJWKSetError):
            PyJWKClient(issuer.url).get_signing_key("rsa")
