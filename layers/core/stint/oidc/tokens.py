"""Tokens of an OpenID Connect issuer: JWTs with an asymmetric signature (RFC 7519, RFC 8725).

The algorithms, the issuer and the audience are pinned by the settings. A token selects only one of the issuer's keys,
by the id in its header. The header's other parameters, such as jku, x5u and jwk, are not read.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from jwt.api_jwk import PyJWK
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError
from jwt.utils import base64url_decode

from stint.dataclasses import dataclass
from stint.domain.credentials import InvalidCredential
from stint.oidc.key_set import KeySet
from stint.oidc.strict_json import read_object

SKEW_SECONDS = 60
"""Accepted difference between the clocks of the issuer and of this machine."""

LONGEST_TOKEN = 8_192
"""Maximum characters of a token."""
LONGEST_KEY_ID = 200
"""Maximum characters of a key's id."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """The issuer, the audience and the signature algorithms of accepted tokens."""

    issuer: str
    audience: str
    algorithms: Sequence[str]


class OidcTokens:
    """Verifies tokens. `clock` is the time in seconds since 1970."""

    def __init__(self, rules: TokenRules, keys: KeySet, clock: Callable[[], float] = time.time) -> None:
        self._rules = rules
        self._keys = keys
        self._clock = clock
        self._signatures = PyJWS(algorithms=rules.algorithms, options={"enforce_minimum_key_length": True})

    def claims_of(self, token: str) -> dict[str, Any]:
        """Return the claims of a valid token.

        Raises:
            InvalidCredential: the token is not valid.
            StoreUnavailable: the issuer's keys cannot be fetched.
        """
        if len(token) > LONGEST_TOKEN:
            raise InvalidCredential(f"The token has more than {LONGEST_TOKEN} characters.")
        algorithm, key_id = self._header_of(token)
        try:
            claims = read_object(self._verified_payload(token, algorithm, key_id))
        except (PyJWTError, ValueError, TypeError) as error:
            raise InvalidCredential(f"The token is not valid: {type(error).__name__}.") from None
        self._check_parties(claims)
        self._check_times(claims)
        return claims

    def _header_of(self, token: str) -> tuple[str, str]:
        """Return the algorithm and the key's id in a token's header, which nobody has verified."""
        try:
            header = read_object(base64url_decode(token.partition(".")[0]))
        except ValueError:
            raise InvalidCredential("The credential is neither an API key nor a JWT.") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        # Before a key is looked up: `none` and the symmetric algorithms are in no setting.
        if not isinstance(algorithm, str) or algorithm not in self._rules.algorithms:
            raise InvalidCredential(f"The token's algorithm is not one of {', '.join(self._rules.algorithms)}.")
        if not isinstance(key_id, str) or len(key_id) > LONGEST_KEY_ID:
            raise InvalidCredential("The token's header has no valid kid.")
        # `crit` names extensions that a receiver must understand (RFC 7515, section 4.1.11), and `b64` changes what is
        # signed.
        if "crit" in header or "b64" in header:
            raise InvalidCredential("The token's header has extensions, which are not supported.")
        return algorithm, key_id

    def _verified_payload(self, token: str, algorithm: str, key_id: str) -> bytes:
        jwk = self._keys.find(key_id)
        if jwk is None:
            raise InvalidCredential("The issuer has no key with the token's kid.")
        # An issuer can bind a key to one algorithm.
        if jwk.get("alg", algorithm) != algorithm:
            raise InvalidCredential("The token's algorithm does not match its key.")
        key = PyJWK(jwk, algorithm)
        payload: bytes = self._signatures.decode_complete(token, key, [algorithm])["payload"]
        return payload

    def _check_parties(self, claims: dict[str, Any]) -> None:
        if claims.get("iss") != self._rules.issuer:
            raise InvalidCredential("The token was not issued by the configured issuer.")
        audience = claims.get("aud")
        # A token for another service of the same issuer is as well signed as one for this service.
        if self._rules.audience not in (audience if isinstance(audience, list) else [audience]):
            raise InvalidCredential("The token is for another audience.")

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._clock()
        expires, *others = (time_of(claims, name) for name in ("exp", "nbf", "iat"))
        # A token without an end could never be withdrawn.
        if expires is None or now >= expires + SKEW_SECONDS:
            raise InvalidCredential("The token has expired, or has no claim exp.")
        if any(each is not None and now < each - SKEW_SECONDS for each in others):
            raise InvalidCredential("The token is not valid yet.")


def time_of(claims: dict[str, Any], name: str) -> float | None:
    """Return a time in seconds since 1970, or None if there is none. Raises InvalidCredential."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise InvalidCredential(f"The token's {name} is not a number.")
    return value
