"""Composition of the automations of a tenant. Requests and tasks that use them load this module."""

from collections.abc import Callable
from functools import cache

from stint.bootstrap.adapters import Adapters
from stint.domain.tasks import SendTask
from stint.services.automations.automations import Automations
from stint.services.automations.creators import Creators
from stint.services.automations.runs import AutomationRuns
from stint.services.automations.targets import Targets
from stint.services.deletions import Deletions
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.store import Store
from stint.store.table import Table


def compose_automations(
    tenant: str, adapters: Adapters, store: Store, deletions: Deletions, targets: Targets
) -> Automations:
    """Make the use cases of automations."""
    creators = make_creators(tenant, adapters, store)
    return Automations(
        tenant,
        store.automations,
        store.invocations,
        adapters.schedules,
        creators=creators,
        targets=targets,
        deletions=deletions,
    )


def compose_automation_runs(
    tenant: str, adapters: Adapters, store: Store, send: SendTask, get_targets: Callable[[], Targets]
) -> AutomationRuns:
    """Make the worker's use case."""
    return AutomationRuns(
        tenant,
        store.automations,
        store.invocations,
        adapters.schedules,
        creators=make_creators(tenant, adapters, store),
        get_targets=get_targets,
        send=send,
        lease_seconds=adapters.settings.lease_seconds,
    )


def make_creators(tenant: str, adapters: Adapters, store: Store) -> Creators:
    @cache
    def get_keys() -> ApiKeyStore:
        # With the function's own role: the table of keys is not part of a tenant's data.
        return ApiKeyStore(Table(make_dynamodb(), adapters.settings.keys_table))

    return Creators(tenant, adapters.settings.auth != "none", store.stops, get_keys)
