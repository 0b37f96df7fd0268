"""The messages that wait for a session or a conversation, in order of acceptance.

A message has two records. The small one is its place: each request in line reads all places, every two seconds after
some shorter pauses, and renews its own. The other has the message and decides what becomes of it: each of its changes
is conditional, so one of a run, a merge, a cancellation and a failure wins. It is kept for a day if the run has another
id.

    message       attributes        claim_run       claim_merge   cancel          fail      delete_unclaimed
    waiting       none of these     claims          claims        cancels         fails     deletes
    started       run_id            no, but `lost`  no            no, but `lost`  fails     no
    merged        merged_into       no, but `lost`  no            no, but `lost`  fails     no
    cancelled     cancelled_at      no              no            yes             no        no
    failed        failure           no              no            no              no        no
    gone          no record         no              no            no              no        no

- `lost` is a claim by a run that died before it stored the message. It must be the claim that the record still has.
- `cancel` and `fail` also remove the place. `finish` removes it, or both records, after the run has stored the message.
- A place is alive while its request renews it. The worker starts messages whose requests have died.

The order of writes, for a process that may die between any two:

- The task for the worker, then the message, then the place (`Admission.accept`). A place without a message is one that
  another process may remove; a message without a place is in no line, and expires.
- To remove: the entry among the places that have left, then the place. To delete: the message, then the place. So a
  deletion of the conversation, which reads places, finds each message as long as it exists.

docs/decisions.md, entry 51, has the reasons.
"""

import re
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import NamedTuple

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.run_outcome import ErrorInfo
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.lease import is_unrenewed
from stint.store.records import is_expired
from stint.store.table import WRITE_BATCH, Table, take

MAX_WAITING = 20
"""Maximum messages that wait for one session or conversation. Each read of the line costs as much as it is long."""

ALIVE_SECONDS = 10.0
"""Seconds after the last renewal by its request for which a message is left to that request. It renews three times."""

RECORD_SECONDS = 86_400
"""Lifetime of the records. A message that was not started by then is dropped."""

FOUND_SECONDS = 600
"""Seconds in which a retry finds a message that has left the line, because a run has taken it."""

MOST_LEFT = 100
"""Maximum messages that a retry looks at, the newest first."""

# Callers may ask for a message by any text. Only one that can be a key is looked up.
ID = re.compile(r"[A-Za-z0-9_-]{1,80}")

UNSTARTED = {"cancelled_at", "failure"}
"""The attributes of a message that gets no run."""

OPEN = "attribute_exists(pk) AND attribute_not_exists(cancelled_at) AND attribute_not_exists(failure)"
UNCLAIMED = f"{OPEN} AND attribute_not_exists(run_id) AND attribute_not_exists(merged_into)"


class LineKeys(NamedTuple):
    """The partitions of the places in line, and of the messages, and the prefix of long messages in the bucket.

    `left` is the partition of the places that have left the line, None if `messages` has only the messages of the line.
    """

    places: str
    messages: str
    blobs: str
    left: str | None = None


def session_line(tenant: str, agent_id: str, session_id: str) -> LineKeys:
    """Return the keys of the messages that wait for a session."""
    ids = tenant, agent_id, session_id
    return LineKeys(keys.session_places(*ids), keys.waiting_turns(*ids), keys.session_waiting_blobs(*ids, expires=True))


