"""Responses as documented by Brave (api-dashboard.search.brave.com, "Web search")."""

import json
from urllib.parse import parse_qs, urlsplit

from tests.servers.scripted_http import Received, Reply

KEY = "BSA-right-key"


def page(number: int) -> dict[str, object]:
    return {
        "type": "search_result",
        "title": f"Page {number} &amp; more",
        "url": f"https://example.com/{number}",
        "is_source_local": False,
        "description": f"About <strong>tea</strong> &#39;{number}&#39;",
        "page_age": "2026-01-01T00:00:00",
        "profile": {"name": "Example"},
        **({"extra_snippets": ["one", "two"]} if number == 1 else {}),
    }


def answer(received: Received) -> Reply:
    """Respond to GET /res/v1/web/search."""
    query = parse_qs(urlsplit(received.path).query)
    if received.headers.get("x-subscription-token") != KEY:
        return error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
    if not received.path.startswith("/res/v1/web/search?") or len(query["q"][0]) > 400:
        return error(422, "VALIDATION", "Unable to validate request parameter(s)")
    if query["q"][0] == "nothing":
        return reply({"type": "search", "query": {"original": "nothing"}, "mixed": {"main": []}})
    results = [page(number) for number in range(1, int(query["count"][0]) + 1)]
    found = {"type": "search", "query": {"original": query["q"][0]}, "web": {"type": "search", "results": results}}
    return reply(found)


def reply(document: object, status: int = 200) -> Reply:
    return Reply((json.dumps(document).encode(),), status)


def error(status: int, code: str, detail: str) -> Reply:
    body = {"id": "e", "status": status, "code": code, "detail": detail}
    return reply({"type": "ErrorResponse", "error": body}, status)
