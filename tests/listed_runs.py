"""Records in the list of running runs."""

from stint.domain.running_runs import RunningRun
from stint.store.running_runs import RunningRunStore


async def put_run(store: RunningRunStore, tenant: str, run: RunningRun, holder: str = "h") -> None:
    """Store a run as its process does."""
    await store.put(tenant, run.id, run.until, run.model_dump(exclude={"until"}), holder)
