from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.script_model import ListLog, Script, collect, run_of, said, script, shape, words_of

from stint.domain.inference import ModelMessage, UserInput
from stint.domain.steps import MemoryRetrievalStep
from stint.loop.agent_loop import run_loop
from stint.loop.retrieval import RetrievedContext
from stint.loop.run import Run
from stint.loop.screening import ToolShields


@dataclass
class Shelf:
    """A retriever that returns one text."""

    text: str
    asked: list[str] = field(default_factory=list)
    shields: ToolShields = field(default_factory=ToolShields)
    tool_name: str = "knowledge_search"

    async def retrieve(self, messages: Sequence[ModelMessage], key: str, /) -> RetrievedContext:
        self.asked.append(words_of(messages[-1]))
        return RetrievedContext(["a", "b"], self.text)


def run_with(shelf: Shelf, model: Script, log: ListLog) -> Run:
    run = run_of(model, log=log)
    run.plan = replace(run.plan, retriever=shelf)
    run.transcript.append_message(UserInput("How many experts?"))
    return run


async def test_context_is_a_step_before_the_first_inference_and_the_model_sees_it() -> None:
    model, log = script(said()), ListLog()
    run = run_with(Shelf("Maverick has 128 experts."), model, log)

    async with run.opened():
        assert run.inference is None
    events = shape(await collect(run_loop(run)))

    assert events[:3] == ["start memory_retrieval", "complete memory_retrieval", "start inference"]
    step = log.records[0].step
    assert isinstance(step, MemoryRetrievalStep)
    assert (step.turn_id, step.vector_db_ids, step.inserted_context) == ("t", "a,b", "Maverick has 128 experts.")
    assert [words_of(each) for each in model.requests[0].messages] == ["How many experts?", "Maverick has 128 experts."]


async def test_without_a_finding_there_is_a_step_but_no_message() -> None:
    shelf, model, log = Shelf(""), script(said()), ListLog()

    await collect(run_loop(run_with(shelf, model, log)))

    assert isinstance(log.records[0].step, MemoryRetrievalStep)
    assert [words_of(each) for each in model.requests[0].messages] == shelf.asked == ["How many experts?"]


async def test_a_resumed_run_retrieves_nothing() -> None:
    shelf, model = Shelf("text"), script(said())
    run = run_with(shelf, model, ListLog())
    run.iterations = 1

    async with run.opened():
        assert run.inference is not None
    events = shape(await collect(run_loop(run)))

    assert (shelf.asked, events[0]) == ([], "start inference")
