"""The use cases that the routes of administration call."""

from dataclasses import dataclass

from stint.services.access.key_administration import KeyAdministration
from stint.services.access.stop_administration import StopAdministration


@dataclass(frozen=True, slots=True)
class AdminServices:
    """The use cases of all tenants: each gets its caller."""

    keys: KeyAdministration
    stops: StopAdministration
