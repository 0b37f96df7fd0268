"""The use cases that the routes of administration call."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from stint.dataclasses import dataclass
from stint.lazy import Lazy, lazy
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.run_administration import RunAdministration
from stint.services.access.stop_administration import StopAdministration

if TYPE_CHECKING:  # loaded by the first request with a key
    from stint.services.idempotency.requests import IdempotentRequests
    from stint.store.idempotent_requests import RequestRecords


@dataclass(frozen=True)
class AdminServices:
    """The use cases of all tenants: each gets its caller. Only the idempotency keys are of the caller's tenant."""

    tenant: str
    keys: KeyAdministration
    stops: StopAdministration
    runs: RunAdministration
    find_records: "Callable[[], RequestRecords]"
    lease_seconds: float

    idempotent_requests: "ClassVar[Lazy[AdminServices, IdempotentRequests]]" = lazy(
        "stint.services.idempotency.requests:IdempotentRequests",
        lambda self, cls: cls(self.tenant, self.find_records(), self.lease_seconds),
    )
