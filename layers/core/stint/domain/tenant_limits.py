"""The limits of tenants, as the operator of a stack sets them."""

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from stint.domain.principals import NO_BUDGETS, Budgets
from stint.domain.validation import describe_faults

OTHERS = "*"


class TenantLimits(BaseModel):
    """The limits of a tenant. `models` are patterns of model ids; empty: all."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    models: tuple[str, ...] = ()
    budgets: Budgets = NO_BUDGETS


NO_LIMITS = TenantLimits()


def parse_tenants(text: str) -> dict[str, TenantLimits]:
    """Read the setting STINT_TENANTS: limits by tenant, and as `*` those of all others. Raises ValueError."""
    if not text:
        return {}
    try:
        return TypeAdapter(dict[str, TenantLimits]).validate_json(text)
    except ValidationError as error:
        raise ValueError(f"STINT_TENANTS is malformed: {describe_faults(error)}") from None


def limits_of(tenant: str, tenants: dict[str, TenantLimits]) -> TenantLimits:
    """Return the limits of a tenant."""
    return tenants.get(tenant) or tenants.get(OTHERS) or NO_LIMITS
