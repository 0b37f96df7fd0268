"""The list of running runs for operators: a tenant's admin sees those of its tenant, an operator's admin all."""

from stint.dataclasses import dataclass
from stint.domain.paging import Page
from stint.domain.principals import Principal
from stint.domain.running_runs import RunningRun
from stint.services.access.key_administration import KeyAdministration
from stint.store.running_runs import RunningRunStore


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Selects the runs of a list by what they have in common; None allows all."""

    agent_id: str | None = None
    session_id: str | None = None
    key_id: str | None = None

    def accepts(self, run: RunningRun) -> bool:
        """Return whether a run is to be listed."""
        pairs = ((self.agent_id, run.agent_id), (self.session_id, run.session_id), (self.key_id, run.key_id))
        return all(wanted in (None, found) for wanted, found in pairs)


class RunAdministration:
    """The running runs of a stack for an authenticated caller, which needs the scope `admin`."""

    def __init__(self, store: RunningRunStore, keys: KeyAdministration) -> None:
        self._store = store
        self._keys = keys

    async def list(
        self, caller: Principal, tenant: str | None, wanted: RunFilter, *, after: str | None, limit: int
    ) -> Page[RunningRun]:
        """Return running runs of a tenant, by default of the caller's, the newest first.

        Raises:
            Forbidden: the caller may not manage the tenant.
            InvalidRequest: `after` is not the id of a turn or a response.
        """
        await self._keys.authenticate(caller)
        self._keys.check_tenant(caller, tenant or caller.tenant)
        return await self._store.list_page(tenant or caller.tenant, after, limit, wanted.accepts)
