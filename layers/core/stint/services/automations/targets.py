"""The port to the sessions of automations. The package of OpenAI's Agents API implements it.

The core does not know the API's request for a session, which a target has as JSON.
"""

from typing import Protocol

from stint.domain.openai.automations import ExistingSessionTarget, NewSessionTarget
from stint.services.runs.run_handle import RequestContext


class PendingDelivery(Exception):
    """The message that a session got at the run before still waits in line."""


class Targets(Protocol):
    """The sessions of a tenant that automations begin, or send messages to."""

    async def check(self, target: NewSessionTarget | ExistingSessionTarget) -> None:
        """Check a target for the current caller as its run will be checked, and create nothing.

        Raises:
            InvalidRequest: the request of a session is invalid, or names an unknown agent or vault.
            Forbidden: the caller may not use the model, or the session.
            NotFound: there is no such agent or session.
        """

    async def create_session(self, target: NewSessionTarget, context: RequestContext) -> str:
        """Create a session with its input, and return its id. A repeated attempt of the context returns the same one.

        Raises StintError as the API's route does.
        """

    async def send(self, target: ExistingSessionTarget, context: RequestContext, before: str) -> None:
        """Store the instructions as a message of the session, unless an earlier attempt did.

        `before` is the id of the message of the run before, or empty.

        Raises:
            PendingDelivery: that message still waits in line.
            NotFound: there is no such session.
            StintError: as the API's route does.
        """
