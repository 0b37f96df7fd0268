"""Answers to a paused turn's calls that arrive one by one, until there is one for each call.

Llama Stack's API takes all results of a pause in one request. Where an API takes them singly, each is a record beside
that of the waiting calls. The first result of a call counts: a repetition of it changes nothing, and another result is
refused. Records of answered calls are deleted after the turn has stored their results as a step, so a process that dies
in between leaves records that no later pause asks for.
"""

from stint.dataclasses import dataclass
from stint.domain.fields import Omitted
from stint.domain.ids import TenantName
from stint.domain.llama_stack.turns import ToolApproval
from stint.domain.schema import Schema, Timestamp
from stint.domain.tools import ToolResponse
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.records import expiry, is_expired
from stint.store.table import Table


@dataclass(frozen=True, slots=True)
class PausedTurn:
    """The turn to which results belong. `expires_at` is the end of its session, in seconds since 1970."""

    tenant: TenantName
    agent_id: str
    session_id: str
    turn_id: str
    expires_at: int | None = None

    @property
    def ids(self) -> tuple[str, str, str, str]:
        return self.tenant, self.agent_id, self.session_id, self.turn_id


class CallResult(Schema):
    """The client's answer to a call: a result, or an approval. `creator` is its caller, as in a request's context."""

    response: Omitted[ToolResponse] = None
    approval: Omitted[ToolApproval] = None
    accepted_at: Timestamp
    creator: Omitted[dict[str, str]] = None
    end_user: Omitted[str] = None

    @property
    def call_id(self) -> str:
        """Return the id of the call. Raises RuntimeError if there is no answer."""
        answer = self.response or self.approval
        if answer is None:
            raise RuntimeError("A stored answer to a call has neither a result nor an approval.")
        return answer.call_id

    def answers_like(self, other: "CallResult") -> bool:
        """Return whether two answers are the same, whoever sent them and when."""
        return (self.response, self.approval) == (other.response, other.approval)


class CallResultStore:
    """The results of paused turns. Each costs the write units of its size."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def put(self, turn: PausedTurn, result: CallResult) -> bool:
        """Store the result of a call, and return False if the call has another one."""
        key = keys.call_result(*turn.ids, result.call_id)
        prefix = keys.turn_blobs(*turn.ids, expires=turn.expires_at is not None)
        try:
            await self._documents.put_new(key._asdict() | expiry(turn.expires_at), result, prefix)
        except ConditionFailed as refused:
            found = await self._read([refused.found])
            return bool(found) and found[0].answers_like(result)
        return True

    async def read(self, turn: PausedTurn) -> list[CallResult]:
        """Return the results of a turn that are stored, in no order."""
        pk, sk = keys.pending(*turn.ids)
        items = [item async for item in self._table.query(pk, prefix=f"{sk}:") if not is_expired(item)]
        return await self._read(items)

    async def _read(self, items: list[Item]) -> list[CallResult]:
        return [CallResult.model_validate_json(raw) for raw in await self._documents.read(items)]

    async def delete(self, turn: PausedTurn, results: list[CallResult]) -> None:
        """Delete results that the turn has stored."""
        items = [keys.call_result(*turn.ids, each.call_id) for each in results]
        await self._table.delete_many(items)
