"""Background responses: their creation, their worker, streams of their events, and their cancellation."""

import threading
import time
from contextlib import suppress
from typing import Any

from tests.faults.api import Api, Reply
from tests.faults.response_scenarios import CALL, ENDED, RESPONSES, ResponseScenario
from tests.faults.scenario import LATER, Finding, Findings, Scenario

WAIT_SECONDS = 10.0
"""Time for which a reader waits for a worker. One that starts a response late waits until the clock is moved."""

READER_SECONDS = 2.0
"""Time for a reader to see the end of a response whose worker has ended."""


class BackgroundResponse(ResponseScenario):
    """A background response with a tool. After a death, its reader queues it again."""

    name = "background"
    has_work = True
    text = CALL
    stream = False

    def act(self, api: Api) -> None:
        self.reply = api.post(RESPONSES, self.request(background=True))

    def check(self, api: Api) -> Findings:
        for listed in api.read(f"{RESPONSES}?limit=100")["data"]:
            api.get(f"{RESPONSES}/{listed['id']}")
        self.cloud.work_off(LATER)
        yield from self.check_listed(api)

    def check_listed(self, api: Api) -> Findings:
        """Check the responses that exist, or were announced."""
        listed = api.read(f"{RESPONSES}?limit=100")["data"]
        if len(listed) > 1:
            yield Finding("doubled", f"{len(listed)} responses")
        known = {response["id"] for response in listed} | ({self.reply.body["id"]} if self.reply.ok else set())
        for response_id in known:
            yield from self.check_response(api, response_id)


class UnreadBackgroundResponse(BackgroundResponse):
    """A background response that nobody reads before its message is delivered again."""

    name = "background-unread"

    def check(self, api: Api) -> Findings:
        for _ in range(2):
            self.cloud.work_off(LATER, redeliver=True)
        yield from self.check_listed(api)


class StreamedBackgroundResponse(BackgroundResponse):
    """A streamed background response. Its worker runs while the client reads; a broken stream is joined again."""

    name = "background-streamed"

    def act(self, api: Api) -> None:
        reader = threading.Thread(target=self._read, args=(api,))
        self.reply = Reply()
        self.worked = threading.Event()
        reader.start()
        end = time.monotonic() + WAIT_SECONDS
        while reader.is_alive() and not self.worked.wait(0.02):
            self.cloud.work_off(observed=True)
            if time.monotonic() > end:
                self.worked.set()
            self._note_end(reader)
        reader.join()

    def check(self, api: Api) -> Findings:
        created = [event["response"]["id"] for event in self.reply.events if "response" in event][:1]
        yield from super().check(api)
        for response_id in created:
            yield from self._check_replay(api, response_id)

    def _read(self, api: Api) -> None:
        body = self.request(background=True, stream=True)
        with suppress(Exception), api.client.stream("POST", RESPONSES, json=body) as answer:
            self.reply.status = answer.status_code
            for text in answer.iter_text():
                self.reply.text += text
                if self.worked.is_set():
                    return

    def _note_end(self, reader: threading.Thread) -> None:
        """Let the reader leave once its response has no worker any more."""
        if self.cloud.undelivered:
            self.worked.set()

    def _check_replay(self, api: Api, response_id: str) -> Findings:
        replay = api.get(f"{RESPONSES}/{response_id}?stream=true").events
        numbers = [event["sequence_number"] for event in replay]
        if numbers != list(range(len(numbers))):
            yield Finding("lost", f"events of the replay: {numbers}")
        if not replay or replay[-1].get("response", {}).get("status") not in ENDED:
            yield Finding("stuck", "the replay has no end")
        for event in self.reply.events:
            if event not in replay:
                yield Finding("lost", f"an announced event of type {event['type']}")


class CancelledResponse(ResponseScenario):
    """A background response is cancelled before its worker begins."""

    name = "cancel-background"
    has_work = True
    works_before = False
    text = CALL

    def prepare(self, api: Api) -> None:
        self.path = f"{RESPONSES}/{api.make(RESPONSES, self.request(background=True))['id']}"

    def act(self, api: Api) -> None:
        self.reply = api.post(f"{self.path}/cancel")

    def check(self, api: Api) -> Findings:
        api.get(self.path)
        self.cloud.work_off(LATER)
        stored = api.read(self.path)
        if stored["status"] not in ENDED:
            yield Finding("stuck", f"a response that is {stored['status']}")
        if self.reply.ok and stored["status"] != "cancelled":
            yield Finding("lost", f"an announced cancellation: the response is {stored['status']}")
        if stored["status"] == "cancelled" and self.cloud.tools.effects:
            yield Finding("doubled", f"effects of a cancelled response: {dict[Any, Any](self.cloud.tools.effects)}")


BACKGROUND: list[type[Scenario]] = [
    BackgroundResponse,
    UnreadBackgroundResponse,
    StreamedBackgroundResponse,
    CancelledResponse,
]
