"""Ids of models: listed in full and, where that is unambiguous, without the prefix of their provider."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.api.api_client import assert_error, create_session, open_session, say, turn, turns_of
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client

CHAT = "/v1/chat/completions"
Body = dict[str, Any]


def listed(http: httpx.Client, base: str = "/v1") -> list[str]:
    models = http.get(f"{base}/models").json()["data"]
    return [model["identifier"] for model in models if model["model_type"] == "llm"]


def register(http: httpx.Client, model_id: str, **fields: Any) -> httpx.Response:
    return http.post("/v1/models", json={"model_id": model_id} | fields)


def configure(app_fixture: AppFixture, *models: str) -> None:
    app_fixture.settings = app_fixture.settings.model_copy(update={"models": ",".join(models)})
    app_fixture.made.clear()


def ask(http: httpx.Client, model: str) -> list[httpx.Response]:
    """Use a model in every API."""
    message = {"role": "user", "content": "say: Hi"}
    return [
        http.post(CHAT, json={"model": model, "messages": [message]}),
        http.post("/v1/responses", json={"model": model, "input": "say: Hi"}),
        http.post("/v1/responses/input_tokens", json={"model": model, "input": "say: Hi"}),
        http.post("/v1/responses/compact", json={"model": model, "input": "say: Hi"}),
        say(http, open_session(http, model=model), "say: Hi"),
    ]


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_a_model_is_listed_and_found_with_and_without_its_prefix(server: Served, base: str) -> None:
    with openai_client(server, base) as openai:
        ids = [model.id for model in openai.models.list()]
        found = [openai.models.retrieve(each).id for each in ids]

    assert ids == found == ["scripted/demo", "hashed/words-384", "demo", "words-384", "all-MiniLM-L6-v2"]


def test_minilm_is_the_default_embedding_model_unless_it_is_registered(
    http: httpx.Client,
) -> None:
    """This is the name of the default of Llama Stack."""
    name, other = "all-MiniLM-L6-v2", {"provider_id": "openai", "provider_model_id": "mini", "model_type": "embedding"}

    configured = http.get(f"/v1/models/{name}").json()
    registered = http.post("/v1/models", json={"model_id": name, "metadata": {"embedding_dimension": 8}, **other})
    listed = [each for each in http.get("/v1/models").json()["data"] if each["identifier"] == name]

    assert (configured["provider_resource_id"], configured["metadata"]) == ("words-384", {"embedding_dimension": 384})
    assert registered.status_code == 200
    assert [(each["provider_id"], each["provider_resource_id"]) for each in listed] == [("openai", "mini")]


def test_a_model_is_served_by_its_short_id_and_answers_by_it(http: httpx.Client) -> None:
    chat, response, *others, answered = ask(http, "demo")

    assert (chat.json()["model"], response.json()["model"]) == ("demo", "demo")
    assert all(each.status_code == 200 for each in others)
    assert answered.json()["output_message"]["content"] == "Hi"


def test_a_short_id_that_several_models_have_is_neither_listed_nor_served(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    settings = app_fixture.settings
    configure(app_fixture, "recorded/demo", "recorded/other")

    ids, refused = listed(http), ask(http, "demo")
    app_fixture.settings = settings

    assert ids == ["scripted/demo", "recorded/demo", "recorded/other", "other"]
    assert http.get("/v1/models/demo").status_code == 404
    for answer in refused:
        error = assert_error(answer, 400, "model_not_found")
        assert error["param"] == "model"
        assert "'scripted/demo', 'recorded/demo'" in error["message"]


def test_demo_is_the_scripted_model_where_no_list_names_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"default_model": "recorded/m", "models": "scripted/other"})

    ids, answers = listed(http), ask(http, "demo")
    off = app_fixture.settings = settings.model_copy(update={"default_model": "recorded/m", "scripted_models": False})
    app_fixture.made.clear()
    refused = ask(http, "demo")
    app_fixture.settings = settings

    assert ids == ["recorded/m", "scripted/other", "m", "other"]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert answers[-1].json()["output_message"]["content"] == "Hi"
    assert not off.scripted_models
    for answer in refused:
        assert_error(answer, 400, "model_not_found")


def test_another_listed_model_may_be_called_demo(http: httpx.Client, app_fixture: AppFixture) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"default_model": "recorded/demo"})

    ask(http, "demo")
    app_fixture.settings = settings

    assert [request.model for request in app_fixture.recorder.requests] == ["demo"] * 4


def test_a_short_id_never_takes_the_place_of_another_id(http: httpx.Client, app_fixture: AppFixture) -> None:
    settings = app_fixture.settings
    configure(app_fixture, "recorded/scripted/demo", "recorded/plums")
    assert register(http, "plums", provider_model_id="scripted/demo").status_code == 200

    ids = listed(http)
    app_fixture.settings = settings

    assert sorted(ids) == ["demo", "plums", "recorded/plums", "recorded/scripted/demo", "scripted/demo"]
    assert http.get("/v1/models/plums").json()["provider_id"] == "scripted"


def test_models_of_the_settings_without_a_prefix_are_listed_with_it_too(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"default_model": "recorded/m", "models": "plums,org/figs"})

    ids = listed(http)
    shown = [http.get(f"/v1/models/{each}").json()["identifier"] for each in ids]
    answers = [http.post(CHAT, json={"model": each, "messages": [{"role": "user", "content": "x"}]}) for each in ids]
    app_fixture.settings = settings

    assert sorted(ids) == ["m", "org/figs", "plums", "recorded/m", "recorded/org/figs", "recorded/plums"]
    assert shown == ids
    assert [answer.status_code for answer in answers] == [200] * 6


@pytest.mark.parametrize(
    ("model", "provider", "kind"),
    [
        ("demo", "scripted", "llm"),
        ("scripted/demo", "scripted", "llm"),
        ("recorded/unlisted", "recorded", "llm"),
        ("recorded/org/name", "recorded", "llm"),
        ("openai/text-embedding-3-small", "openai", "embedding"),
        ("hashed/words-128", "hashed", "embedding"),
        ("sentence-transformers/all-mpnet-base-v2", "hashed", "embedding"),
    ],
)
def test_a_model_that_a_request_may_name_is_returned_whether_listed_or_not(
    http: httpx.Client, app_fixture: AppFixture, model: str, provider: str, kind: str
) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"default_model": "recorded/m"})

    found = http.get(f"/v1/models/{model}")
    ids = listed(http)
    app_fixture.settings = settings

    assert found.status_code == 200
    shown = found.json()
    assert (shown["id"], shown["provider_id"], shown["model_type"], shown["owner"]) == (model, provider, kind, None)
    assert ids == ["recorded/m", "m"]


@pytest.mark.parametrize(
    "model", ["nobody/m", "plums", "scripted/gpt-4", "openai/not-configured", "hashed/plums", "local/none"]
)
def test_a_model_that_no_request_may_name_is_a_404(http: httpx.Client, model: str) -> None:
    assert_error(http.get(f"/v1/models/{quote(model, safe='')}"), 404, "model_not_found")


def test_a_registered_model_has_a_short_id_which_is_not_to_be_unregistered(http: httpx.Client) -> None:
    register(http, "scripted/fast", provider_model_id="scripted/demo")

    assert listed(http) == ["scripted/demo", "scripted/fast", "demo", "fast"]
    assert turn(http, open_session(http, model="fast"), "say: Hi")["output_message"]["content"] == "Hi"
    assert "scripted/fast" in assert_error(http.delete("/v1/models/fast"), 409, "short_id")["message"]
    assert http.delete("/v1/models/scripted/fast").status_code == 200
    assert_error(http.delete("/v1/models/fast"), 404, "model_not_found")
    assert listed(http) == ["scripted/demo", "demo"]


def test_a_shield_may_ask_a_model_by_its_short_id(http: httpx.Client, app_fixture: AppFixture) -> None:
    shield = {"shield_id": "guard", "provider_id": "llama-guard", "provider_shield_id": "demo"}

    assert http.post("/v1/shields", json=shield).status_code == 200


@pytest.mark.parametrize("name", ["gpt-4", "Demo", "demo/x"])
def test_the_scripted_provider_refuses_names_that_it_does_not_have(http: httpx.Client, name: str) -> None:
    for answer in ask(http, f"scripted/{name}"):
        error = assert_error(answer, 400, "model_not_found")
        assert error["param"] == "model"
        assert f"'scripted/{name}'. GET /v1/models lists the models." in error["message"]


def test_a_refused_name_begins_no_turn(http: httpx.Client) -> None:
    session = open_session(http, model="scripted/nope")

    assert_error(say(http, session, "Hi", stream=True), 400, "model_not_found")
    assert turns_of(http, session) == []
    assert create_session(http, session.split("/")[3])