def conversation_line(tenant: str, conversation_id: str) -> LineKeys:
    """Return the keys of the messages that wait for a conversation. Those of all conversations are in one partition."""
    ids = tenant, conversation_id
    return LineKeys(
        keys.conversation_places(*ids),
        keys.waiting_responses(tenant),
        keys.conversation_waiting_blobs(*ids, expires=True),
        keys.left_places(*ids),
    )


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """The waiting messages of one session or conversation."""

    table: Table
    documents: Documents
    keys: LineKeys

    async def read(self) -> list[WaitingPlace]:
        """Return the places in order."""
        items = await take(self.table.query(self.keys.places, page=2 * MAX_WAITING), 2 * MAX_WAITING)
        return [self._place_of(item) for item in items if not is_expired(item)]

    async def accept(self, place: WaitingPlace, message: WaitingMessage) -> None:
        """Store a message, and add it to the end of the line. Raises Conflict if too many wait."""
        # Concurrent requests may exceed the bound. It limits what each read of the line costs, and need not be exact.
        if len(await self.read()) >= MAX_WAITING:
            raise Conflict(
                f"{MAX_WAITING} messages wait already, the maximum. Try again later.", code="too_many_waiting"
            )
        last = int(time.time() + RECORD_SECONDS)
        end = {"expires_at": min(last, message.expires_at or last)}
        key = self._message(place.message_id)
        found_by = {"fingerprint": place.fingerprint} if place.fingerprint else {}
        # The message first: a process that finds a place reads its message next, and removes a place without one.
        await self.table.put(await self.documents.pack(key._asdict() | end | found_by, message, self.keys.blobs))
        named = {"sender": place.sender, "fingerprint": place.fingerprint, "retry_count": place.retry_count}
        life = {"alive_until": end_of_life(ALIVE_SECONDS if place.alive else 0)}
        await self.table.put(self._place(place.message_id)._asdict() | end | life | named)

    async def renew(self, message_id: str, seconds: float = ALIVE_SECONDS) -> None:
        """Keep a message for its request; with no `seconds`, leave it to the worker."""
        with suppress(ConditionFailed):
            await self.table.update(
                self._place(message_id), {"alive_until": end_of_life(seconds)}, "attribute_exists(pk)"
            )

    async def note_retry(self, message_id: str, retry_count: int) -> bool:
        """Note a retry of a message's request, and return whether it is the first one with its count."""
        # Two retries with the same count come from two clients with equal requests. Each waits for its own message.
        condition, values = "retry_count < :count", {":count": retry_count}
        try:
            await self.table.update(self._place(message_id), {"retry_count": retry_count}, condition, values)
        except ConditionFailed:
            return False
        return True

    async def remove_place(self, message_id: str) -> None:
        """Remove a message from the line. Its record stays, and is deleted with the session or conversation."""
        # The messages of all conversations share a partition. The places, or these entries, are the way to find them.
        if self.keys.left is not None:
            end = {"expires_at": int(time.time() + RECORD_SECONDS)}
            await self.table.put(Key(self.keys.left, message_id)._asdict() | end)
        await self.table.delete(self._place(message_id))

    async def get(self, message_id: str) -> MessageState | None:
        """Read a message; None if there is none, or it is deleted meanwhile."""
        item = await self.table.get(self._message(message_id)) if ID.fullmatch(message_id) else None
        if item is None or is_expired(item):
            return None
        try:
            [raw] = await self.documents.read([item])
        except NotFound:
            return None
        failure = item.get("failure")
        return MessageState(
            WaitingMessage.model_validate_json(raw),
            item.get("run_id"),
            item.get("merged_into"),
            "cancelled_at" in item,
            error=ErrorInfo.model_validate_json(failure) if failure else None,
        )

    async def list_unstarted(self, after: str) -> list[str]:
        """Return the messages of a session after an id that were cancelled, or could not be started.

        `after` need not be the id of a message. The messages of all conversations share a partition: theirs have no
        such list.
        """
        names = "sk, expires_at, cancelled_at, failure"
        found = self.table.query(self.keys.messages, after=after, attributes=names)
        return [item["sk"] async for item in found if not is_expired(item) and not item.keys().isdisjoint(UNSTARTED)]

    async def was_cancelled(self, since: float) -> bool:
        """Return whether a message of a session was cancelled in line since a time, in seconds since 1970."""
        found = self.table.query(self.keys.messages, attributes="sk, expires_at, cancelled_at")
        return any([item.get("cancelled_at", 0) >= int(since) async for item in found if not is_expired(item)])

    async def find_merged(self, fingerprint: str) -> list[str]:
        """Return the messages of earlier attempts of a request that a run took in the last minutes, newest first."""
        if self.keys.left is None:
            return []
        left = self.table.query(self.keys.left, newest_first=True, attributes="sk, expires_at", page=MOST_LEFT)
        # Entries have no time of their own: the end that `remove_place` writes is RECORD_SECONDS after it.
        oldest = time.time() + RECORD_SECONDS - FOUND_SECONDS
        ids = [item["sk"] for item in await take(left, MOST_LEFT) if item["expires_at"] >= oldest]
        found = await self.table.get_many([self._message(each) for each in ids], "fingerprint, merged_into")
        states = [(each, found.get(self._message(each), {})) for each in ids]
        return [each for each, item in states if item.get("fingerprint") == fingerprint and "merged_into" in item]

    async def claim_run(self, message_id: str, run_id: str, lost: MessageState | None = None) -> bool:
        """Claim a message for a run of its own, and return whether this succeeded.

        `lost` is its state with a claim of a run that has died without storing it.
        """
        condition, values = unclaimed(lost)
        return await self._change(message_id, {"run_id": run_id, "merged_into": None}, condition, values)

    async def claim_merge(self, message_id: str, run_id: str) -> bool:
        """Claim a message for the running run, and return whether this succeeded."""
        return await self._change(message_id, {"merged_into": run_id}, UNCLAIMED)

    async def cancel(self, message_id: str, end_user: str | None, lost: MessageState | None = None) -> bool:
        """Cancel a message that no run has claimed, and return whether this succeeded. `lost` is as in `claim_run`.

        With an `end_user`, only a message of that user.
        """
        state = await self.get(message_id)
        if state is None or (end_user is not None and state.message.end_user != end_user):
            return False
        condition, values = unclaimed(lost)
        # A repetition finds the message cancelled, and removes the place that the first call may have left.
        cancelled = state.cancelled or await self._change(
            message_id, {"cancelled_at": int(time.time())}, condition, values
        )
        if cancelled:
            await self.remove_place(message_id)
        return cancelled

    async def fail(self, message_id: str, error: ErrorInfo) -> None:
        """Record that a message cannot be started, and remove it from the line."""
        # Claimed messages, too: a run claims its message before the steps of its start that can still fail.
        await self._change(message_id, {"failure": error.model_dump_json()}, OPEN)
        await self.remove_place(message_id)

    async def finish(self, message_id: str, run_id: str) -> None:
        """Remove a message that its run has stored. Its record stays if the run has another id."""
        # A run has the id of its message, unless an earlier start has used it, or the session has a later turn.
        if message_id == run_id:
            await self.delete(message_id)
        else:
            await self.remove_place(message_id)

    async def delete(self, message_id: str) -> None:
        """Delete a message, and then its place, by which a deletion of the conversation finds it."""
        item = await self.table.pop(self._message(message_id))
        if item is not None:
            await self.documents.delete_blob(item)
        await self.table.delete(self._place(message_id))

    async def delete_unclaimed(self, message_id: str) -> bool:
        """Delete a message that was not accepted, unless a run has claimed it, and return whether it was there."""
        found = await self._change(message_id, {"cancelled_at": int(time.time())}, UNCLAIMED)
        if found:
            await self.delete(message_id)
        return found

    async def _change(self, message_id: str, assign: Item, condition: str, values: Item | None = None) -> bool:
        """Change a message, and return whether the condition held. A repetition after a lost answer finds its nonce."""
        # The client repeats a write whose answer was lost. A claim that looked refused would start no run.
        nonce = secrets.token_hex(6)
        try:
            await self.table.update(self._message(message_id), assign | {"nonce": nonce}, condition, values)
        except ConditionFailed as refused:
            return refused.item is not None and refused.item.get("nonce") == nonce
        return True

    def _place_of(self, item: Item) -> WaitingPlace:
        until = int(item["alive_until"])
        unrenewed = is_unrenewed(self.table, self._place(item["sk"]), until, ALIVE_SECONDS)
        alive = until > time.time() * 1000 and not unrenewed
        return WaitingPlace(item["sk"], alive, item["sender"], item["fingerprint"], retry_count=item["retry_count"])

    def _place(self, message_id: str) -> Key:
        return Key(self.keys.places, message_id)

    def _message(self, message_id: str) -> Key:
        return Key(self.keys.messages, message_id)


def unclaimed(lost: MessageState | None) -> tuple[str, Item]:
    """Return the condition that no run has claimed a message but a lost one, and its values."""
    if lost is None or lost.claimed_by is None:
        return UNCLAIMED, {}
    name = "run_id" if lost.run_id is not None else "merged_into"
    return f"{OPEN} AND {name} = :lost", {":lost": lost.claimed_by}


def end_of_life(seconds: float) -> int:
    return round((time.time() + seconds) * 1000)


async def delete_messages(table: Table, blobs: Blobs, tenant: str, conversation_id: str) -> AsyncGenerator[None, None]:
    """Delete the messages that wait for a conversation, or have left its line, one batch per step."""
    line = conversation_line(tenant, conversation_id)
    for pk in filter(None, (line.places, line.left)):  # in the order of `remove_place`
        places = table.query(pk, attributes="sk")
        while batch := await take(places, WRITE_BATCH):
            # Messages before places, as in `delete`.
            await table.delete_many([Key(line.messages, place["sk"]) for place in batch])
            await table.delete_many([Key(pk, place["sk"]) for place in batch])
            yield
    async for _ in blobs.delete_prefix(line.blobs):
        yield
