"""Import of one session with its turns.

  1. all rows of the session are read and checked; a bad turn is reported, and the others go on
  2. the turns are stored, then the session: no reader sees a session with a part of its turns
  3. what was stored is read back, and compared by the number of steps

An import may be repeated after a failure. Ids of turns are derived from the old ones, so a repetition writes the same
records. A session that is stored already is not changed, since its users may have continued it: its turns are only
counted, and those that it lacks are reported.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stint.cli.llama_stack.report import ImportTally
from stint.cli.llama_stack.rows import RowSource, SessionRows, read_object, reason_of
from stint.domain.ids import is_id
from stint.domain.llama_stack.imported_turns import ImportedTurn, read_time, read_turn, wait_for_calls
from stint.domain.llama_stack.sessions import Session
from stint.domain.paging import MAX_BYTES, carried_size
from stint.store.sessions import LastTurn, SessionPlace
from stint.store.store import Store

BAD_SESSION = "its session was not imported"
LATE = "its session was stored before, without this turn. Delete the session, and repeat the import"
MEMORY = ("vector_db_id", "memory_bank_id", "memory_bank")
"""The fields of a session that name what it remembers, which is in other files of the original."""


class SessionImport:
    """The import of one session. Its turns are stored first, so that no reader sees a part of it."""

    def __init__(
        self,
        store: Store,
        source: RowSource,
        tally: ImportTally,
        place: SessionPlace,
        rows: SessionRows,
        *,
        dry_run: bool,
    ) -> None:
        self.store = store
        self.source = source
        self.tally = tally
        self.place = place
        self.rows = rows
        self.dry_run = dry_run

    async def run(self) -> None:
        """Import the session, and check that its turns can be read."""
        self.tally.counts["sessions"].found += 1
        try:
            value = read_object(self.source, self.rows.key)
            session = self.read_session(value)
        except ValueError as error:
            self.tally.counts["turns"].found += len(self.rows.turns)
            self.tally.refuse(self.rows.key, reason_of(error))
            for key in (*self.rows.turns.values(), *self.rows.pending.values()):
                self.tally.refuse(key, BAD_SESSION)
            return
        if any(value.get(name) for name in MEMORY):
            self.tally.without_memory.append(session.session_id)
        turns = self.read_turns(value)
        if await self.store.imports.has_session(self.place):
            await self.compare(turns)
        elif self.dry_run:
            self.count(turns)
        else:
            await self.write(session, turns)

    def read_session(self, value: Mapping[str, Any]) -> Session:
        """Return the session without its turns. Raises ValueError."""
        session = Session.model_validate(
            {
                "session_id": self.place.session_id,
                "session_name": value.get("session_name"),
                "started_at": read_time(value.get("started_at"), "started_at"),
            }
        )
        if carried_size(session.session_name) > MAX_BYTES:
            raise ValueError(f"its name has more than {MAX_BYTES} bytes")
        return session

    def read_turns(self, session: Mapping[str, Any]) -> list[ImportedTurn]:
        """Return the turns that can be read, in the order of their start."""
        found: list[ImportedTurn] = []
        for old_id, key in self.list_turns(session):
            self.tally.counts["turns"].found += 1
            try:
                turn = read_turn(self.read_value(session, old_id), self.place.session_id, old_id)
            except ValueError as error:
                self.tally.refuse(key, reason_of(error))
                continue
            self.tally.counts["steps"].found += len(turn.steps)
            found.append(turn)
        # By their ids, which begin with the time of their start.
        found.sort(key=lambda turn: turn.header.turn_id)
        if found:
            # Only the last turn can wait for its client.
            wait_for_calls(found[-1], self.read_pending(found[-1].old_id))
        return found

    def list_turns(self, session: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the ids and keys of turns: those with rows of their own, and others that are inside the session."""
        yield from self.rows.turns.items()
        for old_id in inner_turns(session):
            if old_id not in self.rows.turns:
                yield old_id, f"{self.rows.key} turn {old_id}"

    def read_value(self, session: Mapping[str, Any], old_id: str) -> Mapping[str, Any]:
        """Return the JSON object of a turn. Raises ValueError."""
        key = self.rows.turns.get(old_id)
        return inner_turns(session)[old_id] if key is None else read_object(self.source, key)

    def read_pending(self, old_id: str) -> Mapping[str, Any] | None:
        """Return the step of the calls that a turn waits for. One that cannot be read is made again."""
        key = self.rows.pending.get(old_id)
        try:
            return None if key is None else read_object(self.source, key)
        except ValueError:
            return None

    async def compare(self, turns: list[ImportedTurn]) -> None:
        """Count the turns of a session that is stored, and refuse those that it does not have."""
        self.tally.count("sessions", new=False)
        for turn in turns:
            if await self.store.imports.has_turn(self.place, turn):
                self.tally.count("turns", new=False)
                self.tally.count("steps", new=False, number=len(turn.steps))
            else:
                self.tally.refuse(self.key_of(turn), LATE)

    async def write(self, session: Session, turns: list[ImportedTurn]) -> None:
        """Store the turns and then the session, and read them back."""
        for turn in turns:
            await self.store.imports.put_turn(self.place, turn)
        last = LastTurn(turns[-1].header.turn_id, len(turns[-1].records)) if turns else None
        await self.store.imports.put_session(self.place, session, last)
        stored = await self.store.imports.read_turns(self.place)
        for turn in turns:
            if stored.get(turn.header.turn_id) != len(turn.steps):
                self.tally.refuse(self.key_of(turn), "it was stored, and reads back differently")
        self.count(turns)

    def count(self, turns: list[ImportedTurn]) -> None:
        """Count a session that is new, and its turns."""
        self.tally.count("sessions", new=True)
        self.tally.count("turns", new=True, number=len(turns))
        self.tally.count("steps", new=True, number=sum(len(turn.steps) for turn in turns))

    def key_of(self, turn: ImportedTurn) -> str:
        return self.rows.turns.get(turn.old_id, f"{self.rows.key} turn {turn.old_id}")


def inner_turns(session: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the turns inside a session's JSON object, by their ids."""
    turns = session.get("turns")
    objects = [turn for turn in turns if isinstance(turn, Mapping)] if isinstance(turns, list) else []
    named = ((turn.get("turn_id"), turn) for turn in objects)
    return {old_id: turn for old_id, turn in named if isinstance(old_id, str) and is_id(old_id)}
