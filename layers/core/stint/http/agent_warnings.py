"""The warning that the turns of a new agent will fail."""

import logging

from fastapi import Request

from stint.domain.errors import StintError
from stint.domain.llama_stack.agents import AgentConfig
from stint.http.warning_header import add_warnings
from stint.services.agents.missing_names import explain_missing_names
from stint.services.registry.tools import Tools

logger = logging.getLogger(__name__)


async def warn_of_missing_names(request: Request, config: AgentConfig, tools: Tools) -> None:
    """Name the models, toolgroups, tools and shields of an agent that do not exist, in a header of the response."""
    try:
        missing = await explain_missing_names(config, tools)
    except StintError as error:  # the agent is stored, and the first turn says it
        logger.warning("The names of an agent were not checked", extra={"error": error.message})
        return
    if missing:
        add_warnings(request.scope, [f"Turns of the agent will fail: {each}" for each in missing])
