"""The use cases that the routes of administration call."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.stop_administration import StopAdministration

if TYPE_CHECKING:  # loaded by the first request with a key
    from stint.services.idempotency.requests import IdempotentRequests


@dataclass(frozen=True, slots=True)
class AdminServices:
    """The use cases of all tenants: each gets its caller.

    `make_idempotent_requests` makes those of the caller's idempotency keys.
    """

    keys: KeyAdministration
    stops: StopAdministration
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
