"""Automations of OpenAI's Agents API. Their schedules are not real, so that only calls for records are counted."""

from typing import ClassVar

from tests.faults.api import Api, Body
from tests.faults.creation_scenarios import CreationScenario
from tests.faults.scenario import Finding, Findings, Scenario
from tests.faults.waiting_scenarios import LAST


class AutomationCreation(CreationScenario):
    """An automation of the Agents API, whose schedule is made before its record."""

    name = "create-automation"
    path, records = "/v1/agents/automations", r"#automation\|"
    body: ClassVar[Body] = {
        "type": "periodic",
        "name": "Daily",
        "expression": "0 9 * * *",
        "timezone": "UTC",
        "target": {
            "type": "new_session",
            "environment": {"type": "none"},
            "agent": {"model": "scripted/demo"},
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "say: one"}]}],
        },
    }


class InvocationCreation(CreationScenario):
    """A run of an automation that is asked for: the worker begins one session."""

    name = "create-invocation"
    records = r"#automation:.*\|invocation"

    def prepare(self, api: Api) -> None:
        self.automation = api.make(AutomationCreation.path, AutomationCreation.body)["id"]

    def request(self) -> tuple[str, Body | None]:
        return f"{AutomationCreation.path}/{self.automation}/invocations", {}

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        for _ in range(2):
            self.cloud.work_off(LAST, redeliver=True)
        later = self.cloud.api(LAST)
        sessions = later.read("/v1/agents/sessions")["data"]
        if len(sessions) != 1:
            yield Finding("lost" if not sessions else "doubled", f"{len(sessions)} sessions of one run")
        [run] = later.read(f"{AutomationCreation.path}/{self.automation}/invocations")["data"]
        if run["status"] != "completed":
            yield Finding("stuck", f"the run: {run}")


AUTOMATIONS: list[type[Scenario]] = [AutomationCreation, InvocationCreation]
