"""Comparison of rights: no caller passes on more than it has."""

from fnmatch import fnmatchcase

from stint.domain.api_keys import ApiKeyObject, CreateApiKeyRequest
from stint.domain.errors import Forbidden
from stint.domain.principals import Principal

NOT_COVERED = "The key would have more rights than its creator: {}. Ask an admin of the operator's tenant."
ENDS_LATER = (
    "Keys that a key with an end creates or rotates end no later, here at {}. Send such an expires_at, or use the "
    "command `python -m stint.cli keys`."
)


def refuse_excess(grantor: Principal, key: ApiKeyObject | CreateApiKeyRequest) -> None:
    """Raise Forbidden if a key has a right that the grantor lacks."""
    if missing := [scope for scope in key.scopes if not grantor.has_scope(scope)]:
        raise excess(f"the scope {missing[0]}")
    # No patterns mean all models.
    if grantor.models and not key.models:
        raise excess(f"all models, instead of {', '.join(grantor.models)}")
    for pattern in key.models if grantor.models else ():
        if not any(covers(own, pattern) for own in grantor.models):
            raise excess(f"the models {pattern}, instead of {', '.join(grantor.models)}")
    for name, own in grantor.budgets.model_dump(exclude_none=True).items():
        limit = getattr(key.budgets, name)
        # A budget that the new key lacks would be no limit.
        if limit is None or limit > own:
            raise excess(f"{name} {'without limit' if limit is None else limit}, instead of {own}")


def refuse_later_end(expires_at: int | None, key: ApiKeyObject | CreateApiKeyRequest) -> None:
    """Raise Forbidden if a key ends later than the grantor's own one, whatever rights it has. None: it has no end."""
    if expires_at is not None and (key.expires_at is None or key.expires_at > expires_at):
        raise Forbidden(ENDS_LATER.format(expires_at), code="insufficient_rights", param="expires_at")


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every model id that another one does; False if that is not certain.

    The literal characters of `other` match those of `pattern`, and `*` also matches the wildcards of `other`. Sets in
    brackets are not compared.
    """
    if pattern == other:
        return True
    if not any(wildcard in other for wildcard in "*?["):
        return fnmatchcase(other, pattern)
    return not any(wildcard in pattern for wildcard in "?[") and "[" not in other and fnmatchcase(other, pattern)


def excess(what: str) -> Forbidden:
    return Forbidden(NOT_COVERED.format(what), code="insufficient_rights")
