"""Responses using only OpenAI's SDK: streamed, continued, with your own function, and in the background.

pip install openai
python docs/examples/responses.py http://127.0.0.1:8321
"""

import json
import os
import sys
import time

from openai import OpenAI
from openai.types.responses import FunctionToolParam

MODEL = "scripted/demo"
BOILING_POINT: FunctionToolParam = {
    "type": "function",
    "name": "get_boiling_point",
    "description": "Return the boiling point of a liquid.",
    "parameters": {"type": "object", "properties": {"liquid": {"type": "string"}}, "required": ["liquid"]},
    "strict": False,
}


def stream(client: OpenAI) -> str:
    """Stream a response. It is stored before its last event is sent."""
    response_id = ""
    for event in client.responses.create(model=MODEL, input="say: Hello, Ada.", stream=True):
        if event.type == "response.output_text.delta":
            print("text:", event.delta)
        elif event.type == "response.completed":
            response_id = event.response.id
    return response_id


def call_function(client: OpenAI, previous: str) -> None:
    """Continue a response, and answer the model's function call."""
    question = 'Ask get_boiling_point {"liquid": "polyjuice"}'
    asked = client.responses.create(model=MODEL, input=question, previous_response_id=previous, tools=[BOILING_POINT])
    for item in asked.output:
        if item.type == "function_call":
            print("call:", item.name, json.loads(item.arguments))
            answer = {"type": "function_call_output", "call_id": item.call_id, "output": "-100"}
            told = client.responses.create(model=MODEL, input=[answer], previous_response_id=asked.id)  # type: ignore[list-item]
            print("answer:", told.output_text)


def run_in_background(client: OpenAI) -> None:
    """Run a response in the background, and poll it until it has ended."""
    response = client.responses.create(model=MODEL, input="say: done", background=True)
    print("status:", response.status)
    while response.status in ("queued", "in_progress"):
        time.sleep(0.5)
        response = client.responses.retrieve(response.id)
    print("status:", response.status, "answer:", response.output_text)


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321"
    client = OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("STINT_API_KEY", "none"))
    previous = stream(client)
    call_function(client, previous)
    run_in_background(client)


if __name__ == "__main__":
    main()
