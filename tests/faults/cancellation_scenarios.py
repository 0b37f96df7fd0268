"""Cancellations of runs in the foreground."""

import threading
import time

from tests.faults.api import Api, Body, Reply
from tests.faults.response_scenarios import ENDED, RESPONSES, ResponseScenario, check_announced
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.turn_scenarios import TurnScenario, payloads, user

SLOW = "slow: 2\nsay: one two"
"""A message whose answer takes two seconds, unless it is cancelled."""


class CancelledRun(Scenario):
    """A streamed run, which is cancelled as soon as its client knows its id."""

    def act(self, api: Api) -> None:
        self.reply, self.cancellation = Reply(), Reply()
        path, body = self.run_request()
        reader = threading.Thread(target=api.post, args=(path, body, self.reply))
        reader.start()
        while reader.is_alive() and not self.find_id():
            time.sleep(0.02)
        if self.find_id():
            self.cancellation = api.post(f"{self.place()}/cancel")
        reader.join()

    def run_request(self) -> tuple[str, Body]:
        """Return path and body of the request that starts the run."""
        raise NotImplementedError

    def find_id(self) -> str:
        """Return the id of the run, or an empty string before it is announced."""
        raise NotImplementedError

    def place(self) -> str:
        """Return the path of the run."""
        raise NotImplementedError

    def check_cancellation(self, stored: Body) -> Findings:
        """An answered cancellation stays."""
        answer = self.cancellation.body
        if self.cancellation.ok and stored.get("status") != answer["status"]:
            yield Finding("lost", f"a run that was {answer['status']} is {stored.get('status')}")


class CancelledTurn(CancelledRun, TurnScenario):
    name = "cancel-turn"
    text = SLOW

    def run_request(self) -> tuple[str, Body]:
        return f"{self.session}/turn", {"messages": user(self.text), "stream": True}

    def find_id(self) -> str:
        return next((event["turn_id"] for event in payloads(self.reply) if "turn_id" in event), "")

    def place(self) -> str:
        return f"{self.session}/turn/{self.find_id()}"

    def check(self, api: Api) -> Findings:
        if self.find_id():
            yield from self.check_cancellation(api.get(self.place()).body)
        yield from super().check(api)


class CancelledForegroundResponse(CancelledRun, ResponseScenario):
    name = "cancel-response"

    def run_request(self) -> tuple[str, Body]:
        return RESPONSES, self.request(input=SLOW, stream=True)

    def find_id(self) -> str:
        return next((event["response"]["id"] for event in self.reply.events if "response" in event), "")

    def place(self) -> str:
        return f"{RESPONSES}/{self.find_id()}"

    def check(self, api: Api) -> Findings:
        if self.find_id():
            yield from self.check_cancellation(api.get(self.place()).body)
        yield from super().check(api)

    def check_response(self, api: Api, response_id: str) -> Findings:
        """Check all but the text that was cut: a process that does not end its run in time may have streamed more."""
        stored = api.get(f"{RESPONSES}/{response_id}")
        if stored.ok and stored.body["status"] in ENDED:
            yield from check_announced([without_cut(event) for event in self.reply.events], without_cut(stored.body))
        else:
            yield from super().check_response(api, response_id)


def without_cut(document: Body) -> Body:
    """Return an event or a response without items that were cut."""
    if document.get("type") == "response.output_item.done" and document["item"].get("status") == "incomplete":
        return {"type": "response.output_item.cut"}
    if "response" in document:
        return document | {"response": without_cut(document["response"])}
    if "output" in document:
        return document | {"output": [item for item in document["output"] if item.get("status") != "incomplete"]}
    return document


CANCELLATIONS: list[type[Scenario]] = [CancelledTurn, CancelledForegroundResponse]
