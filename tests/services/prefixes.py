"""The beginning that two model calls of a conversation share, in the form in which adapters send them."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

from stint.domain.inference import InferenceRequest
from stint.models.bedrock.request import write_converse
from stint.models.openai.chat_completions import ChatCompletions

CLAUDE = "anthropic.claude-sonnet-5"


def assert_growing(requests: Sequence[InferenceRequest]) -> None:
    """Assert that each request begins with the blocks of the one before, for each provider, and has the same key."""
    [key] = {request.cache_key for request in requests}
    assert key
    for earlier, later in itertools.pairwise(requests):
        for blocks in (blocks_of_bedrock, blocks_of_openai):
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
