"""Requests to webhook endpoints. The body of an answer is not read."""

from collections.abc import Mapping

from stint.net.guard import Guard
from stint.net.secret_requests import open_client

HEADERS = {"Content-Type": "application/json", "User-Agent": "Stint-Webhooks"}


async def post_webhook(guard: Guard, url: str, headers: Mapping[str, str], body: bytes) -> int:
    """Send an event, and return the status of the answer. Raises EndpointFailed."""
    async with (
        open_client(guard, url, HEADERS) as client,
        client.stream("POST", url, headers=headers, content=body) as response,
    ):
        return response.status_code
