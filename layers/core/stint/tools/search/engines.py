"""Brave Search and Tavily."""

import html
import re
from typing import Any, ClassVar

import httpx

from stint.domain.errors import ToolUnavailable
from stint.net.guard import Guard
from stint.tools.http_calls import ToolFailure, read_answer, send
from stint.tools.outcomes import TIMEOUT
from stint.tools.search.web_search import WebPage

_TAG = re.compile(r"</?strong>")


class Brave:
    """Brave's Web Search API (api-dashboard.search.brave.com, "Web search"): GET /web/search."""

    name: ClassVar[str] = "Brave Search"
    key_name: ClassVar[str] = "brave_search_api_key"

    def __init__(
        self, guard: Guard, *, base_url: str = "https://api.search.brave.com/res/v1", timeout: float = TIMEOUT
    ) -> None:
        self._guard = guard
        self._url = f"{base_url.rstrip('/')}/web/search"
        self._timeout = timeout

    async def search(self, query: str, limit: int, key: str) -> list[WebPage]:
        """Find web pages. The content is the description and further excerpts, as plain text."""
        response = await send(
            self._guard,
            self.name,
            "GET",
            self._url,
            timeout=self._timeout,
            params={"q": query, "count": limit, "text_decorations": "false", "result_filter": "web"},
            headers={"Accept": "application/json", "X-Subscription-Token": key},
        )
        # Brave answers 422 to an unknown token.
        if response.status_code == httpx.codes.UNPROCESSABLE_ENTITY and "SUBSCRIPTION_TOKEN" in response.text:
            raise ToolUnavailable(f"{self.name} refused the API key ({response.status_code})")
        found = read_answer(self.name, response)
        return [self._read(page) for page in list_in(self.name, found, "web", "results")[:limit]]

    def _read(self, page: dict[str, Any]) -> WebPage:
        texts = [page.get("description") or "", *(page.get("extra_snippets") or [])]
        content = "\n".join(html.unescape(_TAG.sub("", str(text))) for text in texts if text)
        return WebPage(html.unescape(str(page.get("title", ""))), str(page.get("url", "")), content)


class Tavily:
    """Tavily's search (docs.tavily.com, "Tavily Search"): POST /search."""

    name: ClassVar[str] = "Tavily"
    key_name: ClassVar[str] = "tavily_search_api_key"

    def __init__(self, guard: Guard, *, base_url: str = "https://api.tavily.com", timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._url = f"{base_url.rstrip('/')}/search"
        self._timeout = timeout

    async def search(self, query: str, limit: int, key: str) -> list[WebPage]:
        """Find web pages, each with Tavily's excerpt and score."""
        response = await send(
            self._guard,
            self.name,
            "POST",
            self._url,
            timeout=self._timeout,
            json={"query": query, "max_results": limit},
            headers={"Authorization": f"Bearer {key}"},
        )
        found = read_answer(self.name, response)
        return [
            WebPage(
                str(page.get("title", "")), str(page.get("url", "")), str(page.get("content", "")), page.get("score")
            )
            for page in list_in(self.name, found, "results")[:limit]
        ]


def list_in(service: str, document: Any, *path: str) -> list[dict[str, Any]]:
    """Return the objects in a list of a response; a missing list is empty. Raises ToolFailure for anything else."""
    for name in path:
        # An ellipsis is neither None, which is a missing list, nor a list.
        document = document.get(name) if isinstance(document, dict) else ...
        if document is None:
            return []
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        raise ToolFailure(f"{service} returned a response in an undocumented form.")
    return document
