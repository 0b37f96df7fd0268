"""The cache of an issuer's keys, and fetches with limits."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.servers.issuer import DISCOVERY, jwk_of, rsa_key, sign
from tests.unit.oidc.conftest import Verifier

from stint.domain.credentials import InvalidCredential
from stint.domain.errors import StoreUnavailable
from stint.oidc.fetch import LARGEST, FetchError, fetch
from stint.oidc.key_set import FRESH_SECONDS, PAUSE_SECONDS, RETRY_SECONDS, STALE_SECONDS


def rotated(verifier: Verifier) -> str:
    """Return a token of a new key, which the issuer has published."""
    verifier.issuer.publish(jwk_of(rsa_key(), "rsa"), jwk_of(rsa_key("next"), "next"))
    return sign({"alg": "RS256", "kid": "next"}, verifier.claims(), rsa_key("next"), "RS256")


def is_valid(verifier: Verifier, token: str) -> bool:
    try:
        return bool(verifier.verify(token))
    except InvalidCredential:
        return False


def test_keys_are_fetched_for_the_first_token_and_kept(verifier: Verifier) -> None:
    before = dict(verifier.issuer.requests)
    for _ in range(3):
        verifier.verify(verifier.sign())

    assert (before, verifier.issuer.requests) == ({}, {DISCOVERY: 1, "/keys": 1})


def test_an_unknown_key_is_looked_for_at_most_once_a_minute(verifier: Verifier) -> None:
    verifier.verify(verifier.sign())
    token = rotated(verifier)

    early = [is_valid(verifier, token), *(is_valid(verifier, verifier.sign(f"kid-{each}")) for each in range(50))]
    requests = verifier.issuer.requests["/keys"]
    verifier.time += PAUSE_SECONDS

    assert (any(early), requests) == (False, 1)
    assert is_valid(verifier, token)
    assert verifier.issuer.requests["/keys"] == 2


def test_a_withdrawn_key_is_not_accepted_any_more_after_an_hour(verifier: Verifier) -> None:
    verifier.verify(verifier.sign())
    verifier.issuer.publish(jwk_of(rsa_key("next"), "next"))
    verifier.time += FRESH_SECONDS - 1
    before = is_valid(verifier, verifier.sign())
    verifier.time += 1

    assert (before, is_valid(verifier, verifier.sign())) == (True, False)


def test_keys_are_used_for_a_day_while_the_issuer_does_not_answer(verifier: Verifier) -> None:
    verifier.verify(verifier.sign())
    verifier.issuer.status = 503
    verifier.time += STALE_SECONDS - 1
    before = is_valid(verifier, verifier.sign())
    verifier.time += PAUSE_SECONDS

    assert before
    with pytest.raises(StoreUnavailable):
        verifier.verify(verifier.sign())


def test_an_issuer_that_was_down_is_asked_again_soon(verifier: Verifier) -> None:
    verifier.issuer.status = 503
    for _ in range(5):
        with pytest.raises(StoreUnavailable):
            verifier.verify(verifier.sign())
    asked = verifier.issuer.requests[DISCOVERY]
    verifier.issuer.status = 200
    verifier.time += RETRY_SECONDS

    assert (asked, is_valid(verifier, verifier.sign())) == (1, True)


@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://other.example", "jwks_uri": "{url}/keys"},
        {"jwks_uri": "{url}/keys"},
        {"issuer": "{url}"},
        {"issuer": "{url}", "jwks_uri": "http://keys.example/keys"},
        {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{url}", "jwks_uri": ["{url}/keys"]},
        {"issuer": "{url}", "jwks_uri": "http://127.0.0.1:99999999/keys"},
        b'{"issuer": "{url}", "issuer": "{url}", "jwks_uri": "{url}/keys"}',
        b"[" * 100_000,
        b"<html>",
    ],
)
def test_keys_are_those_that_the_discovery_document_of_the_issuer_names(
    verifier: Verifier, configuration: dict[str, object] | bytes
) -> None:
    url = verifier.issuer.url
    if isinstance(configuration, dict):
        configuration = {
            name: value.replace("{url}", url) if isinstance(value, str) else value
            for name, value in configuration.items()
        }
    verifier.issuer.documents[DISCOVERY] = configuration

    with pytest.raises(StoreUnavailable):
        verifier.verify(verifier.sign())
    assert verifier.issuer.requests["/keys"] == 0


@pytest.mark.parametrize("keys", [{}, {"keys": {}}, {"keys": [{}] * 101}, b"null", b" " * (LARGEST + 1)])
def test_a_document_that_is_no_set_of_keys_is_not_used(verifier: Verifier, keys: object) -> None:
    verifier.issuer.documents["/keys"] = keys

    with pytest.raises(StoreUnavailable):
        verifier.verify(verifier.sign())


def test_entries_that_are_no_public_signature_keys_are_skipped(verifier: Verifier) -> None:
    good = jwk_of(rsa_key(), "rsa")
    others = [None, "rsa", {}, {**good, "kid": 7}, {**good, "kid": "a", "use": "enc"}, {**good, "kid": "b", "d": "x"}]
    verifier.issuer.documents["/keys"] = {"keys": [*others, good]}

    assert is_valid(verifier, verifier.sign())
    assert not is_valid(verifier, verifier.sign("a"))
    assert not is_valid(verifier, verifier.sign("b"))


def test_a_key_that_cannot_be_read_verifies_nothing(verifier: Verifier) -> None:
    verifier.issuer.publish({"kty": "RSA", "kid": "rsa", "n": "!", "e": []})

    assert not is_valid(verifier, verifier.sign())


def test_redirects_are_not_followed(verifier: Verifier) -> None:
    verifier.issuer.status = 302

    with pytest.raises(FetchError, match="status 302"):
        fetch(verifier.issuer.url + DISCOVERY)
    assert verifier.issuer.requests["/keys"] == 0


@pytest.mark.parametrize("url", ["http://a.example/", "ftp://127.0.0.1/", "file:///etc/passwd", "https:///x", ""])
def test_only_https_is_fetched_except_from_this_machine(url: str) -> None:
    with pytest.raises(FetchError, match="not an https URL"):
        fetch(url)


@contextmanager
def raw_server(answer: bytes) -> Iterator[str]:
    """Yield the URL of a server that sends these bytes to one client, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        connection.recv(65_536)
        connection.sendall(answer)
        connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    thread.join()
    listener.close()


@pytest.mark.parametrize("answer", [b"", b"\x00" * 100, b"HTTP/1.1 2\r\n"])
def test_answers_that_are_not_http_are_errors_of_the_fetch(answer: bytes) -> None:
    with raw_server(answer) as url, pytest.raises(FetchError):
        fetch(url)
