"""Web search, with results in one form for all engines."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from stint.dataclasses import dataclass
from stint.domain.inference import ToolSignature
from stint.tools.http_calls import ToolFailure, read_query
from stint.tools.outcomes import failure, unknown_tool, write_json
from stint.tools.port import MODEL_NAMES, Invocation, Toolgroup, ToolOutcome
from stint.tools.search.api_keys import Key, find_key, fixed_argument

WEB_SEARCH = ToolSignature(
    name="web_search",
    description="Search the web for information",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The query to search for"}},
        "required": ["query"],
    },
    repeatable=True,
)
MAX_RESULTS = 3
MOST_RESULTS = 20


@dataclass(frozen=True, slots=True)
class WebPage:
    """A found page. `score` is the engine's own, if it has one."""

    title: str
    url: str
    content: str
    score: float | None = None


class SearchEngine(Protocol):
    """A search service: `name` for messages, `key_name` for the caller's key in the provider data."""

    name: ClassVar[str]
    key_name: ClassVar[str]

    async def search(self, query: str, limit: int, key: str) -> list[WebPage]:
        """Find at most `limit` pages, best first. Raises ToolFailure and ToolUnavailable."""
        ...


class WebSearch:
    """The tool `web_search`, which models know as `brave_search`.

    The args of a registration, and of an agent, may have `max_results` (1 to 20, default 3). Those of an agent may have
    `api_key`, and `engine`, the name of one of `engines`. The result is the JSON text
    `{"query", "top_k": [{"url", "title", "content", "score"?}]}`.
    """

    def __init__(
        self, engine: SearchEngine, api_key: Key = None, engines: Mapping[str, SearchEngine] | None = None
    ) -> None:
        self._engine = engine
        self._api_key = api_key
        self._engines = engines or {}

    async def check(self, _toolgroup: Toolgroup, /) -> None:
        """Accept any args; see the port."""

    def known_tools(self, _toolgroup: Toolgroup, _provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool; see the port."""
        return [WEB_SEARCH]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List the one tool, without a request."""
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Search; see the port."""
        if invocation.tool_name not in (WEB_SEARCH.name, MODEL_NAMES[WEB_SEARCH.name]):
            return unknown_tool(invocation.tool_name, [WEB_SEARCH.name])
        chosen = str(fixed_argument(invocation, "engine"))
        engine = self._engines.get(chosen, self._engine)
        # The server's key is for its own engine: another one must not get it.
        own, choice = (self._api_key, "") if engine is self._engine else (None, f"STINT_WEB_SEARCH={chosen}")
        key = await find_key(engine.key_name, own, invocation, engine.name, choice)
        try:
            query = read_query(invocation.arguments)
            hits = await engine.search(query, limit_of({**toolgroup.config, **invocation.arguments}), key)
        except ToolFailure as error:
            return failure(str(error))
        return ToolOutcome(content=write_json({"query": query, "top_k": [write_hit(hit) for hit in hits]}))


def limit_of(arguments: dict[str, Any]) -> int:
    """Return `max_results`, within the limits of both engines."""
    limit = arguments.get("max_results")
    return min(max(limit, 1), MOST_RESULTS) if isinstance(limit, int) else MAX_RESULTS


def write_hit(hit: WebPage) -> dict[str, Any]:
    score = {} if hit.score is None else {"score": hit.score}
    return {"url": hit.url, "title": hit.title, "content": hit.content, **score}
