"""Turns of sessions with a budget."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.script_model import Part, Script, deadline, script, until
from tests.services.polling import poll_until
from tests.services.session_budget_fixture import (
    DOLLARS,
    TOKENS,
    USED,
    LimitedSession,
    answered,
    calling,
)
from tests.services.turn_fixture import keep_running
from tests.services.turns.test_turn_costs import write_units
from tests.services.turns.test_turn_tools import FakeTools
from tests.services.turns.test_waiting_turns import admission, line, message
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Forbidden, QuotaExceeded
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.sessions import ForkFrom
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.principals import Budgets, Principal
from stint.domain.session_budgets import SessionBudget, SpentBudget
from stint.domain.tasks import WaitingTask
from stint.services.runs.run_handle import RequestContext
from stint.tools.port import Invocation, ToolOutcome


@pytest.fixture(autouse=True)
def _without_principal() -> Iterator[None]:
    yield
    set_principal(None)


class Making:
    """Makes sessions of one tenant."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.cloud, self.tenant = cloud, tenant

    async def session(self, model: Script, *client_tools: str, **budget: Any) -> LimitedSession:
        return await LimitedSession(self.cloud, self.tenant, model).begin(*client_tools, **budget)


@pytest.fixture
def making(cloud: Cloud, tenant: str) -> Making:
    return Making(cloud, tenant)


def long_answer(tokens: int) -> list[Part]:
    used = Usage(input_tokens=10, output_tokens=tokens, total_tokens=10 + tokens)
    return [*[TextChunk("word")] * tokens, Finished(FinishReason.stop, used)]


async def test_a_session_shows_what_its_turns_have_spent_and_what_is_left(making: Making) -> None:
    fixture = await making.session(script(answered(), answered()), max_dollars=5, max_tokens=1_000)
    assert await fixture.budget() == SpentBudget(
        max_dollars=5,
        spent_dollars=0,
        remaining_dollars=5,
        max_tokens=1_000,
        spent_tokens=0,
        remaining_tokens=1_000,
    )

    turns = [await fixture.turn(), await fixture.turn()]

    budget = await fixture.budget()
    dollars = sum(turn.receipt.dollars or 0 for turn in turns if turn.receipt)
    assert budget.spent_dollars == pytest.approx(dollars, abs=1e-5)
    assert budget.remaining_dollars == pytest.approx(5 - dollars, abs=1e-5)
    assert (budget.spent_tokens, budget.remaining_tokens) == (2 * TOKENS, 1_000 - 2 * TOKENS)


async def test_a_session_shows_only_what_is_limited(making: Making) -> None:
    fixture = await making.session(script(), max_tokens=7)

    assert (await fixture.budget()).model_dump() == {"max_tokens": 7, "spent_tokens": 0, "remaining_tokens": 7}
    unlimited = await making.session(script())
    assert (await unlimited.sessions.get(unlimited.agent_id, unlimited.session_id)).budget is None


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"max_dollars": DOLLARS}, r"has spent 0\.30\d* of the 0\.3 dollars of its budget.*larger max_dollars"),
        ({"max_tokens": TOKENS}, r"has spent 120 of the 120 tokens of its budget\. Create a session with a larger max"),
    ],
)
async def test_a_turn_of_a_spent_session_is_refused_before_it_starts(
    making: Making, budget: dict[str, float], said: str
) -> None:
    fixture = await making.session(script(answered(), answered()), **budget)
    await fixture.turn()

    for _ in range(2):
        with pytest.raises(QuotaExceeded, match=f"Session {fixture.session_id} {said}"):
            await fixture.start()

    assert len(fixture.script.requests) == 1
    assert len(await fixture.stored()) == 1
    assert await fixture.lease_turn() is None


async def test_a_refused_turn_spends_nothing(making: Making) -> None:
    fixture = await making.session(script(answered()), max_dollars=DOLLARS)
    await fixture.turn()
    before = await fixture.budget()

    with pytest.raises(QuotaExceeded):
        await fixture.start()

    assert await fixture.budget() == before
    assert before.remaining_dollars == 0


@pytest.mark.parametrize("budget", [{"max_tokens": TOKENS + 5}, {"max_dollars": DOLLARS + 0.001}])
async def test_a_turn_fails_between_two_model_calls_when_less_is_left_than_the_next_one_needs(
    making: Making, budget: dict[str, float]
) -> None:
    fixture = await making.session(script(calling("add"), answered()), **budget)

    turn = await fixture.turn("Add these numbers for me, will you?")

    assert (turn.status, turn.error and turn.error.code) == (TurnStatus.failed, "insufficient_quota")
    assert turn.error is not None
    assert "this call needs at least" in turn.error.message
    assert [step.step_type for step in turn.steps] == ["inference", "tool_execution"]
    assert len(fixture.script.requests) == 1


async def test_an_answer_ends_when_the_money_of_its_session_does(making: Making) -> None:
    fixture = await making.session(script(long_answer(5_000)), max_dollars=20)  # 2,000 tokens of an answer

    turn = await fixture.turn()

    assert turn.output_message.stop_reason == "out_of_tokens"
    assert 1_900 <= len(str(turn.output_message.content)) // 4 <= 2_500  # a quarter of a top-up is not waited for
    assert 19 <= ((await fixture.budget()).spent_dollars or 0) <= 25.1


