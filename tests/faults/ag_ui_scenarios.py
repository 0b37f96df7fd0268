"""Runs of AG-UI, which a client repeats with its key, or without one: then the ids of its messages tell what is new."""

from typing import Any, ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.creation_scenarios import KEY
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.turn_scenarios import NEXT

SAID = 'call: book_room {"label": "a"}'


class AgUiRunCreation(Scenario):
    """The first run of a thread, whose session it creates, with a tool."""

    name = "ag-ui-run"
    options: ClassVar[dict[str, Any]] = {"headers": KEY}
    most_deaths, most_errors = 2, 3

    def prepare(self, api: Api) -> None:
        config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["desk"]}
        self.agent = api.make("/v1/agents", {"agent_config": config})["agent_id"]

    def send(self, api: Api, *texts: str, **options: Any) -> Reply:
        messages = [{"id": text, "role": "user", "content": text} for text in (SAID, *texts)]
        body = {"threadId": "1", "runId": "1", "messages": messages}
        return api.post(f"/v1/agents/{self.agent}/ag-ui", body, **options)

    def act(self, api: Api) -> None:
        self.reply = self.send(api, **self.options)

    def check(self, api: Api) -> Findings:
        again = self.send(api, **self.options)
        if not again.ok and '"turn_id"' not in again.text:
            yield Finding("stuck", f"the repeated request: {again.status} {again.text[:200]}")
        sessions = api.read(f"/v1/agents/{self.agent}/sessions")["data"]
        if len(sessions) != 1:
            yield Finding("doubled" if sessions else "lost", f"{len(sessions)} sessions of the thread")
            return
        turns = api.read(f"/v1/agents/{self.agent}/session/{sessions[0]['session_id']}")["turns"]
        succeeded = [turn["turn_id"] for turn in turns if turn["output_message"]["content"]]
        if len(succeeded) > 1:
            yield Finding("doubled", f"{len(succeeded)} turns that succeeded")
        if has_finished(self.reply) and not succeeded:
            yield Finding("lost", "a run that has finished")
        yield from self._check_input(api)

    def _check_input(self, api: Api) -> Findings:
        """The next run takes its own message alone, and its model is told once what the user has said before."""
        later = self.send(api, NEXT)
        if not has_finished(later):
            yield Finding("stuck", f"the next run: {later.status} {later.text[-200:]}")
        count = (self.cloud.model_requests.find(NEXT) or []).count(SAID)
        if count != 1:
            yield Finding("doubled" if count else "lost", f"the input is {count} times in the model's request")


class RepeatedAgUiRun(AgUiRunCreation):
    name = "ag-ui-repeated-run"
    options: ClassVar[dict[str, Any]] = {}


def has_finished(reply: Reply) -> bool:
    """Return whether the whole stream of a run arrived that has not failed."""
    last: Body = reply.events[-1] if reply.events else {}
    return reply.ok and last.get("type") == "RUN_FINISHED"


AG_UI: list[type[Scenario]] = [AgUiRunCreation, RepeatedAgUiRun]
