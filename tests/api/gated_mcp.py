"""An MCP provider whose calls a test holds back."""

import asyncio
import threading

from tests.services.worker_fixture import FakeMcp

from stint.tools.port import Invocation, Toolgroup, ToolOutcome


class GatedMcp(FakeMcp):
    """An MCP provider whose calls wait until the test opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate = threading.Event(), threading.Event()

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.begun.set()
        await asyncio.to_thread(self.gate.wait, 60)
        return await super().invoke(toolgroup, invocation)
