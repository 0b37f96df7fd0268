"""Tokens that are accepted, and attacks on the verification of JWTs (RFC 8725)."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.servers.issuer import Issuer, ec_key, ed_key, encode, jwk_of, rsa_key, sign
from tests.unit.oidc.conftest import Verifier

from stint.domain.credentials import InvalidCredential


def refuse(verifier: Verifier, token: str, reason: str = "The") -> None:
    with pytest.raises(InvalidCredential, match=reason) as caught:
        verifier.verify(token)
    assert not any(len(part) > 20 and part in str(caught.value) for part in token.split("."))


def test_a_token_of_the_issuer_is_valid(verifier: Verifier) -> None:
    assert verifier.verify(verifier.sign()) == verifier.claims()
    assert verifier.verify(verifier.sign("ec", algorithm="ES256"))["sub"] == "ada"
    assert verifier.verify(verifier.sign(aud=["other", "stint"]))["aud"] == ["other", "stint"]


def test_an_edwards_key_verifies_where_the_setting_names_it(issuer: Issuer) -> None:
    issuer.publish(jwk_of(ed_key(), "ed"))
    token = sign({"alg": "EdDSA", "kid": "ed"}, Verifier(issuer).claims(), ed_key(), "EdDSA")

    assert Verifier(issuer, "EdDSA").verify(token)["sub"] == "ada"
    refuse(Verifier(issuer), token, "algorithm")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 0, ["RS256"]])
def test_a_token_without_a_signature_is_refused(verifier: Verifier, algorithm: Any) -> None:
    header = encode({"alg": algorithm, "kid": "rsa"})

    refuse(verifier, f"{header}.{encode(verifier.claims())}.", "algorithm")
    refuse(verifier, f"{header}.{encode(verifier.claims())}.{verifier.sign().split('.')[2]}", "algorithm")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_not_accepted_as_a_secret(verifier: Verifier, algorithm: str) -> None:
    public = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{encode({'alg': algorithm, 'kid': 'rsa'})}.{encode(verifier.claims())}"
    digest = hmac.digest(public, signed.encode(), f"sha{algorithm[2:]}")

    refuse(verifier, f"{signed}.{encode(digest)}", "algorithm")


def test_a_secret_key_in_the_issuers_set_verifies_nothing(issuer: Issuer, verifier: Verifier) -> None:
    issuer.publish({"kty": "oct", "kid": "rsa", "k": encode(b"secret")})
    signed = f"{encode({'alg': 'HS256', 'kid': 'rsa'})}.{encode(verifier.claims())}"

    refuse(verifier, f"{signed}.{encode(hmac.digest(b'secret', signed.encode(), hashlib.sha256))}")
    refuse(verifier, verifier.sign(), "kid")


def test_a_key_verifies_only_its_own_algorithm(issuer: Issuer, verifier: Verifier) -> None:
    refuse(Verifier(issuer, "RS256", "PS256"), verifier.sign(algorithm="PS256"), "does not match its key")
    refuse(verifier, verifier.sign("ec", algorithm="RS256"))
    refuse(verifier, verifier.sign("rsa", algorithm="ES256"))


def test_a_curve_verifies_only_its_own_algorithm(issuer: Issuer, verifier: Verifier) -> None:
    issuer.publish(jwk_of(ec_key(curve=ec.SECP384R1), "ec"))
    token = sign({"alg": "ES256", "kid": "ec"}, verifier.claims(), ec_key(curve=ec.SECP384R1), "ES256")

    refuse(verifier, token)


def test_a_short_rsa_key_is_refused(issuer: Issuer, verifier: Verifier) -> None:
    issuer.publish(jwk_of(rsa_key(bits=1024), "short"))

    refuse(verifier, sign({"alg": "RS256", "kid": "short"}, verifier.claims(), rsa_key(bits=1024), "RS256"))


@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_keys_that_the_token_brings_are_ignored(issuer: Issuer, verifier: Verifier, name: str) -> None:
    values = {"jwk": jwk_of(rsa_key("mallory"), "rsa"), "x5c": ["MIIB"]}
    header = {"alg": "RS256", "kid": "rsa", name: values.get(name, f"{issuer.url}/mallory")}

    refuse(verifier, sign(header, verifier.claims(), rsa_key("mallory"), "RS256"))
    assert "/mallory" not in issuer.requests
    assert verifier.verify(sign(header, verifier.claims(), rsa_key(), "RS256"))


@pytest.mark.parametrize(
    "kid", [None, 7, [], {}, "", "../keys", "/dev/null", "rsa' OR '1'='1", "rsa\x00", "k" * 201, "https://a.example/"]
)
def test_a_key_id_is_only_looked_up_among_the_issuers_keys(issuer: Issuer, verifier: Verifier, kid: Any) -> None:
    refuse(verifier, sign({"alg": "RS256", "kid": kid}, verifier.claims(), rsa_key(), "RS256"), "kid")
    assert set(issuer.requests) <= {"/.well-known/openid-configuration", "/keys"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://other.example"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"iss": ["{url}"]}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": "stint2"}, "audience"),
        ({"aud": [["stint"]]}, "audience"),
        ({"aud": {"stint": 1}}, "audience"),
        ({"exp": None}, "expired"),
        ({"exp": "1900000000"}, "not a number"),
        ({"exp": True}, "not a number"),
        ({"exp": [1]}, "not a number"),
        ({"nbf": 1_800_000_061}, "not valid yet"),
        ({"nbf": "0"}, "not a number"),
        ({"iat": 1_800_000_061}, "not valid yet"),
        ({"iat": {}}, "not a number"),
    ],
)
def test_claims_of_another_token_are_refused(verifier: Verifier, changes: dict[str, Any], reason: str) -> None:
    refuse(verifier, verifier.sign(**changes), reason)


def test_clocks_may_differ_by_a_minute(verifier: Verifier) -> None:
    token = verifier.sign(exp=int(verifier.time), nbf=int(verifier.time) + 59, iat=int(verifier.time) + 59)
    verifier.time += 59

    assert verifier.verify(token)
    verifier.time += 1
    refuse(verifier, token, "expired")


@pytest.mark.parametrize(
    "payload",
    [
        '{"iss": "%s", "aud": "stint", "exp": 1, "exp": 1900000000}',
        '{"iss": "https://a.example", "iss": "%s", "aud": "stint", "exp": 1900000000}',
        '{"iss": "%s", "aud": "stint", "exp": Infinity}',
        '{"iss": "%s", "aud": "stint", "exp": 1e999}',
        '{"iss": "%s", "aud": "stint", "exp": NaN}',
        '["%s"]',
        '"%s"',
        "%s",
        "",
        "[" * 3_000 + "%s",
    ],
)
def test_a_payload_that_readers_may_understand_differently_is_refused(verifier: Verifier, payload: str) -> None:
    text = payload.replace("%s", verifier.issuer.url)

    refuse(verifier, sign({"alg": "RS256", "kid": "rsa"}, text, rsa_key(), "RS256"))


@pytest.mark.parametrize(
    "header",
    [
        '{"alg": "none", "alg": "RS256", "kid": "rsa"}',
        '{"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false}',
        '{"alg": "RS256", "kid": "rsa", "crit": ["x"]}',
        '{"alg": "RS256", "kid": "rsa", "b64": false}',
        "[]",
        "{",
        "[" * 3_000,
        b"\xff\xfe",
    ],
)
def test_a_header_with_extensions_or_ambiguities_is_refused(verifier: Verifier, header: str | bytes) -> None:
    reason = "extensions" if "b64" in str(header) or "crit" in str(header) else "The"

    refuse(verifier, sign(header, verifier.claims(), rsa_key(), "RS256"), reason)


@pytest.mark.parametrize("token", ["", ".", "..", "...", "a", "a.b", "a.b.c", "a.b.c.d.e", "%.%.%", "é.é.é"])
def test_other_texts_are_no_tokens(verifier: Verifier, token: str) -> None:
    refuse(verifier, token)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_token_that_was_changed_is_refused(verifier: Verifier, place: int) -> None:
    parts = verifier.sign().split(".")
    other = verifier.sign(header={"typ": "at+jwt"}, sub="eve").split(".")
    parts[place] = other[place]

    refuse(verifier, ".".join(parts))


def test_a_huge_token_is_refused_before_it_is_read(verifier: Verifier) -> None:
    refuse(verifier, verifier.sign(padding="p" * 10_000), "characters")
    assert verifier.issuer.requests == {}


def test_a_token_needs_its_own_issuers_key(issuer: Issuer, verifier: Verifier) -> None:
    refuse(verifier, sign({"alg": "RS256", "kid": "rsa"}, verifier.claims(), rsa_key("mallory"), "RS256"))
    issuer.publish(jwk_of(rsa_key("mallory"), "rsa"))
    assert json.dumps(verifier.verify(verifier.sign()))  # the cached key
