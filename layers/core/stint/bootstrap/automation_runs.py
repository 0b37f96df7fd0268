"""Composition of the runs of automations, which only the worker loads."""

from collections.abc import Callable
from functools import cache

from stint.bootstrap.adapters import Adapters
from stint.domain.tasks import SendTask
from stint.services.automations.creators import CreatorKeys
from stint.services.automations.runs import AutomationRuns
from stint.services.automations.targets import Targets
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.store import Store
from stint.store.table import Table


def compose_automation_runs(
    tenant: str, adapters: Adapters, store: Store, send: SendTask, get_targets: Callable[[], Targets]
) -> AutomationRuns:
    """Make the use case of a tenant."""

    @cache
    def get_keys() -> ApiKeyStore:
        # With the function's own role: the table of keys is not part of a tenant's data.
        return ApiKeyStore(Table(make_dynamodb(), adapters.settings.keys_table))

    return AutomationRuns(
        tenant,
        store.automations,
        store.invocations,
        adapters.schedules,
        creators=CreatorKeys(tenant, adapters.settings.auth != "none", store.stops, get_keys),
        get_targets=get_targets,
        send=send,
        lease_seconds=adapters.settings.lease_seconds,
    )
