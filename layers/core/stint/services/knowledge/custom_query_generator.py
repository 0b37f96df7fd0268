"""Queries that a Lambda function or an endpoint writes: the tool of a registered toolgroup, or an agent's own URL.

The generator is an ordinary tool, which is found, checked and called as an agent's tools are. Its answer is a text from
elsewhere: it must be a query of bounded length, and is never shown as it is. Its own timeout may be long; a search
waits for GENERATOR_SECONDS at most.
"""

import asyncio
import json
from collections.abc import Callable, Sequence

from stint.dataclasses import dataclass
from stint.domain.approvals import needs_approval
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.domain.ids import new_id
from stint.domain.json_text import parse_json
from stint.domain.llama_stack.memory_retrieval import CustomQueryGeneratorConfig
from stint.domain.llama_stack.rag import MAX_QUERY_LENGTH
from stint.domain.tools import AgentToolGroupWithArgs
from stint.loop.tool_timeout import run_with_grace
from stint.loop.toolbox import ServerTool
from stint.services.registry.selections import read_approval
from stint.services.registry.tools import Tools
from stint.tools.port import ATTACHMENTS, REMOTE_EXECUTION, Invocation
from stint.tools.secret_references import refuse_references

GENERATOR_SECONDS = 30.0
"""Maximum seconds of a generator, whatever its own timeout is."""

MAX_ANSWER_LENGTH = 10 * MAX_QUERY_LENGTH
"""Maximum characters of an answer that is parsed. JSON may escape each of a query."""

PROVIDERS = frozenset({"lambda-function", "remote-execution"})

FAILED = "The custom query generator"


@dataclass(frozen=True, slots=True)
class CustomQueries:
    """The custom query generators of a tenant. `get_tools` is called when one is used."""

    get_tools: Callable[[], Tools]

    async def find(self, config: CustomQueryGeneratorConfig) -> ServerTool:
        """Return the tool that writes the queries.

        Raises:
            InvalidRequest: there is no such toolgroup or tool, or it is neither a function nor an endpoint.
            ToolUnavailable: the toolgroup's provider does not exist.
        """
        tools = self.get_tools()
        selection = await tools.select(AgentToolGroupWithArgs(name=config.toolgroup, args=config.args))
        group = selection.toolgroup
        if group.provider_id not in PROVIDERS:
            raise InvalidRequest(
                f"The toolgroup {config.toolgroup!r} is of the provider {group.provider_id!r}. A query generator is a "
                "tool of the provider lambda-function or remote-execution."
            )
        found = tools.select_tools(selection, await tools.signatures(group, {}))
        if len(found) != 1:
            names = ", ".join(f"{group.identifier}/{tool.signature.name}" for tool in found)
            raise InvalidRequest(f"The toolgroup {config.toolgroup!r} has {len(found)} tools. Name one of: {names}")
        if needs_approval(read_approval(group.args or {}, "query_generator_config"), found[0].signature.name):
            raise InvalidRequest(
                f"The calls of the toolgroup {config.toolgroup!r} wait for approval. Those of a query generator cannot."
            )
        return found[0]

    async def check(self, config: CustomQueryGeneratorConfig, param: str) -> None:
        """Check a generator before an agent is stored, without calling it. `param` is the field that names it.

        Raises:
            InvalidRequest: it cannot be used. The message says what to do.
        """
        try:
            if config.toolgroup == REMOTE_EXECUTION:
                refuse_references(json.dumps(config.args), param)
            tool = await self.find(config)
            if config.toolgroup == REMOTE_EXECUTION:
                await tool.provider.check(tool.toolgroup)
        except InvalidRequest as error:
            advice = "Name a url or a registered toolgroup in provider_data, or use the generator default or llm."
            raise InvalidRequest(f"{param}: {error.message} {advice}", code=error.code, param=param) from error

    async def generate(self, config: CustomQueryGeneratorConfig, texts: Sequence[str]) -> str:
        """Return the query for some texts.

        Raises:
            InvalidRequest: there is no such generator, or its answer is no query.
            ToolUnavailable: it failed, or took too long.
        """
        tool = await self.find(config)
        messages = [{"role": "user", "content": text} for text in texts]
        key = f"query_{new_id()}"
        invocation = Invocation(tool.signature.name, {"messages": messages}, key, key=key)
        extra = {"toolgroup_id": tool.toolgroup.toolgroup_id, "tool_name": tool.signature.name}
        try:
            async with asyncio.timeout(GENERATOR_SECONDS):
                outcome = await run_with_grace(tool.provider.invoke(tool.toolgroup, invocation), extra)
        except TimeoutError:
            raise ToolUnavailable(f"{FAILED} did not respond within {GENERATOR_SECONDS:g} s.") from None
        if outcome.error:
            raise ToolUnavailable(f"{FAILED} failed: {text_of(outcome.content)[:500]}")
        # A tool's answer may also have images or attachments, which are no query.
        is_text = isinstance(outcome.content, str) and ATTACHMENTS not in outcome.metadata
        return read_query(text_of(outcome.content) if is_text else "")


def read_query(answer: str) -> str:
    """Return the query in an answer: a text, a JSON string, or the `query` of a JSON object.

    Raises:
        InvalidRequest: it is another JSON value, empty, or too long.
    """
    # Before it is parsed.
    if len(answer) > MAX_ANSWER_LENGTH:
        raise too_long(len(answer))
    query = answer.strip()
    if query.startswith(("{", "[", '"')):
        query = query_in_json(query)
    if not query:
        raise InvalidRequest(f"{FAILED} returned no text.")
    if len(query) > MAX_QUERY_LENGTH:
        raise too_long(len(query))
    return query


def query_in_json(text: str) -> str:
    """Return the query in a JSON value, or the text itself if it is no JSON."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    query = value.get("query") if isinstance(value, dict) else value
    if isinstance(query, str):
        return query.strip()
    raise InvalidRequest(f'{FAILED} must return a text, or a JSON object {{"query": "..."}}.')


def too_long(length: int) -> InvalidRequest:
    return InvalidRequest(f"{FAILED} returned {length} characters; at most {MAX_QUERY_LENGTH} are allowed.")
