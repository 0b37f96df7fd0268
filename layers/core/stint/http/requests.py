"""Request bodies, read strictly."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from stint.domain.json_text import parse_json


class StrictRequest(Request):
    """A request whose body is what RFC 8259 calls JSON, and can be stored."""

    async def json(self) -> Any:
        """Parse the body. Raises JSONDecodeError."""
        return parse_json(await self.body())


class StrictRoute(APIRoute):
    """A route that reads its body as StrictRequest does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly
