"""The beginning that two model calls of a conversation share, in the form in which adapters send them."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

from stint.domain.inference import InferenceRequest, ReasoningChunk
from stint.models.bedrock.request import write_converse
from stint.models.openai.chat_completions import ChatCompletions
from stint.models.openai_responses.api import ResponsesApi
from stint.models.openai_responses.reasoning import AnswerPlace, write_head, write_item

CLAUDE = "anthropic.claude-sonnet-5"
RESPONSES = ResponsesApi("https://example.com/v1")


def signed_thought(text: str = "I wonder.", model: str = "m") -> ReasoningChunk:
    """Return reasoning with its signature by the Responses API, as that of the server of `blocks_of_responses`."""
    item = {"id": "rs_1", "encrypted_content": "gAAAA"}
    origin = RESPONSES.reader(InferenceRequest(model, ())).origin
    return ReasoningChunk(text, write_head(origin) + write_item(item, AnswerPlace(0, 0), [(0, len(text))]))


def assert_growing(requests: Sequence[InferenceRequest]) -> None:
    """Assert that each request begins with the blocks of the one before, for each provider, and has the same key."""
    [key] = {request.cache_key for request in requests}
    assert key
    for earlier, later in itertools.pairwise(requests):
        for blocks in (blocks_of_bedrock, blocks_of_openai, blocks_of_responses):
            before, after = blocks(earlier), blocks(later)
            assert after[: len(before)] == before


def blocks_of_bedrock(request: InferenceRequest) -> list[str]:
    """Return the tools, system texts and content blocks, without checkpoints."""
    body = write_converse(replace(request, model=CLAUDE)).parameters
    blocks = [*body.get("toolConfig", {}).get("tools", []), *body.get("system", [])]
    blocks += [{message["role"]: block} for message in body["messages"] for block in message["content"]]
    return [json.dumps(block, default=str) for block in blocks]


def blocks_of_openai(request: InferenceRequest) -> list[str]:
    """Return the tools and messages."""
    body = json.loads(ChatCompletions().write(request, frozenset()))
    return [json.dumps(block) for block in (*body.get("tools", []), *body["messages"])]


def blocks_of_responses(request: InferenceRequest) -> list[str]:
    """Return the tools and items."""
    body = json.loads(RESPONSES.write(request, frozenset()))
    return [json.dumps(block) for block in (*body.get("tools", []), *body["input"])]