async def test_a_model_gets_the_tokens_that_are_left_as_its_longest_answer(making: Making) -> None:
    cut = Finished(FinishReason.length, Usage(input_tokens=5, output_tokens=90, total_tokens=95))
    fixture = await making.session(script([TextChunk("Hi"), cut]), max_tokens=100)

    turn = await fixture.turn()

    limit = fixture.script.requests[0].decoding.max_tokens
    assert limit is not None
    assert 60 <= limit < 100  # without the estimate of the input
    assert turn.output_message.stop_reason == "out_of_tokens"


async def test_a_lower_limit_of_the_caller_stays(making: Making) -> None:
    fixture = await making.session(script(answered()), max_tokens=100_000)
    config = {"model": "test/m", "instructions": "", "sampling_params": {"max_tokens": 77}}
    fixture.agent_id = await fixture.agents.create(AgentConfig.model_validate(config))
    fixture.session_id = await fixture.sessions.create(
        fixture.agent_id, "talk", budget=SessionBudget(max_tokens=100_000)
    )

    await fixture.turn()

    assert fixture.script.requests[0].decoding.max_tokens == 77


async def test_a_call_that_ignores_the_limit_is_the_last_one(making: Making) -> None:
    fixture = await making.session(script(long_answer(5_000), answered()), max_tokens=1_000)

    assert (await fixture.turn()).status is TurnStatus.completed

    assert (await fixture.spent(), (await fixture.budget()).remaining_tokens) == (5_010, 0)
    with pytest.raises(QuotaExceeded, match="has spent 5010 of the 1000 tokens"):
        await fixture.start()


async def test_a_budget_costs_no_read_and_no_write(making: Making, cloud: Cloud) -> None:
    found = []
    for budget in ({}, {"max_dollars": 1_000, "max_tokens": 100_000}):
        fixture = await making.session(script(*[answered()] * 3), **budget)
        await fixture.turn()
        cloud.forget()
        await fixture.turn()
        found.append((dict(cloud.calls), write_units(cloud), cloud.units["GetItem"]))
        cloud.forget()
        await fixture.heir(script(answered())).turn()
        found[-1] += (dict(cloud.calls), write_units(cloud))  # type: ignore[assignment]

    assert found[0] == found[1]
    assert found[0][1] == 4


async def test_the_budgets_of_the_caller_hold_besides_that_of_the_session(making: Making) -> None:
    budgets = Budgets(dollars_per_month=100, tokens_per_minute=100_000)
    set_principal(Principal(making.tenant, "s", frozenset({"use"}), "k1", budgets=budgets))
    fixture = await making.session(script(answered(), answered()), max_dollars=5)

    turn = await fixture.turn()

    assert turn.receipt is not None
    items = [item for item in making.cloud.items(making.tenant) if "#budget:key:k1" in item["pk"]["S"]]
    assert int(items[0]["microdollars"]["N"]) == pytest.approx((turn.receipt.dollars or 0) * 1e6, abs=2)
    assert (await fixture.budget()).spent_dollars == pytest.approx(turn.receipt.dollars, abs=1e-5)


async def test_a_spent_key_is_refused_although_its_session_has_money(making: Making) -> None:
    principal = Principal(making.tenant, "s", frozenset({"use"}), "k1", budgets=Budgets(dollars_per_month=DOLLARS))
    set_principal(principal)
    fixture = await making.session(script(answered(), answered()), max_dollars=5)
    await fixture.turn()

    with pytest.raises(QuotaExceeded, match="API key 'k1'"):
        await fixture.start()


async def test_a_session_with_a_limit_of_money_refuses_a_model_without_a_price(cloud: Cloud, tenant: str) -> None:
    fixture = await LimitedSession(cloud, tenant, script(answered()), prices="").begin(max_dollars=5)

    with pytest.raises(Forbidden, match="has no price") as refused:
        await fixture.start()

    assert refused.value.code == "model_without_price"
    assert await fixture.stored() == []
    other = await LimitedSession(cloud, tenant, script(answered()), prices="").begin(max_tokens=500)
    assert (await other.turn()).status is TurnStatus.completed


async def test_the_second_of_two_turns_in_line_is_refused_when_the_first_has_spent_the_budget(making: Making) -> None:
    fixture = await making.session(script(answered(), answered()), max_tokens=TOKENS)
    ids = [await admission(fixture).accept(message(text)) for text in ("one", "two")]

    first = await admission(fixture).start(ids[0], message("one"), RequestContext(deadline(600)))
    await fixture.play(first)  # type: ignore[arg-type]  # it is started here
    with pytest.raises(QuotaExceeded):
        await admission(fixture).start(ids[1], message("two"), RequestContext(deadline(600)))

    assert await line(fixture).read() == []
    turn = await fixture.get(ids[1])
    assert (turn.status, turn.error and turn.error.code) == (TurnStatus.failed, "insufficient_quota")
    assert all(isinstance(task, WaitingTask) for task in fixture.inbox.waiting)


