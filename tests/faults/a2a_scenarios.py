"""Messages to agents by A2A, each of which creates a session and a task. A client repeats it with its key."""

from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.creation_scenarios import KEY, CreationScenario
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.waiting_scenarios import LAST

VERSION = {"A2A-Version": "1.0"}


def task_of(reply: Reply) -> Body:
    """Return the task of an answer; empty if it did not arrive, or is an error."""
    found: Body = reply.body.get("result", {}).get("task", {})
    return found


class SentTask(CreationScenario):
    """A message whose task this process runs, with a tool of the server.

    A task that failed after its first step is answered as it is: its tool may have been called.
    """

    name = "send-task"
    configuration: ClassVar[Body] = {}
    text: ClassVar[str] = 'call: book_room {"label": "a"}'
    count = 0

    def prepare(self, api: Api) -> None:
        config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["desk"]}
        self.agent = api.make("/v1/agents", {"agent_config": config})["agent_id"]

    def send(self, api: Api) -> Reply:
        self.count += 1  # clients count with the id, so that a repetition has another one
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": self.text}]}
        params = {"message": message, "configuration": self.configuration}
        body = {"jsonrpc": "2.0", "id": self.count, "method": "SendMessage", "params": params}
        return api.post(f"/v1/agents/{self.agent}/a2a", body, headers=KEY | VERSION)

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        if not task_of(again):
            yield Finding("stuck", f"the repeated message: {again.status} {again.text[:200]}")
        for _ in range(2):
            self.cloud.work_off(LAST, redeliver=True)
        first, second = task_of(self.reply), task_of(again)
        ended = first.get("status", {}).get("state") != "TASK_STATE_FAILED"
        if first and ended and second and first["id"] != second["id"]:
            yield Finding("doubled", "the repeated message has another task")
        sessions = api.read(f"/v1/agents/{self.agent}/sessions")["data"]
        if len(sessions) != 1:
            yield Finding("doubled" if sessions else "lost", f"{len(sessions)} sessions")
        paths = [f"/v1/agents/{self.agent}/session/{each['session_id']}" for each in sessions]
        turns = [turn for path in paths for turn in api.read(path)["turns"]]
        succeeded = [turn["turn_id"] for turn in turns if turn["output_message"]["content"]]
        if len(succeeded) > 1:
            yield Finding("doubled", f"{len(succeeded)} turns that succeeded")
        if not turns:
            yield Finding("lost", "the turn of the message")


class AcceptedTask(SentTask):
    """A message whose task the worker runs."""

    name = "send-waiting-task"
    configuration: ClassVar[Body] = {"returnImmediately": True}


A2A: list[type[Scenario]] = [SentTask, AcceptedTask]
