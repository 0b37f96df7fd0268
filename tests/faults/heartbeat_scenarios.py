"""Runs that are cancelled when their client, which has sent a heartbeat, does not send another one."""

import threading

from tests.faults.api import Api, Body, Reply
from tests.faults.response_scenarios import RESPONSES, ResponseScenario
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.tool_server import Gate
from tests.faults.turn_scenarios import TurnScenario, payloads, user
from tests.faults.waiting_scenarios import HELD_CALL


class AbandonedRun(Scenario):
    """A run whose tool does not answer. Its client sends one heartbeat."""

    tried = False
    """Whether the client has sent a heartbeat."""

    def act(self, api: Api) -> None:
        self.reply, self.heartbeat = Reply(), Reply()
        with self.cloud.tools.holding() as gate:
            client = threading.Thread(target=self.start, args=(api,))
            client.start()
            self.send_heartbeat(api, client, gate)
            client.join()

    def send_heartbeat(self, api: Api, client: threading.Thread, gate: Gate) -> None:
        """Send a heartbeat when the tool runs. If that fails, the tool answers."""
        while client.is_alive() and not gate.entered.wait(0.02):
            pass
        if self.find_id():
            self.tried = True
            self.heartbeat = api.post(f"{self.place()}/heartbeat")
        if not self.heartbeat.ok:
            gate.opened.set()

    def start(self, api: Api) -> None:
        """Start the run, and read its stream into the reply."""
        raise NotImplementedError

    def find_id(self) -> str:
        """Return the id of the run, or an empty string before it is announced."""
        raise NotImplementedError

    def place(self) -> str:
        """Return the path of the run."""
        raise NotImplementedError

    def check_end(self, found: Reply) -> Findings:
        """A run is cancelled if its client is gone, and not before its first heartbeat."""
        status = found.body.get("status")
        if status == "cancelled" and not self.tried:
            yield Finding("lost", "a run that was cancelled before the first heartbeat")
        if status == "completed" and self.heartbeat.ok:
            yield Finding("stuck", "a run whose client is gone was not cancelled")
        if self.undisturbed and status != "cancelled":
            yield Finding("stuck", f"a run without a fault is {status}")


class AbandonedTurn(AbandonedRun, TurnScenario):
    name = "heartbeat"
    text = HELD_CALL

    def start(self, api: Api) -> None:
        body = {"messages": user(self.text), "stream": True, "on_disconnect": "cancel"}
        api.post(f"{self.session}/turn", body, self.reply)

    def find_id(self) -> str:
        return next((event["turn_id"] for event in payloads(self.reply) if "turn_id" in event), "")

    def place(self) -> str:
        return f"{self.session}/turn/{self.find_id()}"

    def check(self, api: Api) -> Findings:
        if self.find_id():
            yield from self.check_end(api.get(self.place()))
        yield from super().check(api)


class AbandonedResponse(AbandonedRun, ResponseScenario):
    name = "heartbeat-response"

    def start(self, api: Api) -> None:
        body: Body = self.request(input=HELD_CALL, stream=True, on_disconnect="cancel")
        api.post(RESPONSES, body, self.reply)

    def find_id(self) -> str:
        return next((event["response"]["id"] for event in self.reply.events if "response" in event), "")

    def place(self) -> str:
        return f"{RESPONSES}/{self.find_id()}"

    def check(self, api: Api) -> Findings:
        if self.find_id():
            yield from self.check_end(api.get(self.place()))
        yield from super().check(api)


HEARTBEATS: list[type[Scenario]] = [AbandonedTurn, AbandonedResponse]
