"""Requests that a stateless server sends back in place of a result: what its client has to answer before.

    elicitation/create, a form    the turn waits for its client (`stint.domain.elicitations`)
    elicitation/create, a URL     refused: a link of a foreign server, which asks for a login, is not shown
    sampling, roots               refused: Stint offers servers no model and no files
    nothing but a state           the call is sent again with it after a short while
    nothing                       refused: without a state, the call would start again

Only the first one is among the capabilities that Stint declares. Outside of a turn, nobody could answer: there Stint
declares none, and a server that asks all the same has failed.
"""

from typing import Any

from stint.domain.elicitations import MOST_FORMS, MOST_STATE, UnusableForm, describe, key_of_form, read_form
from stint.domain.tools import AskedInput
from stint.tools.mcp.results import ServerRequest, ServerResult
from stint.tools.outcomes import failure
from stint.tools.port import ToolOutcome

INPUT_REQUIRED = "input_required"
FORM = "elicitation/create"


def asks_nothing(result: ServerResult) -> bool:
    """Return whether a server only wants to be asked again, with the state of the call."""
    return result.result_type == INPUT_REQUIRED and not result.input_requests and bool(result.request_state)


def read_question(result: ServerResult, *, can_ask: bool) -> ToolOutcome:
    """Return the outcome of a call that asks: what the client gets, or a failure that says what was refused."""
    requests = result.input_requests or {}
    if not requests and not result.request_state:
        return failure("The MCP server asks for input without a request and without a state, so the call cannot go on.")
    if not requests:
        return failure("The MCP server did not finish the call, however often it was asked again.")
    refused = [name_of(each) for each in requests.values() if each.method != FORM or each.params.get("mode") == "url"]
    if refused:
        return failure(
            f"The MCP server asked for {refused[0]}, which Stint does not offer. The call did not finish. Nothing was "
            "sent to the server."
        )
    if not can_ask:
        return failure("The MCP server asks the user for input, which only a turn of an agent can wait for.")
    state = result.request_state
    try:
        if len(requests) > MOST_FORMS or len(state or "") + sum(map(len, requests)) > MOST_STATE:
            raise UnusableForm(f"there are more than {MOST_FORMS} forms, or its state or its keys are too long")
        forms = {key_of_form(number): read_form(each.params) for number, each in enumerate(requests.values(), 1)}
        asked = AskedInput(forms=forms, state=state, server_keys=dict(zip(forms, requests, strict=True)))
    except UnusableForm as error:
        return failure(f"The MCP server asks the user with a form that cannot be shown: {error}.")
    return ToolOutcome(content=describe(asked), asks=asked)


def name_of(request: ServerRequest) -> str:
    """Return what a request is for, by its method. A method is a server's text."""
    mode: Any = request.params.get("mode")
    if request.method == FORM:
        return f"{FORM} with the mode {str(mode)[:20]}"
    return repr(request.method[:60])
