"""Model calls of a chain or conversation begin with the blocks of the call before, so that providers cache them."""

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import Part, Script, called, said
from tests.services.prefixes import assert_growing, signed_thought
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.inference import Finished, FinishReason, ReasoningChunk, TextChunk, ToolCallChunk
from stint.domain.openai.items import FunctionCall
from stint.domain.openai.response_resource import Response

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAA="}
NAME = str(FUNCTION["name"])
STEPS = 9


class Talk:
    """A chain of responses, or a conversation, in which random things happen."""

    def __init__(self, cloud: Cloud, tenant: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Script([])
        self.process = WorkerFixture(cloud, tenant, self.model)
        self.conversation = ""
        self.last = ""
        self.calls = 0

    async def open(self) -> None:
        if self.random.random() < 0.5:
            self.conversation = await self.process.conversation()

    async def respond(self, said: Any, *answers: list[Part]) -> Response:
        """Create a response in the foreground or the background. The calls of the answers get new ids."""
        for parts in answers:
            self.model.answers.append([self.renamed(part) for part in parts])
        before = (
            {"conversation": self.conversation} if self.conversation else {"previous_response_id": self.last or None}
        )
        fields = before | {"instructions": "Be kind.", "tools": [MCP_TOOL, FUNCTION]}
        if self.random.random() < 0.4:
            response = await self.process.finished(said, **fields)
        else:
            response = (await Responder(self.process).respond(said, **fields)).response
        self.last = "" if self.conversation else response.id
        if self.random.random() < 0.6:
            self.process = self.process.other_process(self.model)
        return response

    def renamed(self, part: Part) -> Part:
        if not isinstance(part, ToolCallChunk):
            return part
        self.calls += 1
        return replace(part, call_id=f"call_{self.calls}")

    async def say_something(self) -> None:
        await self.respond("How are you?", said("Fine"))

    async def show_picture(self) -> None:
        content = [{"type": "input_text", "text": "Look:", "prompt_cache_breakpoint": {"mode": "explicit"}}, PICTURE]
        await self.respond([{"role": "user", "content": content}], said("Nice"))

    async def think(self) -> None:
        thought = ReasoningChunk("I wonder.", "c2lnbmF0dXJl")
        await self.respond("Think.", [thought, TextChunk("So"), Finished(FinishReason.stop)])

    async def think_of_tools(self) -> None:
        """Reason before calls, by Bedrock or the Responses API."""
        thought = self.random.choice((ReasoningChunk("I wonder.", "c2lnbmF0dXJl"), signed_thought()))
        await self.respond("Buy.", [thought, *called("buy", "look")], [thought, *said("Done")])

    async def run_tools(self) -> None:
        await self.respond("Buy.", called("buy", "look", text="Let me see."), called("sell"), said("Done"))

    async def call_functions(self) -> None:
        response = await self.respond("Weather?", called(NAME, NAME))
        calls = [item for item in response.output if isinstance(item, FunctionCall)]
        outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
        await self.respond([*reversed(outputs), {"role": "user", "content": "And?"}], said("Sunny"))


@pytest.mark.parametrize("seed", range(12))
async def test_a_call_of_a_chain_or_conversation_begins_with_the_one_before(
    cloud: Cloud, tenant: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerFixture, "with_cache_keys", frozenset({"test"}))
    talk = Talk(cloud, tenant, seed)
    await talk.open()
    acts = [talk.say_something, talk.show_picture, talk.think, talk.think_of_tools, talk.run_tools, talk.call_functions]
    for _ in range(STEPS):
        await talk.random.choice(acts)()

    assert len(talk.model.requests) >= STEPS
    assert_growing(talk.model.requests)
