"""Messages to a conversation in use: they wait, are merged, are cancelled, or interrupt the running response."""

from tests.faults.api import Api, Body, Reply
from tests.faults.response_scenarios import ENDED, RESPONSES, ResponseScenario, check_announced, text_of
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.waiting_scenarios import (
    SECOND,
    AcceptedScenario,
    BusyScenario,
    CancelledScenario,
    InterruptingScenario,
)


class BusyConversation(BusyScenario, ResponseScenario):
    """A message to a conversation."""

    def prepare(self, api: Api) -> None:
        self.conversation = api.make("/v1/conversations", {})["id"]

    def post(self, api: Api, reply: Reply, text: str, **fields: object) -> None:
        api.post(RESPONSES, self.request(input=text, **fields), reply)

    def check(self, api: Api) -> Findings:
        listed = api.read(f"{RESPONSES}?limit=100")["data"]
        if len(listed) > 2:
            yield Finding("doubled", f"{len(listed)} responses")
        for events in self.first.events, self.second.events:
            yield from self.check_stream(api, events)
        for response in listed:
            yield from self.check_response(api, response["id"])
        count = self.count_inputs(api)
        announced = [event for event in self.second.events if event.get("type") == "response.completed"]
        if count > 1 or (announced and not count):
            yield Finding("doubled" if count else "lost", f"{SECOND!r} is {count} times in the conversation")
        yield from self.check_next(api)

    def check_stream(self, api: Api, events: list[Body]) -> Findings:
        """Compare announced events with the stored responses."""
        for response_id in {event["response"]["id"] for event in events if "response" in event}:
            stored = api.get(f"{RESPONSES}/{response_id}")
            if not stored.ok:
                yield Finding("lost", f"an announced response: {stored.status}")
            else:
                yield from check_announced(events, stored.body)

    def check_response(self, api: Api, response_id: str) -> Findings:
        stored = api.read(f"{RESPONSES}/{response_id}")
        if stored["status"] not in ENDED:
            yield Finding("stuck", f"a response that is {stored['status']}")

    def check_next(self, api: Api) -> Findings:
        """The conversation takes another response."""
        following = api.post(RESPONSES, self.request(input="say: again"))
        if not following.ok or following.body["status"] != "completed":
            yield Finding("stuck", f"the conversation: {following.status} {following.text[:200]}")

    def count_inputs(self, api: Api) -> int:
        """Return how often the message is in the conversation."""
        items = api.read(f"/v1/conversations/{self.conversation}/items?limit=100")["data"]
        return [text_of(item) for item in items].count(SECOND)


class EnqueuedResponse(BusyConversation):
    name = "enqueue-response"


class MergedResponse(BusyConversation):
    name = "merge-response"
    when_busy = "merge"

    def check(self, api: Api) -> Findings:
        if self.undisturbed and len(api.read(f"{RESPONSES}?limit=100")["data"]) != 1:
            yield Finding("lost", "a merge without a fault")
        yield from super().check(api)


class InterruptingResponse(InterruptingScenario, BusyConversation):
    name = "interrupt-response"

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        ended = [event["response"]["status"] for event in self.first.events if event.get("type") == "response.failed"]
        if self.undisturbed and ended != ["cancelled"]:
            yield Finding("lost", f"an interruption without a fault: {ended}")


class AcceptedResponse(AcceptedScenario, BusyConversation):
    name = "enqueue-response-accepted"

    def check(self, api: Api) -> Findings:
        api = self.finish_work()
        if self.accepted:
            yield from self.check_message(api)
        yield from super().check(api)

    def check_message(self, api: Api) -> Findings:
        found = api.get(self.place())
        stored = self.count_inputs(api)
        runs = 1 if found.body.get("status") == "failed" and not stored else stored
        yield from self.check_found(found, ENDED, runs)

    def place(self) -> str:
        return f"{RESPONSES}/{self.second.body['id']}"


class CancelledQueuedResponse(CancelledScenario, AcceptedResponse):
    name = "cancel-waiting-response"

    def check_message(self, api: Api) -> Findings:
        yield from self.check_cancelled(api.get(self.place()), self.count_inputs(api))


WAITING_RESPONSES: list[type[Scenario]] = [
    EnqueuedResponse,
    MergedResponse,
    InterruptingResponse,
    AcceptedResponse,
    CancelledQueuedResponse,
]
