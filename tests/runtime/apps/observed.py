"""An app in Stint's middleware for log lines and metrics. The last segment of the path is an agent's name."""

import asyncio
import logging

from tests.runtime.apps.streams import Message, Receive, Send, body, gate, start

from stint.http.middleware.request_logging import RequestLoggingMiddleware
from stint.log_keys import add_log_keys

logger = logging.getLogger("stint.observed")


async def work(scope: Message, _receive: Receive, send: Send) -> None:
    name = scope["path"].split("/")[-1]
    scope["stint.observation"].count("Turns", int(name))
    add_log_keys(agent_name=name)
    await gate(scope, "between")
    await asyncio.to_thread(logger.info, "working")
    await start(send)
    await body(send, b"", more=False)


async def startless(scope: Message, receive: Receive, send: Send) -> None:
    """Refuse the lifespan scope."""
    assert scope["type"] == "http"
    await RequestLoggingMiddleware(work, "observed")(scope, receive, send)


app = startless
