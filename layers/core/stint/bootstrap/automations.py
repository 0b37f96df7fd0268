"""Composition of the automations of a tenant. Requests that use them load this module."""

from stint.bootstrap.adapters import Adapters
from stint.services.automations.automations import Automations
from stint.services.automations.targets import Targets
from stint.services.deletions import Deletions
from stint.store.store import Store


def compose_automations(
    tenant: str, adapters: Adapters, store: Store, deletions: Deletions, targets: Targets
) -> Automations:
    """Make the use cases of automations."""
    return Automations(
        tenant,
        store.automations,
        store.invocations,
        adapters.schedules,
        authenticates=adapters.settings.auth != "none",
        targets=targets,
        deletions=deletions,
    )
