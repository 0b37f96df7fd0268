"""`python -m infra.bench.prompt_cache`: the price of the input of a session, with and without checkpoints.

A client of Bedrock that keeps what AWS documents replays a session of 30 turns, of which four call tools, through the
product's adapter and transcript. It knows no model: a token has four characters, and a turn comes every 20 seconds.

"Prompt caching for faster model inference", Amazon Bedrock User Guide:
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    InferenceRequest,
    ModelMessage,
    PromptCache,
    SystemText,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.prices import InfrastructurePrices, ModelPrice
from stint.domain.tools import ToolCall
from stint.models.bedrock.model import Bedrock

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"
LEAST_TOKENS, LOOK_BACK, LIFETIME_SECONDS, MOST_POINTS = 1_024, 20, 300, 4
TURNS, TURNS_WITH_TOOLS, SECONDS_BETWEEN_TURNS = 30, (5, 11, 17, 23), 20
PRICE = ModelPrice(input=3, output=15, cached_input=0.3, cache_write=3.75)
"""Claude Sonnet 4.5 on Bedrock, in dollars per million tokens: https://aws.amazon.com/bedrock/pricing/"""

ANSWER = "That is a good question. " * 20
WRITE_UNITS, READ_UNITS, MILLISECONDS, MEMORY_MB = 4, 1.5, 3_000, 256
"""A simple turn of a session that the process remembers, as in docs/costs.md, of three seconds."""


@dataclass
class CachingBedrock:
    """A client whose `converse_stream` answers "Fine." and keeps the beginnings of its requests like Bedrock."""

    now: float = 0.0
    ends: dict[str, float] = field(default_factory=dict)

    def converse_stream(self, **parameters: Any) -> dict[str, Any]:
        """Return a stream of events whose usage says what was read from the cache and written to it."""
        read, written, total = self.use_cache([*blocks_of(parameters)])
        usage = {"inputTokens": total - read - written, "outputTokens": 2, "totalTokens": total + 2}
        cached = {"cacheReadInputTokens": read, "cacheWriteInputTokens": written}
        events: list[dict[str, Any]] = [
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Fine."}}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": usage | cached}},
        ]
        return {"stream": Events(events)}

    def use_cache(self, blocks: list[Any]) -> tuple[int, int, int]:
        """Return the tokens that are read and written, and all of the request."""
        points: list[int] = []
        prefixes: list[tuple[str, int]] = [("", 0)]
        for block in blocks:
            if "cachePoint" in block:
                points.append(len(prefixes) - 1)
                continue
            text = json.dumps(block)
            before, tokens = prefixes[-1]
            prefixes.append((sha256((before + text).encode()).hexdigest(), tokens + len(text) // 4))
        if len(points) > MOST_POINTS:
            raise ValueError(f"Bedrock refuses more than {MOST_POINTS} checkpoints, not {len(points)}")
        found = max((self.find(prefixes, point) for point in points), default=0)
        kept = max((point for point in points if prefixes[point][1] >= LEAST_TOKENS), default=0)
        for point in {found, *points}:
            if prefixes[point][1] >= LEAST_TOKENS:
                self.ends[prefixes[point][0]] = self.now + LIFETIME_SECONDS
        read = prefixes[found][1]
        return read, max(prefixes[kept][1] - read, 0), prefixes[-1][1]

    def find(self, prefixes: list[tuple[str, int]], point: int) -> int:
        """Return the longest kept prefix up to so many blocks before a checkpoint."""
        for place in range(point, max(point - LOOK_BACK, 0), -1):
            if self.ends.get(prefixes[place][0], -1.0) >= self.now:
                return place
        return 0


class Events(list[dict[str, Any]]):
    """The events of an answer, as botocore's stream has them."""

    _raw_stream = SimpleNamespace(shutdown=lambda: None)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def blocks_of(parameters: dict[str, Any]) -> Iterator[Any]:
    """Yield tools, system texts and content blocks in the order of the cache."""
    yield from parameters.get("toolConfig", {}).get("tools", [])
    yield from parameters.get("system", [])
    for message in parameters["messages"]:
        for block in message["content"]:
            yield block if "cachePoint" in block else [message["role"], block]


@dataclass
class Session:
    """A session whose input is counted. With `cache` None, its calls have no checkpoints."""

    cache: PromptCache | None
    bedrock: CachingBedrock = field(default_factory=CachingBedrock)
    messages: list[ModelMessage] = field(default_factory=lambda: [SystemText("Answer kindly. " * 150)])
    used: Usage = field(default_factory=Usage)

    async def run(self, turns: int = TURNS) -> float:
        """Run the turns, and return the dollars of their input."""
        model = Bedrock(lambda: cast("Any", self.bedrock))
        for turn in range(turns):
            self.messages.append(UserInput(f"Question {turn}: " + "What do you think of it? " * 30))
            if turn in TURNS_WITH_TOOLS:
                await self.ask(model)
                calls = [call_of(f"call_{turn}_{number}") for number in range(3)]
                self.messages.append(AssistantAnswer("", tuple(calls)))
                self.messages += [ToolResult(call.call_id, "search", "A result. " * 200) for call in calls]
            await self.ask(model)
            self.messages.append(AssistantAnswer(ANSWER))
            self.bedrock.now += SECONDS_BETWEEN_TURNS
        return PRICE.cost_of(self.used.model_copy(update={"output_tokens": 0}))

    async def ask(self, model: Bedrock) -> None:
        """Make a model call, and count its usage."""
        async for chunk in model.stream(InferenceRequest(MODEL, tuple(self.messages), TOOLS, cache=self.cache)):
            if isinstance(chunk, Finished) and chunk.usage is not None:
                self.used += chunk.usage


def call_of(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="search", arguments={"query": "it"}, arguments_json='{"query": "it"}')


QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS = (ToolSignature("search", "Searches. " * 40, QUERY),)


async def input_ratios() -> tuple[float, float]:
    """Return the price of the input by default to that without checkpoints: of a session, and of a single call."""
    session = await Session(PromptCache()).run() / await Session(None).run()
    alone = CreateResponse.model_validate({"model": MODEL, "input": "Hello", "store": False}).to_settings()
    single = await Session(alone.choose_cache(PromptCache())).run(1) / await Session(None).run(1)
    return session, single


async def price_table() -> str:
    """Return the dollars of the session with and without checkpoints, as a table in Markdown."""
    output = PRICE.cost_of(Usage(output_tokens=TURNS * len(ANSWER) // 4))
    stack = TURNS * InfrastructurePrices().cost_of(WRITE_UNITS, READ_UNITS, MILLISECONDS, MEMORY_MB)
    inputs = [await Session(cache).run() for cache in (None, PromptCache())]
    rows = {"input": inputs, "output": [output] * 2, "functions and table": [stack] * 2}
    rows["sum"] = [each + output + stack for each in inputs]
    lines = [f"| {name} | {' | '.join(f'${each:.4f}' for each in prices)} |" for name, prices in rows.items()]
    return "\n".join(["| | without caching | with caching |", "|---|---|---|", *lines]) + "\n"


def main() -> None:
    session, single = asyncio.run(input_ratios())
    sys.stdout.write(
        f"Input of a session of {TURNS} turns, {len(TURNS_WITH_TOOLS)} of them with tools: {session:.2f} of its price "
        f"without checkpoints\nInput of a single call: {single:.2f}\n\n{asyncio.run(price_table())}"
    )


if __name__ == "__main__":
    main()
