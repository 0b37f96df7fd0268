"""Messages that leave a session's waiting line without a turn: cancelled ones, and ones that could not be started.

No log has them. A stream finds them in two ways, because neither finds all: it compares the line with what it was at
the last look, which finds a message that is older than the stream; and it lists those after an id, which finds one that
another process has taken and refused between two looks.
"""

from stint.dataclasses import dataclass, field
from stint.domain.ids import id_before
from stint.domain.llama_stack.turns import Turn
from stint.services.turns.session_input import SessionInput

SLOWEST_POST = 60.0
"""Seconds after which a message that is stored now was sent at most: its id has the time of its request."""


@dataclass(slots=True)
class UnstartedMessages:
    """The messages of a session that have left its line without a turn, each once."""

    input: SessionInput
    after: str = ""
    """The id after which messages are listed."""
    in_line: set[str] = field(default_factory=set)
    """The messages that were in line at the last look."""
    known: set[str] = field(default_factory=set)
    """The messages that `find_new` has returned, or that had left the line before the stream began."""

    async def skip_known(self) -> None:
        """Begin now."""
        self.after = id_before(SLOWEST_POST)
        self.known = await self.input.list_unstarted(self.after)

    async def look(self) -> None:
        """Note the messages in line."""
        self.in_line |= await self.input.list_messages()

    async def has_lost_one(self) -> bool:
        """Return whether a message has left the line since the last look, with a turn or without one."""
        return bool(self.in_line and self.in_line - await self.input.list_messages())

    async def find_new(self) -> list[Turn]:
        """Return the messages that have left the line without a turn, as turns without steps."""
        before, self.in_line = self.in_line, await self.input.list_messages()
        gone = (before - self.in_line) | await self.input.list_unstarted(self.after)
        found = [await self.input.find_unstarted(message_id) for message_id in sorted(gone - self.known)]
        turns = [turn for turn in found if turn is not None]
        self.known.update(turn.turn_id for turn in turns)
        return turns
