from typing import Any

import pytest

from stint.domain.content import Content
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.limits import MAX_RESULT_BYTES
from stint.domain.tools import ToolCall
from stint.loop.result_budget import ResultBudget
from stint.loop.toolbox import ServerTool, Toolbox
from stint.tools.outcomes import REFUSED_BYTES, too_large
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

TOOLBOX = Toolbox({name: ToolSignature(name, "", {}) for name in ("add", "sub")})


def call(name: str, arguments: str | None = None) -> ToolCall:
    return ToolCall(call_id="c", tool_name=name, arguments={} if arguments is None else arguments)


async def keep(_: Content) -> str:
    raise AssertionError("nothing is too long here")


def test_calls_of_known_tools_with_an_object_are_the_clients() -> None:
    assert TOOLBOX.is_for_client(call("add"))
    assert not TOOLBOX.is_for_client(call("nosuch"))
    assert not TOOLBOX.is_for_client(call("add", "[1]"))


def test_the_client_approves_calls_whose_arguments_are_an_object() -> None:
    toolbox = Toolbox(approvals=frozenset({"fetch"}))

    assert toolbox.is_for_client(call("fetch"))
    assert not toolbox.is_for_client(call("fetch", "[1]"))
    assert not toolbox.is_run_by_client(call("fetch"))


async def test_a_refusal_tells_the_model_what_there_is() -> None:
    refusal = await TOOLBOX.respond(call("nosuch"), "k", keep)

    assert refusal.content == "There is no tool named 'nosuch'. The tools are: add, sub."
    assert refusal.metadata == {"error": True}


async def test_arguments_that_are_no_object_are_told_to_the_model() -> None:
    refusal = await TOOLBOX.respond(call("add", "[1]"), "k", keep)

    assert "are not a JSON object" in str(refusal.content)
    assert refusal.metadata == {"error": True}


class Large:
    """A provider of one tool, whose every response is too large; `raises` says how that is reported."""

    def __init__(self, *, raises: bool) -> None:
        self.raises = raises
        self.calls = 0

    async def check(self, toolgroup: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.calls += 1
        if self.raises:
            raise InvalidRequest("The response is too large.", code="url_too_large")
        return too_large("The response is too large.")


@pytest.mark.parametrize("raises", [False, True])
async def test_responses_that_are_too_large_use_up_the_budget_of_results(raises: bool) -> None:
    provider, budget = Large(raises=raises), ResultBudget()
    toolbox = Toolbox({}, {"fetch": ServerTool(ToolSignature("fetch", "", {}), Toolgroup("g", "large"), provider)})

    answers = [await toolbox.respond(call("fetch"), f"k{count}", keep, budget) for count in range(20)]

    assert provider.calls == MAX_RESULT_BYTES // REFUSED_BYTES
    assert answers[0].content == "The response is too large."
    assert str(answers[-1].content).startswith("The tool did not run: the tools have returned 8 MB")
