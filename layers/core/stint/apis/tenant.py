"""The use cases of one tenant that each API has."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from stint.dataclasses import dataclass
from stint.lazy import Lazy, lazy
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.idempotency.creations import Creations
    from stint.services.idempotency.requests import IdempotentRequests

T = TypeVar("T")
Part: TypeAlias = Lazy["TenantServices", T]


@dataclass(frozen=True)
class TenantServices:
    """The use cases of requests that are sent again.

    After `heartbeat_seconds` of silence, a connection gets a heartbeat.
    """

    tenant: str
    store: Store
    lease_seconds: float
    heartbeat_seconds: float

    idempotent_requests: "ClassVar[Part[IdempotentRequests]]" = lazy(
        "stint.services.idempotency.requests:IdempotentRequests",
        lambda self, cls: cls(self.tenant, self.store.requests, self.lease_seconds),
    )
    creations: "ClassVar[Part[Creations]]" = lazy(
        "stint.services.idempotency.creations:Creations",
        lambda self, cls: cls(self.tenant, self.store.creation_attempts, self.store.retry_claims),
    )
