"""Sessions with their turns in the form of October 2024."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.llama_stack.sessions import Session
from stint.domain.llama_stack.turns import Turn
from stint.october_2024.schemas.memory import VectorBank
from stint.october_2024.schemas.turns import OctoberSession, OctoberSessionQuery, OctoberTurn
from stint.october_2024.turns import from_turns
from stint.services.agents.sessions import Sessions

if TYPE_CHECKING:  # loaded by the composition
    from stint.october_2024.banks import MemoryBanks


@dataclass(frozen=True, slots=True)
class SessionPages:
    """A session with its first turns, and an iterator over pages of the others, if any."""

    session: OctoberSession
    others: AsyncGenerator[list[OctoberTurn], None] | None


async def read_session(
    sessions: Sessions, query: OctoberSessionQuery, get_banks: "Callable[[], MemoryBanks]"
) -> SessionPages:
    """Read a session with its turns in creation order, or with those that are wanted.

    `get_banks` is called if the session has a bank of its own.

    Raises:
        NotFound: there is no such agent or session.
    """
    wanted = None if query.turn_ids is None else {name.rpartition(":")[2] for name in query.turn_ids}
    session, others = await sessions.read_pages(query.agent_id, query.session_id, wanted)
    tools: dict[str, str] = {}
    bank = await find_bank(session.session_id, session.vector_db_id, get_banks) if session.vector_db_id else None
    shown = from_session(session, bank, tools)
    return SessionPages(shown, None if others is None else convert_pages(others, tools))


async def convert_pages(
    pages: AsyncIterator[list[Turn]], tools: dict[str, str]
) -> AsyncGenerator[list[OctoberTurn], None]:
    """Yield pages of converted turns. `tools` collects the names of the tools that they call."""
    async for turns in pages:
        yield from_turns(turns, tools)


async def find_bank(session_id: str, identifier: str, get_banks: "Callable[[], MemoryBanks]") -> VectorBank:
    """Return the own bank of a session. Without its settings, if it is being deleted."""
    with suppress(NotFound):
        found = await get_banks().get_of_session(session_id, identifier)
        if isinstance(found, VectorBank):
            return found
    return VectorBank(identifier=identifier)


def from_session(session: Session, bank: VectorBank | None, tools: dict[str, str]) -> OctoberSession:
    """Convert a session. Its bank has the long attachments of its turns."""
    return OctoberSession(
        session_id=session.session_id,
        session_name=session.session_name,
        turns=from_turns(session.turns, tools),
        started_at=session.started_at,
        memory_bank=bank,
        budget=session.budget,
    )
