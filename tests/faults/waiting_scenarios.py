"""Messages to a session in use: they wait, are merged, are cancelled, or interrupt the running turn."""

import threading
import time
from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.scenario import LATER, Finding, Findings, Scenario
from tests.faults.tool_server import HELD, Gate
from tests.faults.turn_scenarios import TurnScenario, is_started, payloads, user

HELD_CALL = f'call: {HELD} {{"label": "first"}}'
"""The message of a run that waits for a tool, so that another message comes while it runs."""

SECOND = "say: second"
LAST = 2 * LATER
"""Seconds after which no lease of a worker of LATER is left."""


class BusyScenario(Scenario):
    """A message that comes while a run waits for its tool. The tool answers once the message waits."""

    when_busy: ClassVar[str] = "enqueue"

    def act(self, api: Api) -> None:
        self.first, self.second = Reply(), Reply()
        with self.cloud.tools.holding() as gate:
            running = threading.Thread(target=self.post, args=(api, self.first, HELD_CALL), kwargs={"stream": True})
            running.start()
            while running.is_alive() and not gate.entered.wait(0.02):
                pass
            self.send(api, gate)
        running.join()
        self.reply = self.second

    def send(self, api: Api, gate: Gate) -> None:
        """Send the message, and read its stream to the end."""
        fields = {"stream": True, "when_busy": self.when_busy}
        caller = threading.Thread(target=self.post, args=(api, self.second, SECOND), kwargs=fields)
        caller.start()
        while caller.is_alive() and not self.second.text:
            time.sleep(0.02)
        gate.opened.set()
        caller.join()

    def post(self, api: Api, reply: Reply, text: str, **fields: object) -> None:
        """Send a message to the session or the conversation."""
        raise NotImplementedError


class InterruptingScenario(BusyScenario):
    """A message that cancels the running run. Its tool does not answer."""

    when_busy = "interrupt"

    def send(self, api: Api, gate: Gate) -> None:
        self.post(api, self.second, SECOND, stream=True, when_busy=self.when_busy)


class AcceptedScenario(BusyScenario):
    """A message whose request is answered while it waits. The worker starts it."""

    def act(self, api: Api) -> None:
        super().act(api)
        self.cloud.work_off(LATER, observed=True)

    def send(self, api: Api, gate: Gate) -> None:
        self.post(api, self.second, SECOND, stream=False, when_busy=self.when_busy)

    @property
    def accepted(self) -> bool:
        """Return whether the client has the id of the message."""
        return self.second.complete and self.second.status == 202

    def finish_work(self) -> Api:
        """Let workers finish what dead ones have left, and return the API of that time."""
        for _ in range(2):
            self.cloud.work_off(LAST, redeliver=True)
        return self.cloud.api(LAST)

    def place(self) -> str:
        """Return the path of the message."""
        raise NotImplementedError

    def check_found(self, found: Reply, statuses: tuple[str, ...], runs: int) -> Findings:
        """Check the message, which `runs` runs have, and its run as it is found by its id."""
        if not found.ok:
            yield Finding("lost", f"an accepted message: {found.status} {found.text[:200]}")
        elif found.body["status"] not in statuses:
            yield Finding("stuck", f"an accepted message that is {found.body['status']}")
        elif runs != 1:
            yield Finding("lost" if runs < 1 else "doubled", f"an accepted message that {runs} runs have")
        if self.undisturbed and (found.body.get("status") != "completed" or not self.accepted):
            yield Finding("lost", f"a message without a fault: {self.second.status} {found.text[:200]}")


class CancelledScenario(AcceptedScenario):
    """A message that is cancelled while it waits."""

    def send(self, api: Api, gate: Gate) -> None:
        super().send(api, gate)
        self.cancellation = Reply()
        if self.accepted:
            self.cancellation = self.cancel(api)

    def cancel(self, api: Api) -> Reply:
        """Cancel the message."""
        return api.post(f"{self.place()}/cancel")

    def check_cancelled(self, found: Reply, runs: int) -> Findings:
        """A message whose cancellation was answered has no run, and stays cancelled."""
        if self.cancellation.ok and self.cancellation.body["status"] == "cancelled":
            if not found.ok or found.body["status"] != "cancelled":
                yield Finding("lost", f"an announced cancellation: {found.status} {found.text[:200]}")
            if runs:
                yield Finding("doubled", "a cancelled message was run")
        if self.undisturbed and found.body.get("status") != "cancelled":
            yield Finding("lost", f"a cancellation without a fault: {found.status} {found.text[:200]}")


class BusySession(BusyScenario, TurnScenario):
    """A message to a session."""

    turns = 2
    free_at_end = False

    def inputs(self) -> dict[str, bool]:
        return {HELD_CALL: is_started(self.first), SECOND: self._announced_end()}

    def post(self, api: Api, reply: Reply, text: str, **fields: object) -> None:
        api.post(f"{self.session}/turn", {"messages": user(text), **fields}, reply)

    def check(self, api: Api) -> Findings:
        stored = self.read_turns(api)
        for payload in payloads(self.first):
            yield from self._check_event(payload, stored)
        if count_inputs(stored) > 1:
            yield Finding("doubled", f"{SECOND!r} is {count_inputs(stored)} times in the session")
        yield from super().check(api)


def count_inputs(turns: dict[str, Body]) -> int:
    """Return how often the message is in a session."""
    return [message["content"] for turn in turns.values() for message in turn["input_messages"]].count(SECOND)


class EnqueuedTurn(BusySession):
    name = "enqueue"


class InterruptingTurn(InterruptingScenario, BusySession):
    name = "interrupt"

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        ended = [event["turn"]["status"] for event in payloads(self.first) if event["event_type"] == "turn_complete"]
        if self.undisturbed and ended != ["cancelled"]:
            yield Finding("lost", f"an interruption without a fault: {ended}")


class MergedTurn(BusySession):
    name = "merge"
    when_busy = "merge"

    def check(self, api: Api) -> Findings:
        turns = api.read(self.session)["turns"]
        if self.undisturbed and len(turns) != 1:
            yield Finding("lost", "a merge without a fault")
        yield from super().check(api)


class AcceptedTurn(AcceptedScenario, BusySession):
    name = "enqueue-accepted"

    def check(self, api: Api) -> Findings:
        api = self.finish_work()
        if self.accepted:
            yield from self.check_message(api)
        yield from super().check(api)

    def check_message(self, api: Api) -> Findings:
        runs = count_inputs({turn["turn_id"]: turn for turn in api.read(self.session)["turns"]})
        yield from self.check_found(api.get(self.place()), ("completed", "failed"), runs)

    def place(self) -> str:
        return f"{self.session}/turn/{self.second.body['turn_id']}"


class CancelledMessage(CancelledScenario, AcceptedTurn):
    name = "cancel-waiting"

    def check_message(self, api: Api) -> Findings:
        runs = count_inputs({turn["turn_id"]: turn for turn in api.read(self.session)["turns"]})
        yield from self.check_cancelled(api.get(self.place()), runs)


WAITING: list[type[Scenario]] = [EnqueuedTurn, MergedTurn, InterruptingTurn, AcceptedTurn, CancelledMessage]
