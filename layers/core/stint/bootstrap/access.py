"""Composition of API keys and authentication. Nothing is made before the first request."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from stint.bootstrap.restore import Composition
from stint.services.access.api_keys import ApiKeys
from stint.services.access.claims import ClaimNames
from stint.services.access.credentials import Authentication, Tokens
from stint.settings import Settings, SettingsError
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.table import Table

if TYPE_CHECKING:
    from stint.oidc.tokens import OidcTokens


class AccessComposition(Composition):
    """The parts of one process, each made when first used."""

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(make_dynamodb(), self.settings.keys_table)))

    @cached_property
    def authentication(self) -> Authentication:
        keys = self.api_keys if self.settings.keys_table else None
        return Authentication(keys, make_tokens(self.settings))


def make_tokens(settings: Settings) -> Tokens | None:
    """Return the accepted tokens, or None if no issuer is set. Raises SettingsError if a setting is missing."""
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_audience:
        raise SettingsError("STINT_OIDC_ISSUER is set without STINT_OIDC_AUDIENCE. Set both.")
    if not settings.oidc_tenant and not settings.oidc_tenant_claim:
        raise SettingsError(
            "STINT_OIDC_ISSUER is set without a tenant. Set STINT_OIDC_TENANT or STINT_OIDC_TENANT_CLAIM."
        )
    names = ClaimNames(
        tenant=settings.oidc_tenant_claim,
        fixed_tenant=settings.oidc_tenant,
        subject=settings.oidc_subject_claim,
        scopes=settings.oidc_scopes_claim,
        scope_prefix=settings.oidc_scope_prefix,
        models=settings.oidc_models_claim,
    )
    return Tokens(LazyTokens(settings), names)


class LazyTokens:
    """Verifier of tokens. PyJWT and cryptography are loaded for the first one: API keys do not need them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def claims_of(self, token: str) -> Mapping[str, object]:
        return self._verifier.claims_of(token)

    @cached_property
    def _verifier(self) -> "OidcTokens":
        from stint.oidc.fetch import fetch  # noqa: PLC0415
        from stint.oidc.key_set import KeySet  # noqa: PLC0415
        from stint.oidc.tokens import OidcTokens, TokenRules  # noqa: PLC0415

        issuer = self._settings.oidc_issuer
        algorithms = self._settings.oidc_algorithms.split(",")
        return OidcTokens(TokenRules(issuer, self._settings.oidc_audience, algorithms), KeySet(issuer, fetch))
