"""A tenant's foreground responses with a real store."""

from dataclasses import dataclass, field
from typing import Any

from tests.openresponses.grammar import Stream
from tests.script_model import deadline
from tests.services.worker_fixture import WorkerFixture

from stint.caller import NO_ATTEMPT
from stint.domain.openai.conversations import CreateConversation
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import StoredResponse
from stint.services.responses.response_run import ResponseRun
from stint.services.runs.run_handle import RequestContext


@dataclass
class Answered:
    """A response that was run, with the events of its stream, checked against the grammar of streams."""

    events: list[ResponseEvent] = field(default_factory=list)

    @property
    def response(self) -> Response:
        """Return the response of the last event."""
        last: Response = self.events[-1].response  # type: ignore[union-attr]  # the terminal event bears one
        return last

    @property
    def kinds(self) -> list[str]:
        return [event.type.removeprefix("response.") for event in self.events]


class Responder:
    """Client that creates responses like the routes."""

    def __init__(self, worker_fixture: WorkerFixture) -> None:
        self.worker_fixture = worker_fixture
        self.responses = worker_fixture.services.responses
        self.cloud = worker_fixture.cloud
        self.attempt = NO_ATTEMPT

    async def start(self, said: Any = "Hello", seconds: float = 30, **fields: Any) -> ResponseRun:
        request = CreateResponse.model_validate({"model": "test/m", "input": said} | fields)
        return await self.responses.start(request, RequestContext(deadline(seconds), self.attempt))

    async def play(self, run: ResponseRun) -> Answered:
        stream, answered = Stream(), Answered()
        async for event in self.responses.run(run):
            stream.take(event.model_dump(mode="json"))
            answered.events.append(event)
        stream.finish()
        return answered

    async def respond(self, said: Any = "Hello", **fields: Any) -> Answered:
        return await self.play(await self.start(said, **fields))

    async def get(self, response_id: str) -> Response:
        return await self.worker_fixture.get(response_id)

    async def stored(self, response_id: str) -> StoredResponse:
        return await self.worker_fixture.stored(response_id)

    async def conversation(self) -> str:
        return (await self.worker_fixture.services.conversations.create(CreateConversation())).id
