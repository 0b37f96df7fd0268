"""The authenticated caller of a request: whose data it is, what the caller may do, and what it may spend.

An API key or a token is checked by an authorizer, a function of its own, which passes the principal on in the context
of the request, as texts (`to_context`). Callers cannot set this context. A task of the worker has the same texts,
without a credential, so that it acts for whoever sent it. A context without a valid principal is an error, never an
anonymous caller.

    scope            allows
    use              the API, except for what the other scopes allow
    knowledge:write  to write vector stores
    registry:write   to register models, toolgroups and shields, and what knowledge:write allows
    users:act        to act for an end user
    webhooks:write   to manage webhook endpoints, and to read their URLs
    admin            to administer
"""

import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from stint.dataclasses import dataclass, field
from stint.domain.ids import TENANT, TENANT_PATTERN

Scope = Literal["use", "knowledge:write", "registry:write", "users:act", "webhooks:write", "admin"]
"""What a key allows: to use the API, to write vector stores, to register models, toolgroups and shields, to act for an
end user, to manage webhook endpoints, to administer."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


MOST_PER_MINUTE, MOST_DOLLARS = 1_000_000_000_000, 1_000_000_000
"""Largest budgets. A counter of more could not be stored."""


class Budgets(BaseModel):
    """The limits of a key or a tenant. None means no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_minute: int | None = Field(default=None, ge=1, le=MOST_PER_MINUTE)
    tokens_per_minute: int | None = Field(default=None, ge=1, le=MOST_PER_MINUTE)
    dollars_per_month: float | None = Field(
        default=None, gt=0, le=MOST_DOLLARS, description="US dollars of a calendar month (UTC)."
    )

    @property
    def is_unlimited(self) -> bool:
        return self == NO_BUDGETS


NO_BUDGETS = Budgets()


def format_limit(limit: float) -> str:
    """Return the digits of a limit, to a millionth, without an exponent."""
    return f"{limit:.6f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Principal:
    """An authenticated caller. `subject` is the key's owner, or the `sub` of a token.

    `key_id` is empty unless an API key was sent. `models` are patterns of model ids, such as `openai/*`; empty: all.
    `expires_at` is the end of the key or token, in seconds since 1970; None: it has none. `call_depth` is that of the
    request (`domain/call_depth.py`): it says how the caller came here, not who it is.
    """

    tenant: str
    subject: str
    scopes: frozenset[Scope]
    key_id: str = ""
    models: tuple[str, ...] = ()
    budgets: Budgets = NO_BUDGETS
    expires_at: int | None = None
    call_depth: int = field(default=0, compare=False)

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the caller has a scope. `registry:write` is the only one that includes another."""
        return scope in self.scopes or (scope == "knowledge:write" and "registry:write" in self.scopes)

    def may_use_model(self, model_id: str) -> bool:
        return matches_model(self.models, model_id)

    def to_context(self) -> dict[str, str]:
        """Return the authorizer's context, whose values can only be strings, numbers and booleans.

        https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-output.html
        """
        return {
            "tenant": self.tenant,
            "subject": self.subject,
            "scopes": " ".join(sorted(self.scopes)),
            "key_id": self.key_id,
            "models": json.dumps(self.models),
            "budgets": self.budgets.model_dump_json(exclude_none=True),
            **({} if self.expires_at is None else {"expires_at": str(self.expires_at)}),
            **({"call_depth": str(self.call_depth)} if self.call_depth else {}),
        }

    @classmethod
    def from_context(cls, context: Mapping[str, object]) -> "Principal":
        """Read an authorizer's context. Raises ValueError if it is not one of `to_context`."""
        values = {name: context.get(name) for name in ("tenant", "subject", "scopes", "key_id", "models", "budgets")}
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        if len(texts) < len(values) or not is_tenant(texts["tenant"]) or not texts["subject"]:
            raise ValueError("The request context has no valid principal.")
        return cls(
            tenant=texts["tenant"],
            subject=texts["subject"],
            scopes=scopes_of(texts["scopes"].split()),
            key_id=texts["key_id"],
            models=_list_of_texts(texts["models"]),
            budgets=Budgets.model_validate_json(texts["budgets"]),
            expires_at=int(str(context["expires_at"])) if "expires_at" in context else None,
            call_depth=int(str(context.get("call_depth", 0))),
        )


def matches_model(patterns: tuple[str, ...], model_id: str) -> bool:
    """Return whether patterns allow a model, by its full id. No patterns allow all."""
    return not patterns or any(fnmatchcase(model_id, pattern) for pattern in patterns)


ANONYMOUS = Principal(tenant=TENANT, subject="anonymous", scopes=frozenset(SCOPES))
"""The caller of a stack that was built without authentication."""


def is_tenant(name: str) -> bool:
    """Return whether a name can be a tenant's. Its characters cannot form the keys of another tenant."""
    return TENANT_PATTERN.fullmatch(name) is not None


def _list_of_texts(text: str) -> tuple[str, ...]:
    """Parse a JSON array of strings. Raises ValueError."""
    values = json.loads(text)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("The models are not a JSON array of strings.")
    return tuple(values)


def scopes_of(names: Iterable[str]) -> frozenset[Scope]:
    """Return the known scopes among some names, such as those of a token, which may have scopes of other APIs."""
    sent = frozenset(names)
    return frozenset(scope for scope in SCOPES if scope in sent)
