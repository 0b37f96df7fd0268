"""Messages that wait, which no request of a free session or conversation makes."""

import asyncio
from collections.abc import Mapping

import httpx
from tests.api.isolation.belongings import message, post
from tests.api.isolation.warm_process import WarmProcess

from stint.caller import set_tenant
from stint.domain.ids import name_of
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.openai.response_requests import CreateResponse


def create_waiting(process: WarmProcess, tenant: str, http: httpx.Client, ids: Mapping[str, str]) -> dict[str, str]:
    """Accept a message for a session and one for a conversation of a tenant, and return their ids."""
    agent, marker = ids["agent_id"], f"marmalade of {tenant}"
    session = post(http, f"/v1/agents/{agent}/session", {"session_name": "busy"})["session_id"]
    conversation = post(http, "/v1/conversations", {})["id"]
    turn = {"messages": [{"role": "user", "content": marker}], "when_busy": "enqueue"}
    response = {"model": "scripted/demo", "input": [message(marker)], "conversation": conversation}

    async def accept() -> tuple[str, str]:
        set_tenant(tenant)
        turns = process.composition.make_services(tenant).turn_requests.make_admission(agent, session)
        responses = process.composition.make_openai_services(tenant).response_requests.make_admission(conversation)
        body = CreateResponse.model_validate(response | {"when_busy": "enqueue"})
        return await turns.accept(TurnCreateRequest.model_validate(turn)), await responses.accept(body)

    waiting_turn, waiting_response = asyncio.run(accept())
    return {
        "waiting_session_id": session,
        "waiting_turn_id": waiting_turn,
        "waiting_conversation_id": conversation,
        "waiting_message_id": waiting_response,
        "waiting_response_id": name_of("resp", waiting_response),
    }
