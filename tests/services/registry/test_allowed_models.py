"""Models that a caller may use."""

from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import script
from tests.services.recovery.test_waiting_runs import Waiting
from tests.services.turn_fixture import TurnFixture
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.apis.agents import AgentsServices
from stint.bootstrap.adapters import Adapters
from stint.caller import ModelAccess, set_principal
from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.inference import InferenceRequest
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ShieldRegisterRequest
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.paging import Window
from stint.domain.principals import ANONYMOUS
from stint.settings import Settings


@pytest.fixture
async def services(cloud: Cloud, tenant: str) -> AgentsServices:
    return TurnFixture(cloud.store, tenant, script()).services


def limit(*models: str) -> None:
    set_principal(replace(ANONYMOUS, models=models))


async def test_a_caller_is_limited_to_the_models_of_its_patterns(services: AgentsServices) -> None:
    limit("openai/gpt-*", "scripted/demo")

    assert await services.registry.route("openai/gpt-9") == "openai/gpt-9"
    for model in ("openai/o9", "bedrock/gpt-9", "openai/x/openai/gpt-9"):
        with pytest.raises(Forbidden, match=repr(model)) as refused:
            await services.registry.route(model)
        assert (refused.value.code, refused.value.param) == ("model_not_allowed", "model")


async def test_another_name_of_a_model_is_limited_as_the_model(services: AgentsServices) -> None:
    registry = services.registry
    limit()
    await registry.register_model(ModelRegisterRequest(model_id="openai/cheap", provider_model_id="scripted/dear"))
    limit("openai/*")

    with pytest.raises(Forbidden, match="'scripted/dear'"):
        await registry.route("openai/cheap")
    with pytest.raises(NotFound):
        await registry.get_model("openai/cheap")


async def test_only_allowed_models_are_listed(services: AgentsServices) -> None:
    every = [model.identifier for model in await services.registry.list_models()]
    limit("nothing/*")
    none: list[Any] = await services.registry.list_models()
    limit()

    assert every
    assert none == []
    assert [model.identifier for model in await services.registry.list_models()] == every


async def test_examples_name_the_first_configured_models_that_the_caller_may_use(services: AgentsServices) -> None:
    registry = services.registry
    limit()
    await registry.register_model(ModelRegisterRequest(model_id="openai/cheap", provider_model_id="scripted/dear"))
    default = registry.list_example_models()
    limit("hashed/*")
    limited = registry.list_example_models()
    limit("openai/cheap")

    assert default == {"llm": "scripted/demo", "embedding": "hashed/words-384"}
    assert limited == {"embedding": "hashed/words-384"}
    assert registry.list_example_models() == {}


async def test_tenant_and_caller_must_both_allow_a_model(services: AgentsServices) -> None:
    registry = services.registry
    registry.access = ModelAccess(("openai/*", "bedrock/*"))
    limit("openai/*", "scripted/*")

    assert await registry.route("openai/gpt-9") == "openai/gpt-9"
    for model in ("scripted/demo", "bedrock/nova"):
        with pytest.raises(Forbidden):
            await registry.route(model)


async def test_a_tenant_is_limited_without_a_caller_as_when_an_event_asks(services: AgentsServices) -> None:
    services.registry.access = ModelAccess(("openai/*",))

    with pytest.raises(Forbidden):
        await services.registry.route("scripted/demo")


async def test_a_shield_runs_for_every_caller_but_is_registered_by_those_who_may_use_its_model(
    services: AgentsServices,
) -> None:
    def request(name: str) -> ShieldRegisterRequest:
        return ShieldRegisterRequest(shield_id=name, provider_id="llama-guard", provider_shield_id="scripted/guard")

    await services.shields.register(request("guard"))
    limit("openai/*")

    assert len(await services.shields.find(["guard"], "input_shields")) == 1
    with pytest.raises(Forbidden, match="'scripted/guard'"):
        await services.shields.register(request("another"))


