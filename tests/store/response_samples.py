"""Responses and conversations to store."""

import time

from stint.domain.ids import new_id, new_name
from stint.domain.inference import Usage
from stint.domain.openai.conversations import Conversation, StoredItem
from stint.domain.openai.items import Message
from stint.domain.openai.parts import InputText
from stint.domain.openai.stored_responses import (
    ResponseHeader,
    ResponseOutcome,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.store.response_logs import place_after_response
from stint.store.store import Store


def message(text: str = "Hello") -> Message:
    return Message(id=new_name("msg"), role="user", content=[InputText(text=text)])


def stored(*texts: str) -> list[StoredItem]:
    """Return messages in the form of a conversation."""
    return [StoredItem(item=message(text)) for text in texts]


def response_header(
    text: str = "Hello",
    behind: ResponseHeader | None = None,
    model: str = "scripted/demo",
    background: bool = False,
) -> ResponseHeader:
    """Return the header of a new response, which may continue from another one."""
    ancestors, depth = place_after_response(behind) if behind else ([], 0)
    return ResponseHeader(
        response_id=new_name("resp"),
        created_at=int(time.time()),
        model=model,
        input=[message(text)],
        previous_response_id=behind.response_id if behind else None,
        ancestors=ancestors,
        depth=depth,
        background=background,
        until=time.time() + 60,
    )


def response_ending(status: ResponseStatus = ResponseStatus.completed) -> ResponseOutcome:
    usage = Usage(input_tokens=11, output_tokens=7, total_tokens=18)
    return ResponseOutcome(status=status, completed_at=int(time.time()), usage=usage)


def response_record(
    response_id: str, text: str = "Hi", status: ResponseStatus | None = ResponseStatus.completed
) -> ResponseRecord:
    """Return a record with a step, and with the ending unless `status` is None."""
    step = InferenceStep(
        turn_id=response_id,
        step_id=new_id(),
        started_at=now(),
        completed_at=now(),
        model_response=CompletionMessage(content=text),
    )
    return ResponseRecord(step=step, ending=response_ending(status) if status else None)


def conversation(**metadata: str) -> Conversation:
    return Conversation(id=new_name("conv"), created_at=int(time.time()), metadata=metadata)


class Responder:
    """A tenant, and writes of responses to it."""

    def __init__(self, store: Store, tenant: str) -> None:
        self.store, self.tenant = store, tenant
        self.responses = store.responses

    async def begin(self, text: str = "Hello", behind: ResponseHeader | None = None, background: bool = False) -> str:
        header = response_header(text, behind, background=background)
        await self.responses.put(self.tenant, header)
        return header.response_id

    async def respond(
        self,
        text: str = "Hello",
        answer: str = "Hi",
        behind: ResponseHeader | None = None,
        model: str = "scripted/demo",
    ) -> ResponseHeader:
        """Store a whole response."""
        header = response_header(text, behind, model)
        await self.responses.put(self.tenant, header)
        await self.responses.append(self.tenant, header.response_id, 0, response_record(header.response_id, answer))
        return header

    async def chain(self, length: int, text: str = "Hello", answer: str = "Hi") -> list[ResponseHeader]:
        """Store responses, each of which continues from the previous one."""
        links: list[ResponseHeader] = []
        for _ in range(length):
            links.append(await self.respond(text, answer, links[-1] if links else None))
        return links

    async def append(
        self, response_id: str, index: int, text: str = "Hi", status: ResponseStatus | None = None
    ) -> None:
        await self.responses.append(self.tenant, response_id, index, response_record(response_id, text, status))

    async def seal(self, response_id: str, status: ResponseStatus = ResponseStatus.failed) -> StoredResponse:
        record = ResponseRecord(ending=response_ending(status))
        return await self.responses.seal(self.tenant, response_id, lambda _: record)

    async def get(self, response_id: str) -> StoredResponse:
        return await self.responses.get(self.tenant, response_id)


def ids_of(found: list[StoredResponse]) -> list[str]:
    return [one.header.response_id for one in found]
