import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.tasks import ResponseTask
from stint.store.clients import make_events
from stint.store.messaging import EventBridgeBus

DETAIL = ResponseTask(tenant="acme", response_id="resp_1")


@pytest.fixture
def aws() -> Iterator[Any]:
    with mock_aws():
        client: Any = make_events()
        client.create_event_bus(Name="ours")
        yield client


async def test_an_event_is_put_on_the_named_bus(aws: Any) -> None:
    sent: list[Any] = []
    aws.meta.events.register("before-parameter-build.events.PutEvents", lambda params, **_: sent.append(params))

    await EventBridgeBus(lambda: aws, "ours").put("stint", "Response Completed", DETAIL)

    [[entry]] = [params["Entries"] for params in sent]
    assert (entry["Source"], entry["DetailType"], entry["EventBusName"]) == ("stint", "Response Completed", "ours")
    assert json.loads(entry["Detail"]) == {"kind": "response", "tenant": "acme", "response_id": "resp_1"}


async def test_events_are_discarded_without_a_bus(aws: Any) -> None:
    sent: list[Any] = []
    aws.meta.events.register("provide-client-params.events.PutEvents", lambda params, **_: sent.append(params))

    await EventBridgeBus(lambda: aws, "").put("stint", "Response Completed", DETAIL)

    assert not sent


async def test_an_entry_that_is_refused_for_good_is_an_error(aws: Any) -> None:
    with pytest.raises(StintError, match=r"refused event .* .InvalidArgument") as raised:
        await EventBridgeBus(lambda: aws, "ours").put("", "Response Completed", DETAIL)

    assert not isinstance(raised.value, StoreUnavailable)


@pytest.mark.parametrize("code", ["InternalFailure", "ThrottlingException"])
async def test_an_entry_that_was_not_taken_may_be_sent_again(aws: Any, code: str) -> None:
    def fail(parsed: dict[str, Any], **_: Any) -> None:
        parsed.update(FailedEntryCount=1, Entries=[{"ErrorCode": code, "ErrorMessage": "Later."}])

    aws.meta.events.register("after-call.events.PutEvents", fail)

    with pytest.raises(StoreUnavailable, match=code):
        await EventBridgeBus(lambda: aws, "ours").put("stint", "Response Completed", DETAIL)


async def test_a_bus_that_does_not_exist_is_told_in_the_words_of_the_domain(aws: Any) -> None:
    with pytest.raises(StintError, match="The event bus refused the request"):
        await EventBridgeBus(make_events, "nowhere").put("stint", "Response Completed", DETAIL)
