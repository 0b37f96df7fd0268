"""The use cases of one tenant that the routes of end users call."""

from stint.dataclasses import dataclass
from stint.services.end_users.end_users import EndUsers
from stint.services.end_users.export import EndUserExport


@dataclass(frozen=True, slots=True)
class EndUserServices:
    """The use cases."""

    users: EndUsers
    export: EndUserExport
