"""The principal of a token, read from the claims that the settings name."""

from collections.abc import Mapping

from stint.dataclasses import dataclass
from stint.domain.api_keys import LONGEST_MODEL, MOST_MODELS
from stint.domain.credentials import AccessRefused
from stint.domain.principals import Principal, is_tenant, scopes_of

LONGEST_SUBJECT = 255
"""OpenID Connect Core, section 2."""

MOST_SCOPES = 1_000


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The claims of a principal. Without `tenant`, all tokens are of `fixed_tenant`; without `models`, all are allowed.

    Scopes count if they begin with `scope_prefix`, which is removed.
    """

    tenant: str = ""
    fixed_tenant: str = ""
    subject: str = "sub"
    scopes: str = "scope"
    scope_prefix: str = ""
    models: str = ""

    def principal_of(self, claims: Mapping[str, object]) -> Principal:
        """Return the principal of verified claims. Raises AccessRefused."""
        return Principal(
            tenant=self._tenant_of(claims),
            subject=self._subject_of(claims),
            scopes=scopes_of(self._scopes_of(claims)),
            models=self._models_of(claims),
            expires_at=end_of(claims),
        )

    def _tenant_of(self, claims: Mapping[str, object]) -> str:
        tenant = claims.get(self.tenant) if self.tenant else self.fixed_tenant
        if not isinstance(tenant, str) or not is_tenant(tenant):
            raise AccessRefused(
                f"The token's claim {self.tenant!r} is not the name of a tenant: up to 32 of a-z, 0-9 and '-'."
            )
        return tenant

    def _subject_of(self, claims: Mapping[str, object]) -> str:
        subject = claims.get(self.subject)
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
            raise AccessRefused(
                f"The token's claim {self.subject!r} is not a subject: 1 to {LONGEST_SUBJECT} printable characters."
            )
        return subject

    def _scopes_of(self, claims: Mapping[str, object]) -> list[str]:
        names = list_of(claims.get(self.scopes), MOST_SCOPES)
        if names is None:
            raise AccessRefused(f"The token's claim {self.scopes!r} is not a list of up to {MOST_SCOPES} scopes.")
        # Scopes of other APIs of the same issuer are ignored.
        return [name.removeprefix(self.scope_prefix) for name in names if name.startswith(self.scope_prefix)]

    def _models_of(self, claims: Mapping[str, object]) -> tuple[str, ...]:
        """Return the patterns of allowed models. A configured claim that is missing allows none."""
        if not self.models:
            return ()
        patterns = list_of(claims.get(self.models), MOST_MODELS)
        # A missing claim must not mean all models: an issuer that forgets it would open everything.
        if not patterns or any(len(each) > LONGEST_MODEL for each in patterns):
            raise AccessRefused(f"The token's claim {self.models!r} is not a list of up to {MOST_MODELS} models.")
        return tuple(patterns)


def end_of(claims: Mapping[str, object]) -> int | None:
    """Return the `exp` of verified claims in whole seconds."""
    end = claims.get("exp")
    return int(end) if isinstance(end, int | float) else None


def list_of(value: object, most: int) -> list[str] | None:
    """Return the entries of a list of texts, or of a text with spaces; None for another value."""
    entries = value.split() if isinstance(value, str) else value
    if not isinstance(entries, list) or len(entries) > most or not all(isinstance(each, str) for each in entries):
        return None
    return [str(each) for each in entries if each]
