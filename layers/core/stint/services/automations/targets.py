"""The port to the sessions of automations. The package of OpenAI's Agents API implements it.

The core does not know the API's request for a session, which a target has as JSON.
"""

from collections.abc import Set
from typing import Protocol

from stint.domain.openai.automations import ExistingSessionTarget, NewSessionTarget
from stint.services.runs.run_handle import RequestContext


class Targets(Protocol):
    """The sessions of a tenant that automations begin, or send messages to."""

    async def check(self, target: NewSessionTarget | ExistingSessionTarget) -> None:
        """Check a target for the current caller as its run will be checked, and create nothing.

        Raises:
            InvalidRequest: the request of a session is invalid, or names an unknown vault.
            Forbidden: the caller may not use the model, or the session.
            NotFound: there is no such agent or session.
        """

    async def create_session(self, target: NewSessionTarget, context: RequestContext) -> str:
        """Create a session with its input, and return its id. A repeated attempt of the caller returns the same one.

        Raises:
            NotFound: the saved agent was deleted.
            StintError: as the API's route does.
        """

    async def list_waiting(self, target: ExistingSessionTarget) -> Set[str]:
        """Return the ids of the messages that wait for the session. Raises NotFound if there is no such session."""

    async def send(self, target: ExistingSessionTarget, context: RequestContext) -> None:
        """Store the instructions as a message of the session, unless an earlier attempt of the context did.

        Its id is the `object_id` of the attempt. Raises NotFound, and StintError as the API's route does.
        """
