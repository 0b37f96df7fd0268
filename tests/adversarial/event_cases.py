"""Hostile answers of models by the Responses API. After each, its session or response must still be usable."""

from functools import cache, partial

from tests.adversarial.answer_cases import GO, PREFIX, parse_strictly, through_responses, through_turns
from tests.adversarial.case import CASES
from tests.adversarial.hostile_answers import ARGUMENTS
from tests.adversarial.hostile_events import make_responses
from tests.adversarial.peer import serves
from tests.servers.chat_completions import error
from tests.servers.model_responses import message, stream
from tests.servers.model_responses_faults import find_fault
from tests.servers.scripted_http import Received, Reply

responses = cache(lambda: make_responses(ARGUMENTS))
ROUTES = {"turns": through_turns, "responses": through_responses}
GROUPS = 2


@serves("/v1/responses")
def respond_badly(received: Received) -> Reply:
    """Answer the message GO as the id of the model says, and any other one like a model that refuses what is wrong."""
    body = parse_strictly(received.body)
    last = body["input"][-1]
    if last["type"] == "message" and last["content"] == GO:
        return responses()[body["model"].removeprefix(PREFIX)]
    fault = find_fault(body, {}, raw=True)
    is_about_reasoning = fault is not None and fault[1] == "encrypted_content"
    return stream(message("ok")) if fault is None or is_about_reasoning else error(400, fault[0])


for route, make in ROUTES.items():
    for part in range(GROUPS):
        names = list(responses())[part::GROUPS]
        CASES[f"events_of_models_{route}_{part}"] = partial(make, names, streamed=part % 2 == 1, provider="events")
