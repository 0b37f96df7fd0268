"""Responses as documented by Tavily (docs.tavily.com, "Tavily Search")."""

import json

from tests.servers.scripted_http import Received, Reply

KEY = "tvly-right-key"


def answer(received: Received) -> Reply:
    """Respond to POST /search."""
    if received.headers.get("authorization") != f"Bearer {KEY}":
        return reply({"detail": {"error": "Unauthorized: missing or invalid API key."}}, 401)
    asked = received.json()
    if (received.method, received.path) != ("POST", "/search") or len(asked["query"]) > 400:
        detail = f"Query is too long. Max query length is 400 characters. Your key: {KEY}"
        return reply({"detail": {"error": detail}}, 400)
    results = [
        {
            "title": f"Page {number}",
            "url": f"https://example.com/{number}",
            "content": f"About tea {number}",
            "score": 1 - number / 100,
            "raw_content": None,
        }
        for number in range(1, asked["max_results"] + 1)
    ]
    found = {"query": asked["query"], "answer": None, "images": [], "results": results, "response_time": "1.67"}
    return reply({**found, "request_id": "r"})


def reply(document: object, status: int = 200) -> Reply:
    return Reply((json.dumps(document).encode(),), status)
