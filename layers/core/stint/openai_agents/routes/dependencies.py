"""Dependencies of the routes of OpenAI's Agents API."""

from typing import Annotated, Literal

from fastapi import Depends, Query

from stint.http.dependencies import services_of
from stint.openai_agents.lists import ListWindow
from stint.openai_agents.services import OpenAIAgentsServices


async def list_window_of(
    after: Annotated[str | None, Query(description="the id of the entry to start after")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
) -> ListWindow:
    return ListWindow(after, limit, order == "desc")


ListWindowDep = Annotated[ListWindow, Depends(list_window_of)]
OpenAIAgentsServicesDep = Annotated[OpenAIAgentsServices, Depends(services_of)]