async def test_an_agent_cannot_be_created_with_a_model_that_its_caller_may_not_use(services: AgentsServices) -> None:
    limit("openai/*")

    await services.agents.create(AgentConfig(model="openai/gpt-9", instructions="Be brief."))
    with pytest.raises(Forbidden) as refused:
        await services.agents.create(AgentConfig(model="scripted/demo", instructions="Be brief."))

    assert refused.value.code == "model_not_allowed"
    assert len((await services.agents.list(Window(0, 10))).data) == 1


async def test_an_agent_with_an_unknown_model_is_refused_by_its_first_turn_only(services: AgentsServices) -> None:
    limit("openai/*")

    assert await services.agents.create(AgentConfig(model="nosuch", instructions="Be brief."))


async def test_a_message_that_must_wait_needs_the_model(cloud: Cloud, tenant: str) -> None:
    fixture = WorkerFixture(cloud, tenant, script())
    waiting, conversation = await Waiting(fixture).open(), await fixture.conversation()
    body = {"model": "test/m", "input": "Hi", "conversation": conversation, "when_busy": "enqueue"}
    limit("test/other")

    with pytest.raises(Forbidden) as of_turn:
        await waiting.accept("Hi")
    admission = fixture.services.response_requests.make_admission(conversation)
    with pytest.raises(Forbidden) as of_response:
        await admission.accept(CreateResponse.model_validate(body))

    assert [refused.value.code for refused in (of_turn, of_response)] == ["model_not_allowed"] * 2
    assert await waiting.places() == 0


async def test_an_unknown_model_is_told_only_models_that_the_caller_may_use(services: AgentsServices) -> None:
    registry = services.registry
    limit()
    for name in ("secret-one", "shared-one"):
        await registry.register_model(ModelRegisterRequest(model_id=name, provider_model_id=f"scripted/{name}"))
    limit("scripted/shared-*")

    for asked, told in (("shared-on", "shared-one"), ("secret-on", "shared-one"), ("scripted/dmo", None)):
        with pytest.raises((InvalidRequest, Forbidden)) as refused:
            await registry.route(asked)
        message = refused.value.message.replace(repr(asked), "")
        assert (f"Did you mean {told!r}?" in message) is (told is not None), message
        assert "secret" not in message
        assert "demo" not in message
    with pytest.raises(NotFound, match=r"not found\. Did you mean 'shared-one'\?"):
        await registry.get_model("shared-on")


async def test_an_ambiguous_id_is_told_only_models_that_the_caller_may_use(cloud: Cloud, tenant: str) -> None:
    stack = TurnFixture(cloud.store, tenant, script(), models="scripted/twin,test/twin,test/other")
    registry = stack.services.registry
    for patterns, told in (((), ["scripted/twin", "test/twin"]), (("test/*",), ["test/twin"]), (("test/o*",), [])):
        limit(*patterns)
        with pytest.raises(InvalidRequest) as refused:
            await registry.route("twin")

        assert [each for each in ("scripted/twin", "test/twin") if repr(each) in refused.value.message] == told


@pytest.mark.parametrize(
    ("patterns", "near"),
    [((), "scripted/demo"), (("scripted/*",), "scripted/demo"), (("scripted/d?o", "scripted/x*"), None)],
)
def test_a_provider_without_a_model_tells_only_models_that_the_caller_may_use(
    patterns: tuple[str, ...], near: str | None
) -> None:
    settings = Settings(scripted_models=True, models="scripted/secret", default_model="openai/gpt-5")
    model, name = Adapters(settings).router.resolve("scripted/dmo")
    limit(*patterns)

    with pytest.raises(InvalidRequest) as refused:
        model.check(InferenceRequest(model=name, messages=()))

    assert refused.value.message.startswith("There is no scripted model 'scripted/dmo'.")
    assert refused.value.message.endswith(f" Did you mean {near!r}?") is (near is not None)
    assert "secret" not in refused.value.message


def test_a_provider_without_a_model_tells_none_if_the_caller_is_not_known() -> None:
    model, name = Adapters(Settings(scripted_models=True)).router.resolve("scripted/dmo")

    with pytest.raises(InvalidRequest) as refused:
        model.check(InferenceRequest(model=name, messages=()))

    assert "scripted/demo" not in refused.value.message
