"""Automations of OpenAI's Agents API: sessions that begin, or get a message, at times of a schedule.

Who creates, changes or resumes an automation needs an API key, because its runs act for that key, and are refused once
the key is (`stint.services.automations`). The other routes need none.
"""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from stint.http.json_responses import document
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires
from stint.openai_agents.routes.dependencies import ListWindowDep, OpenAIAgentsServicesDep
from stint.openai_agents.schemas.automations import (
    AutomationCreateParams,
    AutomationDeleted,
    AutomationInvocationList,
    AutomationInvocationObject,
    AutomationList,
    AutomationObject,
    AutomationUpdateParams,
)

AUTOMATIONS = "/v1/agents/automations"
AUTOMATION = AUTOMATIONS + "/{automation_id}"
INVOCATIONS = AUTOMATION + "/invocations"

router = APIRouter(tags=["OpenAI Agents"], route_class=StrictRoute)


@router.post(AUTOMATIONS, response_model=AutomationObject)
@requires("use", repeated=OBJECT)
async def create_automation(
    body: Annotated[AutomationCreateParams, Body()], services: OpenAIAgentsServicesDep
) -> Response:
    """Create an automation. It runs at the times of its schedule, and not now."""
    return document(await services.automations.create(body))


@router.get(AUTOMATIONS, response_model=AutomationList)
@requires("use")
async def list_automations(
    services: OpenAIAgentsServicesDep,
    window: ListWindowDep,
    session_id: Annotated[str | None, Query(description="the session that gets the messages")] = None,
) -> Response:
    """List automations by creation, newest first; with `session_id`, those that send messages to it."""
    return document(await services.automations.list(window, session_id))


@router.get(AUTOMATION, response_model=AutomationObject)
@requires("use")
async def get_automation(automation_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Read an automation."""
    return document(await services.automations.get(automation_id))


@router.post(AUTOMATION, response_model=AutomationObject)
@requires("use")
async def update_automation(
    automation_id: str, body: AutomationUpdateParams, services: OpenAIAgentsServicesDep
) -> Response:
    """Change an automation. Its later runs act for the caller."""
    return document(await services.automations.update(automation_id, body))


@router.delete(AUTOMATION, response_model=AutomationDeleted)
@requires("use")
async def delete_automation(automation_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Delete an automation with its invocations. Its sessions stay."""
    await services.automations.delete(automation_id)
    return document(AutomationDeleted(id=automation_id))


@router.post(AUTOMATION + "/pause", response_model=AutomationObject)
@requires("use")
async def pause_automation(automation_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Pause an automation. Its sessions go on."""
    return document(await services.automations.pause(automation_id))


@router.post(AUTOMATION + "/resume", response_model=AutomationObject)
@requires("use")
async def resume_automation(automation_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Activate a paused automation. Its later runs act for the caller."""
    return document(await services.automations.resume(automation_id))


@router.post(INVOCATIONS, response_model=AutomationInvocationObject)
@requires("use", repeated=OBJECT)
async def create_automation_invocation(automation_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Run an automation now, for the caller. Its schedule stays as it is."""
    return document(await services.automations.invoke(automation_id))


@router.get(INVOCATIONS, response_model=AutomationInvocationList)
@requires("use")
async def list_automation_invocations(
    automation_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep
) -> Response:
    """List the runs of an automation in the last 30 days, newest first."""
    return document(await services.automations.list_invocations(automation_id, window))


@router.get(INVOCATIONS + "/{invocation_id}", response_model=AutomationInvocationObject)
@requires("use")
async def get_automation_invocation(
    automation_id: str, invocation_id: str, services: OpenAIAgentsServicesDep
) -> Response:
    """Read a run of an automation."""
    return document(await services.automations.get_invocation(automation_id, invocation_id))
