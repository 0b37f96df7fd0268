"""Lists of OpenAI's Agents API, and the items of turns and sessions.

The id of an item has the digits of the step, message or turn that it belongs to, which sorts after the turn. The
turn of an item is found by reading the turns from these digits backwards: in most cases it is the first one.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.paging import Window
from stint.openai_agents.schemas.items import AgentItem
from stint.openai_agents.schemas.turns import AgentTurnObject
from stint.openai_agents.session_reader import SessionReader, SessionView
from stint.openai_agents.tool_labels import label_tools
from stint.openai_agents.turn_items import TurnItems, to_items
from stint.openai_agents.turns import from_turn
from stint.services.agents.interrupted import mark_interrupted
from stint.services.turns.waiting_turns import to_turn

ITEM = re.compile(r"[a-z]+_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[0-9]*")

TURNS_AT_ONCE = 20
"""Maximum turns that are read at once."""

MOST_PAGES = 2
"""Pages of turns in which an item is looked for. The turn of a message that waited is older than the steps of the turn
before it, and at most 20 messages wait."""


@dataclass(frozen=True, slots=True)
class ListWindow:
    """The requested part of a list."""

    after: str | None
    limit: int
    newest_first: bool

    def filtered(self, metadata: Mapping[str, str]) -> Window:
        """Return the part of a list of what has metadata."""
        return Window(limit=self.limit, after=self.after, newest_first=self.newest_first, metadata=metadata or None)


@dataclass(frozen=True, slots=True)
class TurnLists:
    """Lists the turns and the items of sessions."""

    reader: SessionReader

    async def list_turns(self, view: SessionView, window: ListWindow) -> tuple[list[AgentTurnObject], bool]:
        """Return turns of a session, and whether others follow. Messages that wait are queued turns, the newest ones.

        `after` need not exist. Raises NotFound if it is not the id of a turn.
        """
        queued = [from_turn(turn, view.agent_id, queued=True) for turn in await self.read_queued(view)]
        queued = queued[::-1] if window.newest_first else queued
        if window.after in {turn.id for turn in queued}:
            place = [turn.id for turn in queued].index(str(window.after))
            queued, window = queued[place + 1 :], ListWindow(None, window.limit, window.newest_first)
            if not window.newest_first:
                return queued[: window.limit], len(queued) > window.limit
        elif window.after is not None and window.newest_first:
            queued = []
        found, more = await self.read_turns(view, window, window.limit)
        shown = [from_turn(turn.to_turn(), view.agent_id) for turn in found]
        if window.newest_first:
            shown = [*queued, *shown]
        elif not more:
            shown = [*shown, *queued]
        return shown[: window.limit], more or len(shown) > window.limit

    async def get_turn(self, view: SessionView, turn_id: str) -> AgentTurnObject:
        """Return a turn, or a message that waits as a queued one. Raises NotFound."""
        turn = await self.reader.requests.turns.get(view.agent_id, view.session_id, turn_id)
        queued = turn.status is TurnStatus.in_progress and turn.turn_id in {
            each.turn_id for each in await self.read_queued(view)
        }
        return from_turn(turn, view.agent_id, queued=queued)

    async def read_queued(self, view: SessionView) -> list[Turn]:
        """Return the messages that wait for a session as turns, in their order."""
        line = self.reader.store.session_line(self.reader.tenant, view.agent_id, view.session_id)
        states = [(place.message_id, await line.get(place.message_id)) for place in await line.read()]
        return [to_turn(each, view.session_id, state) for each, state in states if state and not state.is_over]

    async def read_turns(self, view: SessionView, window: ListWindow, limit: int) -> tuple[list[StoredTurn], bool]:
        """Return turns of a session, and whether others follow."""
        store, ids = self.reader.store, (self.reader.tenant, view.agent_id, view.session_id)
        found, more = await store.turns.page(*ids, after=window.after, limit=limit, newest_first=window.newest_first)
        marked = [await mark_interrupted(store, ids[0], view.agent_id, view.record, turn=turn) for turn in found]
        return marked, more

    def items_of(self, view: SessionView, turn: StoredTurn) -> list[AgentItem]:
        return to_items(turn, view.labels_of(turn))

    async def list_turn_items(
        self, view: SessionView, turn_id: str, window: ListWindow
    ) -> tuple[list[AgentItem], bool]:
        """Return items of a turn, or of a message that waits, and whether others follow. Raises NotFound."""
        items = await self.read_items(view, turn_id)
        left = items_after(items[::-1] if window.newest_first else items, window.after)
        return left[: window.limit], len(left) > window.limit

    async def read_items(self, view: SessionView, turn_id: str) -> list[AgentItem]:
        """Return all items of a turn, or of a message that waits. Raises NotFound."""
        read = partial(self.reader.requests.tail.read, view.agent_id, view.session_id)
        try:
            return self.items_of(view, await read(turn_id))
        except NotFound:
            turn = await self.reader.requests.turns.get(view.agent_id, view.session_id, turn_id)
        if turn.turn_id != turn_id:  # the turn that has taken the message
            return self.items_of(view, await read(turn.turn_id))
        items = TurnItems(turn_id, label_tools(view.config))
        items.add_input(turn_id, turn.input_messages)
        return items.items

    async def list_items(self, view: SessionView, window: ListWindow) -> tuple[list[AgentItem], bool]:
        """Return items of a session, and whether others follow. Raises NotFound if `after` is not the id of an item."""
        found: list[AgentItem] = []
        position: str | None = None
        if window.after is not None:
            turn = await self.find_turn(view, window.after)
            items, position = self.items_of(view, turn), turn.header.turn_id
            found = items_after(items[::-1] if window.newest_first else items, window.after)
        more = True
        while more and len(found) <= window.limit:
            count = min(TURNS_AT_ONCE, window.limit + 1)  # each turn has an item at least
            turns, more = await self.read_turns(view, ListWindow(position, count, window.newest_first), count)
            for turn in turns:
                items, position = self.items_of(view, turn), turn.header.turn_id
                found += items[::-1] if window.newest_first else items
        return found[: window.limit], len(found) > window.limit

    async def find_turn(self, view: SessionView, item_id: str) -> StoredTurn:
        """Return the turn of an item. Raises NotFound."""
        digits = ITEM.fullmatch(item_id)
        if digits is None:
            raise NotFound("Item", item_id)
        owner = "-".join(digits.groups())
        with suppress(NotFound):  # the id of the turn itself, if the item is of its input
            turn = await self.reader.requests.tail.read(view.agent_id, view.session_id, owner)
            if item_id in {item.id for item in self.items_of(view, turn)}:
                return turn
        window = ListWindow(owner, TURNS_AT_ONCE, newest_first=True)
        for _ in range(MOST_PAGES):
            turns, more = await self.read_turns(view, window, TURNS_AT_ONCE)
            for turn in turns:
                if item_id in {item.id for item in self.items_of(view, turn)}:
                    return turn
            if not more:
                break
            window = ListWindow(turns[-1].header.turn_id, TURNS_AT_ONCE, newest_first=True)
        raise NotFound("Item", item_id)


def items_after(items: Sequence[AgentItem], after: str | None) -> list[AgentItem]:
    """Return the items after one of them. Raises NotFound if there is none with this id."""
    if after is None:
        return [*items]
    places = [place for place, item in enumerate(items) if item.id == after]
    if not places:
        raise NotFound("Item", after)
    return [*items[places[0] + 1 :]]
