"""API keys, `stk_<id>_<secret>`: their form, and the objects that describe them.

A key has two parts because it is looked up before it is checked: the id is the key of its record, and the secret is
compared with a stored hash. Who reads the table learns no secret. The secret has 256 random bits, so that one fast hash
suffices.

    state      accepted secrets
    live       the current one
    rotated    the current one, and the one before it until `previous_expires_at`; older ones never
    expired    none
    revoked    none

A rotation keeps the id, and with it the budgets and the usage of the key.
"""

import hmac
import re
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator

from stint.dataclasses import dataclass
from stint.domain.principals import NO_BUDGETS, Budgets, Principal, Scope
from stint.domain.schema import Request, Schema

SECRET_BYTES = 32
MOST_MODELS, LONGEST_MODEL, LONGEST_NAME = 20, 100, 100
"""Limits of a key's texts. API Gateway allows 8 KB for a principal and its policy."""

LONGEST_OVERLAP = 30 * 86_400
"""Longest time in seconds that a rotated key's previous secret stays valid."""

LATEST = 253_402_300_799
"""The end of the year 9999, in seconds since 1970."""

KEY = re.compile(r"stk_([0-9a-f]{32})_([0-9a-f]{64})")
KEY_ID = re.compile(r"[0-9a-f]{32}")

TenantId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
"""The name of a tenant, as `stint.domain.principals.is_tenant` checks it."""

PlainText = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]*$")
]
ModelPattern = Annotated[str, Field(min_length=1, max_length=LONGEST_MODEL, pattern=r"^[\x21-\x7e]+$")]


class ApiKeyProperties(Request):
    """The properties of a new key. A key without `expires_at` does not expire."""

    name: PlainText = ""
    subject: PlainText = Field(default="", description="The key's owner, in logs and usage. Empty: the key's id.")
    scopes: list[Scope] = Field(default=["use"], min_length=1)
    models: list[ModelPattern] = Field(default=[], max_length=MOST_MODELS, description="Model patterns. Empty: all.")
    budgets: Budgets = NO_BUDGETS
    expires_at: int | None = Field(default=None, ge=0, le=LATEST, description="Time of expiry, in seconds since 1970.")

    @field_validator("scopes", "models")
    @classmethod
    def drop_repetitions(cls, values: list[str]) -> list[str]:
        return list(dict.fromkeys(values))


class CreateApiKeyRequest(ApiKeyProperties):
    """A new key of a tenant."""

    tenant: TenantId


class NewApiKey(ApiKeyProperties):
    """A new key, by default of the caller's own tenant.

    Unknown fields are refused, because a misspelled limit would be none.
    """

    model_config = ConfigDict(extra="forbid")

    tenant: TenantId | None = Field(default=None, description="By default the caller's tenant.")

    def of_tenant(self, tenant: str) -> CreateApiKeyRequest:
        """Return the request, with this tenant unless it names one."""
        return CreateApiKeyRequest(**dict(self) | {"tenant": self.tenant or tenant})


class RotateApiKeyRequest(Request):
    """The time in seconds that the previous secret stays valid. 0: it is invalid at once."""

    model_config = ConfigDict(extra="forbid")

    overlap_seconds: int = Field(default=0, ge=0, le=LONGEST_OVERLAP)


class ApiKeyObject(Schema):
    """An API key without its secret. Times are in seconds since 1970.

    After a rotation, the previous secret is valid until `previous_expires_at`.
    """

    id: str
    object: Literal["api_key"] = "api_key"
    tenant: str
    name: str
    subject: str
    scopes: list[Scope]
    models: list[str]
    budgets: Budgets
    created_at: int
    expires_at: int | None = None
    rotated_at: int | None = None
    previous_expires_at: int | None = None
    revoked_at: int | None = None


class ApiKeyWithSecret(ApiKeyObject):
    """A key that was just created or rotated. The API never returns the key itself again."""

    key: str


@dataclass(frozen=True, slots=True)
class StoredApiKey:
    """A key, and the SHA-256 hashes of its secret and of the previous one."""

    resource: ApiKeyObject
    secret_hash: bytes
    previous_hash: bytes | None = None

    def is_live(self, now: float) -> bool:
        expires_at = self.resource.expires_at
        return self.resource.revoked_at is None and (expires_at is None or now < expires_at)

    def accepts(self, secret: str, now: float) -> bool:
        """Return whether a secret is valid now. Comparisons take the same time for any secret."""
        # Both comparisons are always made, so that the time of a refusal does not tell which one failed.
        sent = hash_of(secret)
        current = hmac.compare_digest(sent, self.secret_hash)
        previous = hmac.compare_digest(sent, self.previous_hash or bytes(len(sent)))
        overlaps = self.previous_hash is not None and now < (self.resource.previous_expires_at or 0)
        return self.is_live(now) and (current or (previous and overlaps))

    def principal(self) -> Principal:
        resource = self.resource
        return Principal(
            tenant=resource.tenant,
            subject=resource.subject,
            scopes=frozenset(resource.scopes),
            key_id=resource.id,
            models=tuple(resource.models),
            budgets=resource.budgets,
            expires_at=resource.expires_at,
        )


def new_secret() -> str:
    """Return 256 random bits in hex."""
    return secrets.token_hex(SECRET_BYTES)


def hash_of(secret: str) -> bytes:
    """Return the SHA-256 of a secret. It has 256 random bits, so a slow hash would add no protection."""
    return sha256(secret.encode()).digest()


def format_key(key_id: str, secret: str) -> str:
    return f"stk_{key_id}_{secret}"


def parse_key(text: str) -> tuple[str, str] | None:
    """Return the id and the secret of a key, or None if the text is not a key."""
    found = KEY.fullmatch(text)
    return None if found is None else (found.group(1), found.group(2))


def is_key_id(text: str) -> bool:
    return KEY_ID.fullmatch(text) is not None


def with_secret(resource: ApiKeyObject, secret: str) -> ApiKeyWithSecret:
    return ApiKeyWithSecret(**dict(resource), key=format_key(resource.id, secret))


def sort_keys(found: Sequence[StoredApiKey]) -> list[ApiKeyObject]:
    """Return the keys, the newest first."""
    return sorted((each.resource for each in found), key=lambda resource: resource.id, reverse=True)
