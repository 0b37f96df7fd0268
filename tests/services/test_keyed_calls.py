"""Cache keys of model calls whose server takes one: what they have in common, and what they cost."""

from typing import Any

import pytest
from tests.script_model import deadline, said, script
from tests.services.responses.responder import Responder
from tests.services.turn_fixture import TurnFixture
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.response_requests import CompactRequest


@pytest.fixture
def _with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    monkeypatch.setattr(WorkerFixture, "with_cache_keys", frozenset({"test"}))


class Keyed:
    """A process whose model is asked for responses and chat completions. `keys` are those of its calls."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.model = script(*[said() for _ in range(8)])
        self.process = WorkerFixture(cloud, tenant, self.model)
        self.responder = Responder(self.process)

    async def respond(self, **fields: Any) -> tuple[str, str]:
        """Create a response, and return its id and the key of its call."""
        response = (await self.responder.respond(**fields)).response
        return response.id, self.model.requests[-1].cache_key

    async def compact(self, **fields: Any) -> str:
        request = CompactRequest.model_validate({"model": "test/m"} | fields)
        await self.process.services.compaction.compact(request, deadline(30))
        return self.model.requests[-1].cache_key

    async def chat(self, **fields: Any) -> str:
        body = {"model": "test/m", "messages": [{"role": "user", "content": "Hello"}]} | fields
        chat = self.process.services.chat
        run = await chat.start(ChatCompletionRequest.model_validate(body), deadline(30))
        async for _ in chat.run(run):
            pass
        return self.model.requests[-1].cache_key


@pytest.fixture
def keyed(cloud: Cloud, tenant: str, _with_keys: None) -> Keyed:
    return Keyed(cloud, tenant)


async def test_the_responses_of_a_chain_have_one_key_and_other_chains_another(keyed: Keyed) -> None:
    first, key = await keyed.respond()
    second, of_second = await keyed.respond(previous_response_id=first)
    _, of_third = await keyed.respond(previous_response_id=second, store=False)
    _, of_other = await keyed.respond()

    assert key == of_second == of_third
    assert of_other not in ("", key)


async def test_the_responses_of_a_conversation_have_one_key(keyed: Keyed) -> None:
    conversation = await keyed.process.conversation()
    keys = [(await keyed.respond(conversation=conversation))[1] for _ in range(2)]
    keys.append((await keyed.respond(conversation=await keyed.process.conversation()))[1])

    assert keys[0] == keys[1] != keys[2]


async def test_a_background_response_has_the_key_of_its_chain(keyed: Keyed) -> None:
    first, key = await keyed.respond()
    await keyed.process.finished(previous_response_id=first)

    assert keyed.model.requests[-1].cache_key == key


async def test_the_key_of_a_caller_comes_first_and_is_not_sent_itself(keyed: Keyed) -> None:
    first, key = await keyed.respond(prompt_cache_key="plums")
    _, of_second = await keyed.respond(prompt_cache_key="plums", previous_response_id=first)
    conversation = await keyed.process.conversation()
    _, in_conversation = await keyed.respond(prompt_cache_key="plums", conversation=conversation)
    of_chat = await keyed.chat(prompt_cache_key="plums")

    assert key == of_second == in_conversation == of_chat
    assert "plums" not in key
    assert await keyed.chat(prompt_cache_key="pears") != key
    assert (await keyed.responder.get(first)).prompt_cache_key == "plums"


async def test_a_compaction_has_the_key_of_its_chain_or_its_caller(keyed: Keyed) -> None:
    first, key = await keyed.respond()
    _, of_caller = await keyed.respond(prompt_cache_key="plums")

    assert await keyed.compact(previous_response_id=first) == key
    assert await keyed.compact(input="Hello") == await keyed.chat()
    assert await keyed.compact(input="Hello", prompt_cache_key="plums") == of_caller
    assert await keyed.compact(previous_response_id=first, prompt_cache_key="plums") == of_caller


async def test_single_calls_have_the_key_of_their_caller(keyed: Keyed) -> None:
    keys = {await keyed.chat(), await keyed.chat(), (await keyed.respond(store=False))[1]}

    assert len(keys) == 1
    assert keys != {""}


async def test_two_tenants_with_one_key_of_their_own_have_two(cloud: Cloud, tenant: str, keyed: Keyed) -> None:
    other = Keyed(cloud, f"{tenant}b")

    assert await keyed.chat(prompt_cache_key="plums") != await other.chat(prompt_cache_key="plums")


async def test_the_process_reads_its_secret_once(cloud: Cloud, keyed: Keyed) -> None:
    await keyed.chat()
    cloud.forget()
    await keyed.chat()
    await keyed.respond(store=False)
    counted = cloud.calls.copy()
    cloud.forget()
    await keyed.respond(store=False)

    assert counted == cloud.calls + cloud.calls


async def test_a_key_costs_the_first_turn_of_a_process_one_read(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process makes the tenant's secret, and the second one reads it. A third has a model without keys."""
    monkeypatch.setattr(TurnFixture, "with_cache_keys", frozenset({"test"}))
    first = await TurnFixture(cloud.store, tenant, script(said())).open()
    await first.turn()
    counted = []
    for providers in (frozenset({"test"}), frozenset[str]()):
        monkeypatch.setattr(TurnFixture, "with_cache_keys", providers)
        process = first.other_process(script(said()))
        cloud.forget()
        await process.turn()
        counted.append(cloud.calls.copy())

    assert counted[0] - counted[1] == {"GetItem": 1}


async def test_a_model_whose_server_takes_no_key_gets_none(cloud: Cloud, tenant: str) -> None:
    keyed = Keyed(cloud, tenant)

    assert await keyed.chat(prompt_cache_key="plums") == ""
    assert (await keyed.respond(prompt_cache_key="plums"))[1] == ""
    assert [item for item in cloud.items(tenant) if "signing_key" in str(item)] == []
