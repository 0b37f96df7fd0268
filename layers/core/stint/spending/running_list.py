"""The runs of a process in the list of running runs (`stint.store.running_runs`).

    the run has lasted    a write
    LONG_SECONDS          the record, which expires after SHOWN_SECONDS
    longer                the record again, RENEWED_SECONDS before it expires
    and ends              its deletion

The watch of stops, which looks at each run once a second, begins these writes. A lease cannot: a response that is not
stored has none. An expiry that covers two renewals of a lease costs half as many writes. All writes are tasks, so that
no event waits for them, and no receipt has their units. A failed one is repeated by the next look at the run, and is
logged once per run.
"""

import asyncio
import logging
import secrets
import time
from weakref import WeakKeyDictionary

from stint.domain.errors import StintError
from stint.domain.run_signals import RunRef, TurnRef
from stint.metering import set_meter
from stint.run_stop import RunDescription, RunStop, set_run_stop
from stint.store.running_runs import RunFields
from stint.store.store import Store

logger = logging.getLogger(__name__)

SHOWN_SECONDS = 60
"""Longest time for which a run is listed whose process is dead."""

RENEWED_SECONDS = 20
"""Seconds before its expiry when a record is renewed: a failed renewal is repeated until then."""

LONGEST_MODEL = 200
"""Maximum characters of a model's name in a record, which is less than 1 KB."""


class ListedRun:
    """A run that is listed until `until`, in seconds of the epoch. `task` is the write that is under way."""

    __slots__ = ("failed", "holder", "run_id", "task", "until")

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.holder = secrets.token_hex(8)
        self.until = 0
        self.failed = False
        self.task: asyncio.Task[None] | None = None


class RunningList:
    """Lists the long runs of a tenant in this process."""

    def __init__(self, tenant: str, store: Store) -> None:
        self.tenant = tenant
        self.store = store
        self.listed: WeakKeyDictionary[RunStop, ListedRun] = WeakKeyDictionary()
        self.removals: set[asyncio.Task[None]] = set()

    def show(self, stop: RunStop, description: RunDescription) -> None:
        """Begin to list a run, or to renew its record if that is due."""
        listed = self.listed.get(stop)
        if listed is None:
            listed = self.listed[stop] = ListedRun(run_id_of(description.ref))
        if listed.until - time.time() > RENEWED_SECONDS or (listed.task is not None and not listed.task.done()):
            return
        listed.task = asyncio.create_task(self.write(describe(stop, description), listed))

    async def write(self, fields: RunFields, listed: ListedRun) -> None:
        until = int(time.time()) + SHOWN_SECONDS
        try:
            await self.store.running_runs.put(self.tenant, listed.run_id, until, fields, listed.holder)
        except StintError as error:
            if not listed.failed:
                logger.warning("A running run could not be listed; trying again", extra={"error": error.message})
            listed.failed = True
        else:
            listed.until = until

    def remove(self, stop: RunStop) -> None:
        """Begin to remove a run from the list, if it was listed."""
        listed = self.listed.pop(stop, None)
        if listed is not None:
            task = asyncio.create_task(self.delete(listed))
            self.removals.add(task)
            task.add_done_callback(self.removals.discard)

    async def delete(self, listed: ListedRun) -> None:
        # Its units are in no receipt: the last record of the run is stored already.
        set_meter(None)
        set_run_stop(None)
        if listed.task is not None:
            await asyncio.wait({listed.task})
        try:
            await self.store.running_runs.delete(self.tenant, listed.run_id, listed.holder)
        except StintError as error:
            logger.warning("An ended run stays listed until its record expires", extra={"error": error.message})

    async def settle(self) -> None:
        """Wait for the removals that have begun. Nothing is raised."""
        if self.removals:
            await asyncio.wait(self.removals)


def run_id_of(ref: RunRef) -> str:
    return ref.turn_id if isinstance(ref, TurnRef) else ref.response_id


def describe(stop: RunStop, description: RunDescription) -> RunFields:
    """Return the fields of a run that is listed."""
    ref, labels = description.ref, dict(description.labels)
    turn = ref if isinstance(ref, TurnRef) else None
    return {
        "kind": "response" if turn is None else "turn",
        "id": run_id_of(ref),
        "agent_id": None if turn is None else turn.agent_id,
        "session_id": None if turn is None else turn.session_id,
        "conversation_id": description.conversation_id,
        "model": description.model[:LONGEST_MODEL],
        "key_id": labels.get("key_id"),
        "user_hash": labels.get("user_hash"),
        "background": description.background,
        "on_disconnect": "continue" if stop.client is None else "cancel",
        "began_at": int(stop.began[0]),
    }
