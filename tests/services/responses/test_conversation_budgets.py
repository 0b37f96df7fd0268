"""Responses of conversations with a budget."""

from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, deadline, script
from tests.services.session_budget_fixture import (
    DOLLARS,
    PRICES,
    TOKENS,
    LimitedConversation,
    answered,
    calling,
)
from tests.services.turns.test_turn_costs import write_units
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Forbidden, QuotaExceeded
from stint.domain.ids import name_of
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.openai.response_requests import CreateResponse
from stint.services.runs.run_handle import RequestContext
from stint.tools.port import Invocation, Toolgroup, ToolOutcome


class Making:
    """Makes conversations of one tenant."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.cloud, self.tenant = cloud, tenant

    async def conversation(self, model: Script, prices: str = PRICES, **budget: Any) -> LimitedConversation:
        fixture = WorkerFixture(self.cloud, self.tenant, model, prices=prices)
        return await LimitedConversation(fixture, model).begin(**budget)


@pytest.fixture
def making(cloud: Cloud, tenant: str) -> Making:
    return Making(cloud, tenant)


def request(talk: LimitedConversation, said: str, when_busy: str = "enqueue") -> CreateResponse:
    body = {"model": "test/m", "input": said, "conversation": talk.conversation_id, "when_busy": when_busy}
    return CreateResponse.model_validate(body)


async def test_a_conversation_shows_what_its_responses_have_spent_and_what_is_left(making: Making) -> None:
    talk = await making.conversation(script(answered(), answered()), max_dollars=5, max_tokens=1_000)

    first = await talk.answer()
    await talk.worker_fixture.run(await talk.queue())

    budget = await talk.budget()
    assert first.receipt is not None
    assert budget.spent_dollars == pytest.approx(2 * DOLLARS, abs=1e-3)
    assert budget.remaining_dollars == pytest.approx(5 - 2 * DOLLARS, abs=1e-3)
    assert (budget.spent_tokens, budget.remaining_tokens) == (2 * TOKENS, 1_000 - 2 * TOKENS)
    [listed] = (await talk.worker_fixture.services.conversations.list(None, 20, "desc")).data
    assert listed.budget == budget


@pytest.mark.parametrize("budget", [{"max_dollars": DOLLARS}, {"max_tokens": TOKENS}])
async def test_a_response_of_a_spent_conversation_is_refused_before_it_is_stored(
    making: Making, budget: dict[str, Any]
) -> None:
    talk = await making.conversation(script(answered(), answered()), **budget)
    await talk.answer()

    for _ in range(2):
        with pytest.raises(QuotaExceeded, match=f"Conversation {talk.conversation_id} has spent .* Create a conv"):
            await talk.start("Hello", **talk.fields)
        with pytest.raises(QuotaExceeded, match="Create a conversation with a larger max_"):
            await talk.queue()

    assert len(talk.script.requests) == 1
    assert talk.worker_fixture.queue.tasks == []
    page = await talk.worker_fixture.services.conversations.list_items(talk.conversation_id, None, 20, "asc")
    assert len(page.data) == 3  # with the list of the server's tools


async def test_a_response_fails_between_two_model_calls_when_the_budget_is_spent(making: Making) -> None:
    talk = await making.conversation(script(calling("buy"), answered()), max_tokens=TOKENS)

    response = await talk.answer()

    assert (response.status.value, response.error and response.error.code) == ("failed", "insufficient_quota")
    assert (len(talk.script.requests), talk.worker_fixture.fake_mcp.calls) == (1, ["buy"])
    assert await talk.spent() == TOKENS


async def test_an_answer_is_incomplete_when_the_money_of_its_conversation_ends(making: Making) -> None:
    used = Usage(input_tokens=10, output_tokens=5_000, total_tokens=5_010)
    long: list[Part] = [*[TextChunk("word")] * 5_000, Finished(FinishReason.stop, used)]
    talk = await making.conversation(script(long), max_dollars=20)

    response = await talk.answer()

    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "budget"
    assert 19 <= ((await talk.budget()).spent_dollars or 0) <= 25.1


async def test_a_conversation_with_a_limit_of_money_refuses_a_model_without_a_price(making: Making) -> None:
    talk = await making.conversation(script(answered()), prices="", max_dollars=5)

    with pytest.raises(Forbidden, match="has no price") as refused:
        await talk.start("Hello", **talk.fields)

    assert refused.value.code == "model_without_price"
    assert (await (await making.conversation(script(answered()), "", max_tokens=500)).answer()).status == "completed"


async def test_a_budget_costs_no_read_and_no_write(making: Making, cloud: Cloud) -> None:
    found = []
    budgets: list[dict[str, Any]] = [{}, {"max_dollars": 1_000, "max_tokens": 100_000}]
    for budget in budgets:
        talk = await making.conversation(script(*[answered()] * 3), **budget)
        await talk.answer()
        cloud.forget()
        await talk.answer()
        await talk.worker_fixture.run(await talk.queue())
        found.append((dict(cloud.calls), write_units(cloud), cloud.units["GetItem"], cloud.units["Query"]))

    assert found[0] == found[1]


async def test_the_second_of_two_responses_in_line_is_refused_when_the_first_has_spent_the_budget(
    making: Making,
) -> None:
    talk = await making.conversation(script(answered(), answered()), max_tokens=TOKENS)
    admission = talk.worker_fixture.services.response_requests.make_admission(talk.conversation_id)
    bodies = [request(talk, text) for text in ("one", "two")]
    ids = [await admission.accept(body) for body in bodies]

    first = await admission.start(ids[0], bodies[0], RequestContext(deadline(600)))
    await talk.play(first)  # type: ignore[arg-type]  # it is started here
    with pytest.raises(QuotaExceeded):
        await admission.start(ids[1], bodies[1], RequestContext(deadline(600)))

    shown = await talk.worker_fixture.services.response_requests.get(name_of("resp", ids[1]), ())
    assert (shown.status.value, shown.error and shown.error.code) == ("failed", "insufficient_quota")
    with pytest.raises(QuotaExceeded):
        await admission.accept(request(talk, "three"))
    assert await admission.line.read() == []


async def test_a_running_response_takes_no_message_once_the_budget_is_spent(making: Making) -> None:
    talk = await making.conversation(script(calling("buy"), answered()), max_tokens=TOKENS)
    admission = talk.worker_fixture.services.response_requests.make_admission(talk.conversation_id)

    async def invoke(_group: Toolgroup, _invocation: Invocation, /) -> ToolOutcome:
        await admission.accept(request(talk, "and two", "merge"))
        return ToolOutcome("bought")

    talk.worker_fixture.fake_mcp.invoke = invoke  # type: ignore[method-assign]

    response = await talk.answer()

    assert (response.status.value, len(await admission.line.read())) == ("failed", 1)


async def test_a_response_that_is_deleted_while_it_runs_is_counted(making: Making) -> None:
    talk = await making.conversation(script(calling("buy"), answered()), max_tokens=1_000)
    run = await talk.start("Hello", **talk.fields)

    async def invoke(_group: Toolgroup, _invocation: Invocation, /) -> ToolOutcome:
        await talk.worker_fixture.services.response_requests.delete(run.response_id)
        return ToolOutcome("bought")

    talk.worker_fixture.fake_mcp.invoke = invoke  # type: ignore[method-assign]

    await talk.play(run)
    CLOCK.move(talk.worker_fixture.lease + 1)

    assert await talk.spent() == TOKENS


async def test_a_worker_that_is_refused_ends_its_response(making: Making) -> None:
    talk = await making.conversation(script(calling("buy"), answered()), max_tokens=TOKENS)
    response_id = await talk.queue()

    await talk.worker_fixture.run(response_id)

    shown = await talk.get(response_id)
    assert (shown.status.value, shown.error and shown.error.code) == ("failed", "insufficient_quota")
    assert await talk.spent() == TOKENS
