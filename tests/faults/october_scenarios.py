"""The API of October 2024: a turn, and an insertion into a memory bank."""

import threading
from typing import Any

from tests.faults.api import Api, Body, Reply
from tests.faults.scenario import LATER, Finding, Findings, Scenario
from tests.faults.turn_scenarios import SERVER_CALLS, TurnScenario, user

BANK = "facts"
WAIT_SECONDS = 0.1


class OctoberTurn(TurnScenario):
    """A streamed turn with two tools of the server. Its ids begin with that of the session."""

    name = "october-turn"
    text = SERVER_CALLS

    def act(self, api: Api) -> None:
        _, _, _, agent, _, session = self.session.split("/")
        self.place = {"agent_id": agent, "session_id": session}
        self.reply = api.post("/agents/turn/create", self.place | {"messages": user(self.text), "stream": True})

    def check(self, api: Api) -> Findings:
        self.api = api
        yield from super().check(api)

    def _check_event(self, event: Body, stored: dict[str, Body]) -> Findings:
        kind = event["event_type"]
        if kind == "turn_start" and event["turn_id"].rpartition(":")[2] not in stored:
            yield Finding("lost", "an announced turn")
        if kind == "step_complete":
            announced = event["step_details"]
            yield from self._check_stored(announced, self._read(announced["turn_id"])["steps"], "step")
        if kind == "turn_complete":
            yield from self._check_stored(event["turn"], [self._read(event["turn"]["turn_id"])], "end of a turn")

    def _read(self, turn_id: str) -> Body:
        found = self.api.post("/agents/turn/get", self.place | {"turn_id": turn_id}).body
        return found if "steps" in found else {"steps": []}

    def _check_stored(self, announced: Body, stored: list[Any], what: str) -> Findings:
        if announced not in stored:
            yield Finding("lost", f"an announced {what}")


class OctoberInsertion(Scenario):
    """A document is inserted into a bank. The request waits until the worker has ingested it."""

    name = "october-insertion"

    def prepare(self, api: Api) -> None:
        api.make("/memory_banks/register", {"memory_bank": {"identifier": BANK}})

    def act(self, api: Api) -> None:
        self.reply = Reply()
        document = {"document_id": "llamas", "content": "Llamas live in the Andes.", "metadata": {}}
        body = {"bank_id": BANK, "documents": [document]}
        caller = threading.Thread(target=api.post, args=("/memory/insert", body, self.reply))
        caller.start()
        while caller.is_alive():
            self.cloud.work_off(observed=True)
            if self.cloud.undelivered:
                self.cloud.work_off(LATER, redeliver=True)
            caller.join(WAIT_SECONDS)

    def check(self, api: Api) -> Findings:
        for _ in range(3):
            self.cloud.work_off(LATER, redeliver=True)
        if not self.reply.ok:
            yield from self._check_repetition(api)
        chunks = api.make("/memory/query", {"bank_id": BANK, "query": "Llamas"})["chunks"]
        if len(chunks) != 1:
            yield Finding("doubled" if chunks else "lost", f"the document is found {len(chunks)} times")

    def _check_repetition(self, api: Api) -> Findings:
        """A request without an answer may be repeated."""
        failed = self.reply
        self.act(api)
        if not self.reply.ok:
            yield Finding(
                "stuck", f"the repeated insertion: {self.reply.status} {self.reply.text[:200]} ({failed.status})"
            )


OCTOBER: list[type[Scenario]] = [OctoberTurn, OctoberInsertion]
