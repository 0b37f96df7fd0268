"""Service tiers over HTTP: sent to Bedrock, refused where there are none, and shown as they served."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import RESPONSES, assert_refused, events_of, get
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer

MODEL = "bedrock/amazon.nova-pro-v1:0"
CHAT = "/v1/chat/completions"
REFUSAL = converse.error(400, "ValidationException", "The provided service tier is not supported for this model.")
WINDOW = {"completion_window": "2h"}


def serve(bedrock: ConverseStreamServer, tier: str) -> None:
    end = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}
    stop = converse.event("messageStop", {"stopReason": "end_turn"})
    metadata = converse.event("metadata", end | {"serviceTier": {"type": tier}})
    bedrock.script(converse.begun(*converse.text_block("Hi"), stop, metadata))


def respond(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post(RESPONSES, json={"model": MODEL, "input": "Hello"} | fields)


def chat(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post(CHAT, json={"model": MODEL, "messages": [{"role": "user", "content": "Hello"}]} | fields)


def tiers_sent(bedrock: ConverseStreamServer) -> list[str | None]:
    return [body["serviceTier"]["type"] if "serviceTier" in body else None for body in bedrock.bodies]


@pytest.mark.parametrize(
    ("asked", "sent", "served"),
    [
        ({}, None, "default"),
        ({"service_tier": "auto"}, None, "default"),
        ({"service_tier": "default"}, "default", "default"),
        ({"service_tier": "flex"}, "flex", "flex"),
        ({"service_tier": "priority"}, "priority", "default"),
        ({"service_tier": "fast"}, "priority", "priority"),
    ],
)
def test_the_tier_that_served_is_shown(
    http: httpx.Client, bedrock: ConverseStreamServer, asked: dict[str, str], sent: str | None, served: str
) -> None:
    for _ in range(2):
        serve(bedrock, served)

    response, completion = respond(http, **asked).json(), chat(http, **asked).json()

    assert tiers_sent(bedrock) == [sent, sent]
    assert (response["service_tier"], completion["service_tier"]) == (served, served)
    assert get(http, response["id"]) == response


@pytest.mark.parametrize("served", ["on_demand", "reserved", "performance"])
def test_a_tier_that_openais_clients_do_not_know_is_shown_as_the_default_one(
    http: httpx.Client, bedrock: ConverseStreamServer, served: str
) -> None:
    for _ in range(2):
        serve(bedrock, served)

    response, completion = respond(http).json(), chat(http).json()

    assert (response["service_tier"], completion["service_tier"]) == ("default", "default")
    assert get(http, response["id"]) == response


def test_a_stream_shows_the_tier_that_was_asked_for_until_one_has_served(
    http: httpx.Client, bedrock: ConverseStreamServer
) -> None:
    serve(bedrock, "default")

    events = events_of(respond(http, stream=True, service_tier="priority").text)

    shown = [event["response"]["service_tier"] for event in events if "response" in event]
    assert shown == ["priority", "priority", "default"]


def test_a_response_that_is_not_stored_shows_the_tier_that_served(
    http: httpx.Client, bedrock: ConverseStreamServer
) -> None:
    serve(bedrock, "flex")

    assert respond(http, store=False, service_tier="flex").json()["service_tier"] == "flex"


def test_a_stored_completion_keeps_the_tier_that_served(http: httpx.Client, bedrock: ConverseStreamServer) -> None:
    serve(bedrock, "flex")
    headers = {"Idempotency-Key": "order-7"}
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "store": True, "service_tier": "flex"}

    first, again = (http.post(CHAT, json=body, headers=headers).json() for _ in range(2))

    assert first == again
    assert first["service_tier"] == http.get(f"{CHAT}/{first['id']}").json()["service_tier"] == "flex"
    assert len(bedrock.bodies) == 1


@pytest.mark.parametrize("tier", ["flex", "priority", "fast", "scale", "ultrafast"])
def test_a_model_without_tiers_refuses_one_by_name(http: httpx.Client, tier: str) -> None:
    body = {"model": "scripted/demo", "service_tier": tier}

    answers = [respond(http, **body), chat(http, **body), respond(http, background=True, **body)]

    assert [assert_refused(answer, 400, "invalid_request")["param"] for answer in answers] == ["service_tier"] * 3
    assert http.get(RESPONSES).json()["data"] == []


@pytest.mark.parametrize("tier", ["auto", "default"])
def test_every_model_accepts_the_default_tier(http: httpx.Client, tier: str) -> None:
    body = {"model": "scripted/demo", "service_tier": tier}

    assert [answer.json()["service_tier"] for answer in (respond(http, **body), chat(http, **body))] == ["default"] * 2


def test_a_model_of_bedrock_that_lacks_a_tier_refuses_it_by_name(
    http: httpx.Client, bedrock: ConverseStreamServer
) -> None:
    bedrock.script(REFUSAL, REFUSAL)

    for answer in (respond(http, service_tier="flex"), chat(http, service_tier="flex")):
        error = assert_refused(answer, 400, "invalid_request")
        assert error["param"] == "service_tier"
        assert "'flex'" in error["message"]


def test_a_summary_is_written_in_the_tier_that_is_asked_for(http: httpx.Client, bedrock: ConverseStreamServer) -> None:
    serve(bedrock, "flex")

    http.post(f"{RESPONSES}/compact", json={"model": MODEL, "input": "Hello", "service_tier": "flex"})

    assert tiers_sent(bedrock) == ["flex"]


class TestBackgroundOptions:
    @pytest.mark.parametrize("background", [True, False])
    @pytest.mark.parametrize("options", [{"completion_window": "soonest"}, {}, None, {"completion_window": None}])
    def test_the_soonest_window_changes_nothing(
        self, http: httpx.Client, app_fixture: AppFixture, options: dict[str, Any] | None, background: bool
    ) -> None:
        body = {"model": "scripted/demo", "background": background, "background_options": options}

        created = respond(http, **body)
        if background:
            app_fixture.work_off()

        assert created.status_code == 200, created.text
        assert get(http, created.json()["id"])["service_tier"] == "default"

    @pytest.mark.parametrize("window", ["2h", "8h"])
    @pytest.mark.parametrize("tier", [{}, {"service_tier": "auto"}, {"service_tier": "flex"}])
    def test_a_response_that_can_wait_runs_as_flex(
        self,
        http: httpx.Client,
        app_fixture: AppFixture,
        bedrock: ConverseStreamServer,
        window: str,
        tier: dict[str, str],
    ) -> None:
        serve(bedrock, "flex")
        options = {"completion_window": window}

        queued = respond(http, background=True, background_options=options, **tier).json()
        app_fixture.work_off()
        done = get(http, queued["id"])

        assert tiers_sent(bedrock) == ["flex"]
        assert (queued["service_tier"], done["service_tier"]) == ("flex", "flex")
        assert (queued["background_options"], done["background_options"]) == (options, options)
        assert done["status"] == "completed"

    def test_a_model_without_flex_refuses_it_by_name(self, http: httpx.Client) -> None:
        answer = respond(http, model="scripted/demo", background=True, background_options=WINDOW)

        error = assert_refused(answer, 400, "invalid_request")
        assert error["param"] == "background_options"

    def test_a_model_of_bedrock_without_flex_fails_the_response_with_the_reason(
        self, http: httpx.Client, app_fixture: AppFixture, bedrock: ConverseStreamServer
    ) -> None:
        bedrock.script(REFUSAL)

        queued = respond(http, background=True, background_options=WINDOW).json()
        app_fixture.work_off()
        failed = get(http, queued["id"])

        assert (failed["status"], failed["service_tier"]) == ("failed", "flex")
        assert "'flex'" in failed["error"]["message"]

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"background_options": WINDOW}, "background_options"),
            ({"background": False, "background_options": WINDOW}, "background_options"),
            (
                {"background": True, "background_options": WINDOW, "service_tier": "priority"},
                "background_options",
            ),
            ({"background": True, "background_options": WINDOW, "service_tier": "default"}, "background_options"),
            (
                {"background": True, "background_options": {"completion_window": "24h"}},
                "background_options.completion_window",
            ),
            ({"background": True, "background_options": {"window": "2h"}}, "background_options.window"),
            ({"background": True, "background_options": "2h"}, "background_options"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, http: httpx.Client, fields: dict[str, Any], param: str) -> None:
        error = assert_refused(respond(http, **fields), 400, "invalid_request")

        assert error["param"] == param