async def test_a_message_for_a_spent_session_is_not_accepted(making: Making) -> None:
    fixture = await making.session(script(answered()), max_tokens=TOKENS)
    await fixture.turn()

    with pytest.raises(QuotaExceeded):
        await admission(fixture).accept(message("two"))

    assert (await line(fixture).read(), fixture.inbox.waiting) == ([], [])


async def test_a_running_turn_takes_no_message_once_the_budget_is_spent(making: Making) -> None:
    fixture = await making.session(script(calling("add"), answered()), max_tokens=TOKENS)
    waiting: list[str] = []

    async def act(_: Invocation) -> ToolOutcome:
        waiting.append(await admission(fixture).accept(message("and two", "merge")))
        return ToolOutcome("3")

    fixture.tools.act = act

    turn = await fixture.turn("one")

    assert (turn.status, turn.error and turn.error.code) == (TurnStatus.failed, "insufficient_quota")
    assert len(turn.input_messages) == 1
    assert [place.message_id for place in await line(fixture).read()] == waiting


async def test_a_message_that_a_running_turn_takes_is_paid_by_the_same_budget(making: Making) -> None:
    fixture = await making.session(script(calling("add"), answered()), max_tokens=1_000)

    async def act(_: Invocation) -> ToolOutcome:
        await admission(fixture).accept(message("and two", "merge"))
        return ToolOutcome("3")

    fixture.tools.act = act

    turn = await fixture.turn("one")

    assert (turn.status, len(turn.input_messages)) == (TurnStatus.completed, 2)
    assert await fixture.spent() == 2 * TOKENS


async def test_a_resumed_turn_goes_on_with_what_is_left(making: Making) -> None:
    fixture = await making.session(script(calling("ask"), answered()), "ask", max_tokens=1_000)
    turn = await fixture.turn()
    assert (turn.status, await fixture.spent()) == (TurnStatus.awaiting_input, TOKENS)

    await fixture.heir(fixture.script).resumed(turn.turn_id, ("c0", "yes"))

    assert await fixture.spent() == 2 * TOKENS


async def test_a_turn_of_a_spent_session_is_not_resumed_and_still_waits(making: Making) -> None:
    fixture = await making.session(script(calling("ask"), answered()), "ask", max_tokens=TOKENS)
    turn = await fixture.turn()

    with pytest.raises(QuotaExceeded):
        await fixture.resume(turn.turn_id, ("c0", "yes"))

    assert (await fixture.get(turn.turn_id)).status is TurnStatus.awaiting_input
    assert await fixture.spent() == TOKENS


async def test_a_fork_has_the_limits_of_its_source_and_has_spent_nothing(making: Making) -> None:
    fixture = await making.session(script(answered(), answered(), answered()), max_tokens=200)
    turn = await fixture.turn()
    source = ForkFrom(session_id=fixture.session_id, turn_id=turn.turn_id)
    forked = fixture.heir(fixture.script)
    forked.session_id = await fixture.sessions.create(fixture.agent_id, "fork", fork_from=source)
    assert (await forked.spent(), (await forked.budget()).max_tokens) == (0, 200)

    await forked.turn()

    assert (await forked.spent(), await fixture.spent()) == (TOKENS, TOKENS)
    own = SessionBudget(max_dollars=3)
    other = await fixture.sessions.create(fixture.agent_id, "fork", fork_from=source, budget=own)
    shown = (await fixture.sessions.get(fixture.agent_id, other)).budget
    assert shown is not None
    assert (shown.max_tokens, shown.max_dollars) == (None, 3)


async def test_a_turn_that_runs_long_shows_what_it_has_spent_when_its_lease_is_renewed(
    own_cloud: Cloud, tenant: str
) -> None:
    gate = asyncio.Event()

    async def act(_: Invocation) -> ToolOutcome:
        await gate.wait()
        return ToolOutcome("3")

    fixture = LimitedSession(own_cloud, tenant, script(calling("add"), answered()), FakeTools(act), lease=0.3)
    await fixture.begin(max_tokens=1_000)
    running = asyncio.create_task(fixture.turn())

    async def lease_end() -> int | None:
        return (await fixture.store.sessions.get(*fixture.ids)).lease_until

    async def is_shown() -> bool:
        return await fixture.spent() == TOKENS

    await until(lambda: bool(fixture.tools.invocations))
    await keep_running(asyncio.create_task(poll_until(is_shown)), lease_end, 0.3)
    gate.set()
    await running

    assert await fixture.spent() == 2 * TOKENS


async def test_parallel_calls_of_a_turn_share_what_is_left(making: Making) -> None:
    fixture = await making.session(script(answered(), answered()), max_tokens=TOKENS)
    run = await fixture.start()
    lease = run.log.keeper.lease
    assert lease.ledger is not None
    assert lease.ledger.tokens.opened > 0
    with pytest.raises(QuotaExceeded, match="open calls have reserved the rest"):
        lease.ledger.require()

    await fixture.play(run)

    assert lease.ledger.tokens.opened == 0
    assert await fixture.spent() == USED.total_tokens
