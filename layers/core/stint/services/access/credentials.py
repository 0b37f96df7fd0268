"""The caller of a request: an API key, or a token of an OpenID Connect issuer, in the header Authorization."""

import re
from collections.abc import Mapping
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.credentials import AccessRefused, InvalidCredential
from stint.domain.principals import Principal
from stint.services.access.api_keys import ApiKeys
from stint.services.access.claims import ClaimNames

LONGEST_HEADER = 8_192
"""Maximum characters of the header's value. API Gateway allows 10,240 bytes for all headers."""

BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)")
"""RFC 6750, section 2.1."""


class TokenVerifier(Protocol):
    """The tokens of an issuer."""

    def claims_of(self, token: str) -> Mapping[str, object]:
        """Return the claims of a valid token. Raises InvalidCredential, or StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that a stack accepts, and the meaning of their claims."""

    verifier: TokenVerifier
    names: ClaimNames


class Authentication:
    """Find the principal of a credential. None for `keys` or `tokens` means that the stack does not accept them."""

    def __init__(self, keys: ApiKeys | None, tokens: Tokens | None) -> None:
        self._keys = keys
        self._tokens = tokens

    async def authenticate(self, header: str) -> Principal:
        """Return the principal of a value of the header Authorization.

        Raises:
            InvalidCredential: the credential is not valid.
            AccessRefused: the credential is valid, and its owner has no rights.
            StoreUnavailable: the keys, or those of the issuer, cannot be read.
        """
        credential = bearer_of(header)
        principal = await self._find(credential)
        if not principal.scopes:
            raise AccessRefused("The caller has no scope of this API.")
        return principal

    async def _find(self, credential: str) -> Principal:
        # By its form, so that a wrong key is never sent to the parser of tokens.
        if credential.startswith("stk_"):
            principal = await self._keys.verify(credential) if self._keys else None
            if principal is None:
                raise InvalidCredential("The API key is unknown, wrong, expired or revoked.")
            return principal
        if self._tokens is None:
            raise InvalidCredential("The credential is not an API key, which has the form stk_<id>_<secret>.")
        return self._tokens.names.principal_of(self._tokens.verifier.claims_of(credential))


def bearer_of(header: str) -> str:
    """Return the credential of a header. Raises InvalidCredential."""
    if len(header) > LONGEST_HEADER:
        raise InvalidCredential(f"The header Authorization has more than {LONGEST_HEADER} characters.")
    found = BEARER.fullmatch(header)
    if found is None:
        raise InvalidCredential("The header Authorization must have the form: Bearer <key or token>.")
    return found.group(1)
