"""A conversation with an agent that has a client tool, using only llama-stack-client.

pip install llama-stack-client==0.2.12 fire requests    # it imports the last two but does not declare them
python docs/examples/conversation.py http://127.0.0.1:8321
"""

import logging
import os
import sys

from llama_stack_client import Agent, LlamaStackClient
from llama_stack_client.lib.agents.client_tool import client_tool

logging.disable(logging.INFO)


@client_tool
def get_boiling_point(liquid: str, celsius: bool = True) -> int:
    """Get the boiling point of a liquid.

    :param liquid: name of the liquid
    :param celsius: whether to answer in Celsius
    :returns: the boiling point
    """
    return -100 if celsius else -148


def hold_conversation(base_url: str) -> None:
    client = LlamaStackClient(base_url=base_url, api_key=os.environ.get("STINT_API_KEY"))
    model = client.models.list()[0].identifier
    agent = Agent(
        client,
        model=model,
        instructions="Answer briefly.",
        tools=[get_boiling_point],
        enable_session_persistence=True,
    )
    session_id = agent.create_session("chemistry")
    question = [{"role": "user", "content": 'Ask get_boiling_point {"liquid": "polyjuice"}'}]

    print("-- streamed")
    for chunk in agent.create_turn(question, session_id=session_id):
        payload = chunk.event.payload
        if payload.event_type != "step_progress":
            print(" ".join([payload.event_type, getattr(payload, "step_type", "")]).strip())
        elif payload.delta.type == "text":
            print("  text:", payload.delta.text.strip())
        else:
            print("  call:", payload.delta.tool_call.tool_name, payload.delta.tool_call.arguments)
    turn = payload.turn
    print("answer:", turn.output_message.content)

    print("-- not streamed")
    resource = client.agents.turn
    ids = {"agent_id": agent.agent_id, "session_id": session_id}
    paused = resource.create(**ids, messages=question, stream=False)
    print("stop_reason:", paused.output_message.stop_reason)
    responses = [get_boiling_point.run([paused.output_message])]
    done = resource.resume(**ids, turn_id=paused.turn_id, tool_responses=responses, stream=False)
    print("answer:", done.output_message.content)

    print("-- read back")
    session = client.agents.session.retrieve(**ids)
    print("turns:", [stored.turn_id for stored in session.turns] == [turn.turn_id, done.turn_id])
    print("steps:", [step.step_type for step in resource.retrieve(**ids, turn_id=turn.turn_id).steps])
    step = client.agents.steps.retrieve(**ids, turn_id=turn.turn_id, step_id=turn.steps[1].step_id).step
    print("tool answered:", step.tool_responses[0].content)

    client.agents.session.delete(**ids)
    client.agents.delete(agent.agent_id)
    agents = client.get("/v1/agents", cast_to=object)["data"]
    print("deleted:", agent.agent_id not in [known["agent_id"] for known in agents])


if __name__ == "__main__":
    hold_conversation(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321")
