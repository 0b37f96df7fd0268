"""Responses whose history is compacted automatically."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.script_model import words_of
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud
from tests.window_model import WindowModel

from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError
from stint.domain.openai.items import CompactionItem, FunctionCall, Message
from stint.domain.openai.opaque import CompactedContext, OpaqueReader
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.stored_messages import SUMMARY

MANAGED = {"context_management": [{"type": "compaction", "compact_threshold": 1_000}]}
LONG = "x" * 3_000


def make_process(cloud: Cloud, tenant: str, model: WindowModel, **settings: Any) -> WorkerFixture:
    return WorkerFixture(cloud, tenant, model, **settings)


def text_of(response: Response) -> str:
    return "".join(part.text for item in response.output if isinstance(item, Message) for part in item.content)  # type: ignore[union-attr]


def kinds_of(response: Response) -> list[str]:
    return [item.type for item in response.output]


def content_of(response: Response) -> CompactedContext:
    [item] = [item for item in response.output if isinstance(item, CompactionItem)]
    return OpaqueReader().read(item.encrypted_content, CompactedContext)


async def follow(process: WorkerFixture, before: dict[str, Any], said: Any, **fields: Any) -> Response:
    """Continue a chain or a conversation, and remember the new response in `before`."""
    response = (await Responder(process).respond(said, **(MANAGED | before | fields))).response
    assert response.status == "completed", response.error
    if "conversation" not in before:
        before["previous_response_id"] = response.id
    return response


@pytest.fixture(params=["chain", "conversation"])
async def before(request: pytest.FixtureRequest, cloud: Cloud, tenant: str) -> dict[str, Any]:
    if request.param == "chain":
        return {}
    return {"conversation": await make_process(cloud, tenant, WindowModel(10_000)).conversation()}


async def test_a_history_above_the_threshold_is_compacted_once(
    cloud: Cloud, tenant: str, before: dict[str, Any]
) -> None:
    model = WindowModel(10_000)
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")

    second = await follow(process, before, LONG)
    third = await follow(process, before, "recall plums")

    assert kinds_of(second) == ["compaction", "message"]
    assert (kinds_of(third), text_of(third)) == (["message"], "fact: plums 7")
    assert len(model.summaries) == 1
    assert [words_of(message) for message in model.answered[1].messages] == [f"{SUMMARY}\nfact: plums 7", LONG]
    assert [words_of(message) for message in model.answered[2].messages] == [
        f"{SUMMARY}\nfact: plums 7",
        LONG,
        "Fine",
        "recall plums",
    ]


async def test_a_history_below_the_threshold_or_without_the_field_stays_whole(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(10_000), dict[str, Any]()
    process = make_process(cloud, tenant, model)

    for _ in range(3):
        await follow(process, before, "Hello")
    await follow(process, before, LONG, context_management=None)
    await follow(process, before, LONG, context_management=None)

    assert model.summaries == []


async def test_another_process_sees_the_same_context(cloud: Cloud, tenant: str, before: dict[str, Any]) -> None:
    model = WindowModel(10_000)
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")
    await follow(process, before, LONG)

    await follow(process.other_process(model), before, "Hello")
    await follow(process, before, "Hello")

    cold, warm = model.answered[-2].messages, model.answered[-1].messages
    assert warm[: len(cold)] == cold
    assert cold[: len(model.answered[-3].messages)] == model.answered[-3].messages


async def test_rounds_of_tools_are_compacted_within_a_response(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(10_000), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    process.fake_mcp.output = f"fact: bought 3\n{LONG}"
    await follow(process, before, f"fact: plums 7\n{LONG}")

    second = await follow(process, before, "run buy", tools=[MCP_TOOL])

    assert kinds_of(second) == ["mcp_list_tools", "mcp_call", "compaction", "message"]
    assert [words_of(message) for message in model.answered[-1].messages] == [
        f"{SUMMARY}\nfact: plums 7",
        "run buy",
        "",
        f"fact: bought 3\n{LONG}",
    ]
    assert text_of(await follow(process, before, "recall bought")) == "fact: bought 3"
    assert text_of(await follow(process, before, "recall plums")) == "fact: plums 7"


async def test_a_call_of_the_client_keeps_its_result_and_the_request(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(10_000), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}", tools=[FUNCTION])
    asked = await follow(process, before, "run ask_user", tools=[FUNCTION])
    [call] = [item for item in asked.output if isinstance(item, FunctionCall)]

    output = {"type": "function_call_output", "call_id": call.call_id, "output": LONG}
    answered = await follow(process, before, [output], tools=[FUNCTION])

    assert kinds_of(answered) == ["compaction", "message"]
    assert [words_of(message) for message in model.answered[-1].messages] == [
        f"{SUMMARY}\nfact: plums 7",
        "run ask_user",
        "",
        LONG,
    ]


async def test_a_client_that_sends_all_items_again_is_not_compacted_again(cloud: Cloud, tenant: str) -> None:
    model = WindowModel(10_000)
    responder = Responder(make_process(cloud, tenant, model))
    items: list[Any] = []

    for said in (f"fact: plums 7\n{LONG}", LONG, "Hello", "recall plums"):
        items.append({"role": "user", "content": said})
        response = (await responder.respond(items, store=False, **MANAGED)).response
        items += [item.model_dump(mode="json") for item in response.output]

    assert len(model.summaries) == 1
    assert text_of(response) == "fact: plums 7"


async def test_a_client_may_drop_the_items_before_a_compaction(cloud: Cloud, tenant: str) -> None:
    model = WindowModel(10_000)
    responder = Responder(make_process(cloud, tenant, model))
    old = [
        {"role": "user", "content": f"fact: plums 7\n{LONG}"},
        {"role": "assistant", "content": "Fine"},
        {"role": "user", "content": f"fact: pears 8\n{LONG}"},
    ]
    response = (await responder.respond(old, store=False, **MANAGED)).response
    kept = [item.model_dump(mode="json") for item in response.output]

    for word in ("plums", "pears"):
        again = [*kept, {"role": "user", "content": f"recall {word}"}]
        assert text_of((await responder.respond(again, store=False, **MANAGED)).response).startswith(f"fact: {word}")


async def test_a_forged_compaction_is_refused(cloud: Cloud, tenant: str) -> None:
    model = WindowModel(10_000)
    responder = Responder(make_process(cloud, tenant, model))
    old = [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": "Fine"},
        {"role": "user", "content": LONG},
    ]
    item = (await responder.respond(old, **MANAGED)).response.output[0].model_dump(mode="json")
    forged = item["encrypted_content"][:-8] + "AAAAAAAA"

    with pytest.raises(InvalidRequest) as refused:
        await responder.respond([item | {"encrypted_content": forged}, {"role": "user", "content": "Hi"}])

    assert refused.value.param == "input[0].encrypted_content"


async def test_without_a_threshold_the_model_decides(cloud: Cloud, tenant: str, before: dict[str, Any]) -> None:
    model, auto = WindowModel(1_200), {"context_management": [{"type": "compaction"}]}
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}", **auto)

    second = await follow(process, before, LONG, **auto)

    assert kinds_of(second) == ["compaction", "message"]
    assert text_of(await follow(process, before, "recall plums", **auto)) == "fact: plums 7"


async def test_a_model_with_shorter_tokens_than_estimated_does_not_fail(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(3_200, characters=1), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")

    assert kinds_of(await follow(process, before, "Hello " * 50)) == ["compaction", "message"]


async def test_a_summary_that_fails_changes_nothing_while_the_input_fits(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(10_000, failures=[ModelError("Busy.")]), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")

    second = await follow(process, before, LONG)

    assert (second.status, kinds_of(second)) == ("completed", ["message"])
    assert kinds_of(await follow(process, before, "recall plums")) == ["compaction", "message"]


async def test_an_input_that_does_not_fit_without_its_summary_fails_as_before(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(1_000, failures=[ModelError("Busy.")]), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    await follow(process, before, LONG)

    run = await Responder(process).start(LONG, **(MANAGED | before))
    await Responder(process).play(run)

    assert isinstance(run.error, ContextLengthExceeded)


async def test_the_summary_is_a_part_of_the_usage_but_not_of_the_longest_answer(cloud: Cloud, tenant: str) -> None:
    model, before = WindowModel(10_000), dict[str, Any]()
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")

    second = await follow(process, before, LONG, max_output_tokens=16)

    assert second.status == "completed"
    assert second.usage is not None
    assert second.usage.output_tokens == 10
    assert model.answered[-1].decoding.max_tokens == 16


async def test_the_chain_is_read_back_to_the_compaction_only(cloud: Cloud, tenant: str, before: dict[str, Any]) -> None:
    model = WindowModel(10_000)
    process = make_process(cloud, tenant, model, history=12_000)
    for _ in range(40):
        response = await follow(process, before, LONG)
        assert response.status == "completed"
    process = make_process(cloud, tenant, model, history=12_000)
    assert (await follow(process, before, "Hello")).status == "completed"


async def test_a_background_response_is_compacted(cloud: Cloud, tenant: str, before: dict[str, Any]) -> None:
    model = WindowModel(10_000)
    process = make_process(cloud, tenant, model)
    await follow(process, before, f"fact: plums 7\n{LONG}")

    second = await process.finished(LONG, **(MANAGED | before))

    assert kinds_of(second) == ["compaction", "message"]


@pytest.mark.parametrize(
    "value",
    [
        [{"type": "trimming"}],
        [{"type": "compaction", "compact_threshold": 999}],
        [{"type": "compaction", "compact_threshold": "many"}],
        [{"type": "compaction"}, {"type": "compaction"}],
        [{"compact_threshold": 1_000}],
        {"type": "compaction"},
    ],
)
def test_unknown_or_small_settings_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        CreateResponse.model_validate({"model": "m", "input": "Hi", "context_management": value})

    assert refused.value.errors()[0]["loc"][0] == "context_management"
