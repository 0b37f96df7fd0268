"""A session of 2,000 turns with results of 50 KB, on the loop and the transcripts, with its records as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.script_model import ListLog, run_of, words_of
from tests.window_model import WindowModel

from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import now
from stint.loop.agent_loop import run_loop
from stint.loop.plan import CompactionRule
from stint.loop.toolbox import ServerTool, Toolbox
from stint.services.turns.history import add_input
from stint.services.turns.session_transcript import SessionTranscript
from stint.store.sessions import LastTurn
from stint.store.turns import History
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

TURNS, WINDOW, RULE = 2_000, 40_000, CompactionRule(30_000)


@dataclass
class Results:
    """A tool that returns 50 KB with a new fact each time."""

    count: int = 0

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature] | None:
        return None

    async def list_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def invoke(self, _: Toolgroup, __: Invocation, /) -> ToolOutcome:
        self.count += 1
        return ToolOutcome(f"fact: result{self.count} {self.count * 37}\n" + "y" * 50_000)


@dataclass
class Session:
    """A session whose turns are kept as the JSON of their records."""

    model: WindowModel
    tool: Results = field(default_factory=Results)
    past: SessionTranscript = field(default_factory=SessionTranscript)
    since: list[StoredTurn] = field(default_factory=list)
    count: int = 0

    async def turn(self, text: str) -> str:
        """Run a turn, and return the answer."""
        self.count += 1
        header = TurnHeader(
            turn_id=f"{self.count:06d}",
            session_id="s",
            input_messages=[UserMessage(content=text)],
            started_at=now(),
            overrides=TurnOverrides(),
        )
        log = ListLog()
        run = run_of(self.model, log=log)
        server = {"add": ServerTool(ToolSignature("add", "", {}), Toolgroup("g", "k"), self.tool)}
        run.plan = replace(run.plan, toolbox=Toolbox({}, server, result_bytes=60_000), compaction=RULE)
        run.transcript = self.past.transcript()
        add_input(run.transcript, header)
        async for _ in run_loop(run):
            pass
        turn = stored(header, log.records)
        self.since = [turn] if turn.compactions else [*self.since, turn]
        self.past = self.past.extended(History([turn], True, LastTurn(header.turn_id, len(turn.records))))
        assert turn.status is RunStatus.completed
        return words_of(run.transcript.messages[-1])

    def forget(self) -> None:
        """Continue as a process that reads the turns since the last compaction."""
        self.past = SessionTranscript.of(History(self.since, True, self.past.end))


def stored(header: TurnHeader, records: Sequence[TurnRecord]) -> StoredTurn:
    """Return a turn as it is read again."""
    turn = StoredTurn(header, size=len(header.to_json()))
    for record in records:
        written = record.to_json(exclude_none=True)
        if record.compaction is not None:
            turn.skipped = turn.size
        turn.records.append(TurnRecord.model_validate_json(written))
        turn.size += len(written)
    return turn


async def test_a_session_of_2000_turns_with_large_results_never_fails_and_keeps_its_facts() -> None:
    model = WindowModel(WINDOW)
    session = Session(model)
    for number in range(TURNS):
        assert await session.turn("run add") == "Fine"
        if number % 97 == 50:
            session.forget()

    for number in (1, 777, TURNS):
        assert await session.turn(f"recall result{number}") == f"fact: result{number} {number * 37}"
    assert model.refused == 0
    assert len(session.past.turns) < 10
